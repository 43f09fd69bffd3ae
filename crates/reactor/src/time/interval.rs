//! Ticks.

use std::time::{Duration, Instant};

use super::{Sleep, sleep};
use crate::{core::Core, lease::Lease};

/// What an [`Interval`] does with the ticks that it missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// It gives them at once, one after the other, until it has caught up.
    #[default]
    Burst,
    /// It leaves them out, and keeps to its times.
    Skip,
    /// It gives one at once, and counts its period from then on.
    Delay,
}

/// Ticks every `period`, for the first time after one. For work on a loop.
///
/// A period of zero ticks whenever it is asked.
pub fn interval(period: Duration) -> Interval {
    // It gives the time of each tick, so it has to know it: the clock is read.
    let sleep = match Core::current() {
        Some(core) => Sleep::at(core.now().checked_add(period), Some(Lease::of(core))),
        None => sleep(period),
    };
    Interval { period, missed: Missed::default(), sleep }
}

/// Ticks; from [`interval`].
#[derive(Debug)]
pub struct Interval {
    period: Duration,
    missed: Missed,
    sleep: Sleep,
}

impl Interval {
    /// The same, which does `missed` with the ticks that it missed.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Waits for the next tick, and gives the time for which it was meant.
    ///
    /// # Cancel safety
    /// No tick is lost when this is dropped before its end.
    pub async fn tick(&mut self) -> Instant {
        (&mut self.sleep).await;
        // One that ended was polled, and says when it was due.
        let due = self.sleep.due().unwrap_or_else(|| self.sleep.now());
        let next = match self.missed {
            Missed::Burst => due.checked_add(self.period),
            Missed::Delay => self.sleep.now().checked_add(self.period),
            Missed::Skip => self.next_after(due, self.sleep.now()),
        };
        self.sleep.reset(next);
        due
    }

    /// The first time after `now` that is a whole number of periods after `due`.
    fn next_after(&self, due: Instant, now: Instant) -> Option<Instant> {
        let (late, period) = (now.saturating_duration_since(due).as_nanos(), self.period.as_nanos());
        let periods = late.checked_div(period).map_or(0, |missed| missed + 1);
        let ahead = u64::try_from(periods.checked_mul(period)?).ok()?;
        due.checked_add(Duration::from_nanos(ahead))
    }
}
