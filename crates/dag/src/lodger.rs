//! Async nodes: futures that lie in berths.

use std::{
    alloc::Layout,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll},
};

use ebbtide_lifecycle::{Panicked, contain};

use crate::{
    berth::{Block, rounded},
    cx::Cx,
    failure::Failure,
    inputs::Sources,
    op::{Call, Called, Op},
    reach::Reach,
    slot::{Place, SlotKind, Turn},
};

/// An async node.
pub(crate) struct Async<F, Fut, S, T, M: Reach> {
    pub(crate) f: F,
    pub(crate) inputs: S,
    pub(crate) place: Place<T>,
    /// Forgets what a future is that goes on after its deadline. It is given by who knows where that may go.
    pub(crate) house: fn(Lodger<Fut>) -> M::Runner,
}

impl<F, Fut, S, T, R, M> Op<R, M> for Async<F, Fut, S, T, M>
where
    F: Fn(Cx<'_, R>, S::Values<'static>) -> Fut,
    Fut: Future<Output = Result<T, Failure>>,
    S: Sources,
    T: 'static,
    M: Reach,
{
    fn slot(&self) -> &'static SlotKind {
        SlotKind::of::<T>()
    }

    fn call(&self, _: Call<'_, R>) -> Called {
        unreachable!("an async node is started, not called")
    }

    fn release_inputs(&self, turn: Turn<'_>) {
        self.inputs.release(turn);
    }

    fn layout(&self) -> Option<Layout> {
        Some(rounded(Layout::new::<Fut>()))
    }

    #[inline]
    unsafe fn start(&self, room: NonNull<u8>, call: Call<'_, R>, context: &mut Context<'_>) -> Poll<Called> {
        let Call { turn, cx, again, .. } = call;
        let future = room.cast::<Fut>();
        let (mut is_there, mut failed) = (false, None);
        let end = contain(|| {
            let made = (self.f)(cx, self.inputs.take(turn, again));
            // SAFETY: by the caller's word there is room for it, and nothing there that would have to be dropped.
            unsafe { future.write(made) };
            is_there = true;
            // SAFETY: it has just been written.
            unsafe { self.poll_future(future, &mut is_there, &mut failed, turn, context) }
        });
        ends(end, failed, future, is_there)
    }

    #[inline]
    unsafe fn poll(&self, room: NonNull<u8>, turn: Turn<'_>, context: &mut Context<'_>) -> Poll<Called> {
        let future = room.cast::<Fut>();
        let (mut is_there, mut failed) = (true, None);
        // SAFETY: by the caller's word it is there.
        let end = contain(|| unsafe { self.poll_future(future, &mut is_there, &mut failed, turn, context) });
        ends(end, failed, future, is_there)
    }

    unsafe fn cancel(&self, room: NonNull<u8>) {
        // SAFETY: by the caller's word it is there; it is not touched any more.
        drop(contain(|| unsafe { room.cast::<Fut>().drop_in_place() }));
    }

    unsafe fn detach(&self, block: Block) -> M::Runner {
        (self.house)(Lodger { block, future: PhantomData })
    }
}

impl<F, Fut, S, T, M> Async<F, Fut, S, T, M>
where
    Fut: Future<Output = Result<T, Failure>>,
    M: Reach,
{
    /// Polls a future, and drops it when it is ready: what it holds goes before its node has ended, and a panic in that
    /// is one of the node.
    ///
    /// # Safety
    /// It is there, is the caller's alone, and does not move until it is dropped.
    #[inline(always)] // With the first poll: that of a future that is ready is most of what its node does.
    unsafe fn poll_future(
        &self,
        mut future: NonNull<Fut>,
        is_there: &mut bool,
        failed: &mut Option<Failure>,
        turn: Turn<'_>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        // SAFETY: by the caller's word it is there, and nobody else has it.
        let lodger = unsafe { future.as_mut() };
        // SAFETY: by the caller's word it does not move.
        let Poll::Ready(output) = unsafe { Pin::new_unchecked(lodger) }.poll(context) else {
            return Poll::Pending;
        };
        *is_there = false;
        // SAFETY: it is not touched any more, whether this panics or not.
        unsafe { future.drop_in_place() };
        match output {
            Ok(output) => turn.fill(self.place, output),
            Err(failure) => *failed = Some(failure),
        }
        Poll::Ready(())
    }
}

/// What became of a future that was polled.
#[inline(always)] // As above.
fn ends<Fut>(
    end: Result<Poll<()>, Panicked>,
    failed: Option<Failure>,
    future: NonNull<Fut>,
    is_there: bool,
) -> Poll<Called> {
    Poll::Ready(match end {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(end)) => Called::of(Ok(end), failed),
        Err(panic) => {
            if is_there {
                // SAFETY: it has panicked, and is not touched any more.
                drop(contain(|| unsafe { future.drop_in_place() }));
            }
            Called::Panicked(panic)
        }
    })
}

/// The future of a node that goes on after its deadline, in the memory that it began in. What it gives is discarded.
pub(crate) struct Lodger<Fut> {
    /// The future is there.
    block: Block,
    future: PhantomData<Fut>,
}

// SAFETY: it is the future, by another name.
unsafe impl<Fut: Send> Send for Lodger<Fut> {}

/// It lies in its block, wherever this goes.
impl<Fut> Unpin for Lodger<Fut> {}

impl<Fut: Future> Future for Lodger<Fut> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut future = self.block.room().cast::<Fut>();
        // SAFETY: it is there until this is dropped, and this is borrowed.
        let future = unsafe { future.as_mut() };
        // SAFETY: it does not leave its block.
        unsafe { Pin::new_unchecked(future) }.poll(cx).map(drop)
    }
}

impl<Fut> Drop for Lodger<Fut> {
    fn drop(&mut self) {
        // SAFETY: it is there, and nobody touches it after this.
        unsafe { self.block.room().cast::<Fut>().drop_in_place() };
    }
}
