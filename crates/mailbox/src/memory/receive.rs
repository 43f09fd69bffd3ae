//! A receiver that waits for messages.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll},
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
    look: Look<'a, T>,
    /// There from the first time on that there was nothing.
    waiting: Option<Waiting<'a, T>>,
}

struct Waiting<'a, T: Timer> {
    changed: Wait<Look<'a, T>>,
    /// When it gives up.
    until: Instant,
    /// Until when it sleeps: until it gives up, or a message comes back by itself.
    wakes: Instant,
    sleep: Pin<Box<T::Sleep>>,
}

impl<'a, T: Timer> Receiving<'a, T> {
    pub(super) fn new(desk: &'a Desk, timer: &'a T, pull: Pull) -> Self {
        Self { look: Look { desk, timer, pull, is_counted: Cell::new(false) }, waiting: None }
    }
}

// Nothing in it is pinned but what is on the heap.
impl<T: Timer> Unpin for Receiving<'_, T> {}

impl<T: Timer> Future for Receiving<'_, T> {
    type Output = Received;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Received> {
        let Self { look, waiting } = &mut *self;
        let waiting = match waiting {
            Some(waiting) => waiting,
            None => {
                if let Some(received) = look.look() {
                    return Poll::Ready(received);
                }
                if look.pull.patience().is_zero() {
                    return Poll::Ready(Ok(Vec::new()));
                }
                waiting.insert(Waiting::new(look))
            }
        };
        loop {
            if let Poll::Ready(received) = Pin::new(&mut waiting.changed).poll(cx) {
                return Poll::Ready(received);
            }
            // Whoever makes this earlier rings.
            let due = look.desk.shelf().next_due();
            waiting.sleep_until(due.map_or(waiting.until, |due| due.min(waiting.until)), look.timer);
            if waiting.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if let Some(received) = look.look() {
                return Poll::Ready(received);
            }
            if waiting.wakes >= waiting.until {
                return Poll::Ready(Ok(Vec::new()));
            }
        }
    }
}

impl<'a, T: Timer> Waiting<'a, T> {
    fn new(look: &Look<'a, T>) -> Self {
        let Look { desk, timer, pull, .. } = *look;
        let until = timer.now() + pull.patience();
        Self {
            changed: Wait::new(Look { desk, timer, pull, is_counted: Cell::new(false) }),
            until,
            wakes: until,
            sleep: Box::pin(timer.sleep_until(until)),
        }
    }

    fn sleep_until(&mut self, at: Instant, timer: &T) {
        if self.wakes != at {
            self.wakes = at;
            self.sleep.set(timer.sleep_until(at));
        }
    }
}

/// Looks for messages, and takes what it finds.
struct Look<'a, T> {
    desk: &'a Desk,
    timer: &'a T,
    pull: Pull,
    /// Whether it is among those who wait.
    is_counted: Cell<bool>,
}

impl<T: Timer> Watch for Look<'_, T> {
    type Seen = Received;

    fn look(&self) -> Option<Received> {
        let Self { desk, timer, pull, .. } = self;
        // Closed before it is empty: what is left is for whoever closed it.
        if desk.closed.load(Ordering::SeqCst) {
            return Some(Err(ReceiveError::Closed));
        }
        let mut shelf = desk.shelf();
        let (before, taken) =
            (shelf.next_due(), shelf.take(pull.batch(), pull.lease().duration(), timer.now()));
        let after = shelf.next_due();
        drop(shelf);
        if taken.is_empty() {
            return None;
        }
        // What has been taken may come back before those who wait would look again.
        if before.is_none_or(|before| after.is_some_and(|after| after < before)) {
            desk.ring();
        }
        Some(Ok(taken))
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

impl<T> Drop for Look<'_, T> {
    fn drop(&mut self) {
        if self.is_counted.get() {
            self.desk.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
