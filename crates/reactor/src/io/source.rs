//! A source of I/O as its loop and its users see it: what it is ready for, and who waits for that.
//!
//! The operating system tells the loop once when a source *becomes* ready (edge-triggered), so what it was told is
//! kept here until an operation proves otherwise:
//!
//! | | `READABLE` (and so for writing) | who does it |
//! |---|---|---|
//! | the source is new | set: nobody has tried yet | `new` |
//! | the system reports it | set, and the tick moves on | the loop, `announce` |
//! | an operation would block | cleared, if the tick is still that of before the operation | the user, `clear` |
//! | the loop ends | set, with `ENDED` | the loop, `announce` |
//!
//! The tick is what makes clearing safe: readiness that came while the operation ran is not wiped out with what
//! the operation has seen.

use std::task::Waker;

use slab::Slab;

use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// Reading can be tried.
const READABLE: usize = 1;
/// Writing can be tried.
const WRITABLE: usize = 1 << 1;
/// The other side has closed, or there is urgent data: a short read does not mean that a report will follow.
const READ_CLOSED: usize = 1 << 2;
/// The same for writing.
const WRITE_CLOSED: usize = 1 << 3;
/// The loop has ended; nothing is reported any more.
const ENDED: usize = 1 << 4;
/// One report. The bits from here on count them.
const TICK: usize = 1 << 5;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Until it can be read from.
    Read,
    /// Until it can be written to.
    Write,
}

impl Direction {
    const fn ready(self) -> usize {
        match self {
            Self::Read => READABLE,
            Self::Write => WRITABLE,
        }
    }

    const fn closed(self) -> usize {
        match self {
            Self::Read => READ_CLOSED,
            Self::Write => WRITE_CLOSED,
        }
    }
}

/// What is reported of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News(usize);

impl News {
    /// The loop has ended: whoever waits gets an error.
    pub const END: Self = Self(READABLE | WRITABLE | ENDED);

    /// What the operating system says.
    #[must_use]
    pub fn new(readable: bool, writable: bool) -> Self {
        Self(if readable { READABLE } else { 0 } | if writable { WRITABLE } else { 0 })
    }

    /// With the word that a direction is closed for good.
    #[must_use]
    #[cfg_attr(any(not(target_os = "linux"), ebbtide_portable), expect(dead_code, reason = "epoll tells"))]
    pub fn closed(self, read: bool, write: bool) -> Self {
        Self(self.0 | if read { READ_CLOSED } else { 0 } | if write { WRITE_CLOSED } else { 0 })
    }
}

/// What a source was ready for when somebody looked, to clear just that.
#[derive(Clone, Copy, Debug)]
pub struct Seen(usize);

impl Seen {
    /// What is seen of a source that was registered just now.
    pub const NEW: Self = Self(READABLE | WRITABLE);

    /// Whether an operation in this direction is worth a try. Nothing is reported by a loop that has ended, so
    /// there it always is.
    #[must_use]
    pub fn is_ready(self, direction: Direction) -> bool {
        self.0 & (direction.ready() | ENDED) != 0
    }

    /// Whether the other side has closed this direction, so that there is always something to be had of it: the
    /// end.
    #[must_use]
    pub fn is_closed(self, direction: Direction) -> bool {
        self.0 & direction.closed() != 0
    }
}

/// How it went to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// The waker is called when there is news.
    Waiting,
    /// There is news already.
    Ready,
    /// The loop has ended.
    Ended,
}

/// Where a waiter keeps its waker.
#[derive(Debug)]
pub enum Slot<'a> {
    /// The one for functions that poll; the last one to poll is woken.
    Polled,
    /// One for each future that waits, taken with its first poll; to be given back with [`Source::leave`].
    Own(&'a mut Option<usize>),
}

impl Slot<'_> {
    /// The same place once more.
    pub fn reborrow(&mut self) -> Slot<'_> {
        match self {
            Self::Polled => Slot::Polled,
            Self::Own(key) => Slot::Own(key),
        }
    }
}

/// A source of I/O.
#[derive(Debug)]
pub struct Source {
    word: AtomicUsize,
    readers: Mutex<Waiters>,
    writers: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    polled: Option<Waker>,
    awaiting: Slab<Option<Waker>>,
}

impl Waiters {
    fn room(&mut self, slot: Slot<'_>) -> &mut Option<Waker> {
        match slot {
            Slot::Polled => &mut self.polled,
            Slot::Own(key) => {
                let key = *key.get_or_insert_with(|| self.awaiting.insert(None));
                &mut self.awaiting[key]
            }
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::new()
    }
}

impl Source {
    /// A source that nobody has tried yet.
    #[must_use]
    pub fn new() -> Self {
        Self { word: AtomicUsize::new(Seen::NEW.0), readers: Mutex::default(), writers: Mutex::default() }
    }

    fn waiters(&self, direction: Direction) -> &Mutex<Waiters> {
        match direction {
            Direction::Read => &self.readers,
            Direction::Write => &self.writers,
        }
    }

    /// What it is ready for.
    #[inline]
    #[must_use]
    pub fn look(&self) -> Seen {
        // Acquire: the tick is read before the operation that follows looks at the source.
        Seen(self.word.load(Ordering::Acquire))
    }

    /// Notes that an operation would have blocked, unless something was reported since `seen`.
    #[inline]
    pub fn clear(&self, direction: Direction, seen: Seen) {
        let mut word = seen.0;
        while word / TICK == seen.0 / TICK {
            let cleared = word & !(direction.ready() | direction.closed());
            match self.word.compare_exchange_weak(word, cleared, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                // Perhaps only the other direction was cleared.
                Err(now) => word = now,
            }
        }
    }

    /// Notes what is reported, and puts those whom it concerns into `due`. They are to be woken after that.
    pub fn announce(&self, news: News, due: &mut Vec<Waker>) {
        let mut word = self.word.load(Ordering::Relaxed);
        // Release: readiness is there before the waiters are looked for, and who stores a waker after that sees
        // it.
        while let Err(now) = self.word.compare_exchange_weak(
            word,
            word.wrapping_add(TICK) | news.0,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            word = now;
        }
        for direction in [Direction::Read, Direction::Write] {
            if news.0 & direction.ready() != 0 {
                let waiters = &mut *lock(self.waiters(direction));
                due.extend(waiters.polled.take());
                due.extend(waiters.awaiting.iter_mut().filter_map(|(_, waker)| waker.take()));
            }
        }
    }

    /// Stores a waker for the next news, unless there is some already.
    pub fn park(&self, direction: Direction, slot: Slot<'_>, waker: &Waker) -> Parked {
        let waker = waker.clone();
        let mut waiters = lock(self.waiters(direction));
        let room = waiters.room(slot);
        let replaced = room.replace(waker);
        // What was announced before we took the lock is seen here; what comes after finds the waker.
        let seen = self.look();
        let taken_back = if seen.is_ready(direction) { room.take() } else { None };
        drop(waiters);
        // They are foreign code, their drop too.
        drop((replaced, taken_back));
        if seen.0 & ENDED != 0 {
            Parked::Ended
        } else if seen.is_ready(direction) {
            Parked::Ready
        } else {
            Parked::Waiting
        }
    }

    /// Gives a future's own slot back.
    pub fn leave(&self, direction: Direction, key: usize) {
        let _waker = lock(self.waiters(direction)).awaiting.remove(key);
    }

    /// Whether anybody waits.
    pub fn is_awaited(&self, direction: Direction) -> bool {
        let waiters = lock(self.waiters(direction));
        waiters.polled.is_some() || waiters.awaiting.iter().any(|(_, waker)| waker.is_some())
    }
}
