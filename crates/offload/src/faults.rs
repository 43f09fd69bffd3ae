//! What goes wrong on purpose, with the feature `testing`; without it, nothing.

#[cfg(feature = "testing")]
use std::io;

use crate::work::Hook;

#[derive(Default)]
pub(crate) struct Faults {
    /// Called before each job.
    #[cfg(feature = "testing")]
    pub(crate) job: Option<Hook>,
    /// Whether the system has no thread to give.
    #[cfg(feature = "testing")]
    pub(crate) thread: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

#[cfg(feature = "testing")]
impl Faults {
    /// The hook of a pool, and what goes wrong with a job after it.
    pub(crate) fn after(&mut self, before_each: Option<Hook>) -> Option<Hook> {
        match (before_each, self.job.take()) {
            (Some(before), Some(job)) => Some(Box::new(move || {
                before();
                job();
            })),
            (before, job) => before.or(job),
        }
    }

    /// What the system says when it is asked for a thread.
    pub(crate) fn refuse_thread(&self) -> io::Result<()> {
        match &self.thread {
            Some(is_refused) if is_refused() => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }
}

#[cfg(not(feature = "testing"))]
impl Faults {
    pub(crate) fn after(&mut self, before_each: Option<Hook>) -> Option<Hook> {
        before_each
    }

    pub(crate) fn refuse_thread(&self) -> std::io::Result<()> {
        Ok(())
    }
}
