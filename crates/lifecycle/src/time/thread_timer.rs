//! A timer on a thread of its own, for programs without a runtime and for whoever must not depend on one.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    thread,
    time::Instant,
};

use super::{
    Clock, SystemClock, Timer,
    sleepers::{Sleepers, Ticket},
};
use crate::park::wake_all;

/// Wakes sleepers in the system's time, from one thread that sleeps while nothing is due.
///
/// A clone is another handle to the same thread. The thread ends by itself once every handle and every sleep is
/// gone; dropping them does not wait for it, because a sleep may be dropped anywhere, also under a lock that one
/// of the wakers takes.
#[derive(Clone)]
pub struct ThreadTimer {
    lease: Arc<Lease>,
}

/// What keeps the thread going; its drop tells the thread to end.
struct Lease {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<Timers>,
    /// Signalled when the earliest time changes, and when the timer is to end.
    changed: Condvar,
}

#[derive(Default)]
struct Timers {
    sleepers: Sleepers,
    ending: bool,
}

impl ThreadTimer {
    /// Starts the thread.
    ///
    /// # Errors
    /// That of the system, when it has no thread to give.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let run = {
            let shared = shared.clone();
            move || shared.run()
        };
        thread::Builder::new().name("ebbtide-timer".into()).spawn(run)?;
        Ok(Self { lease: Arc::new(Lease { shared }) })
    }
}

impl Shared {
    fn run(&self) {
        let mut timers = self.lock();
        while !timers.ending {
            let now = SystemClock.now();
            let due = timers.sleepers.take_due(now);
            if !due.is_empty() {
                drop(timers);
                wake_all(due);
                timers = self.lock();
                continue;
            }
            timers = match timers.sleepers.next() {
                None => self.changed.wait(timers).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let waited = self.changed.wait_timeout(timers, at - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Timers> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.lock().ending = true;
        self.shared.changed.notify_one();
    }
}

impl Clock for ThreadTimer {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

impl Timer for ThreadTimer {
    type Sleep = ThreadSleep;

    fn sleep_until(&self, at: Instant) -> ThreadSleep {
        ThreadSleep { lease: self.lease.clone(), at, ticket: None }
    }
}

impl fmt::Debug for ThreadTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadTimer").finish_non_exhaustive()
    }
}

/// A sleep on a [`ThreadTimer`].
#[must_use = "a sleep does nothing unless awaited"]
pub struct ThreadSleep {
    lease: Arc<Lease>,
    at: Instant,
    ticket: Option<Ticket>,
}

impl Future for ThreadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let shared = &this.lease.shared;
        let waker = cx.waker().clone();
        let mut timers = shared.lock();
        let earliest = timers.sleepers.next();
        let (poll, unneeded) = timers.sleepers.poll(SystemClock.now(), this.at, &mut this.ticket, waker);
        drop(timers);
        drop(unneeded);
        if poll.is_pending() && earliest.is_none_or(|earliest| this.at < earliest) {
            shared.changed.notify_one();
        }
        poll
    }
}

impl Drop for ThreadSleep {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            // The waker is dropped after the lock is released: it is foreign code.
            let _waker = self.lease.shared.lock().sleepers.leave(ticket);
        }
    }
}

impl fmt::Debug for ThreadSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadSleep").field("at", &self.at).finish_non_exhaustive()
    }
}
