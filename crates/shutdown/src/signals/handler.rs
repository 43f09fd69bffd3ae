//! What is done inside a signal handler: counting, and ending the process at the third.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicI32, AtomicUsize, Ordering},
    },
};

use signal_hook::{
    SigId,
    low_level::{exit, register, unregister},
};

use crate::verdict::Verdict;

/// How many signals came, and which was the first.
#[derive(Debug, Default)]
pub(super) struct Count {
    first: AtomicI32,
    came: AtomicUsize,
}

impl Count {
    /// How many came so far.
    pub(super) fn came(&self) -> usize {
        // Acquire: `first`, from the handler.
        self.came.load(Ordering::Acquire)
    }

    /// The first that came, once one has.
    pub(super) fn first(&self) -> i32 {
        self.first.load(Ordering::Relaxed)
    }

    /// In the handler.
    fn add(&self, signal: i32) {
        let _ = self.first.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
        // Release: `first`, to the thread that sees the count.
        if self.came.fetch_add(1, Ordering::Release) >= 2 {
            exit(Verdict::IMMEDIATE.into());
        }
    }
}

/// Has each `signal` counted, and `then` done after that.
#[expect(unsafe_code, reason = "registering a handler is")]
pub(super) fn count(
    signal: i32,
    count: &Arc<Count>,
    then: impl Fn() + Send + Sync + 'static,
) -> io::Result<SigId> {
    let count = count.clone();
    let handler = move || {
        count.add(signal);
        then();
    };
    // SAFETY: what runs in a handler must be async-signal-safe, and may not panic. `add` is two atomic operations on
    // memory that the handler itself keeps alive, and `_exit`; `then` is either nothing, or unparks a thread where
    // handlers run on ordinary threads.
    unsafe { register(signal, handler) }
}

/// Handlers that go again when one of a set cannot be registered.
#[derive(Default)]
pub(super) struct Registered {
    ids: Vec<SigId>,
}

impl Registered {
    pub(super) fn add(&mut self, id: SigId) {
        self.ids.push(id);
    }

    /// All are there: they stay for the rest of the process's life.
    pub(super) fn keep(mut self) {
        self.ids.clear();
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            unregister(id);
        }
    }
}
