//! What must be true of a program that has stopped.

use ebbtide::{
    Exit,
    lifecycle::{Balance, blame::Stragglers},
    shutdown::{Ending, Report, Stage, Verdict},
};

use crate::witness::Leave;

/// What the audit allows.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub(crate) verdicts: Vec<Verdict>,
    /// The pool was refused its first threads.
    pub(crate) not_started: bool,
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
                let findings = (!allowed.not_started).then(|| exit.to_string()).into_iter().collect();
                Self { findings, ending: "not started".into(), leave: Leave::default() }
            }
            Some(report) => Self::of_report(report, &allowed.verdicts),
        }
    }

    fn of_report(report: &Report, allowed: &[Verdict]) -> Self {
        let (mut findings, mut sum) = (Vec::new(), Balance::default());
        let verdict = report.verdict();
        if !allowed.contains(&verdict) {
            findings.push(format!("the verdict is {:?}, which is not allowed", verdict.to_string()));
        }
        if report.stage() != Stage::Stopped {
            findings.push(format!("the report was made while it was {}", report.stage()));
        }
        if let Some(intake) = report.intake() {
            findings.extend(wrong_with("the intake", &intake.ending, &intake.balance, &intake.stragglers));
            sum = sum + intake.balance;
        }
        for component in report.components() {
            if let Some(balance) = &component.balance {
                let name = format!("component {:?}", component.name);
                findings.extend(wrong_with(&name, &component.ending, balance, &component.stragglers));
                sum = sum + *balance;
            }
        }
        if !findings.is_empty() {
            findings.push(report.to_string());
        }
        let callbacks = report.callbacks().iter().map(|callback| &callback.ending);
        let mut endings = callbacks.chain(report.components().map(|component| &component.ending));
        let leave = Leave {
            // What was left behind is named, and may get on after the report.
            goes_on: sum.abandoned + sum.in_flight > 0 || endings.any(|ending| *ending == Ending::Hung),
            broken: sum.failed + sum.cancelled + sum.handed_back + sum.abandoned + sum.in_flight,
        };
        Self { findings, ending: verdict.to_string(), leave }
    }
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
    let left = balance.in_flight + balance.abandoned - balance.returned_after.min(balance.abandoned);
    if *ending == Ending::Clean && balance.in_flight + balance.abandoned > 0 {
        return Some(format!("{name} says that it stopped cleanly, and its books do not: {balance}"));
    }
    (left > 0 && stragglers.is_empty())
        .then(|| format!("{name} has left work behind without a name: {balance}"))
}
