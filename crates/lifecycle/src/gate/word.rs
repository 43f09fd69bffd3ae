//! The word of a gate: its marks, its handles and its permits, in one atomic.
//!
//! ```text
//!    63   62         39 38       16 15         3     2        1       0
//!  ┌──────┬────────────┬───────────┬────────────┬─────────┬──────┬───────┐
//!  │closed│ permits out│  handles  │  bookings  │abandoned│sealed│waiters│
//!  └──────┴────────────┴───────────┴────────────┴─────────┴──────┴───────┘
//! ```
//!
//! Closing and counting cannot race, because they are one word. Handles and permits share it too, so that "the
//! last one who needs the gate has gone" is also one value of one atomic, and an owned permit needs no
//! reference count of its own beside the count that it is.
//!
//! A booking is somebody who is between the word and the ledger: he has come in and is not counted as accepted
//! yet, or his outcome is counted and he has not left yet. With none of them, word and ledger agree.
//!
//! "Closed" stands above the permits, so that one comparison, with the least word of a full gate, tells whether
//! there is admission.

/// No permit is given out to those who come from outside. May be taken back by `open`, unless `SEALED` is set.
pub(super) const CLOSED: u64 = 1 << 63;

/// Somebody may be waiting: who makes the gate idle or drained clears it and then rings. It can outlive its
/// waiter; the ring then finds nobody.
pub(super) const WAITERS: u64 = 1;

/// Closed for good. Set together with `CLOSED`, never cleared.
pub(super) const SEALED: u64 = 1 << 1;

/// Permits that were out have been given up on. Set together with `SEALED`, never cleared.
pub(super) const ABANDONED: u64 = 1 << 2;

/// One booking. Only at a gate with a ledger.
pub(super) const BOOKING: u64 = 1 << 3;

/// One handle: a `Gate`, or a leaver that is about to ring.
pub(super) const HANDLE: u64 = 1 << 16;

/// One permit.
pub(super) const PERMIT: u64 = 1 << 39;

/// How many permits fit: 24 bits, some 16 million.
pub(super) const PERMITS_MAX: u64 = CLOSED / PERMIT - 1;

/// How many handles may be cloned: half of what fits, so that threads that overshoot together still cannot
/// reach the permits before each of them has noticed.
pub(super) const HANDLES_MAX: u64 = PERMIT / HANDLE / 2;

/// How many threads may be at the ledger at a time, each for a few nanoseconds; more wait their turn. Half of
/// what fits, so that those who find room at the same time do not overflow it together.
pub(super) const BOOKINGS_MAX: u64 = HANDLE / BOOKING / 2;

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    pub(super) const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    pub(super) const fn is_sealed(self) -> bool {
        self.0 & SEALED != 0
    }

    pub(super) const fn is_abandoned(self) -> bool {
        self.0 & ABANDONED != 0
    }

    pub(super) const fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    pub(super) const fn permits(self) -> u64 {
        (self.0 & !CLOSED) / PERMIT
    }

    pub(super) const fn handles(self) -> u64 {
        self.0 % PERMIT / HANDLE
    }

    pub(super) const fn bookings(self) -> u64 {
        self.0 % HANDLE / BOOKING
    }

    /// The permits that were not given up on.
    pub(super) const fn in_flight(self) -> u64 {
        if self.is_abandoned() { 0 } else { self.permits() }
    }

    /// Whether no permit is out, and the ledger says so.
    pub(super) const fn is_idle(self) -> bool {
        self.permits() == 0 && self.bookings() == 0
    }

    /// Whether it is closed with nothing in flight, and the ledger says so.
    pub(super) const fn is_drained(self) -> bool {
        self.is_closed() && self.in_flight() == 0 && self.bookings() == 0
    }

    /// Whether there is somebody to be rung for, and something to tell.
    pub(super) const fn calls_for_a_ring(self) -> bool {
        self.has_waiters() && (self.is_idle() || self.is_drained())
    }

    /// Whether nobody holds a permit or a handle: whoever made it so frees the gate.
    pub(super) const fn is_unreferenced(self) -> bool {
        // Both stand above everything else but the closed mark.
        self.0 & !CLOSED < HANDLE
    }
}
