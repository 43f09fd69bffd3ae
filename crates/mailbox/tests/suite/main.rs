//! Facts about mailboxes and workers. Those with a number are contracts, listed in `ARCHITECTURE.md`.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod bad_input;
mod conformance;
mod memory;
mod model;
mod races;
mod worker;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use ebbtide_lifecycle::time::VirtualClock;
use ebbtide_mailbox::{Delivery, Mailbox, MemoryMailbox, Message, MessageId, Office, Pull, Span};

const SECOND: Duration = Duration::from_secs(1);

/// A mailbox in virtual time, which moves when it is told to.
fn virtual_mailbox() -> (VirtualClock, MemoryMailbox<VirtualClock>) {
    let clock = VirtualClock::new();
    (clock.clone(), Office::new(clock).mailbox("orders"))
}

/// As many as there are, for a minute, without a wait.
fn at_once() -> Pull {
    Pull::default().visibility(Span::secs(60)).wait(Duration::ZERO).unwrap()
}

/// What a future gives that does not wait.
fn now<T>(mut future: Pin<Box<dyn Future<Output = T> + Send + '_>>) -> T {
    match poll_with(&Wakes::new(), &mut future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

fn send(mailbox: &dyn Mailbox, body: &'static str) -> MessageId {
    now(mailbox.send(Message::new(body))).unwrap()
}

fn receive(mailbox: &dyn Mailbox, pull: Pull) -> Vec<Delivery> {
    now(mailbox.receive(pull)).unwrap()
}

/// A waker that counts its wakes.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls once, with a waker that counts.
fn poll_with<F: Future + Unpin>(wakes: &Arc<Wakes>, future: &mut F) -> Poll<F::Output> {
    let waker = Waker::from(wakes.clone());
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}
