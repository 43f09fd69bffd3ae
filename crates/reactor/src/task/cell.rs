//! The memory of a task: its head, its name, its future and then its output, in one block.

use std::{
    alloc::Layout,
    any::Any,
    cell::UnsafeCell,
    future::Future,
    mem::{self, ManuallyDrop},
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::Pin,
    ptr::{self, NonNull},
    sync::Arc,
    task::{Context, Poll},
};

use ebbtide_lifecycle::{Outcome, Panicked, contain};

use super::{
    JoinError,
    depot::{self, Block},
    header::{CANCEL, Header, TaskKind, TaskRef},
    waker,
};
use crate::{
    core::Core,
    inbox::{Kind, Link, Sort},
    lease::Lease,
    shared::Shared,
};

#[repr(C)]
struct TaskCell<F: Future, N> {
    header: Header,
    /// Never written again, so it may be read while the future is polled.
    name: N,
    stage: UnsafeCell<Stage<F>>,
}

enum Stage<F: Future> {
    Future(F),
    Output(Result<F::Output, Box<dyn Any + Send>>),
    /// Cancelled, or taken by the handle.
    Empty,
}

/// What a task is called, or `()`: a task without a name has no room for one.
pub(crate) trait Name {
    fn get(&self) -> Option<&Arc<str>>;
}

impl Name for () {
    fn get(&self) -> Option<&Arc<str>> {
        None
    }
}

impl Name for Arc<str> {
    fn get(&self) -> Option<&Arc<str>> {
        Some(self)
    }
}

/// A task that is in no list yet, scheduled, with the references of a loop and of a handle. `core` is the loop,
/// on its own thread.
#[inline]
pub(crate) fn new<F: Future, N: Name>(
    future: F,
    name: N,
    shared: &Arc<Shared>,
    site: &'static Location<'static>,
    core: Option<&Core>,
) -> TaskRef {
    let room = depot::take(TaskCell::<F, N>::BLOCK, core).cast::<TaskCell<F, N>>();
    let lease = match core {
        Some(core) => Lease::of(core),
        None => Lease::of_handle(shared),
    };
    let header = Header::new(TaskCell::<F, N>::KIND, lease, site);
    // SAFETY: the room is large enough for it, aligned, and ours.
    unsafe { room.write(TaskCell { header, name, stage: UnsafeCell::new(Stage::Future(future)) }) };
    TaskRef(room.cast())
}

/// Takes the future back out of a task that was not accepted, and frees the task.
///
/// # Safety
/// `task` came from [`new`], elsewhere than on the loop's thread, with these very types, and nobody else has it.
pub(crate) unsafe fn take_back<F: Future, N: Name>(task: TaskRef) -> F {
    // SAFETY: by the caller's word the pointer is that of `new`, and ours alone: what is read out is not used
    // in place.
    let cell = unsafe { task.0.cast::<TaskCell<F, N>>().read() };
    // SAFETY: it is the room of `new`, and has just been read out.
    unsafe { depot::give_back(task.0.cast(), TaskCell::<F, N>::BLOCK, None) };
    drop(ManuallyDrop::into_inner(cell.header.lease));
    match cell.stage.into_inner() {
        // It has never been polled, so it was never pinned.
        Stage::Future(future) => future,
        Stage::Output(_) | Stage::Empty => unreachable!("a task that was not accepted has not run"),
    }
}

impl<F: Future, N: Name> TaskCell<F, N> {
    const BLOCK: Block = Block::new(Layout::new::<Self>());

    const KIND: &'static TaskKind = &TaskKind {
        kind: Kind { run: Self::run, abandon: Self::abandon, discard: Self::discard, sort: Sort::Task },
        name: Self::name,
        drop_future: Self::drop_future,
        take_output: Self::take_output,
        drop_output: Self::drop_output,
        free: Self::free,
    };

    /// # Safety
    /// `task` is one of this type.
    unsafe fn of<'a>(task: TaskRef) -> &'a Self {
        // SAFETY: by the caller's word; whoever has a `TaskRef` keeps the block alive.
        unsafe { task.0.cast::<Self>().as_ref() }
    }

    /// # Safety
    /// `task` is one of this type, and the caller may touch its stage: see the documentation of `header`.
    unsafe fn stage<'a>(task: TaskRef) -> &'a mut Stage<F> {
        // SAFETY: by the caller's word.
        let cell = unsafe { Self::of(task) };
        // SAFETY: by the caller's word nobody else touches it.
        unsafe { &mut *cell.stage.get() }
    }

    unsafe fn name(task: TaskRef) -> Option<Arc<str>> {
        // SAFETY: the caller has a task of this kind.
        unsafe { Self::of(task) }.name.get().cloned()
    }

    unsafe fn run(link: NonNull<Link>, core: &Core) {
        let task = TaskRef(link.cast());
        let Some(marks) = task.take_up(core) else { return };
        if marks & CANCEL != 0 || core.is_cancelling() {
            return task.drop_future(core);
        }
        let header = task.header();
        // SAFETY: the link is of this kind.
        match unsafe { Self::of(task) }.name.get() {
            Some(name) => core.show_named(header.site, name),
            None => core.show(header.site),
        }
        // Not dropped, so the reference that it would count does not exist; it does not outlive this poll,
        // which keeps the task alive.
        let waker = ManuallyDrop::new(waker::of(task));
        let mut cx = Context::from_waker(&waker);
        let mut output = None;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: this is the loop's thread, the task is not done and not being polled.
            let Stage::Future(future) = (unsafe { Self::stage(task) }) else {
                unreachable!("a task that is not done has its future")
            };
            // SAFETY: the future stays in the block until it is dropped there.
            let Poll::Ready(ready) = unsafe { Pin::new_unchecked(future) }.poll(&mut cx) else { return };
            output = Some(ready);
            // SAFETY: as above. The future is dropped in place; its output takes its place when it is gone.
            unsafe { Self::drop_future(task) };
        }));
        let (output, outcome) = match (polled, output) {
            (Ok(()), None) => return task.park(core.stamp()),
            (Ok(()), Some(output)) => (Ok(output), Outcome::Completed),
            // It panicked in its drop, after it had given its output.
            (Err(panic), Some(output)) => {
                core.shared().panicked(task.origin(), panic);
                (Ok(output), Outcome::Completed)
            }
            (Err(panic), None) => {
                // SAFETY: as above.
                let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { Self::drop_future(task) }));
                if let Err(again) = dropped {
                    core.shared().panicked(task.origin(), again);
                }
                core.shared().stats.panic();
                (Err(panic), Outcome::Failed)
            }
        };
        // SAFETY: as above; the stage is empty.
        *unsafe { Self::stage(task) } = Stage::Output(output);
        task.finish(core, outcome);
    }

    unsafe fn abandon(link: NonNull<Link>, core: &Core) {
        let task = TaskRef(link.cast());
        if task.take_up(core).is_some() {
            task.drop_future(core);
        }
    }

    unsafe fn discard(_: NonNull<Link>) {
        unreachable!("a task keeps its loop's inbox alive, and only a loop that runs accepts one");
    }

    unsafe fn drop_future(task: TaskRef) {
        /// Leaves the stage empty also when the drop of the future panics.
        struct Emptied<'a, F: Future>(&'a mut Stage<F>);
        impl<F: Future> Drop for Emptied<'_, F> {
            fn drop(&mut self) {
                // SAFETY: what was in it has been dropped by then, so it is overwritten without being dropped
                // again.
                unsafe { ptr::write(self.0, Stage::Empty) };
            }
        }

        // SAFETY: the caller may touch the stage.
        let emptied = Emptied(unsafe { Self::stage(task) });
        // SAFETY: the stage is valid, and is not used again before `Emptied` has overwritten it.
        unsafe { ptr::drop_in_place(emptied.0) };
    }

    unsafe fn take_output(task: TaskRef, wanted: *mut ()) {
        // SAFETY: the caller may touch the stage.
        let output = match mem::replace(unsafe { Self::stage(task) }, Stage::Empty) {
            Stage::Output(Ok(output)) => Ok(output),
            Stage::Output(Err(panic)) => Err(JoinError::Panicked(Panicked::new(panic))),
            Stage::Empty => Err(JoinError::Cancelled),
            Stage::Future(_) => unreachable!("a task that is done has no future"),
        };
        // SAFETY: the caller has made room for what it wants.
        unsafe { *wanted.cast() = Poll::Ready(output) };
    }

    unsafe fn drop_output(task: TaskRef) {
        // SAFETY: the caller may touch the stage.
        let stage = mem::replace(unsafe { Self::stage(task) }, Stage::Empty);
        let shared = task.header().shared();
        if let Stage::Output(Err(panic)) = stage {
            // Counted when it was caught.
            shared.report(task.origin(), panic);
        } else if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(stage))) {
            shared.panicked(task.origin(), panic);
        }
    }

    unsafe fn free(task: TaskRef) {
        // SAFETY: the last reference has just gone, so nobody touches the stage any more.
        debug_assert!(matches!(unsafe { Self::stage(task) }, Stage::Empty), "a freed task is empty");
        // It may be there still if the handle went while its task ended. It is foreign code.
        if let Some(joiner) = task.take_joiner() {
            drop(contain(|| drop(joiner)));
        }
        // SAFETY: the header is there; what is read out is not used in place any more, nor dropped with it.
        let lease = ManuallyDrop::into_inner(unsafe { ptr::read(&task.header().lease) });
        // SAFETY: `new` wrote it, and the last reference to it has just gone.
        unsafe { ptr::drop_in_place(task.0.cast::<Self>().as_ptr()) };
        let core = Core::current_of(&lease);
        // SAFETY: it is the room of `new`, and empty.
        unsafe { depot::give_back(task.0.cast(), Self::BLOCK, core) };
        lease.end(core);
    }
}
