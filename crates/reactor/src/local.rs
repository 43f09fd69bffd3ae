//! The loop that runs here, as a value.

use std::{
    future::Future,
    panic::Location,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Refused,
    time::{Clock, Timer},
};

use crate::{core::Core, handle::spawn_here, task::Task, time::Sleep};

/// Stands for the loop that runs on the calling thread, whichever that is: for libraries that want to be given an
/// executor or a timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Local {
    /// As [`spawn`](crate::spawn()).
    ///
    /// # Errors
    /// Hands `future` back if no loop runs here, or if it drops its tasks already.
    #[track_caller]
    pub fn spawn<F: Future + 'static>(&self, future: F) -> Result<Task<F::Output>, Refused<F>> {
        spawn_here(future, (), Location::caller())
    }
}

/// The clock of the loop that runs here, or else the system's.
impl Clock for Local {
    fn now(&self) -> Instant {
        crate::now()
    }

    fn is_virtual(&self) -> bool {
        Core::current().is_some_and(|core| core.shared().clock.is_some())
    }
}

/// The timers of the loop that runs here. Its sleeps panic when they are polled first where none does.
impl Timer for Local {
    type Sleep = Sleep;

    fn sleep_until(&self, at: Instant) -> Sleep {
        crate::sleep_until(at)
    }

    /// It reads no clock: see [`sleep`](crate::sleep()).
    #[inline]
    fn sleep(&self, duration: Duration) -> Option<Sleep> {
        Some(crate::sleep(duration))
    }
}
