//! What a receiver asks for.

use std::time::Duration;

use crate::span::{Given, OutOfRange, Span};

/// How many messages are wanted, how long they stay out of sight of others, and how long they are waited for.
///
/// Unless told otherwise: up to ten, for five minutes, waiting for twenty seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull {
    max: usize,
    visibility: Span,
    wait: Duration,
}

impl Pull {
    /// The most messages that are received at a time.
    pub const BATCH_MAX: usize = 10;
    /// The longest that messages are waited for.
    pub const WAIT_MAX: Duration = Duration::from_secs(20);

    /// At most `max` messages, at least one if any come.
    ///
    /// # Errors
    /// [`OutOfRange`] if that is none, or more than [`BATCH_MAX`](Pull::BATCH_MAX).
    pub const fn max(mut self, max: usize) -> Result<Self, OutOfRange> {
        if max == 0 || max > Self::BATCH_MAX {
            return Err(OutOfRange { what: "a batch", given: Given::Count(max), least: 1, most: 10 });
        }
        self.max = max;
        Ok(self)
    }

    /// Whoever gets them has so long to settle them; after that they are delivered again.
    #[must_use]
    pub const fn visibility(mut self, visibility: Span) -> Self {
        self.visibility = visibility;
        self
    }

    /// If there is none, waits up to `wait` for the first.
    ///
    /// # Errors
    /// [`OutOfRange`] if that is longer than [`WAIT_MAX`](Pull::WAIT_MAX).
    pub const fn wait(mut self, wait: Duration) -> Result<Self, OutOfRange> {
        if wait.as_nanos() > Self::WAIT_MAX.as_nanos() {
            return Err(OutOfRange { what: "a wait", given: Given::Time(wait), least: 0, most: 20 });
        }
        self.wait = wait;
        Ok(self)
    }

    /// The same, without waiting.
    pub(crate) const fn at_once(mut self) -> Self {
        self.wait = Duration::ZERO;
        self
    }

    /// How many are wanted at most.
    #[must_use]
    pub const fn batch(&self) -> usize {
        self.max
    }

    /// How long they stay out of sight.
    #[must_use]
    pub const fn lease(&self) -> Span {
        self.visibility
    }

    /// How long they are waited for.
    #[must_use]
    pub const fn patience(&self) -> Duration {
        self.wait
    }
}

impl Default for Pull {
    fn default() -> Self {
        Self { max: Self::BATCH_MAX, visibility: Span::secs(300), wait: Self::WAIT_MAX }
    }
}
