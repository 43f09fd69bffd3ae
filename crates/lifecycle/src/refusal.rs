//! Saying no: why, and with what was brought handed back.

use std::fmt;

/// Why work was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// Closed to new work: not started yet, stopping, or stopped.
    Closed,
    /// As much is in flight, or waits in line, as is allowed at a time.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed to new work",
            Self::Full => "as much work is in flight, or in line, as is allowed",
        })
    }
}

impl std::error::Error for Refusal {}

/// Work that was not accepted, handed back: it has not run, and will not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<T> {
    /// Why it was not accepted.
    pub why: Refusal,
    /// What was brought.
    pub work: T,
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "work refused: {}", self.why)
    }
}

impl<T> std::error::Error for Refused<T> {}
