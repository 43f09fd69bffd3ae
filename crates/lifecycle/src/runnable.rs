//! A loop that occupies a thread until it is told to stop.

use std::{error::Error, sync::Arc};

use crate::{component::Stopped, time::Deadline, trigger::Reason};

/// Why a [`Runnable`] ended without being told to.
pub type RunError = Box<dyn Error + Send + Sync>;

/// A loop that runs on the thread that calls it: a queue worker, an accept loop, an evaluator.
///
/// Where a [`Component`](crate::Component) brings its own threads, a runnable is given one. Implementors check
/// themselves with `conformance::runnable` (feature `conformance`).
pub trait Runnable: Send + Sync {
    /// Runs on the calling thread until it has nothing more to do, or is shut down.
    ///
    /// After a shutdown it returns at once, also if it was never run before. A second run while the first goes
    /// on is refused with an error.
    ///
    /// # Errors
    /// Whatever made it end when nobody asked it to.
    fn run(&self) -> Result<(), RunError>;

    /// Tells it to stop and waits until [`run`](Runnable::run) has returned, until `deadline` at the latest.
    ///
    /// Callable from any thread but the one that runs it, any number of times. If it does not run, this returns at
    /// once.
    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped;

    /// Whether a thread is inside [`run`](Runnable::run).
    fn is_running(&self) -> bool;
}

impl<R: Runnable + ?Sized> Runnable for Arc<R> {
    fn run(&self) -> Result<(), RunError> {
        R::run(self)
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        R::shutdown(self, deadline, reason)
    }

    fn is_running(&self) -> bool {
        R::is_running(self)
    }
}
