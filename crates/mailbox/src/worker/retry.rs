//! What becomes of a message whose handler failed.

use std::{fmt, sync::Arc, time::Duration};

use crate::{span::Span, worker::Failure};

/// How often a message is tried, how long until it is tried again, and which failures are worth it.
///
/// Unless told otherwise: five times, after 1, 2, 4, and 8 seconds, whatever the failure. One that the handler says is
/// [for good](super::GiveUp) is never worth it.
#[derive(Clone)]
pub struct Retry {
    attempts: u32,
    first: Duration,
    longest: Duration,
    worth_it: Arc<dyn Fn(&Failure) -> bool + Send + Sync>,
}

impl Retry {
    /// So many attempts in all; none is the same as one.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Waits `first` before the second attempt, twice as long before each one after it, and never longer than
    /// `longest`, nor than [a message can be out of sight](Span::MAX).
    #[must_use]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        (self.first, self.longest) = (first, longest);
        self
    }

    /// Tries again only after failures that `worth_it` says are: by the type of the error, by its text. After any
    /// other one a message is given up on at once.
    #[must_use]
    pub fn only_if(mut self, worth_it: impl Fn(&Failure) -> bool + Send + Sync + 'static) -> Self {
        self.worth_it = Arc::new(worth_it);
        self
    }

    /// How long until the next attempt, after so many; none if there is no other.
    pub(crate) fn after(&self, attempts: u32, failure: &Failure) -> Option<Span> {
        if attempts >= self.attempts || failure.is_final() || !(self.worth_it)(failure) {
            return None;
        }
        let doubled = 2u32.checked_pow(attempts.saturating_sub(1)).and_then(|by| self.first.checked_mul(by));
        let delay = doubled.unwrap_or(Duration::MAX).min(self.longest);
        Some(Span::new(delay).unwrap_or(Span::MAX))
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 5,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(900),
            worth_it: Arc::new(|_| true),
        }
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempts, first, longest, .. } = self;
        f.debug_struct("Retry")
            .field("attempts", attempts)
            .field("first", first)
            .field("longest", longest)
            .finish_non_exhaustive()
    }
}
