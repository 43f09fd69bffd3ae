//! Counting what became of work, so that at the end the sum can be checked.
//!
//! A ledger outlives the component that counts in it. It is written in two ways: any thread may [`Ledger::count`]
//! on the page that all share, and a thread with much to count opens a [`Book`], a page of its own that it
//! writes with plain stores.

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::{Arc, PoisonError},
};

use crate::{
    balance::Balance,
    sync::{AtomicU64, Mutex, MutexGuard, Ordering},
};

/// How an accepted piece of work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It ran to its end.
    Completed,
    /// It ran to its end after its waiter had gone. Counted as completed, and again as late.
    Late,
    /// It ended with an error or a panic.
    Failed,
    /// It was given back to whoever brought it, not run.
    HandedBack,
    /// It was dropped before its end, because somebody wanted that.
    Cancelled,
}

/// What a ledger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Entry {
    /// Taken in: it is owed an outcome.
    Accepted,
    /// See [`Outcome::Completed`].
    Completed,
    /// See [`Outcome::Failed`].
    Failed,
    /// See [`Outcome::HandedBack`].
    HandedBack,
    /// See [`Outcome::Cancelled`].
    Cancelled,
    /// Given up on at a deadline, while it went on.
    Abandoned,
    /// Not taken in. Stands outside the sum.
    Refused,
    /// Completed with nobody waiting any more. Stands outside the sum: it is among the completed too.
    Late,
    /// Abandoned, and came to an end all the same. Stands outside the sum: it is among the abandoned too.
    ReturnedAfter,
}

const ENTRIES: usize = Entry::ReturnedAfter as usize + 1;

/// The counters of one component. A clone is another handle to the same counters.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: Arc<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    /// Written by any thread.
    shared: Page,
    /// One for each open book, written by its owner alone. The lock is held to open or close a book and to sum up,
    /// so that a closing book is counted once.
    books: Mutex<Vec<Arc<Page>>>,
}

/// Aligned so that two writers do not share a pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Page {
    counts: [AtomicU64; ENTRIES],
}

impl Page {
    fn get(&self, entry: Entry) -> u64 {
        self.counts[entry as usize].load(Ordering::Relaxed)
    }

    fn add(&self, entry: Entry, n: u64) {
        self.counts[entry as usize].fetch_add(n, Ordering::Relaxed);
    }
}

// All counts are Relaxed: whoever claims a balance has been synchronised with the counting threads by the gate
// that he saw idle, or by the state `Stopped`.
impl Ledger {
    /// A ledger with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one, from any thread.
    #[inline]
    pub fn count(&self, entry: Entry) {
        self.add(entry, 1);
    }

    /// Counts `n`, from any thread.
    #[inline]
    pub fn add(&self, entry: Entry, n: u64) {
        self.accounts.shared.add(entry, n);
    }

    /// Counts an outcome, from any thread.
    #[inline]
    pub fn settle(&self, outcome: Outcome) {
        let (entry, also) = outcome.entries();
        self.count(entry);
        if let Some(also) = also {
            self.count(also);
        }
    }

    /// Opens a page of its own for one thread.
    #[must_use]
    pub fn book(&self) -> Book {
        let page = Arc::<Page>::default();
        self.lock_books().push(page.clone());
        Book { ledger: self.clone(), page, one_thread: PhantomData }
    }

    /// Sums up all pages. `in_flight` comes from whoever counts the work itself, a gate or a list, and is never
    /// worked out from the other sums: that is why [`Balance::check`] can fail.
    #[must_use]
    pub fn balance(&self, in_flight: u64) -> Balance {
        let books = self.lock_books();
        let sum =
            |entry| self.accounts.shared.get(entry) + books.iter().map(|page| page.get(entry)).sum::<u64>();
        Balance {
            accepted: sum(Entry::Accepted),
            completed: sum(Entry::Completed),
            failed: sum(Entry::Failed),
            handed_back: sum(Entry::HandedBack),
            cancelled: sum(Entry::Cancelled),
            abandoned: sum(Entry::Abandoned),
            in_flight,
            refused: sum(Entry::Refused),
            late: sum(Entry::Late),
            returned_after: sum(Entry::ReturnedAfter),
        }
    }

    fn lock_books(&self) -> MutexGuard<'_, Vec<Arc<Page>>> {
        // Nothing that can panic runs under the lock.
        self.accounts.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outcome {
    /// What it is counted as; and as what else.
    const fn entries(self) -> (Entry, Option<Entry>) {
        match self {
            Self::Completed => (Entry::Completed, None),
            Self::Late => (Entry::Completed, Some(Entry::Late)),
            Self::Failed => (Entry::Failed, None),
            Self::HandedBack => (Entry::HandedBack, None),
            Self::Cancelled => (Entry::Cancelled, None),
        }
    }
}

/// A page of a ledger that one owner writes with plain stores: no count of it is a locked instruction.
///
/// Dropping it moves its counts to the ledger's shared page.
#[derive(Debug)]
pub struct Book {
    ledger: Ledger,
    /// Also in the ledger's `books`. Only this owner stores to it.
    page: Arc<Page>,
    /// Not `Sync`: two threads that count at the same time would lose counts.
    one_thread: PhantomData<Cell<()>>,
}

impl Book {
    /// Counts one.
    #[inline]
    pub fn count(&self, entry: Entry) {
        self.add(entry, 1);
    }

    /// Counts `n`.
    #[inline]
    pub fn add(&self, entry: Entry, n: u64) {
        let count = &self.page.counts[entry as usize];
        count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// Counts an outcome.
    #[inline]
    pub fn settle(&self, outcome: Outcome) {
        let (entry, also) = outcome.entries();
        self.count(entry);
        if let Some(also) = also {
            self.count(also);
        }
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        let mut books = self.ledger.lock_books();
        let shared = &self.ledger.accounts.shared.counts;
        for (total, own) in shared.iter().zip(&self.page.counts) {
            total.fetch_add(own.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        books.retain(|page| !Arc::ptr_eq(page, &self.page));
    }
}
