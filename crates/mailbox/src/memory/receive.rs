//! A receiver that waits for messages.
//!
//! It sleeps until the bell rings, or until the next message comes back by itself. When that is, it learns under the
//! same lock under which it finds nothing. Whoever puts a message anywhere after that rings. Others may find first what
//! has come back, and leave some of it: but then the receiver's own time has come, too, and it looks. And what others
//! take they have not found before whatever wakes the receiver: it looks after them, and learns when that comes back.

use std::{
    cell::Cell,
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll, ready},
    time::Instant,
};

use ebbtide_lifecycle::{
    time::Timer,
    wait::{Bell, Wait, Watch},
};

use super::Desk;
use crate::{error::ReceiveError, message::Delivery, pull::Pull};

/// What a receiver gets.
type Received = Result<Vec<Delivery>, ReceiveError>;

/// The future of [`receive`](crate::Mailbox::receive). Whatever it takes it gives in the same poll: dropped before, it
/// has taken nothing.
pub(super) struct Receiving<'a, T: Timer> {
    search: Search<'a, T>,
    /// There from the first time on that there was nothing.
    waiting: Option<Waiting<'a, T>>,
}

struct Waiting<'a, T: Timer> {
    rung: Wait<Listener<'a>>,
    /// When it gives up.
    until: Instant,
    /// Until when it sleeps: until it gives up, or a message comes back by itself.
    wakes: Instant,
    sleep: Pin<Box<T::Sleep>>,
}

impl<'a, T: Timer> Receiving<'a, T> {
    pub(super) fn new(desk: &'a Desk, timer: &'a T, pull: Pull) -> Self {
        Self { search: Search { desk, timer, pull }, waiting: None }
    }
}

// Nothing in it is pinned but what is on the heap.
impl<T: Timer> Unpin for Receiving<'_, T> {}

impl<T: Timer> Future for Receiving<'_, T> {
    type Output = Received;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Received> {
        let Self { search, waiting } = &mut *self;
        if let Found::Received(received) = search.look() {
            return Poll::Ready(received);
        }
        if search.pull.patience().is_zero() {
            return Poll::Ready(Ok(Vec::new()));
        }
        let waiting = waiting.get_or_insert_with(|| Waiting::new(search));
        let mut is_over = false;
        loop {
            // It listens before it looks: what comes after the look rings.
            let Poll::Pending = Pin::new(&mut waiting.rung).poll(cx);
            let next = match search.look() {
                Found::Received(received) => return Poll::Ready(received),
                Found::Nothing { .. } if is_over => return Poll::Ready(Ok(Vec::new())),
                Found::Nothing { next } => next,
            };
            waiting.sleep_until(next.map_or(waiting.until, |next| next.min(waiting.until)), search.timer);
            ready!(waiting.sleep.as_mut().poll(cx));
            is_over = waiting.wakes >= waiting.until;
        }
    }
}

impl<'a, T: Timer> Waiting<'a, T> {
    fn new(search: &Search<'a, T>) -> Self {
        let Search { desk, timer, pull } = *search;
        let until = timer.now() + pull.patience();
        Self {
            rung: Wait::new(Listener { desk, is_counted: Cell::new(false) }),
            until,
            wakes: until,
            sleep: Box::pin(timer.sleep_until(until)),
        }
    }

    fn sleep_until(&mut self, at: Instant, timer: &T) {
        // A sleep that has ended is never polled again: after it, nothing comes back before a later time.
        if self.wakes != at {
            self.wakes = at;
            self.sleep.set(timer.sleep_until(at));
        }
    }
}

/// Looks for messages, and takes what it finds.
struct Search<'a, T> {
    desk: &'a Desk,
    timer: &'a T,
    pull: Pull,
}

/// What a look has come to.
enum Found {
    Received(Received),
    Nothing {
        /// When a message comes back by itself.
        next: Option<Instant>,
    },
}

impl<T: Timer> Search<'_, T> {
    fn look(&self) -> Found {
        let Self { desk, timer, pull } = self;
        let mut shelf = desk.shelf();
        // Looked at under the lock, under which it is closed: nothing comes out when a close has returned. Closed comes
        // before empty: what is left is for whoever closed it.
        if desk.closed.load(Ordering::Relaxed) {
            return Found::Received(Err(ReceiveError::Closed));
        }
        let taken = shelf.take(pull.batch(), pull.lease().duration(), timer.now());
        if taken.is_empty() { Found::Nothing { next: shelf.next_due() } } else { Found::Received(Ok(taken)) }
    }
}

/// Waits for the bell, and is counted among those who do.
struct Listener<'a> {
    desk: &'a Desk,
    is_counted: Cell<bool>,
}

impl Watch for Listener<'_> {
    type Seen = Infallible;

    /// Whoever listens looks by himself.
    fn look(&self) -> Option<Infallible> {
        None
    }

    fn bell(&self) -> &Bell {
        &self.desk.changed
    }

    fn announce(&self) {
        if !self.is_counted.replace(true) {
            self.desk.waiting.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        if self.is_counted.get() {
            self.desk.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
