//! The one task that drives all late runners.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ebbtide_lifecycle::{Outcome, contain, time::Clock};
use futures_util::{Stream, stream::FuturesUnordered};

use crate::desk::{Arrived, Desk};

/// The driver takes in and polls so often in a row before others on its executor go first: late runners may bring
/// more without end.
const ROUNDS_MAX: usize = 16;

/// Polls whoever was woken, and books its end. Ends when there are no runners and no more can come.
pub(crate) struct Driver<R: Unpin, C: Clock> {
    desk: Arc<Desk<R>>,
    runners: FuturesUnordered<Driven<R>>,
    clock: C,
}

/// A runner that is driven.
struct Driven<R> {
    /// None once it has ended.
    runner: Option<R>,
    number: usize,
}

impl<R: Future<Output = ()> + Unpin> Future for Driven<R> {
    /// Its number, and how it ended.
    type Output = (usize, Outcome);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let number = self.number;
        let Some(runner) = &mut self.runner else { return Poll::Ready((number, Outcome::Cancelled)) };
        let outcome = match contain(|| Pin::new(runner).poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => Outcome::Late,
            Err(_) => Outcome::Failed,
        };
        // All that it holds goes before it is booked: who sees the runners idle sees it gone.
        drop(contain(|| self.runner = None));
        Poll::Ready((number, outcome))
    }
}

impl<R: Unpin, C: Clock> Driver<R, C> {
    pub(crate) fn new(desk: Arc<Desk<R>>, clock: C) -> Self {
        Self { desk, runners: FuturesUnordered::new(), clock }
    }
}

impl<R: Future<Output = ()> + Unpin, C: Clock + Unpin> Future for Driver<R, C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        for _ in 0..ROUNDS_MAX {
            let look = this.desk.look(cx.waker().clone(), !this.runners.is_empty());
            if look.ends {
                return Poll::Ready(());
            }
            let arrived = look.arrived.len();
            this.runners.extend(
                look.arrived
                    .into_iter()
                    .map(|Arrived { runner, number }| Driven { runner: Some(runner), number }),
            );
            let mut ended = 0;
            while let Poll::Ready(Some((number, outcome))) = Pin::new(&mut this.runners).poll_next(cx) {
                this.desk.board.settle(number, outcome, this.clock.now());
                ended += 1;
            }
            // Only if something has happened can there be something new to see: it may be time to end.
            if arrived + ended == 0 {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<R: Unpin, C: Clock> Drop for Driver<R, C> {
    fn drop(&mut self) {
        let driven = mem::take(&mut self.runners);
        let driven = driven.into_iter().map(|driven| (driven.number, driven.runner));
        let arrived = self.desk.driver_goes().into_iter();
        let arrived = arrived.map(|Arrived { runner, number }| (number, Some(runner)));
        let now = self.clock.now();
        for (number, runner) in driven.chain(arrived) {
            drop(contain(|| drop(runner)));
            self.desk.board.settle(number, Outcome::Cancelled, now);
        }
    }
}
