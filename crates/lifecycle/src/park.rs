//! Blocking a thread until it is woken, and waking what others have left to be woken.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Instant,
};

use crate::{
    panicked::contain,
    time::{Clock, SystemClock},
};

/// A flag that unparks the thread that made it.
///
/// The flag, and not the thread's own token, is what remembers a wake: whatever the thread does in between may
/// park too, and take the token.
pub(crate) struct Signal {
    thread: Thread,
    raised: AtomicBool,
}

impl Signal {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), raised: AtomicBool::new(false) })
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Lowers the flag, and says whether it was raised.
    pub(crate) fn take(&self) -> bool {
        self.raised.swap(false, Ordering::Acquire)
    }

    /// Parks the thread until the flag is raised, and lowers it. Gives false if `until` came first.
    fn park(&self, until: Option<Instant>) -> bool {
        while !self.take() {
            match until.map(|until| until.saturating_duration_since(SystemClock.now())) {
                None => thread::park(),
                Some(left) if left.is_zero() => return false,
                Some(left) => thread::park_timeout(left),
            }
        }
        true
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raised.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Polls `future` on this thread, which parks in between. Gives nothing if `until` came first.
pub(crate) fn block_on<F: Future>(future: F, until: Option<Instant>) -> Option<F::Output> {
    let signal = Signal::new();
    let waker = Waker::from(signal.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        if !signal.park(until) {
            return None;
        }
    }
}

/// Wakes them all. A waker is foreign code: call this with no lock held. One that panics has harmed its own
/// task, and the panic hook has reported it; the others still want to be woken.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        drop(contain(|| waker.wake()));
    }
}
