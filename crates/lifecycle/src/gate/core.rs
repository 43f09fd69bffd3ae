//! What all handles and permits of a gate point at, and who frees it.
//!
//! The only file of the gate with `unsafe` in it. Its one invariant: **the core lives as long as its word counts
//! a handle or a permit**, and whoever takes the last of them out of the word frees it. A [`Handle`] *is* one
//! handle of the count, an [`OwnedPermit`](super::OwnedPermit)'s [`Held`] *is* one permit of it.

use std::{mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use super::word::{
    ABANDONED, BOOKING, BOOKINGS_MAX, CLOSED, HANDLE, HANDLES_MAX, PERMIT, SEALED, WAITERS, Word,
};
use crate::{
    ledger::{Entry, Ledger, Outcome},
    refusal::Refusal,
    sync::{AtomicU64, Canary, Ordering, fence, spin_loop, yield_now},
    wait::Bell,
};

pub(super) struct Core {
    /// See [`super::word`].
    word: AtomicU64,
    /// The least word, handles and lower marks aside, with as many permits as are allowed. So at most
    /// `PERMITS_MAX` permits' worth, and less than `CLOSED`.
    full: u64,
    ledger: Option<Ledger>,
    /// Rung when the gate becomes idle or drained while `WAITERS` is set.
    pub(super) settled: Bell,
    alive: Canary,
}

impl Core {
    pub(super) fn word(&self) -> Word {
        self.alive.sing();
        // Acquire: all that was done under the permits that have been returned.
        Word(self.word.load(Ordering::Acquire))
    }

    pub(super) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Counts one permit in, unless the gate is closed or full.
    #[inline]
    pub(super) fn enter(&self) -> Result<(), Refusal> {
        self.alive.sing();
        let admits = |word: Word| word.0 < self.full;
        if self.ledger.is_some() {
            return self.count_in_accounted(CLOSED, admits);
        }
        self.count_in(PERMIT, admits).map_err(|word| self.refuse(word.is_closed()))
    }

    /// Counts one permit in for somebody who is inside: unless the gate is abandoned or full.
    fn enter_from_inside(&self) -> Result<(), Refusal> {
        self.alive.sing();
        let admits = |word: Word| !word.is_abandoned() && word.0 & !CLOSED < self.full;
        if self.ledger.is_some() {
            return self.count_in_accounted(ABANDONED, admits);
        }
        self.count_in(PERMIT, admits).map_err(|word| self.refuse(word.is_abandoned()))
    }

    /// Adds `one` to the word, or gives the word that does not admit it.
    #[inline]
    fn count_in(&self, one: u64, admits: impl Fn(Word) -> bool) -> Result<(), Word> {
        let mut word = Word(self.word.load(Ordering::Relaxed));
        loop {
            if !admits(word) {
                return Err(word);
            }
            // Acquire: what was set up before the gate was opened.
            match self.word.compare_exchange_weak(word.0, word.0 + one, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(seen) => word = Word(seen),
            }
            spin_loop();
        }
    }

    /// `closed_by` is the mark that means "closed" to who comes; with another word that is not admitted, it is
    /// full.
    #[inline(never)]
    fn count_in_accounted(&self, closed_by: u64, admits: impl Fn(Word) -> bool) -> Result<(), Refusal> {
        while self.word().bookings() >= BOOKINGS_MAX {
            yield_now();
        }
        let entered = self.count_in(PERMIT + BOOKING, admits);
        entered.map_err(|word| self.refuse(word.0 & closed_by != 0))?;
        if let Some(ledger) = &self.ledger {
            ledger.count(Entry::Accepted);
        }
        self.end_booking();
        Ok(())
    }

    #[cold]
    fn refuse(&self, closed: bool) -> Refusal {
        if let Some(ledger) = &self.ledger {
            ledger.count(Entry::Refused);
        }
        if closed { Refusal::Closed } else { Refusal::Full }
    }

    /// Says that the ledger is up to date.
    fn end_booking(&self) {
        // Release: the books.
        let before = self.word.fetch_sub(BOOKING, Ordering::Release);
        if Word(before - BOOKING).calls_for_a_ring() {
            self.release_waiters();
        }
    }

    /// Counts one permit out. The caller keeps the core alive by other means: it borrows a handle.
    #[inline]
    pub(super) fn leave(&self, outcome: Outcome) {
        self.alive.sing();
        if self.ledger.is_some() {
            return self.leave_accounted(outcome);
        }
        // Release: all that was done under the permit, to whoever sees the gate idle.
        let before = Word(self.word.fetch_sub(PERMIT, Ordering::Release));
        // In this order: the mark is one bit, and hardly ever set.
        if before.has_waiters() && before.permits() == 1 {
            self.release_waiters();
        }
    }

    fn leave_accounted(&self, outcome: Outcome) {
        let booked = self.book(outcome);
        // Never `Free`: there is the handle that the caller borrows.
        if count_out(&self.word, booked + PERMIT, 0) == After::Ring {
            self.settled.ring();
        }
    }

    /// Books how a permit ends that is about to be counted out: by its outcome, or as returned after if it has
    /// been given up on. Gives what else is to be counted out with it.
    ///
    /// The ledger comes first, so that the books of an idle gate are complete; a booking keeps the gate from being
    /// abandoned in between.
    fn book(&self, outcome: Outcome) -> u64 {
        let Some(ledger) = &self.ledger else { return 0 };
        let mut word = self.word();
        while !word.is_abandoned() {
            if word.bookings() >= BOOKINGS_MAX {
                yield_now();
                word = self.word();
                continue;
            }
            // Acquire: the mark that is not there was not there when the outcome was booked.
            match self.word.compare_exchange_weak(
                word.0,
                word.0 + BOOKING,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    ledger.settle(outcome);
                    return BOOKING;
                }
                Err(seen) => word = Word(seen),
            }
        }
        ledger.count(Entry::ReturnedAfter);
        0
    }

    #[cold]
    fn release_waiters(&self) {
        // Clear first, ring second: a waiter that announces itself in between listens already, and is rung for.
        // Acquire: the listeners of all whose announcement is cleared.
        self.word.fetch_and(!WAITERS, Ordering::Acquire);
        self.settled.ring();
    }

    /// Tells the next one who empties the gate that somebody listens.
    pub(super) fn announce(&self) {
        // Release: the listener, to the one who clears the mark and rings.
        self.word.fetch_or(WAITERS, Ordering::Release);
    }

    pub(super) fn close(&self) -> bool {
        self.close_with(CLOSED)
    }

    pub(super) fn seal(&self) -> bool {
        self.close_with(CLOSED | SEALED)
    }

    fn close_with(&self, marks: u64) -> bool {
        // AcqRel: what was done before closing, to those who see it closed; and the waiters' listeners.
        let before = Word(self.word.fetch_or(marks, Ordering::AcqRel));
        if Word(before.0 | marks).calls_for_a_ring() {
            self.release_waiters();
        }
        !before.is_closed()
    }

    pub(super) fn open(&self) -> bool {
        let mut word = Word(self.word.load(Ordering::Relaxed));
        while !word.is_sealed() {
            // Release: what was set up before opening, to those who enter.
            match self.word.compare_exchange_weak(
                word.0,
                word.0 & !CLOSED,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(seen) => word = Word(seen),
            }
        }
        false
    }

    pub(super) fn abandon(&self) -> u64 {
        // Nobody comes in from outside any more, so the bookings come to an end.
        self.seal();
        let mut word = Word(self.word.load(Ordering::Acquire));
        loop {
            if word.in_flight() == 0 {
                return 0;
            }
            if word.bookings() != 0 {
                // They are there for a few nanoseconds, or while they are not on a processor.
                yield_now();
                word = self.word();
                continue;
            }
            // Now word and ledger agree. A booking of our own keeps it from being drained before the ledger
            // says what was given up on.
            let next = (word.0 | ABANDONED) + BOOKING;
            match self.word.compare_exchange_weak(word.0, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(seen) => word = Word(seen),
            }
        }
        if let Some(ledger) = &self.ledger {
            ledger.add(Entry::Abandoned, word.permits());
        }
        self.end_booking();
        word.permits()
    }
}

/// Takes a permit, and perhaps its booking, out of the word. If there are waiters to be rung for, their mark is
/// cleared and `for_the_ring` added in the same exchange.
///
/// Whatever the word belongs to may be gone when this returns, unless something else keeps it alive. That is
/// why it is given the word, and not a reference to the core that would outlast it.
fn count_out(atomic: &AtomicU64, taken: u64, for_the_ring: u64) -> After {
    let mut word = Word(atomic.load(Ordering::Relaxed));
    loop {
        let left = Word(word.0 - taken);
        let ring = left.calls_for_a_ring();
        let next = if ring { (left.0 + for_the_ring) & !WAITERS } else { left.0 };
        match exchange_out(atomic, word, next) {
            Ok(_) if ring => return After::Ring,
            Ok(_) => return After::of(left),
            Err(seen) => word = Word(seen),
        }
        spin_loop();
    }
}

#[inline]
fn exchange_out(atomic: &AtomicU64, word: Word, next: u64) -> Result<u64, u64> {
    // Release: all that was done under the permit, the books, and our use of the core. Acquire: the listeners
    // of those whose announcement is cleared.
    atomic.compare_exchange_weak(word.0, next, Ordering::AcqRel, Ordering::Relaxed)
}

/// What is left to do after a permit was counted out.
#[derive(PartialEq, Eq)]
enum After {
    /// The gate became idle or drained, and somebody waits for that.
    Ring,
    /// It was the last reference.
    Free,
    /// Others are still inside, or nobody waits.
    Nothing,
}

impl After {
    /// What is left to do at `word` if nobody waits.
    #[inline]
    fn of(word: Word) -> Self {
        if word.is_unreferenced() { Self::Free } else { Self::Nothing }
    }
}

/// One handle of the word's count.
pub(super) struct Handle {
    core: NonNull<Core>,
}

// SAFETY: a handle gives `&Core` only, and `Core` is `Sync`; the last one may drop it on any thread, and `Core`
// is `Send`.
unsafe impl Send for Handle where Core: Send + Sync {}
// SAFETY: as for `Send`: `&Handle` gives `&Core`, and clones of the handle.
unsafe impl Sync for Handle where Core: Send + Sync {}

impl Handle {
    pub(super) fn new(closed: bool, limit: u64, ledger: Option<Ledger>) -> Self {
        let full = limit * PERMIT;
        let word = AtomicU64::new(if closed { HANDLE | CLOSED } else { HANDLE });
        let core = Core { word, full, ledger, settled: Bell::new(), alive: Canary::default() };
        Self { core: NonNull::from(Box::leak(Box::new(core))) }
    }

    /// Enters, and turns the permit into something that keeps the core alive by itself.
    #[inline]
    pub(super) fn hold(&self) -> Result<Held, Refusal> {
        self.enter()?;
        Ok(Held { core: self.core })
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        // Relaxed: `self` keeps the core alive until the clone exists.
        let before = Word(self.word.fetch_add(HANDLE, Ordering::Relaxed));
        if before.handles() >= HANDLES_MAX {
            self.word.fetch_sub(HANDLE, Ordering::Relaxed);
            panic!("a gate has {HANDLES_MAX} handles: they are being leaked");
        }
        Self { core: self.core }
    }
}

impl Deref for Handle {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        // SAFETY: this handle is counted in the word until it is dropped, so the core lives.
        unsafe { self.core.as_ref() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.alive.sing();
        // Release: our use of the core, to the one who frees it.
        let before = self.word.fetch_sub(HANDLE, Ordering::Release);
        if Word(before - HANDLE).is_unreferenced() {
            // SAFETY: this handle was the last reference: the word has just said so, to us alone.
            unsafe { free(self.core) };
        }
    }
}

/// One permit of the word's count that keeps the core alive. Dropping it leaves, with [`Outcome::Failed`].
pub(super) struct Held {
    core: NonNull<Core>,
}

// SAFETY: as for `Handle`.
unsafe impl Send for Held where Core: Send + Sync {}
// SAFETY: as for `Handle`.
unsafe impl Sync for Held where Core: Send + Sync {}

impl Held {
    /// Another permit, for work that this one's work brings.
    pub(super) fn fork(&self) -> Result<Self, Refusal> {
        // SAFETY: this permit is counted in the word, so the core lives.
        unsafe { self.core.as_ref() }.enter_from_inside()?;
        Ok(Self { core: self.core })
    }

    #[inline]
    pub(super) fn settle(self, outcome: Outcome) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither used nor dropped after this.
        unsafe { this.leave(outcome) };
    }

    /// Counts the permit out, and frees the core if nobody else needs it.
    ///
    /// Everything that touches the core comes before the exchange that takes the permit out of the word, because
    /// after it the core may be gone. Ringing has to come after; so the last permit turns into a handle in that
    /// same exchange, rings, and then goes as a handle does.
    ///
    /// # Safety
    /// Nothing of `self` may be used afterwards.
    #[inline]
    unsafe fn leave(&self, outcome: Outcome) {
        // SAFETY: this permit is counted in the word until an exchange takes it out, and of `core` only the
        // word is used for that, and nothing after it.
        let core = unsafe { self.core.as_ref() };
        core.alive.sing();
        let atomic = &core.word;
        let word = Word(atomic.load(Ordering::Relaxed));
        // The common case, short enough to be inlined: nothing to book, nobody to ring for, nobody in between.
        let plain = core.ledger.is_none() && !word.has_waiters();
        let after = if plain && exchange_out(atomic, word, word.0 - PERMIT).is_ok() {
            After::of(Word(word.0 - PERMIT))
        } else {
            let booked = core.book(outcome);
            count_out(atomic, booked + PERMIT, HANDLE)
        };
        match after {
            After::Nothing => {}
            After::Ring => {
                // The exchange has counted this handle in.
                let handle = Handle { core: self.core };
                handle.settled.ring();
            }
            After::Free => {
                // SAFETY: this permit was the last reference: the exchange has just said so, to us alone.
                unsafe { free(self.core) };
            }
        }
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: nothing uses a value after its drop.
        unsafe { self.leave(Outcome::Failed) };
    }
}

/// Frees a core that nobody references.
///
/// # Safety
/// The caller took the last reference out of the word with a Release operation, and calls this once.
#[cold]
unsafe fn free(core: NonNull<Core>) {
    // Acquire: every other reference's last use of the core, each of which ended with a Release on the word.
    // The fence needs a load to pair with; the caller's own operation on the word was that load.
    fence(Ordering::Acquire);
    // SAFETY: `Handle::new` leaked this box, and by the caller's word nobody else can reach it any more.
    drop(unsafe { Box::from_raw(core.as_ptr()) });
}
