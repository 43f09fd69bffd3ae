//! What a node does, with its types forgotten.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ebbtide_lifecycle::{Panicked, contain};
use pin_project_lite::pin_project;

use crate::{
    cx::Cx,
    failure::Failure,
    inputs::Sources,
    reach::Reach,
    slot::{Place, SlotKind, Turn},
};

/// What is needed to run a node.
pub(crate) struct Call<'a, R> {
    pub(crate) turn: Turn<'a>,
    pub(crate) cx: Cx<'a, R>,
    /// It may be run again, and needs its inputs then.
    pub(crate) again: bool,
    /// Whether its output is still wanted. Asked once, before it is stored.
    pub(crate) claim: &'a dyn Fn() -> bool,
}

/// How a call, or a future, ended.
pub(crate) enum Called {
    /// The output is in its slot.
    Stored,
    /// There was an output, and nobody wanted it any more.
    Late,
    Failed(Failure),
    Panicked(Panicked),
}

/// The op of one node.
pub(crate) trait Op<R, M: Reach> {
    fn slot(&self) -> &'static SlotKind;

    /// Runs it on this thread, if it is not async.
    fn call(&self, call: Call<'_, R>) -> Called;

    /// Memory for its future, if it is async.
    fn task(&self) -> Option<Box<dyn Task<R, M>>>;

    /// It does not want its inputs any more.
    fn release_inputs(&self, turn: Turn<'_>);
}

/// The memory of an async node's future, used again in each run.
pub(crate) trait Task<R, M: Reach> {
    /// Makes the future, and polls it for the first time.
    fn start(&mut self, call: Call<'_, R>, cx: &mut Context<'_>) -> Poll<Called>;

    /// Polls the future.
    fn poll(&mut self, turn: Turn<'_>, cx: &mut Context<'_>) -> Poll<Called>;

    /// Whether there is a future.
    fn is_there(&self) -> bool;

    /// Drops the future.
    fn cancel(&mut self);

    /// Takes the future out, to go on elsewhere.
    fn detach(&mut self) -> M::Runner;
}

/// An inline, CPU or blocking node.
pub(crate) struct Sync<F, S, T> {
    pub(crate) f: F,
    pub(crate) inputs: S,
    pub(crate) place: Place<T>,
}

impl<F, S, T, R, M> Op<R, M> for Sync<F, S, T>
where
    F: for<'a> Fn(Cx<'a, R>, S::Values<'a>) -> Result<T, Failure>,
    S: Sources,
    M: Reach,
{
    fn slot(&self) -> &'static SlotKind {
        SlotKind::of::<T>()
    }

    #[inline]
    fn call(&self, Call { turn, cx, again, claim }: Call<'_, R>) -> Called {
        let called = contain(|| (self.f)(cx, self.inputs.lend(turn, again)));
        if !again {
            self.inputs.release(turn);
        }
        match called {
            Ok(Ok(output)) => {
                if !claim() {
                    drop(contain(|| drop(output)));
                    return Called::Late;
                }
                turn.fill(self.place, output);
                Called::Stored
            }
            Ok(Err(failure)) => Called::Failed(failure),
            Err(panic) => Called::Panicked(panic),
        }
    }

    fn task(&self) -> Option<Box<dyn Task<R, M>>> {
        None
    }

    fn release_inputs(&self, turn: Turn<'_>) {
        self.inputs.release(turn);
    }
}

/// An async node.
pub(crate) struct Async<F, Fut, S, T, M: Reach> {
    recipe: Arc<Recipe<F, Fut, S, T, M>>,
}

/// How an async node is run.
struct Recipe<F, Fut, S, T, M: Reach> {
    f: F,
    inputs: S,
    place: Place<T>,
    /// Forgets what a future is that goes on after its deadline. It is given by who knows where that may go.
    house: fn(Pin<Box<Hosted<Fut>>>) -> M::Runner,
}

impl<F, Fut, S, T, M: Reach> Async<F, Fut, S, T, M> {
    pub(crate) fn new(
        f: F,
        inputs: S,
        place: Place<T>,
        house: fn(Pin<Box<Hosted<Fut>>>) -> M::Runner,
    ) -> Self {
        Self { recipe: Arc::new(Recipe { f, inputs, place, house }) }
    }
}

pin_project! {
    /// A future in memory that outlives it.
    pub(crate) struct Hosted<Fut> {
        #[pin]
        future: Option<Fut>,
    }
}

impl<Fut> Hosted<Fut> {
    fn empty() -> Pin<Box<Self>> {
        Box::pin(Self { future: None })
    }
}

/// As a late runner: what it gives is discarded.
impl<Fut: Future> Future for Hosted<Fut> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project().future.as_pin_mut() {
            Some(future) => future.poll(cx).map(drop),
            None => Poll::Ready(()),
        }
    }
}

struct FutureTask<F, Fut, S, T, M: Reach> {
    hosted: Pin<Box<Hosted<Fut>>>,
    recipe: Arc<Recipe<F, Fut, S, T, M>>,
}

impl<F, Fut, S, T, R, M> Op<R, M> for Async<F, Fut, S, T, M>
where
    F: Fn(Cx<'_, R>, S::Values<'static>) -> Fut + 'static,
    Fut: Future<Output = Result<T, Failure>> + 'static,
    S: Sources + 'static,
    T: 'static,
    M: Reach,
{
    fn slot(&self) -> &'static SlotKind {
        SlotKind::of::<T>()
    }

    fn call(&self, _: Call<'_, R>) -> Called {
        unreachable!("an async node is started, not called")
    }

    fn task(&self) -> Option<Box<dyn Task<R, M>>> {
        Some(Box::new(FutureTask { hosted: Hosted::empty(), recipe: self.recipe.clone() }))
    }

    fn release_inputs(&self, turn: Turn<'_>) {
        self.recipe.inputs.release(turn);
    }
}

impl<F, Fut, S, T, R, M> Task<R, M> for FutureTask<F, Fut, S, T, M>
where
    F: Fn(Cx<'_, R>, S::Values<'static>) -> Fut,
    Fut: Future<Output = Result<T, Failure>> + 'static,
    S: Sources,
    M: Reach,
{
    #[inline]
    fn start(
        &mut self,
        Call { turn, cx, again, .. }: Call<'_, R>,
        context: &mut Context<'_>,
    ) -> Poll<Called> {
        let mut future = self.hosted.as_mut().project().future;
        let polled = contain(|| {
            future.set(Some((self.recipe.f)(cx, self.recipe.inputs.take(turn, again))));
            let polled = future.as_mut().as_pin_mut().expect("set above").poll(context);
            if polled.is_ready() {
                // What it holds goes before its node has ended. A panic in that is one of the node.
                future.set(None);
            }
            polled
        });
        self.ends(polled, turn)
    }

    #[inline]
    fn poll(&mut self, turn: Turn<'_>, context: &mut Context<'_>) -> Poll<Called> {
        let mut future = self.hosted.as_mut().project().future;
        let polled = contain(|| {
            let polled = future.as_mut().as_pin_mut().expect("a node that runs has its future").poll(context);
            if polled.is_ready() {
                future.set(None);
            }
            polled
        });
        self.ends(polled, turn)
    }

    fn is_there(&self) -> bool {
        self.hosted.future.is_some()
    }

    fn cancel(&mut self) {
        drop(contain(|| self.hosted.as_mut().project().future.set(None)));
    }

    fn detach(&mut self) -> M::Runner {
        (self.recipe.house)(mem::replace(&mut self.hosted, Hosted::empty()))
    }
}

impl<F, Fut, S, T, M: Reach> FutureTask<F, Fut, S, T, M> {
    #[inline]
    fn ends(&mut self, polled: Result<Poll<Result<T, Failure>>, Panicked>, turn: Turn<'_>) -> Poll<Called> {
        Poll::Ready(match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(output))) => {
                turn.fill(self.recipe.place, output);
                Called::Stored
            }
            Ok(Poll::Ready(Err(failure))) => Called::Failed(failure),
            Err(panic) => {
                drop(contain(|| self.hosted.as_mut().project().future.set(None)));
                Called::Panicked(panic)
            }
        })
    }
}
