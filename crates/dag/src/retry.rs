//! Trying again.

use std::time::Duration;

/// How often a node is tried, and how long is waited in between: twice as long each time, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    attempts: u32,
    first: Duration,
    longest: Duration,
}

impl Retry {
    /// Tried `attempts` times at most, the first included, with nothing in between.
    #[must_use]
    pub const fn times(attempts: u32) -> Self {
        Self { attempts, first: Duration::ZERO, longest: Duration::ZERO }
    }

    /// Waits for `first` before the second attempt, twice as long before the third, and so on, up to `longest`.
    #[must_use]
    pub const fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        (self.first, self.longest) = (first, longest);
        self
    }

    /// How long to wait after so many attempts; none if there are to be no more.
    pub(crate) fn after(&self, attempts: u32) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let doublings = attempts.saturating_sub(1).min(31);
        Some(self.first.saturating_mul(1 << doublings).min(self.longest.max(self.first)))
    }
}
