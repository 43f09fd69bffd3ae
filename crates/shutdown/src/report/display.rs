//! The report as a person reads it: the verdict first, then everything that was not clean in full, the rest in a line
//! each.

use std::fmt;

use ebbtide_lifecycle::blame::Stragglers;

use super::{ComponentReport, Ending, Report};
use crate::stage::Stage;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stage == Stage::Stopped {
            write!(f, "stopped in {:.1?}: {} ({})", self.took, self.verdict(), self.reason)?;
        } else {
            write!(f, "{} for {:.1?}: {} ({})", self.stage, self.took, self.verdict(), self.reason)?;
        }
        for warning in &self.warnings {
            write!(f, "\n  warning: {warning}")?;
        }
        for callback in &self.callbacks {
            write!(f, "\n  callback {}: {}", callback.name, callback.ending)?;
        }
        if let Some(intake) = &self.intake {
            write!(f, "\n  intake: {} in {:.1?}; {}", intake.ending, intake.took, intake.balance)?;
            stragglers(f, &intake.stragglers)?;
        }
        for phase in &self.phases {
            write!(f, "\n  phase {}", phase.priority)?;
            for component in &phase.components {
                write!(f, "\n    {component}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ComponentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.ending)?;
        match self.ending {
            Ending::Pending => {}
            Ending::Hung => write!(f, " for {:.1?}, registered at {}", self.took, self.site)?,
            _ => write!(f, " in {:.1?}", self.took)?,
        }
        if let Some(balance) = &self.balance {
            write!(f, "; {balance}")?;
            if self.ending.is_over()
                && let Err(unbalanced) = balance.check()
            {
                write!(f, " ({unbalanced})")?;
            }
        }
        stragglers(f, &self.stragglers)
    }
}

/// Indented below what they belong to; nothing if there are none.
fn stragglers(f: &mut fmt::Formatter<'_>, stragglers: &Stragglers) -> fmt::Result {
    if stragglers.is_empty() {
        return Ok(());
    }
    for line in stragglers.to_string().lines() {
        write!(f, "\n      {line}")?;
    }
    Ok(())
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("clean"),
            Self::Overdue => f.write_str("overdue, with work abandoned"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Hung => f.write_str("has not returned"),
            Self::Pending => f.write_str("not stopped yet"),
        }
    }
}
