//! A timer that is armed only once somebody has to wait for it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use pin_project_lite::pin_project;

use super::{Deadline, Timer};

pin_project! {
    /// Goes off at a deadline, or after a while. It takes no time and no place at its timer before its first poll,
    /// because most of what is waited for comes in time.
    #[must_use = "an alarm does nothing unless polled"]
    pub struct Alarm<T: Timer> {
        timer: T,
        limit: Limit,
        #[pin]
        sleep: Option<T::Sleep>,
    }
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    By(Deadline),
    /// Counted from the first poll.
    Within(Duration),
}

impl<T: Timer> Alarm<T> {
    /// Goes off at `deadline`.
    #[inline]
    pub fn by(timer: T, deadline: Deadline) -> Self {
        Self { timer, limit: Limit::By(deadline), sleep: None }
    }

    /// Goes off when `duration` has passed since its first poll.
    #[inline]
    pub fn within(timer: T, duration: Duration) -> Self {
        Self { timer, limit: Limit::Within(duration), sleep: None }
    }

    /// Whether there is no time at all: its deadline has come already, or its duration is zero. Reads the clock
    /// only for a deadline.
    #[inline]
    pub fn is_due(&self) -> bool {
        match self.limit {
            Limit::By(deadline) => deadline.instant().is_some_and(|at| self.timer.now() >= at),
            Limit::Within(duration) => duration.is_zero(),
        }
    }

    /// Counts a duration from this moment, and not from the first poll, so that it has an
    /// [instant](Alarm::instant). Reads the clock for that, once.
    pub fn fix(self: Pin<&mut Self>) {
        let this = self.project();
        if let Limit::Within(duration) = *this.limit
            && this.sleep.is_none()
        {
            *this.limit = Limit::By(Deadline::after(&*this.timer, duration));
        }
    }

    /// When it goes off. None if that is never, or a duration that was not [fixed](Alarm::fix).
    pub fn instant(&self) -> Option<Instant> {
        match self.limit {
            Limit::By(deadline) => deadline.instant(),
            Limit::Within(_) => None,
        }
    }

    /// Its timer.
    pub fn timer(&self) -> &T {
        &self.timer
    }
}

impl<T: Timer> Future for Alarm<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if this.sleep.is_none() {
            let sleep = match *this.limit {
                Limit::By(deadline) => match deadline.instant() {
                    Some(at) => this.timer.sleep_until(at),
                    None => return Poll::Pending,
                },
                Limit::Within(duration) => match this.timer.sleep(duration) {
                    Some(sleep) => sleep,
                    None => return Poll::Pending,
                },
            };
            this.sleep.set(Some(sleep));
        }
        this.sleep.as_pin_mut().expect("set above").poll(cx)
    }
}

impl<T: Timer> fmt::Debug for Alarm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("limit", &self.limit).finish_non_exhaustive()
    }
}
