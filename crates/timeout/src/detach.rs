//! Timeouts that let what is too late go on.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ebbtide_lifecycle::{
    blame::Origin,
    contain,
    time::{Alarm, Timer},
    wait::Elapsed,
};
use pin_project_lite::pin_project;

use crate::runners::{Callers, House};

pin_project! {
    /// A future that outlives its deadline; made by [`Runners::timeout`](crate::Runners::timeout) and
    /// [`Runners::timeout_at`](crate::Runners::timeout_at).
    ///
    /// What is ready when it is polled wins, also if the time has come by then. If the time wins, the future
    /// goes on as a late runner. Dropping this before either drops the future.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Detachable<F, T: Timer, R> {
        stage: Stage<F>,
        #[pin]
        alarm: Alarm<T>,
        callers: Arc<Callers<R>>,
        origin: Origin,
    }
}

enum Stage<F> {
    /// Not polled yet.
    Fresh(Pin<Box<Runner<F>>>),
    Begun(Pin<Box<Runner<F>>>),
    /// It has ended, or is late.
    Over,
}

impl<F> Stage<F> {
    /// Drops the future. If its drop panics, std's hook has told of it: it has ended, or had no time, all the same.
    fn end(&mut self) {
        let over = mem::replace(self, Self::Over);
        drop(contain(|| drop(over)));
    }
}

pin_project! {
    /// A future whose output nobody wants any more. It is boxed before its first poll, so that it can go on
    /// elsewhere.
    pub struct Runner<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Runner<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().future.poll(cx).map(drop)
    }
}

impl<F> fmt::Debug for Runner<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

impl<F: Future, T: Timer, R> Detachable<F, T, R> {
    pub(crate) fn new(future: F, alarm: Alarm<T>, callers: Arc<Callers<R>>, origin: Origin) -> Self {
        Self { stage: Stage::Fresh(Box::pin(Runner { future })), alarm, callers, origin }
    }

    /// What it is called, should it be late: reports say it beside the place where it was made.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.origin = self.origin.named(name);
        self
    }
}

impl<F: Future, T: Timer, R: House<F>> Future for Detachable<F, T, R> {
    type Output = Result<F::Output, Elapsed>;

    /// # Panics
    /// When it is polled after its end.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Stage::Fresh(_) = this.stage {
            // A deadline that has passed fails before the work starts: then there is nothing to go on.
            if this.alarm.is_due() {
                this.stage.end();
                return Poll::Ready(Err(Elapsed));
            }
            *this.stage = match mem::replace(this.stage, Stage::Over) {
                Stage::Fresh(runner) => Stage::Begun(runner),
                other => other,
            };
        }
        let Stage::Begun(runner) = this.stage else { panic!("polled after its end") };
        if let Poll::Ready(output) = runner.as_mut().project().future.poll(cx) {
            this.stage.end();
            return Poll::Ready(Ok(output));
        }
        // Whoever is late is so from this time on, whenever that is seen.
        this.alarm.as_mut().fix();
        if this.alarm.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if let Stage::Begun(runner) = mem::replace(this.stage, Stage::Over) {
            let since = this.alarm.instant().expect("it went off, and was fixed before");
            this.callers.desk.hand_over(R::house(runner), this.origin.clone(), since);
        }
        Poll::Ready(Err(Elapsed))
    }
}

impl<F, T: Timer, R> fmt::Debug for Detachable<F, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detachable")
            .field("origin", &self.origin)
            .field("alarm", &self.alarm)
            .finish_non_exhaustive()
    }
}
