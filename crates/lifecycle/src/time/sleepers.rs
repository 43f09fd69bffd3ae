//! Who sleeps until when: what the thread timer and the virtual clock both keep.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    mem,
    task::{Poll, Waker},
    time::Instant,
};

/// Sleeping tasks, earliest first.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    wakers: BTreeMap<Ticket, Waker>,
    issued: u64,
}

/// One sleeper's place: by its time, then by when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    at: Instant,
    number: u64,
}

impl Sleepers {
    /// Polls a sleep until `at` that holds `ticket` if it was polled before. What is in `ticket` afterwards has to
    /// be given to [`leave`](Sleepers::leave) when the sleep is dropped.
    ///
    /// Also gives the waker that is not needed any more, to be dropped when the lock is released: it is foreign
    /// code, and may own a task with another sleep in it.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        at: Instant,
        ticket: &mut Option<Ticket>,
        mut waker: Waker,
    ) -> (Poll<()>, Option<Waker>) {
        if now >= at {
            return (Poll::Ready(()), ticket.take().and_then(|ticket| self.leave(ticket)));
        }
        let ticket = ticket.get_or_insert_with(|| {
            self.issued += 1;
            Ticket { at, number: self.issued }
        });
        let unneeded = match self.wakers.entry(*ticket) {
            Entry::Vacant(vacant) => {
                vacant.insert(waker);
                None
            }
            Entry::Occupied(mut occupied) => {
                mem::swap(occupied.get_mut(), &mut waker);
                Some(waker)
            }
        };
        (Poll::Pending, unneeded)
    }

    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        self.wakers.remove(&ticket)
    }

    /// The earliest time that somebody sleeps until.
    pub(super) fn next(&self) -> Option<Instant> {
        self.wakers.first_key_value().map(|(ticket, _)| ticket.at)
    }

    /// Takes out all whose time has come, earliest first.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(first) = self.wakers.first_entry() {
            if first.key().at > now {
                break;
            }
            due.push(first.remove());
        }
        due
    }
}
