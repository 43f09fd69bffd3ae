//! The I/O side of a loop: its sources, and waiting for them.

use std::{
    io,
    sync::{
        Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard,
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
    /// None when the loop has ended: its descriptors are closed then, whoever may still have a handle to it.
    system: RwLock<Option<System>>,
    registry: Mutex<Registry>,
    /// How many sources there are, to be read without the lock.
    sources: AtomicUsize,
}

/// The system's side.
#[derive(Debug)]
struct System {
    poll: Poll,
    /// Locked by the loop, for as long as it waits, and by nobody else.
    waiting: Mutex<Waiting>,
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
        let system = RwLock::new(Some(System { poll, waiting }));
        Ok(Self { system, registry: Mutex::default(), sources: AtomicUsize::new(0) })
    }

    fn system(&self) -> RwLockReadGuard<'_, Option<System>> {
        self.system.read().unwrap_or_else(PoisonError::into_inner)
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
        let system = self.system();
        let Some(System { poll, .. }) = system.as_ref().filter(|_| !registry.ended) else {
            return Err(ended());
        };
        let source = Arc::new(Source::new());
        let key = registry.entries.insert(Entry { source: source.clone(), raw });
        // SAFETY: by the caller's word.
        if let Err(error) = poll.add(unsafe { BorrowedSource::borrow_raw(raw) }, key) {
            registry.entries.remove(key);
            return Err(explained(error));
        }
        self.sources.store(registry.entries.len(), Ordering::Relaxed);
        let other = place.set(Registration { driver: self.clone(), source, key, raw });
        drop((registry, system));
        // If another loop has been faster, it is that one's; ours goes, outside of the lock that it takes.
        drop(other);
        Ok(())
    }

    /// Whether there is anything that could be reported.
    pub(crate) fn has_sources(&self) -> bool {
        self.sources.load(Ordering::Relaxed) > 0
    }

    /// Whether anybody waits for anything.
    pub(crate) fn is_awaited(&self) -> bool {
        let awaited =
            |source: &Source| source.is_awaited(Direction::Read) || source.is_awaited(Direction::Write);
        lock(&self.registry).entries.iter().any(|(_, entry)| awaited(&entry.source))
    }

    /// Ends the wait that is under way, or else the next one.
    pub(crate) fn notify(&self) {
        if let Some(System { poll, .. }) = &*self.system() {
            poll.notify();
        }
    }

    /// Waits, and puts those who are to be woken into `due`. On the loop's thread only.
    pub(crate) fn wait(&self, limit: Limit, due: &mut Vec<Waker>) -> io::Result<()> {
        let system = self.system();
        let Some(System { poll, waiting }) = &*system else { return Ok(()) };
        let waiting = &mut *lock(waiting);
        let mut registry = None;
        poll.wait(waiting, limit, |key, news| {
            let registry = registry.get_or_insert_with(|| lock(&self.registry));
            // What has gone meanwhile is not there, or another source is in its place: that one is tried for
            // nothing.
            let Some(entry) = registry.entries.get(key) else { return };
            entry.source.announce(news, due);
            if poll.is_oneshot() {
                entry.ask_again(poll, key);
            }
        })
    }

    /// The loop has ended: puts all who wait into `due`, and closes the loop's descriptors.
    pub(crate) fn end(&self, due: &mut Vec<Waker>) {
        let mut registry = lock(&self.registry);
        registry.ended = true;
        for (_, entry) in &registry.entries {
            entry.source.announce(News::END, due);
        }
        drop(registry);
        self.system.write().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Entry {
    /// Asks for the next report, if somebody waits for it. Under the registry's lock, so that of two who ask the
    /// second asks for both.
    fn ask_again(&self, poll: &Poll, key: usize) {
        let read = self.source.is_awaited(Direction::Read);
        let write = self.source.is_awaited(Direction::Write);
        if read || write {
            // SAFETY: an entry's source is open.
            let source = unsafe { BorrowedSource::borrow_raw(self.raw) };
            // It was registered without an error, and what the system could say against it now it says to the
            // next operation.
            let _ = poll.ask(source, key, [read, write]);
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
    /// That of the loop that it belongs to.
    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Stores a waker for the next news, unless there is some already.
    pub(crate) fn park(&self, direction: Direction, slot: Slot<'_>, waker: &Waker) -> Parked {
        let parked = self.source.park(direction, slot, waker);
        if parked == Parked::Waiting && Poll::MAY_BE_ONESHOT {
            let registry = lock(&self.driver.registry);
            let system = self.driver.system();
            if let (Some(entry), Some(System { poll, .. })) = (registry.entries.get(self.key), &*system)
                && poll.is_oneshot()
            {
                entry.ask_again(poll, self.key);
            }
        }
        parked
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: it is open as long as this is there.
        let source = unsafe { BorrowedSource::borrow_raw(self.raw) };
        if let Some(System { poll, .. }) = &*self.driver.system() {
            // It fails if somebody has closed the descriptor behind our back; then it is gone, which is what we
            // want.
            let _ = poll.delete(source);
        }
        let mut registry = lock(&self.driver.registry);
        let entry = registry.entries.remove(self.key);
        self.driver.sources.store(registry.entries.len(), Ordering::Relaxed);
        drop(registry);
        // Perhaps with a waker in it, which is foreign code.
        drop(entry);
    }
}

/// Why a source cannot be registered, where what the systems say would mislead.
fn explained(error: io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "the system cannot wait for this descriptor: files and directories are read on a thread of their own"
        }
        io::ErrorKind::AlreadyExists => {
            "this descriptor is registered with the loop already: share the one `Async`, or duplicate the descriptor"
        }
        _ => return error,
    };
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// What is waited for on a loop that has ended.
pub(crate) fn ended() -> io::Error {
    io::Error::other("the loop that this I/O belongs to has ended, and waits for nothing any more")
}
