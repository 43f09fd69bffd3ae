//! Waiting where there is no epoll: the `polling` crate.
//!
//! Where the system reports edges, a source is registered once. Where it does not (Windows, and systems with
//! nothing but `poll`), a report disarms the source, and whoever waits for it asks for the next one.

use std::io;

use ebbtide_lifecycle::time::{Clock, SystemClock};
use polling::{Event, Events, PollMode, Poller};

use super::{poll::Limit, source::News};

#[cfg(unix)]
mod system {
    pub(crate) type RawSource = std::os::fd::RawFd;
    pub(crate) type BorrowedSource<'a> = std::os::fd::BorrowedFd<'a>;
}

#[cfg(windows)]
mod system {
    pub(crate) type RawSource = std::os::windows::io::RawSocket;
    pub(crate) type BorrowedSource<'a> = std::os::windows::io::BorrowedSocket<'a>;
}

pub(crate) use self::system::{BorrowedSource, RawSource};

/// The system's side, for any thread.
#[derive(Debug)]
pub(crate) struct Poll {
    poller: Poller,
    mode: PollMode,
}

/// What the loop's thread needs to wait.
#[derive(Debug)]
pub(crate) struct Waiting {
    events: Events,
}

impl Poll {
    /// It depends on the system.
    pub(crate) const MAY_BE_ONESHOT: bool = true;

    pub(crate) fn new() -> io::Result<Self> {
        let poller = Poller::new()?;
        let edges = poller.supports_edge() && !cfg!(ebbtide_oneshot);
        let mode = if edges { PollMode::Edge } else { PollMode::Oneshot };
        Ok(Self { poller, mode })
    }

    /// What the loop's thread needs to wait.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "on Linux it is made of the system")]
    pub(crate) fn waiting(&self) -> io::Result<Waiting> {
        Ok(Waiting { events: Events::new() })
    }

    pub(crate) fn add(&self, source: BorrowedSource<'_>, key: usize) -> io::Result<()> {
        let interest = match self.mode {
            PollMode::Edge => Event::all(key),
            _ => Event::none(key),
        };
        // SAFETY: a `Registration` deletes its source before that is dropped.
        unsafe { self.poller.add_with_mode(&source, interest, self.mode) }
    }

    pub(crate) fn delete(&self, source: BorrowedSource<'_>) -> io::Result<()> {
        self.poller.delete(source)
    }

    /// Whether a source has to be asked for again after each report.
    pub(crate) fn is_oneshot(&self) -> bool {
        self.mode == PollMode::Oneshot
    }

    /// Asks for the next report, for reading and for writing.
    pub(crate) fn ask(
        &self,
        source: BorrowedSource<'_>,
        key: usize,
        [read, write]: [bool; 2],
    ) -> io::Result<()> {
        self.poller.modify_with_mode(source, Event::new(key, read, write), self.mode)
    }

    /// Ends the wait that is under way, or else the next one.
    pub(crate) fn notify(&self) {
        // There is nobody to tell if the system refuses this, and nothing better to do.
        let _ = self.poller.notify();
    }

    /// Waits, and gives what is reported.
    pub(crate) fn wait(
        &self,
        waiting: &mut Waiting,
        limit: Limit,
        mut report: impl FnMut(usize, News),
    ) -> io::Result<()> {
        let events = &mut waiting.events;
        events.clear();
        let waited = match limit {
            Limit::Now => self.poller.wait_deadline(events, SystemClock.now()),
            Limit::Until(until) => self.poller.wait_deadline(events, until),
            Limit::Never => self.poller.wait(events, None),
        };
        match waited {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in events.iter() {
            let failed = event.is_err() == Some(true) || event.is_interrupt();
            report(event.key, News::new(event.readable || failed, event.writable || failed));
        }
        Ok(())
    }
}
