//! The moment by which something has to be over.

use std::time::{Duration, Instant};

use super::Clock;

/// A moment to be done by, or never. The earlier of two is the lesser: `a.min(b)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(When);

/// In this order, so that "never" is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum When {
    At(Instant),
    Never,
}

impl Deadline {
    /// There is no hurry.
    #[must_use]
    pub const fn never() -> Self {
        Self(When::Never)
    }

    /// By `at`.
    #[must_use]
    pub const fn at(at: Instant) -> Self {
        Self(When::At(at))
    }

    /// Within `duration` from now by `clock`. A time beyond what an `Instant` can hold is never.
    #[must_use]
    pub fn after(clock: impl Clock, duration: Duration) -> Self {
        Self::from_start(clock.now(), duration)
    }

    fn from_start(start: Instant, duration: Duration) -> Self {
        start.checked_add(duration).map_or(Self::never(), Self::at)
    }

    /// The earlier of this and `start + timeout`: what holds for one step of a request that has a deadline of its
    /// own. Without a timeout, this.
    #[must_use]
    pub fn effective(self, start: Instant, timeout: Option<Duration>) -> Self {
        timeout.map_or(self, |timeout| self.min(Self::from_start(start, timeout)))
    }

    /// The moment, unless it is never.
    #[must_use]
    pub const fn instant(self) -> Option<Instant> {
        match self.0 {
            When::At(at) => Some(at),
            When::Never => None,
        }
    }

    /// Whether it has come: at the very moment it has.
    #[must_use]
    pub fn is_expired(self, now: Instant) -> bool {
        self.instant().is_some_and(|at| now >= at)
    }

    /// How long there still is: zero once expired, nothing for never.
    #[must_use]
    pub fn remaining(self, now: Instant) -> Option<Duration> {
        self.instant().map(|at| at.saturating_duration_since(now))
    }
}

impl From<Instant> for Deadline {
    fn from(at: Instant) -> Self {
        Self::at(at)
    }
}
