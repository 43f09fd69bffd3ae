//! Why there is no result, and why there is no pool.

use std::{fmt, io};

use ebbtide_lifecycle::{Panicked, Refusal};

/// Why a job gave no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum OffloadError {
    /// It panicked.
    Panicked(Panicked),
    /// The pool did not take it: it has not run, and will not.
    Refused(Refusal),
    /// It was accepted, and never run: a stop came to its deadline, or whoever was [handed it
    /// back](crate::Unstarted) let it go.
    Discarded,
    /// Its deadline came first. What had begun goes on, and its result is discarded.
    Elapsed,
}

impl OffloadError {
    /// Goes on with the panic of the job on this thread: `offload(f).await.unwrap_or_else(OffloadError::resume)`.
    ///
    /// # Panics
    /// Always: with what the job panicked with, or with this error.
    #[track_caller]
    pub fn resume(self) -> ! {
        match self {
            Self::Panicked(panic) => panic.resume(),
            other => panic!("{other}"),
        }
    }
}

impl fmt::Display for OffloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(panic) => write!(f, "the job panicked: {}", panic.message()),
            Self::Refused(why) => write!(f, "the pool refused the job: {why}"),
            Self::Discarded => f.write_str("the pool stopped before the job began"),
            Self::Elapsed => f.write_str("the deadline passed before the job ended"),
        }
    }
}

/// Its text says all: there is no source to say it again.
impl std::error::Error for OffloadError {}

/// Why a pool did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A lane was to have no thread, or room for no job.
    Zero {
        /// What was zero.
        what: &'static str,
    },
    /// The pool's name has a zero byte in it, which no thread's may.
    Name,
    /// The system had no thread to give. Those that had started have ended again.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { what } => write!(f, "{what} is zero: nothing could ever run; ask for one or more"),
            Self::Name => f.write_str("the pool's name has a zero byte in it, which no thread's may"),
            Self::Thread(_) => f.write_str("a thread of the pool could not be started"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Zero { .. } | Self::Name => None,
            Self::Thread(error) => Some(error),
        }
    }
}
