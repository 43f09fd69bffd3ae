//! What went wrong with a runtime, in numbers that outlive it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ebbtide_lifecycle::{Balance, Ledger};

/// Counters of a runtime that can be read after it is gone. A clone is another handle to the same counters.
#[derive(Clone, Debug)]
pub struct ShutdownStats {
    pub(crate) ledger: Ledger,
    pub(crate) counts: Arc<Counts>,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    panics: AtomicU64,
    unbalanced: AtomicU64,
    undrained_wakes: AtomicU64,
    /// Tasks in flight, published by the loop whenever it sleeps or is left, and when it ends.
    in_flight: AtomicU64,
}

impl Counts {
    pub(crate) fn panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unbalanced(&self) {
        self.unbalanced.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn undrained_wake(&self) {
        self.undrained_wakes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_in_flight(&self, in_flight: u64) {
        self.in_flight.store(in_flight, Ordering::Relaxed);
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }
}

impl ShutdownStats {
    /// The counters at this moment.
    #[must_use]
    pub fn snapshot(&self) -> StatsSnapshot {
        StatsSnapshot {
            balance: self.ledger.balance(self.counts.in_flight()),
            panics: self.counts.panics.load(Ordering::Relaxed),
            aborted_unwinds: 0,
            leaked_tasks: 0,
            unbalanced_shutdowns: self.counts.unbalanced.load(Ordering::Relaxed),
            undrained_wakes: self.counts.undrained_wakes.load(Ordering::Relaxed),
        }
    }
}

/// A reading of [`ShutdownStats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatsSnapshot {
    /// What became of all posts and tasks.
    pub balance: Balance,
    /// Panics that were caught: in a post, in a poll, in the drop of a future or of an output, in a waker.
    pub panics: u64,
    /// Times that the process had to be aborted because memory was still referenced while the runtime unwound.
    /// Always zero: a task's memory is freed by whoever gives up the last reference to it, on whatever thread,
    /// so there is nothing to wait or abort for.
    pub aborted_unwinds: u64,
    /// Tasks whose memory was given up as lost. Always zero, for the same reason.
    pub leaked_tasks: u64,
    /// Runtimes (one at most, for these counters) that ended with a ledger that does not balance: a defect of
    /// ebbtide.
    pub unbalanced_shutdowns: u64,
    /// Wake-ups from other threads that came so late that the runtime had closed for everything between the
    /// mark on the task and its way into the inbox. The task had been dropped by then; a count above zero tells
    /// that some producer was not stopped before its loop. Wake-ups of tasks that are known to be gone are not
    /// counted.
    pub undrained_wakes: u64,
}

impl fmt::Display for StatsSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.balance)?;
        for (name, count) in [
            ("panics", self.panics),
            ("unbalanced shutdowns", self.unbalanced_shutdowns),
            ("undrained wakes", self.undrained_wakes),
        ] {
            if count != 0 {
                write!(f, ", {name} {count}")?;
            }
        }
        Ok(())
    }
}
