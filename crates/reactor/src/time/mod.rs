//! Time on a loop: sleeps, intervals, and the wheel that they are kept in.

mod away;
mod interval;
mod orphan;
mod sleep;
mod wheel;

use std::time::{Duration, Instant};

use ebbtide_lifecycle::time::{Clock, SystemClock};

pub(crate) use self::wheel::{Key, Times, Wheel};
pub use self::{
    interval::{Interval, Missed, interval},
    sleep::Sleep,
};
use crate::{core::Core, lease::Lease};

/// The time by the clock of the loop that runs here, or else by the system's.
#[must_use]
pub fn now() -> Instant {
    Core::current().map_or_else(|| SystemClock.now(), Core::now)
}

/// Sleeps for `duration`, never less. One that leads beyond the range of an `Instant` never ends.
///
/// On a loop it reads no clock: it is counted from the loop's next reading, at the end of the turn. So a task
/// that keeps its loop busy for a while makes the sleeps of that turn as much longer. Sleeps of one length end
/// in the order in which they were made. [`sleep_until`] counts from the time that it is given. Of either kind: where
/// four or more are due within an eighth of a millisecond, they are looked at together, a third of a millisecond late
/// at most.
///
/// For work on a loop: see [`Sleep`].
#[inline]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::after(duration)
}

/// Sleeps until `at`, never less. For work on a loop: see [`Sleep`].
pub fn sleep_until(at: Instant) -> Sleep {
    Sleep::at(Some(at), Core::current().map(Lease::of))
}
