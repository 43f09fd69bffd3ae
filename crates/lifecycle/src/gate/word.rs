//! The word of a gate: its marks, its handles and its permits, in one atomic.
//!
//! ```text
//!    63   62         33 32           3     2       1       0
//!  ┌──────┬─────────────┬──────────────┬─────────┬──────┬───────┐
//!  │closed│ permits out │   handles    │abandoned│sealed│waiters│
//!  └──────┴─────────────┴──────────────┴─────────┴──────┴───────┘
//! ```
//!
//! "Closed" stands above the permits, so that one comparison, with the least word of a full gate, tells whether
//! there is admission.
//!
//! Closing and counting cannot race, because they are one word. Handles and permits share it too, so that "the
//! last one who needs the gate has gone" is also one value of one atomic, and an owned permit needs no
//! reference count of its own beside the count that it is.

/// No permit is given out to those who come from outside. May be taken back by `open`, unless `SEALED` is set.
pub(super) const CLOSED: u64 = 1 << 63;

/// Somebody may be waiting: who brings the permits to zero, closes an empty gate or abandons it, clears it and
/// then rings. It can outlive its waiter; the ring then finds nobody.
pub(super) const WAITERS: u64 = 1;

/// Closed for good. Set together with `CLOSED`, never cleared.
pub(super) const SEALED: u64 = 1 << 1;

/// Permits that were out have been given up on. Set together with `SEALED`, never cleared.
pub(super) const ABANDONED: u64 = 1 << 2;

/// One handle: a `Gate`, or a leaver that is about to ring.
pub(super) const HANDLE: u64 = 1 << 3;

/// One permit.
pub(super) const PERMIT: u64 = 1 << 33;

/// As many permits, or handles, as fit into their 30 bits.
const FIELD_MAX: u64 = (1 << 30) - 1;

/// How many permits may be out. One is kept for `abandon`, which holds the gate busy while it books.
pub(super) const PERMITS_MAX: u64 = FIELD_MAX - 1;

/// How many handles may be cloned: half of what fits, so that threads that overshoot together still cannot
/// reach the permits before each of them has noticed.
pub(super) const HANDLES_MAX: u64 = FIELD_MAX / 2;

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
        (self.0 & !CLOSED) >> PERMIT.trailing_zeros()
    }

    /// The permits that were not given up on.
    pub(super) const fn in_flight(self) -> u64 {
        if self.is_abandoned() { 0 } else { self.permits() }
    }

    pub(super) const fn handles(self) -> u64 {
        (self.0 >> HANDLE.trailing_zeros()) & FIELD_MAX
    }

    /// Whether nobody holds a permit or a handle: whoever made it so frees the gate.
    pub(super) const fn is_unreferenced(self) -> bool {
        self.0 & !CLOSED < HANDLE
    }
}
