//! The I/O side of a loop: its sources, and waiting for them.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
};

use slab::Slab;

use super::{
    poll::{BorrowedSource, Limit, Poll, RawSource, Waiting},
    source::{Direction, News, Parked, Slot, Source},
};
use crate::sync::{Mutex, lock};

/// Made with the first source of a loop. From then on the loop sleeps here.
#[derive(Debug)]
pub(crate) struct Driver {
    poll: Poll,
    /// Locked by the loop, for as long as it waits, and by nobody else.
    waiting: Mutex<Waiting>,
    registry: Mutex<Registry>,
    /// How many sources there are, to be read without the lock.
    sources: AtomicUsize,
}

/// The sources by their keys. No foreign code runs under its lock.
#[derive(Debug, Default)]
struct Registry {
    entries: Slab<Entry>,
    /// The loop has ended, and takes no more.
    ended: bool,
}

#[derive(Debug)]
struct Entry {
    source: Arc<Source>,
    /// Open as long as the entry is there: its registration sees to that.
    raw: RawSource,
}

impl Driver {
    pub(crate) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waiting = Mutex::new(poll.waiting()?);
        Ok(Self { poll, waiting, registry: Mutex::default(), sources: AtomicUsize::new(0) })
    }

    /// Registers a source, unless it is registered: then it stays where it is.
    ///
    /// # Safety
    /// `raw` stays open for as long as there is something in `place`.
    pub(crate) unsafe fn register(
        self: &Arc<Self>,
        raw: RawSource,
        place: &OnceLock<Registration>,
    ) -> io::Result<()> {
        let mut registry = lock(&self.registry);
        // Under the lock: a source can be added only once.
        if place.get().is_some() {
            return Ok(());
        }
        if registry.ended {
            return Err(ended());
        }
        let source = Arc::new(Source::new());
        let key = registry.entries.insert(Entry { source: source.clone(), raw });
        // SAFETY: by the caller's word.
        if let Err(error) = self.poll.add(unsafe { BorrowedSource::borrow_raw(raw) }, key) {
            registry.entries.remove(key);
            return Err(explained(error));
        }
        self.sources.store(registry.entries.len(), Ordering::Relaxed);
        let other = place.set(Registration { driver: self.clone(), source, key, raw });
        drop(registry);
        // If another loop has been faster, it is that one's; ours goes, outside of the lock that it takes.
        drop(other);
        Ok(())
    }

    /// Whether there is anything that could be reported.
    pub(crate) fn has_sources(&self) -> bool {
        self.sources.load(Ordering::Relaxed) > 0
    }

    /// Ends the wait that is under way, or else the next one.
    pub(crate) fn notify(&self) {
        self.poll.notify();
    }

    /// Waits, and puts those who are to be woken into `due`. On the loop's thread only.
    pub(crate) fn wait(&self, limit: Limit, due: &mut Vec<Waker>) -> io::Result<()> {
        let waiting = &mut *lock(&self.waiting);
        let mut registry = None;
        self.poll.wait(waiting, limit, |key, news| {
            let registry = registry.get_or_insert_with(|| lock(&self.registry));
            // What has gone meanwhile is not there, or another source is in its place: that one is tried for
            // nothing.
            let Some(entry) = registry.entries.get(key) else { return };
            entry.source.announce(news, due);
            if self.poll.is_oneshot() {
                self.ask_again(key, entry);
            }
        })
    }

    /// Asks for the next report of a source that somebody waits for. Under the registry's lock, so that of two who
    /// ask the second asks for both.
    fn ask_again(&self, key: usize, entry: &Entry) {
        let read = entry.source.is_awaited(Direction::Read);
        let write = entry.source.is_awaited(Direction::Write);
        if read || write {
            // SAFETY: an entry's source is open.
            let source = unsafe { BorrowedSource::borrow_raw(entry.raw) };
            // It was registered without an error, and what the system could say against it now it says to the
            // next operation.
            let _ = self.poll.ask(source, key, [read, write]);
        }
    }

    /// The loop has ended: puts all who wait into `due`.
    pub(crate) fn end(&self, due: &mut Vec<Waker>) {
        let registry = &mut *lock(&self.registry);
        registry.ended = true;
        for (_, entry) in &registry.entries {
            entry.source.announce(News::END, due);
        }
    }
}

/// A source of a loop; it is one no more when this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    driver: Arc<Driver>,
    source: Arc<Source>,
    key: usize,
    /// Open as long as this is there.
    raw: RawSource,
}

impl Registration {
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Stores a waker for the next news, unless there is some already.
    pub(crate) fn park(&self, direction: Direction, slot: Slot<'_>, waker: &Waker) -> Parked {
        let parked = self.source.park(direction, slot, waker);
        if parked == Parked::Waiting && self.driver.poll.is_oneshot() {
            let registry = lock(&self.driver.registry);
            if let Some(entry) = registry.entries.get(self.key) {
                self.driver.ask_again(self.key, entry);
            }
        }
        parked
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: it is open as long as this is there.
        let source = unsafe { BorrowedSource::borrow_raw(self.raw) };
        // It fails if somebody has closed the descriptor behind our back; then it is gone, which is what we want.
        let _ = self.driver.poll.delete(source);
        let mut registry = lock(&self.driver.registry);
        let entry = registry.entries.remove(self.key);
        self.driver.sources.store(registry.entries.len(), Ordering::Relaxed);
        drop(registry);
        // Perhaps with a waker in it, which is foreign code.
        drop(entry);
    }
}

/// Why a source cannot be registered. What the systems say of files would be taken for a lack of rights.
fn explained(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "the system cannot wait for this descriptor: files and directories are read on a thread of their own",
    )
}

/// What is waited for on a loop that has ended.
pub(crate) fn ended() -> io::Error {
    io::Error::other("the loop that this I/O belongs to has ended, and waits for nothing any more")
}
