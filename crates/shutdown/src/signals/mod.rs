//! Where the word "stop" comes from when it comes from outside of the process.
//!
//! | signal | what is done | by whom |
//! |---|---|---|
//! | first | the trigger fires: a graceful stop | the coordinator's thread |
//! | second | the report so far is printed, the process ends with `Verdict::Forced` | the signals' thread |
//! | third | the process ends with `Verdict::IMMEDIATE` | the handler itself |
//!
//! All signals of a set count together: an interrupt after a termination is the second one. Each needs less of the
//! program to be in order than the one before. A handler does nothing but count and wake, or end the process; the
//! thread of the signals runs no code but ours.

mod feed;
mod handler;
#[cfg(all(unix, not(ebbtide_portable)))]
#[path = "pipe.rs"]
mod system;
#[cfg(not(all(unix, not(ebbtide_portable))))]
#[path = "unpark.rs"]
mod system;

use std::{fmt, io, sync::Arc};

use signal_hook::consts::{FORBIDDEN, SIGINT, SIGTERM};

pub use self::feed::Feed;
use crate::shared::Shared;

/// The signals that a coordinator listens to.
#[derive(Debug)]
pub struct Signals {
    source: Source,
}

#[derive(Debug)]
enum Source {
    System(Vec<i32>),
    Feed(Feed),
}

/// SIGTERM and SIGINT.
impl Default for Signals {
    fn default() -> Self {
        Self::of([SIGTERM, SIGINT])
    }
}

impl Signals {
    /// These signals of the system, by number. They are listened to for the rest of the process's life: one that has
    /// stopped and does not end can still be ended by more of them.
    #[must_use]
    pub fn of(signals: impl IntoIterator<Item = i32>) -> Self {
        let mut signals: Vec<_> = signals.into_iter().collect();
        signals.sort_unstable();
        signals.dedup();
        Self { source: Source::System(signals) }
    }

    /// Whatever is sent through `feed`, for tests and for systems with signals of their own.
    #[must_use]
    pub fn from_feed(feed: &Feed) -> Self {
        Self { source: Source::Feed(feed.clone()) }
    }

    /// Has `shared` told of each.
    pub(crate) fn listen(self, shared: &Arc<Shared>) -> Result<(), SignalError> {
        match self.source {
            Source::Feed(feed) => {
                feed.attach(shared);
                Ok(())
            }
            Source::System(signals) => {
                if let Some(signal) = signals.iter().find(|signal| FORBIDDEN.contains(signal)) {
                    return Err(SignalError {
                        signal: Some(*signal),
                        error: io::ErrorKind::InvalidInput.into(),
                    });
                }
                system::listen(&signals, shared.clone())
            }
        }
    }
}

/// A signal cannot be listened to.
#[derive(Debug)]
pub struct SignalError {
    /// None if it is the thread that cannot be started.
    signal: Option<i32>,
    error: io::Error,
}

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.signal {
            Some(signal) if FORBIDDEN.contains(&signal) => {
                write!(f, "signal {signal} cannot be handled by a program: leave it out of the set")
            }
            Some(signal) => write!(f, "cannot listen to signal {signal}: {}", self.error),
            None => write!(f, "cannot listen to signals: {}", self.error),
        }
    }
}

impl std::error::Error for SignalError {}
