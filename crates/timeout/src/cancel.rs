//! Timeouts that drop what is too late.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use ebbtide_lifecycle::{
    contain,
    time::{Alarm, Deadline, Timer},
    wait::Elapsed,
};
use pin_project_lite::pin_project;

/// `future`, or [`Elapsed`] if it takes longer than `duration`: then it is dropped.
///
/// The time is counted from the end of the first poll, so around a future that is ready at once no clock is
/// read. A duration of zero has elapsed before the future is polled; one that leads beyond the range of an
/// `Instant` never does.
///
/// ```
/// use std::{future, time::Duration};
/// use ebbtide_timeout::{Elapsed, timeout};
/// use ebbtide_lifecycle::time::VirtualClock;
///
/// let clock = VirtualClock::new();
/// clock.block_on(async {
///     let second = Duration::from_secs(1);
///     assert_eq!(timeout(&clock, second, future::ready(7)).await, Ok(7));
///     assert_eq!(timeout(&clock, second, future::pending::<()>()).await, Err(Elapsed));
/// });
/// ```
#[inline]
pub fn timeout<F: Future, T: Timer>(timer: T, duration: Duration, future: F) -> Timeout<F, T> {
    Timeout { future: Some(future), begun: false, alarm: Alarm::within(timer, duration) }
}

/// `future`, or [`Elapsed`] if it has not ended by `deadline`: then it is dropped. At a deadline that has
/// passed it is not polled at all.
#[inline]
pub fn timeout_at<F: Future, T: Timer>(timer: T, deadline: Deadline, future: F) -> Timeout<F, T> {
    Timeout { future: Some(future), begun: false, alarm: Alarm::by(timer, deadline) }
}

pin_project! {
    /// A future under a deadline; made by [`timeout`] and [`timeout_at`].
    ///
    /// What is ready when it is polled wins, also if the time has come by then.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Timeout<F, T: Timer> {
        // None once it has ended, or was too late.
        #[pin]
        future: Option<F>,
        begun: bool,
        #[pin]
        alarm: Alarm<T>,
    }
}

impl<F: Future, T: Timer> Future for Timeout<F, T> {
    type Output = Result<F::Output, Elapsed>;

    /// # Panics
    /// When it is polled after its end.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let future = this.future.as_mut().as_pin_mut().expect("polled after its end");
        if *this.begun || !this.alarm.is_due() {
            *this.begun = true;
            if let Poll::Ready(output) = future.poll(cx) {
                let_go(this.future);
                return Poll::Ready(Ok(output));
            }
            if this.alarm.poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        let_go(this.future);
        Poll::Ready(Err(Elapsed))
    }
}

/// Drops a future that has ended, or is too late.
#[inline]
fn let_go<F>(mut future: Pin<&mut Option<F>>) {
    // To catch a panic costs as much as all the rest around a future that is ready.
    if mem::needs_drop::<F>() { drop_contained(future) } else { future.set(None) }
}

/// If the drop panics, std's hook has told of it: the output is there, or the deadline has passed, all the same.
#[inline(never)]
fn drop_contained<F>(mut future: Pin<&mut Option<F>>) {
    drop(contain(|| future.set(None)));
}

impl<F, T: Timer> fmt::Debug for Timeout<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").field("alarm", &self.alarm).finish_non_exhaustive()
    }
}
