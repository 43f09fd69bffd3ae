//! Races: the first wins, the others are dropped at once.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use ebbtide_lifecycle::contain;
use pin_project_lite::pin_project;

/// Whichever of the two ends first. The other is dropped before this gives the winner's output.
///
/// Both are polled in this order whenever either is woken, so that of two that are ready at the same time the
/// left one wins, always. Put the one that must not starve first.
///
/// ```
/// use std::future;
/// use ebbtide_timeout::{First, race};
/// # use ebbtide_lifecycle::wait::block_on;
///
/// # block_on(async {
/// assert_eq!(race(future::ready(1), future::ready("two")).await, First::Left(1));
/// assert_eq!(race(future::pending::<()>(), future::ready("two")).await, First::Right("two"));
/// # });
/// ```
pub fn race<A: Future, B: Future>(left: A, right: B) -> Race<A, B> {
    Race { left: Some(left), right: Some(right) }
}

/// The output of the winner of a [`race`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<A, B> {
    /// The left one was first.
    Left(A),
    /// The right one was first.
    Right(B),
}

impl<T> First<T, T> {
    /// The output, whosoever it is.
    pub fn into_inner(self) -> T {
        match self {
            Self::Left(output) | Self::Right(output) => output,
        }
    }
}

pin_project! {
    /// Two futures of which the first to end wins; made by [`race`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Race<A, B> {
        // Both none once there is a winner.
        #[pin]
        left: Option<A>,
        #[pin]
        right: Option<B>,
    }
}

impl<A: Future, B: Future> Future for Race<A, B> {
    type Output = First<A::Output, B::Output>;

    /// # Panics
    /// When it is polled after its end.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        const OVER: &str = "polled after its end";
        let mut this = self.project();
        let mut first = this.left.as_mut().as_pin_mut().expect(OVER).poll(cx).map(First::Left);
        if first.is_pending() {
            first = this.right.as_mut().as_pin_mut().expect(OVER).poll(cx).map(First::Right);
        }
        if first.is_ready() {
            // The winner's output is there, whatever the drop of the loser does.
            drop(contain(|| this.left.set(None)));
            drop(contain(|| this.right.set(None)));
        }
        first
    }
}

impl<A, B> fmt::Debug for Race<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Race").field("over", &self.left.is_none()).finish_non_exhaustive()
    }
}

/// Whichever of the futures ends first, with its place. The others are dropped before this gives the winner's
/// output. None if there are no futures.
///
/// All are polled in their order whenever one is woken, so that of those that are ready at the same time the
/// first wins. For a few: with hundreds use a set that polls only who was woken.
pub fn race_all<F: Future>(racers: impl IntoIterator<Item = F>) -> RaceAll<F> {
    RaceAll { racers: racers.into_iter().map(Box::pin).collect() }
}

/// Futures of which the first to end wins; made by [`race_all`].
#[must_use = "futures do nothing unless awaited"]
pub struct RaceAll<F> {
    /// None once there is a winner.
    racers: Vec<Pin<Box<F>>>,
}

impl<F: Future> Future for RaceAll<F> {
    type Output = Option<(usize, F::Output)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.racers.is_empty() {
            return Poll::Ready(None);
        }
        for place in 0..self.racers.len() {
            if let Poll::Ready(output) = self.racers[place].as_mut().poll(cx) {
                for racer in self.racers.drain(..) {
                    drop(contain(|| drop(racer)));
                }
                return Poll::Ready(Some((place, output)));
            }
        }
        Poll::Pending
    }
}

impl<F> fmt::Debug for RaceAll<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaceAll").field("racers", &self.racers.len()).finish()
    }
}
