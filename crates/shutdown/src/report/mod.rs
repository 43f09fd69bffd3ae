//! What became of everything at a stop, for people and for machines.

mod display;
#[cfg(feature = "serde")]
mod serial;

use std::{
    panic::Location,
    process::{ExitCode, Termination},
    sync::Arc,
    time::Duration,
};

use ebbtide_lifecycle::{Balance, Reason, blame::Stragglers};
use signal_hook::low_level;

use crate::{print::print, priority::Priority, stage::Stage, verdict::Verdict};

/// What became of everything: each caller of [`stop`](crate::Coordinator::stop) gets the same one.
///
/// It can be what `main` returns: it prints itself, if the stop was not clean, and gives its
/// [exit code](Report::exit_code).
#[derive(Clone, Debug)]
#[must_use = "whether the stop was clean is in it"]
pub struct Report {
    pub(crate) reason: Reason,
    pub(crate) stage: Stage,
    pub(crate) took: Duration,
    pub(crate) callbacks: Vec<CallbackReport>,
    pub(crate) intake: Option<IntakeReport>,
    pub(crate) phases: Vec<PhaseReport>,
    pub(crate) warnings: Vec<String>,
    pub(crate) forced: bool,
}

/// What became of one callback.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallbackReport {
    /// What it was registered as.
    pub name: Arc<str>,
    /// How it ended.
    pub ending: Ending,
}

/// What became of the requests in flight.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IntakeReport {
    /// How the drain ended.
    pub ending: Ending,
    /// How long it took.
    pub took: Duration,
    /// What became of all that was ever admitted.
    pub balance: Balance,
    /// Who was still there.
    pub stragglers: Stragglers,
}

/// What became of the components of one priority.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PhaseReport {
    /// Their priority.
    pub priority: Priority,
    /// Each, in the order in which they were registered.
    pub components: Vec<ComponentReport>,
}

/// What became of one component.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComponentReport {
    /// What it was registered as.
    pub name: Arc<str>,
    /// Where it was registered.
    pub site: &'static Location<'static>,
    /// How its stop ended.
    pub ending: Ending,
    /// How long that took, so far if it has not ended.
    pub took: Duration,
    /// What became of its work, where it keeps books.
    pub balance: Option<Balance>,
    /// Who was still there.
    pub stragglers: Stragglers,
}

/// How the stop of a component ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// All its work was run or handed back.
    Clean,
    /// Its deadline came first: some work was abandoned.
    Overdue,
    /// It said why it could not.
    Failed(String),
    /// It panicked, with this message.
    Panicked(String),
    /// It has not returned.
    Hung,
    /// Its turn has not come: only in a report that was made before the end.
    Pending,
}

impl Report {
    /// Why everything was stopped: the first reason that was given.
    #[must_use]
    pub const fn reason(&self) -> &Reason {
        &self.reason
    }

    /// How far the stop had come: [`Stage::Stopped`], unless the report was made before.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// How long it took, from the trigger to the report.
    #[must_use]
    pub const fn took(&self) -> Duration {
        self.took
    }

    /// The callbacks, in the order in which they were called.
    #[must_use]
    pub fn callbacks(&self) -> &[CallbackReport] {
        &self.callbacks
    }

    /// The requests that were in flight; none if the drain had not begun.
    #[must_use]
    pub const fn intake(&self) -> Option<&IntakeReport> {
        self.intake.as_ref()
    }

    /// The phases, the highest priority first.
    #[must_use]
    pub fn phases(&self) -> &[PhaseReport] {
        &self.phases
    }

    /// Every component of every phase.
    pub fn components(&self) -> impl Iterator<Item = &ComponentReport> {
        self.phases.iter().flat_map(|phase| &phase.components)
    }

    /// The component that was registered as `name`.
    #[must_use]
    pub fn component(&self, name: &str) -> Option<&ComponentReport> {
        self.components().find(|component| &*component.name == name)
    }

    /// What was not as it should be, but kept nobody from stopping.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// How it went, all in all.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.forced {
            return Verdict::Forced;
        }
        let mut endings = self.endings();
        if matches!(self.reason, Reason::Failed { .. })
            || endings.clone().any(Ending::is_failure)
            || !self.is_balanced()
        {
            Verdict::Failed
        } else if endings.any(|ending| *ending != Ending::Clean)
            || self.components().any(ComponentReport::has_lost)
        {
            Verdict::Abandoned
        } else {
            Verdict::Clean
        }
    }

    /// Whether all accepted work was run or handed back, and every component stopped.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.verdict() == Verdict::Clean
    }

    /// That of its [verdict](Report::verdict).
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.verdict().exit_code()
    }

    fn endings(&self) -> impl Iterator<Item = &Ending> + Clone {
        let callbacks = self.callbacks.iter().map(|callback| &callback.ending);
        let intake = self.intake.iter().map(|intake| &intake.ending);
        let components = self.phases.iter().flat_map(|phase| &phase.components);
        callbacks.chain(intake).chain(components.map(|component| &component.ending))
    }

    /// Whether the books balance of all that have stopped.
    fn is_balanced(&self) -> bool {
        self.components().filter(|component| component.ending.is_over()).all(ComponentReport::is_balanced)
    }
}

impl PhaseReport {
    /// How long it took: as long as the slowest of its components.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.components.iter().map(|component| component.took).max().unwrap_or_default()
    }
}

impl ComponentReport {
    /// Whether its books say that work was abandoned, or goes on, whatever it said itself.
    fn has_lost(&self) -> bool {
        self.balance.is_some_and(|balance| balance.abandoned + balance.in_flight > 0)
    }

    /// Whether its books balance, if it keeps any.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.balance.is_none_or(|balance| balance.is_balanced())
    }
}

impl Ending {
    pub(crate) const fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Panicked(_))
    }

    const fn is_over(&self) -> bool {
        matches!(self, Self::Clean | Self::Overdue)
    }
}

impl Report {
    /// Ends the process, at once and with its [exit code](Report::exit_code), after printing itself to standard error
    /// if the stop was not clean.
    ///
    /// What `main` has on its stack is not dropped: a runtime would wait there for what is stuck, for good.
    pub fn exit(self) -> ! {
        self.print_unless_clean();
        low_level::exit(self.exit_code().into())
    }

    fn print_unless_clean(&self) {
        if !self.is_clean() {
            print(self.to_string());
        }
    }
}

/// Prints the report to standard error if the stop was not clean.
impl Termination for Report {
    fn report(self) -> ExitCode {
        self.print_unless_clean();
        self.verdict().into()
    }
}
