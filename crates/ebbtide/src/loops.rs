//! The loops of a program.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
};

use ebbtide_lifecycle::State;
use ebbtide_reactor::EventLoop;

/// Holds the loops until the end: whoever waits for the report has one of these as well, so that no thread of the
/// coordinator's is the last to drop a loop. The drop of one that hangs does.
#[derive(Clone, Default)]
pub(crate) struct Loops(Arc<Mutex<Vec<Arc<EventLoop>>>>);

impl Loops {
    pub(crate) fn keep(&self, events: Arc<EventLoop>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(events);
    }

    /// Drops those that have stopped. The others hang, and are left behind.
    pub(crate) fn drop_stopped(&self) {
        let loops = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for events in loops {
            if events.state() != State::Stopped {
                mem::forget(events);
            }
        }
    }
}

/// Why a [loop](crate::App::start_loop) was not started.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoopNotStarted {
    /// There is a component of that name.
    Duplicate(Arc<str>),
    /// The loops of the program have been told to stop.
    Stopping,
    /// There is no thread for it.
    Loop(ebbtide_reactor::StartError),
}

impl fmt::Display for LoopNotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(name) => {
                write!(f, "a component {name:?} is registered already: give this loop another name")
            }
            Self::Stopping => f.write_str("the loop was not started: the program stops"),
            Self::Loop(error) => write!(f, "the loop was not started: {error}"),
        }
    }
}

impl std::error::Error for LoopNotStarted {}
