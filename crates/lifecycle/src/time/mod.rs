//! Clocks, timers and deadlines: the only place that reads the system's clock.
//!
//! Everything that depends on time takes a [`Clock`] or a [`Timer`], or is given an `Instant`. So a test puts a
//! [`VirtualClock`] in place of the real one and does not sleep.

mod alarm;
mod deadline;
mod sleepers;
mod system;
mod tempo;
mod thread_timer;
mod virtual_clock;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::{
    alarm::Alarm,
    deadline::Deadline,
    system::SystemClock,
    tempo::Tempo,
    thread_timer::{ThreadSleep, ThreadTimer},
    virtual_clock::{Hold, Look, Participant, Rest, VirtualClock, VirtualSleep},
};

/// Tells the time. It never goes backwards.
pub trait Clock {
    /// The time at this moment.
    fn now(&self) -> Instant;

    /// Whether its time is virtual: it moves by other rules than the system's, and only who awaits a sleep sees a
    /// deadline come.
    ///
    /// Where it is not, a deadline can be kept by blocking a thread, with no timer at all: that holds also when the
    /// loop or the runtime that has the timers is stuck, or gone.
    fn is_virtual(&self) -> bool {
        false
    }
}

/// A clock that can also wake a task at a given time.
pub trait Timer: Clock {
    /// Resolves at its time, never before; dropping it cancels it and releases its waker.
    type Sleep: Future<Output = ()>;

    /// A sleep that ends at `at`. One in the past ends at its first poll.
    fn sleep_until(&self, at: Instant) -> Self::Sleep;

    /// A sleep that ends when `duration` has passed, never before. None if that is beyond the range of an
    /// `Instant`: then it would never end.
    ///
    /// A timer that can count from a reading of the clock that it makes in any case does so here.
    fn sleep(&self, duration: Duration) -> Option<Self::Sleep> {
        self.now().checked_add(duration).map(|at| self.sleep_until(at))
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Instant {
        C::now(self)
    }

    fn is_virtual(&self) -> bool {
        C::is_virtual(self)
    }
}

impl<T: Timer + ?Sized> Timer for &T {
    type Sleep = T::Sleep;

    fn sleep_until(&self, at: Instant) -> T::Sleep {
        T::sleep_until(self, at)
    }

    fn sleep(&self, duration: Duration) -> Option<T::Sleep> {
        T::sleep(self, duration)
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Instant {
        C::now(self)
    }

    fn is_virtual(&self) -> bool {
        C::is_virtual(self)
    }
}

impl<T: Timer + ?Sized> Timer for Arc<T> {
    type Sleep = T::Sleep;

    fn sleep_until(&self, at: Instant) -> T::Sleep {
        T::sleep_until(self, at)
    }

    fn sleep(&self, duration: Duration) -> Option<T::Sleep> {
        T::sleep(self, duration)
    }
}
