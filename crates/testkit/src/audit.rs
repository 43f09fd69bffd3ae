//! What must be true of a program that has stopped.

use std::sync::Arc;

use ebbtide::{
    Exit,
    lifecycle::{Balance, blame::Stragglers},
    shutdown::{Ending, Report, Stage, Verdict},
};

use crate::witness::Leave;

/// What the requests that the program has admitted are called, beside the names of its components.
const INTAKE: &str = "intake";

/// What the audit allows.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub(crate) verdicts: Vec<Verdict>,
    /// Those that may break promises when a stop is cut short.
    pub(crate) breakers: Vec<Arc<str>>,
    /// The pool was refused its first threads.
    pub(crate) not_started: bool,
    /// So many requests that the drain gave up on have ended since: the loop has dropped their tasks.
    pub(crate) returned: u64,
}

/// What is wrong with how it ended, how that is called, and what may be left behind.
pub(crate) struct Audit {
    pub(crate) findings: Vec<String>,
    pub(crate) ending: String,
    pub(crate) leave: Leave,
}

impl Audit {
    pub(crate) fn of(exit: &Exit, allowed: &Allowed) -> Self {
        match exit.report() {
            None => {
                let mut findings = Vec::new();
                if !allowed.not_started {
                    findings.push(exit.to_string());
                }
                if exit.code() != Exit::NOT_STARTED {
                    findings.push(format!("it was not started, and its exit code is {}", exit.code()));
                }
                Self { findings, ending: "not started".into(), leave: Leave::default() }
            }
            Some(report) => Self::of_report(report, allowed),
        }
    }

    fn of_report(report: &Report, allowed: &Allowed) -> Self {
        let (mut findings, mut leave) = (Vec::new(), Leave::default());
        let mut look = |name: &str, ending: &Ending, balance: &Balance| {
            leave.goes_on += going_on(balance).max(u64::from(*ending == Ending::Hung));
            if allowed.breakers.iter().any(|breaker| **breaker == *name) {
                leave.broken += Leave::cut_short(balance);
            }
        };
        let verdict = report.verdict();
        if !allowed.verdicts.contains(&verdict) {
            findings.push(format!("the verdict is {:?}, which is not allowed", verdict.to_string()));
        }
        if report.stage() != Stage::Stopped {
            findings.push(format!("the report was made while it was {}", report.stage()));
        }
        if let Some(intake) = report.intake() {
            findings.extend(wrong_with("the intake", &intake.ending, &intake.balance, &intake.stragglers));
            let mut balance = intake.balance;
            balance.returned_after = balance.returned_after.max(allowed.returned);
            look(INTAKE, &intake.ending, &balance);
        }
        for component in report.components() {
            if let Some(balance) = &component.balance {
                let name = format!("component {:?}", component.name);
                findings.extend(wrong_with(&name, &component.ending, balance, &component.stragglers));
            }
            look(&component.name, &component.ending, &component.balance.unwrap_or_default());
        }
        if !findings.is_empty() {
            findings.push(report.to_string());
        }
        let hung = report.callbacks().iter().filter(|callback| callback.ending == Ending::Hung);
        leave.goes_on += hung.count() as u64;
        Self { findings, ending: verdict.to_string(), leave }
    }
}

/// What was given up on, and has not come to its end since.
fn going_on(balance: &Balance) -> u64 {
    balance.in_flight + balance.abandoned.saturating_sub(balance.returned_after)
}

/// The ledger closes: all that was accepted is in it, and what goes on is named.
pub(crate) fn wrong_with(
    name: &str,
    ending: &Ending,
    balance: &Balance,
    stragglers: &Stragglers,
) -> Option<String> {
    if *ending == Ending::Hung {
        // It is named itself, and its books move on.
        return None;
    }
    if let Err(unbalanced) = balance.check() {
        return Some(format!("{name}: {unbalanced}"));
    }
    if *ending == Ending::Clean && balance.in_flight + balance.abandoned > 0 {
        return Some(format!("{name} says that it stopped cleanly, and its books do not: {balance}"));
    }
    (going_on(balance) > 0 && stragglers.is_empty())
        .then(|| format!("{name} has left work behind without a name: {balance}"))
}
