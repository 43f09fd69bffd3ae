//! The facts that the lifecycle crate promises, one module for each part.

#![cfg(not(any(loom, shuttle)))]
#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod alarm;
mod allocation;
mod blame;
mod gate;
mod intake;
mod ledger;
mod model;
mod runnable;
mod state;
mod stress;
mod time;
mod trigger;
mod wait;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

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

/// A waker that panics, on purpose.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics, on purpose");
    }
}

/// The task of an executor that has gone: waking it drops its future.
struct Orphan<F>(Mutex<Option<F>>);

impl<F: Future + Unpin + Send + 'static> Orphan<F> {
    /// Polls the future once, as a task of such an executor.
    fn poll(future: F) -> Poll<F::Output> {
        let task = Arc::new(Self(Mutex::new(Some(future))));
        let waker = Waker::from(task.clone());
        let mut kept = task.0.lock().unwrap();
        Pin::new(kept.as_mut().unwrap()).poll(&mut Context::from_waker(&waker))
    }
}

impl<F: Send + 'static> Wake for Orphan<F> {
    fn wake(self: Arc<Self>) {
        let future = self.0.lock().unwrap().take();
        drop(future);
    }
}

/// Polls once, with a waker that counts.
fn poll_with<F: Future + Unpin>(wakes: &Arc<Wakes>, future: &mut F) -> Poll<F::Output> {
    let waker = Waker::from(wakes.clone());
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}
