//! Facts about races, timeouts and late runners. Those with a number are contracts, listed in `ARCHITECTURE.md`.

#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod cancel;
mod component;
mod detach;
mod executors;
mod race;

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

const MINUTE: Duration = Duration::from_secs(60);

/// Counts how many of it are there.
#[derive(Default)]
struct Canaries(Arc<AtomicUsize>);

struct Canary(Arc<AtomicUsize>);

impl Canaries {
    fn hatch(&self) -> Canary {
        self.0.fetch_add(1, Ordering::Relaxed);
        Canary(self.0.clone())
    }

    fn alive(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("boom");
        }
    }
}

/// Never ends, and panics when it is dropped.
async fn bomb() {
    let _bomb = Bomb;
    pending::<()>().await;
}

/// Is ready at once, and panics when it is dropped.
struct Armed<T> {
    output: Option<T>,
    _bomb: Bomb,
}

impl<T> Armed<T> {
    fn ready(output: T) -> Self {
        Self { output: Some(output), _bomb: Bomb }
    }
}

impl<T: Unpin> Future for Armed<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(self.output.take().unwrap())
    }
}

/// A waker whose clones can be counted.
struct Counted;

impl Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

/// A waker that counts how often it is called.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Calls {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls once, with a waker that nobody listens to.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}
