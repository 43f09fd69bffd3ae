//! A sleep whose loop has ended.

use std::{
    future::Future,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll, Waker},
    time::Instant,
};

use ebbtide_lifecycle::time::{
    Clock, SystemClock, ThreadSleep, ThreadTimer, Timer, VirtualClock, VirtualSleep,
};

/// Goes on by the clock that its loop lived by.
pub(crate) enum Orphan {
    Real(ThreadSleep),
    Virtual(VirtualSleep),
    /// The system had no thread for a timer: it is looked at when somebody else polls it.
    Alone(Instant),
}

impl Orphan {
    pub(crate) fn new(at: Instant, clock: Option<&VirtualClock>) -> Self {
        match (clock, timer()) {
            (Some(clock), _) => Self::Virtual(clock.sleep_until(at)),
            (None, Some(timer)) => Self::Real(timer.sleep_until(at)),
            (None, None) => Self::Alone(at),
        }
    }

    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<()> {
        let mut cx = Context::from_waker(waker);
        match self {
            Self::Real(sleep) => Pin::new(sleep).poll(&mut cx),
            Self::Virtual(sleep) => Pin::new(sleep).poll(&mut cx),
            Self::Alone(at) if SystemClock.now() >= *at => Poll::Ready(()),
            Self::Alone(_) => Poll::Pending,
        }
    }
}

/// The timer thread that all such sleeps share. It is started for the first of them.
fn timer() -> Option<&'static ThreadTimer> {
    static TIMER: OnceLock<Option<ThreadTimer>> = OnceLock::new();
    TIMER.get_or_init(|| ThreadTimer::start().ok()).as_ref()
}
