//! What a node does, with its types forgotten.

use std::{
    alloc::Layout,
    mem,
    ptr::NonNull,
    task::{Context, Poll},
};

use ebbtide_lifecycle::{Panicked, contain};

use crate::{
    berth::Block,
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
    /// Whether its output is still wanted, if that may change. Asked once, before it is stored.
    pub(crate) claim: Option<&'a dyn Fn() -> bool>,
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

impl Called {
    /// What was called left its failure elsewhere: that is large, and seldom there.
    #[inline]
    pub(crate) fn of(end: Result<(), Panicked>, failure: Option<Failure>) -> Self {
        match (end, failure) {
            (Ok(()), None) => Self::Stored,
            (Ok(()), Some(failure)) => Self::Failed(failure),
            (Err(panic), _) => Self::Panicked(panic),
        }
    }
}

/// The op of one node.
pub(crate) trait Op<R, M: Reach> {
    fn slot(&self) -> &'static SlotKind;

    /// Runs it on this thread, if it is not async.
    fn call(&self, call: Call<'_, R>) -> Called;

    /// Whether a CPU node has so little to do this time that it is run where its run is polled.
    fn is_light(&self, _turn: Turn<'_>, _cx: Cx<'_, R>) -> bool {
        false
    }

    /// It does not want its inputs any more.
    fn release_inputs(&self, turn: Turn<'_>);

    /// What memory its future needs, if it is async. Only then are the functions below called.
    fn layout(&self) -> Option<Layout> {
        None
    }

    /// Makes the future in `room`, and polls it for the first time. It is there from then on if this is pending, and
    /// only then.
    ///
    /// # Safety
    /// `room` is of the [layout](Op::layout), is the caller's alone, and there is nothing in it.
    unsafe fn start(&self, _room: NonNull<u8>, _call: Call<'_, R>, _cx: &mut Context<'_>) -> Poll<Called> {
        unreachable!("{NOT_ASYNC}")
    }

    /// Polls the future. It is not there any more when it is ready.
    ///
    /// # Safety
    /// The future is in `room`, and is the caller's alone.
    unsafe fn poll(&self, _room: NonNull<u8>, _turn: Turn<'_>, _cx: &mut Context<'_>) -> Poll<Called> {
        unreachable!("{NOT_ASYNC}")
    }

    /// Drops the future.
    ///
    /// # Safety
    /// As for [`poll`](Op::poll).
    unsafe fn cancel(&self, _room: NonNull<u8>) {
        unreachable!("{NOT_ASYNC}")
    }

    /// Has the future go on elsewhere.
    ///
    /// # Safety
    /// The future is in this block.
    unsafe fn detach(&self, _block: Block) -> M::Runner {
        unreachable!("{NOT_ASYNC}")
    }
}

const NOT_ASYNC: &str = "only async nodes have a future";

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
    T: 'static,
    M: Reach,
{
    fn slot(&self) -> &'static SlotKind {
        SlotKind::of::<T>()
    }

    #[inline]
    fn call(&self, Call { turn, cx, again, claim }: Call<'_, R>) -> Called {
        let Some(claim) = claim else {
            let mut failed = None;
            let end = contain(|| match (self.f)(cx, self.inputs.lend(turn, again)) {
                Ok(output) => turn.fill(self.place, output),
                Err(failure) => failed = Some(failure),
            });
            if !again {
                self.inputs.give_back(turn);
            }
            return Called::of(end, failed);
        };
        let (mut failed, mut is_late, mut keeps) = (None, false, !again);
        let end = contain(|| {
            let output = (self.f)(cx, self.inputs.lend(turn, again));
            // Before the claim: to drop an input may take long, and a node that has claimed its end cannot be given up
            // on.
            if mem::take(&mut keeps) {
                self.inputs.give_back(turn);
            }
            match output {
                Ok(output) if claim() => turn.fill(self.place, output),
                Ok(output) => {
                    is_late = true;
                    drop(contain(|| drop(output)));
                }
                Err(failure) => failed = Some(failure),
            }
        });
        if keeps {
            self.inputs.give_back(turn);
        }
        if is_late { Called::Late } else { Called::of(end, failed) }
    }

    fn release_inputs(&self, turn: Turn<'_>) {
        self.inputs.release(turn);
    }
}

/// A CPU node that looks at its inputs before it is run.
pub(crate) struct Weighed<W, F, S, T> {
    pub(crate) is_light: W,
    pub(crate) op: Sync<F, S, T>,
}

impl<W, F, S, T, R, M> Op<R, M> for Weighed<W, F, S, T>
where
    W: for<'a> Fn(Cx<'a, R>, S::Values<'a>) -> bool,
    F: for<'a> Fn(Cx<'a, R>, S::Values<'a>) -> Result<T, Failure>,
    S: Sources,
    T: 'static,
    M: Reach,
{
    fn slot(&self) -> &'static SlotKind {
        SlotKind::of::<T>()
    }

    #[inline]
    fn call(&self, call: Call<'_, R>) -> Called {
        Op::<R, M>::call(&self.op, call)
    }

    fn is_light(&self, turn: Turn<'_>, cx: Cx<'_, R>) -> bool {
        // It wants them again, when it is run. One that panics here has its say when it is run.
        contain(|| (self.is_light)(cx, self.op.inputs.lend(turn, true))).unwrap_or(false)
    }

    fn release_inputs(&self, turn: Turn<'_>) {
        Op::<R, M>::release_inputs(&self.op, turn);
    }
}
