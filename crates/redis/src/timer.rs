//! Any timer, behind one type: what is driven by an executor need not be generic over its time.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::{Clock, Timer};

/// The timer that a link was given. A clone is another handle to the same.
#[derive(Clone)]
pub struct LinkTimer(Arc<dyn AnyTimer>);

/// What a [`LinkTimer`] sleeps with.
pub type Nap = Pin<Box<dyn Future<Output = ()> + Send>>;

trait AnyTimer: Clock + Send + Sync {
    fn nap(&self, at: Instant) -> Nap;
}

impl<T> AnyTimer for T
where
    T: Timer + Send + Sync,
    T::Sleep: Send + 'static,
{
    fn nap(&self, at: Instant) -> Nap {
        Box::pin(self.sleep_until(at))
    }
}

impl LinkTimer {
    pub(crate) fn new<T>(timer: T) -> Self
    where
        T: Timer + Send + Sync + 'static,
        T::Sleep: Send + 'static,
    {
        Self(Arc::new(timer))
    }
}

impl Clock for LinkTimer {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn is_virtual(&self) -> bool {
        self.0.is_virtual()
    }
}

impl Timer for LinkTimer {
    type Sleep = Nap;

    fn sleep_until(&self, at: Instant) -> Nap {
        self.0.nap(at)
    }
}

impl fmt::Debug for LinkTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkTimer").finish_non_exhaustive()
    }
}

/// For times beyond what an instant can hold.
const AGES: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// `duration` after `now`; ten years, if that is more than there is.
pub(crate) fn later(now: Instant, duration: Duration) -> Instant {
    now.checked_add(duration).unwrap_or_else(|| now + AGES)
}

/// Tells when a moment has come that moves, mostly into the future: it is armed again only when it has rung.
#[derive(Default)]
pub(crate) struct Snooze {
    armed: Option<(Instant, Nap)>,
}

impl Snooze {
    /// Whether `due` has come. If not, the task is woken then, or before.
    pub(crate) fn poll(&mut self, timer: &LinkTimer, due: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(due) = due else {
            self.armed = None;
            return Poll::Pending;
        };
        loop {
            let (at, nap) = match &mut self.armed {
                Some((at, nap)) if *at <= due => (*at, nap),
                armed => {
                    let (at, nap) = armed.insert((due, timer.sleep_until(due)));
                    (*at, nap)
                }
            };
            if nap.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.armed = None;
            if at >= due {
                return Poll::Ready(());
            }
        }
    }
}
