//! The loop that runs here, as a value.

use std::{future::Future, panic::Location};

use ebbtide_lifecycle::Refused;

use crate::{handle::spawn_here, task::Task};

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
