//! What a program says with its exit code about how it stopped.

use std::{fmt, process::ExitCode};

/// How a stop went, as the exit code tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// All accepted work was run or handed back, and every component stopped: 0.
    Clean,
    /// A component failed: it was the reason for the stop, or it failed or panicked while it was stopped. 70, which
    /// `sysexits` calls an internal error.
    Failed,
    /// The time was up before everything had ended, and work was abandoned: 75, `sysexits`' temporary failure.
    Abandoned,
    /// A second signal came before the stop had ended: 76.
    Forced,
}

impl Verdict {
    /// The exit code after a third signal, when the handler itself ends the process: 77.
    pub const IMMEDIATE: u8 = 77;

    /// The exit code.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Failed => 70,
            Self::Abandoned => 75,
            Self::Forced => 76,
        }
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(verdict.exit_code())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Failed => "a component failed",
            Self::Abandoned => "work was abandoned",
            Self::Forced => "forced by a second signal",
        })
    }
}
