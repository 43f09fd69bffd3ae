//! A gate and its books for an owner who has a lock in any case.

use std::fmt;

use crate::{
    balance::Balance,
    ledger::{Book, Entry, Ledger, Outcome},
    refusal::Refusal,
};

/// Admission, the count of what is in flight, and the books: what a [`Gate`](crate::Gate) with a ledger is, without
/// an atomic in it.
///
/// Whoever keeps a queue under a lock keeps this beside it: then taking work in, counting it and queueing it are one
/// step, and so are taking it out and closing. Under the lock the sums balance at every moment.
pub struct Tally {
    book: Book,
    ledger: Ledger,
    in_flight: u64,
    /// What was given up on and is not back yet. Zero until `abandoned`.
    given_up: u64,
    closed: bool,
    abandoned: bool,
}

impl Tally {
    /// Open, with nothing in flight.
    #[must_use]
    pub fn new() -> Self {
        let ledger = Ledger::new();
        Self { book: ledger.book(), ledger, in_flight: 0, given_up: 0, closed: false, abandoned: false }
    }

    /// Lets `n` pieces of work in from outside.
    ///
    /// # Errors
    /// Refuses all of them once it is closed.
    #[inline]
    pub fn admit(&mut self, n: u64) -> Result<(), Refusal> {
        if self.closed {
            return Err(self.refuse(Refusal::Closed, n));
        }
        self.take_in(n);
        Ok(())
    }

    /// Lets `n` pieces of work in that work inside brings: also when it is closed, because what is in flight may
    /// need them in order to end.
    ///
    /// # Errors
    /// Refuses all of them once work was given up on.
    #[inline]
    pub fn admit_from_inside(&mut self, n: u64) -> Result<(), Refusal> {
        if self.abandoned {
            return Err(self.refuse(Refusal::Closed, n));
        }
        self.take_in(n);
        Ok(())
    }

    /// Counts `n` pieces of work in that cannot be refused. What comes after work was given up on is given up on,
    /// too.
    #[inline]
    pub fn take_in(&mut self, n: u64) {
        self.book.add(Entry::Accepted, n);
        self.in_flight += n;
        if self.abandoned {
            self.abandon();
        }
    }

    /// Counts `n` pieces of work that are not taken in, and gives `why` back.
    pub fn refuse(&mut self, why: Refusal, n: u64) -> Refusal {
        self.book.add(Entry::Refused, n);
        why
    }

    /// Counts one piece of work out, and says how it ended.
    #[inline]
    pub fn settle(&mut self, outcome: Outcome) {
        if self.given_up > 0 {
            self.given_up -= 1;
            return self.book.count(Entry::ReturnedAfter);
        }
        self.in_flight -= 1;
        self.book.settle(outcome);
    }

    /// Lets nothing in from outside any more. Gives whether it was open until now.
    pub fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.closed, true)
    }

    /// Closes it and gives up on what is in flight. Gives how many pieces of work that are.
    pub fn abandon(&mut self) -> u64 {
        self.closed = true;
        let given_up = std::mem::take(&mut self.in_flight);
        if given_up > 0 {
            self.abandoned = true;
            self.given_up += given_up;
            self.book.add(Entry::Abandoned, given_up);
        }
        given_up
    }

    /// Whether nothing comes in from outside any more.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether work was given up on.
    #[must_use]
    pub const fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// How much work is in flight that was not given up on.
    #[must_use]
    pub const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// How much work is in flight, given up on or not.
    #[must_use]
    pub const fn outstanding(&self) -> u64 {
        self.in_flight + self.given_up
    }

    /// The counters, which outlive it.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The sums, with what is in flight by its own count.
    #[must_use]
    pub fn balance(&self) -> Balance {
        self.ledger.balance(self.in_flight)
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tally")
            .field("closed", &self.closed)
            .field("in_flight", &self.in_flight)
            .field("given_up", &self.given_up)
            .finish()
    }
}
