//! The memory of a task: its word, its links, its future and then its output, in one block.
//!
//! Who may touch what:
//! - **the future** is polled, moved out of and dropped on the loop's thread only (or by the spawner, as long as
//!   the task was accepted by nobody);
//! - **the output** is written by the loop before it sets `DONE`, and belongs to the handle after that; without a
//!   handle the loop drops it itself;
//! - **the joiner's waker** belongs to the handle while `WAITING` is not set, and to the loop once it has set
//!   `DONE` and found `WAITING`;
//! - **the block** lives as long as its word counts references: one of the loop, one of the handle, one of each
//!   waker. The loop gives its own up when the task is done and in no list any more: a task that is done while it
//!   is scheduled leaves that to whoever takes it out of the queue. So a wake-up needs no reference of its own.

use std::{
    alloc::Layout,
    any::Any,
    cell::{Cell, UnsafeCell},
    future::Future,
    mem::{self, ManuallyDrop},
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::Pin,
    process::abort,
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering, fence},
    },
    task::{Context, Poll, Waker},
};

use ebbtide_lifecycle::Outcome;

use super::{
    JoinError,
    depot::{self, Block},
    roll::Place,
    waker,
};
use crate::{
    core::Core,
    hook::contain,
    inbox::{Door, Kind, Link},
    shared::Shared,
};

/// In the run queue or in the inbox. Who sets it puts the task there.
const SCHEDULED: usize = 1;
/// The future is gone for good.
const DONE: usize = 1 << 1;
/// To be dropped instead of polled.
const CANCEL: usize = 1 << 2;
/// A handle exists: it takes the output, or drops it.
const JOINED: usize = 1 << 3;
/// The handle's waker is in its slot.
const WAITING: usize = 1 << 4;
/// One reference.
const REFERENCE: usize = 1 << 5;

/// What every task has, whatever its future.
#[repr(C)]
pub(super) struct Header {
    /// First, so that a pointer to it is a pointer to the task. Its kind is the first field of a [`TaskKind`].
    link: Link,
    word: AtomicUsize,
    shared: Arc<Shared>,
    /// Where it is in the loop's roll. The loop's thread only.
    pub(super) place: Place,
    site: &'static Location<'static>,
    /// Since when it is parked, by the loop's stamp. The loop's thread only.
    parked: Cell<u64>,
    joiner: UnsafeCell<Option<Waker>>,
}

#[repr(C)]
struct TaskCell<F: Future> {
    header: Header,
    stage: UnsafeCell<Stage<F>>,
}

enum Stage<F: Future> {
    Future(F),
    Output(Result<F::Output, Box<dyn Any + Send>>),
    /// Cancelled, or taken by the handle.
    Empty,
}

/// What can be done with a task whose future's type is not known any more.
#[repr(C)]
struct TaskKind {
    /// First, so that a link's kind is a task's.
    kind: Kind,
    /// Drops the future. The loop's thread only.
    drop_future: unsafe fn(TaskRef),
    /// Moves the output to where it is wanted, a `*mut Poll<Result<T, JoinError>>`.
    take_output: unsafe fn(TaskRef, *mut ()),
    drop_output: unsafe fn(TaskRef),
    free: unsafe fn(TaskRef),
}

/// A pointer to a task. Whether it counts as a reference is said where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskRef(NonNull<Header>);

/// A task that is in no list yet, scheduled, with the references of a loop and of a handle. `core` is the loop,
/// on its own thread.
pub(crate) fn new<F: Future>(
    future: F,
    shared: Arc<Shared>,
    site: &'static Location<'static>,
    core: Option<&Core>,
) -> TaskRef {
    let header = Header {
        // SAFETY: a `TaskKind` begins with its `Kind`.
        link: unsafe { Link::with_head(NonNull::from(TaskCell::<F>::KIND).cast()) },
        word: AtomicUsize::new(SCHEDULED | JOINED | (2 * REFERENCE)),
        shared,
        place: Place::default(),
        site,
        parked: Cell::new(0),
        joiner: UnsafeCell::new(None),
    };
    let room = depot::take(TaskCell::<F>::BLOCK, core).cast::<TaskCell<F>>();
    // SAFETY: the room is large enough for it, aligned, and ours.
    unsafe { room.write(TaskCell { header, stage: UnsafeCell::new(Stage::Future(future)) }) };
    TaskRef(room.cast())
}

/// Takes the future back out of a task that was not accepted, and frees the task.
///
/// # Safety
/// `task` came from [`new`] with this very type of future, and nobody else has it.
pub(crate) unsafe fn take_back<F: Future>(task: TaskRef) -> F {
    // SAFETY: by the caller's word the pointer is that of `new`, and ours alone: what is read out is not used
    // in place.
    let cell = unsafe { task.0.cast::<TaskCell<F>>().read() };
    // SAFETY: it is the room of `new`, and has just been read out.
    unsafe { depot::give_back(task.0.cast(), TaskCell::<F>::BLOCK, None) };
    match cell.stage.into_inner() {
        // It has never been polled, so it was never pinned.
        Stage::Future(future) => future,
        Stage::Output(_) | Stage::Empty => unreachable!("a task that was not accepted has not run"),
    }
}

impl TaskRef {
    pub(super) fn header(&self) -> &Header {
        // SAFETY: whoever has a `TaskRef` keeps the block alive by a reference, or by that of the loop.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn link(self) -> NonNull<Link> {
        self.0.cast()
    }

    pub(crate) fn site(&self) -> &'static Location<'static> {
        self.header().site
    }

    /// Since when it is parked, by the loop's stamp; none while it is scheduled. The loop's thread only.
    pub(crate) fn parked_since(&self) -> Option<u64> {
        let parked = self.header().word.load(Ordering::Relaxed) & SCHEDULED == 0;
        parked.then(|| self.header().parked.get())
    }

    /// Whether there is a handle.
    pub(crate) fn is_joined(&self) -> bool {
        self.header().word.load(Ordering::Relaxed) & JOINED != 0
    }

    pub(crate) fn is_done(&self) -> bool {
        self.header().word.load(Ordering::Acquire) & DONE != 0
    }

    fn kind(&self) -> &'static TaskKind {
        // SAFETY: `new` made the link with a `TaskKind`.
        unsafe { self.header().link.head().cast().as_ref() }
    }

    /// Wakes the task: it is polled again, unless it is done.
    #[inline]
    fn schedule(self, marks: usize) {
        // AcqRel: what the waker did before, to the poll that follows.
        let before = self.header().word.fetch_or(SCHEDULED | marks, Ordering::AcqRel);
        if before & (SCHEDULED | DONE) == 0 {
            self.enqueue();
        }
    }

    /// Puts a task in whose word has just been marked as scheduled.
    #[inline]
    fn enqueue(self) {
        let shared = &*self.header().shared;
        if let Some(core) = Core::current_of(shared) {
            // SAFETY: the mark that we set says that it is in no list; the loop's reference, which stays until
            // it is taken out again, keeps it alive.
            unsafe { core.queue.push(self.link()) };
            return;
        }
        // The loop may give up the task as soon as it is in the inbox, and with it the task's reference to the
        // inbox.
        let kept = Arc::clone(&self.header().shared);
        // SAFETY: as above.
        match unsafe { kept.inbox.put(self.link(), Door::Inner) } {
            Ok(wake) => kept.wake(wake),
            Err(_dead) => {
                // The loop has left this task to the queue that it is not going to be in.
                kept.stats.undrained_wake();
                self.release();
            }
        }
    }

    /// Wakes the task.
    #[inline]
    pub(super) fn wake(self) {
        self.schedule(0);
    }

    /// Counts one more reference. The caller has one already.
    #[inline]
    pub(super) fn add_reference(self) {
        // Relaxed: the caller's reference keeps the block alive.
        let before = self.header().word.fetch_add(REFERENCE, Ordering::Relaxed);
        if before > isize::MAX as usize {
            // As `Arc` does: so many wakers exist only if they are leaked, and a wrapped count would free the
            // task.
            abort();
        }
    }

    pub(super) fn as_ptr(self) -> *const () {
        self.0.as_ptr().cast_const().cast()
    }

    /// # Safety
    /// It came from [`as_ptr`](TaskRef::as_ptr), and the task lives.
    pub(super) const unsafe fn from_ptr(pointer: *const ()) -> Self {
        // SAFETY: a task's pointer is not null.
        Self(unsafe { NonNull::new_unchecked(pointer.cast_mut().cast()) })
    }

    /// Asks for the future to be dropped.
    pub(super) fn cancel(&self) {
        self.schedule(CANCEL);
    }

    /// Gives up a reference, and frees the block with the last.
    #[inline]
    pub(crate) fn release(self) {
        // Release: our use of the block, to whoever frees it.
        let before = self.header().word.fetch_sub(REFERENCE, Ordering::Release);
        if before / REFERENCE == 1 {
            fence(Ordering::Acquire);
            // SAFETY: that was the last reference.
            unsafe { (self.kind().free)(self) };
        }
    }

    /// Drops the future of a task that is enrolled or scheduled, and books it as cancelled. The loop's thread
    /// only.
    pub(crate) fn drop_future(self, core: &Core) {
        core.show(self.site());
        // SAFETY: this is the loop's thread, and the task is not done, so the future is there and not being
        // polled: a future cannot cancel its own task but by scheduling it.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { (self.kind().drop_future)(self) }));
        if let Err(panic) = dropped {
            core.shared().panicked(self.site(), panic);
        }
        self.finish(core, Outcome::Cancelled);
    }

    /// The future is gone: tells the handle, and gives up the loop's reference unless the task is in a list.
    fn finish(self, core: &Core, outcome: Outcome) {
        core.strike(self);
        core.settle(outcome);
        let word = self.header().word.load(Ordering::Relaxed);
        if word & (JOINED | WAITING | SCHEDULED) == JOINED {
            // The common case: the handle takes the output, nobody waits for it yet, and the task is in no
            // list. So the loop's reference goes in the same exchange. It is not the last: the handle has one.
            // Release: the output, to the handle; our use of the block, to whoever frees it.
            let next = (word | DONE) - REFERENCE;
            if self.header().word.compare_exchange(word, next, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        // AcqRel: the output, to the handle; the handle's waker, to us.
        let before = self.header().word.fetch_or(DONE, Ordering::AcqRel);
        if before & JOINED == 0 {
            // SAFETY: there is no handle, so the output is the loop's.
            unsafe { (self.kind().drop_output)(self) };
        }
        if before & WAITING != 0 {
            // SAFETY: `DONE` was set by us and `WAITING` was there: the slot is the loop's from now on.
            let joiner = unsafe { (*self.header().joiner.get()).take() };
            if contain(|| joiner.map(Waker::wake)).is_none() {
                core.shared().stats.panic();
            }
        }
        if before & SCHEDULED == 0 {
            self.release();
        }
    }

    /// Polls for the output.
    ///
    /// # Safety
    /// `self` is the reference of the one handle, and `T` the output of the task's future.
    pub(super) unsafe fn poll_join<T>(self, cx: &Context<'_>) -> Poll<Result<T, JoinError>> {
        let word = &self.header().word;
        let mut seen = word.load(Ordering::Acquire);
        // The slot has to be the handle's before it may be looked at.
        while seen & (DONE | WAITING) == WAITING {
            match word.compare_exchange_weak(seen, seen & !WAITING, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => seen &= !WAITING,
                Err(now) => seen = now,
            }
        }
        if seen & DONE == 0 {
            // SAFETY: `WAITING` is not set, and only the handle sets it.
            let slot = unsafe { &mut *self.header().joiner.get() };
            match slot {
                Some(kept) => kept.clone_from(cx.waker()),
                None => *slot = Some(cx.waker().clone()),
            }
            while seen & DONE == 0 {
                // Release: the waker. Acquire: the output, if it is there by now.
                match word.compare_exchange_weak(seen, seen | WAITING, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Poll::Pending,
                    Err(now) => seen = now,
                }
            }
        }
        let mut output = Poll::Pending;
        // SAFETY: `DONE` is set, so the output is the handle's; by the caller's word it is a `T`.
        unsafe { (self.kind().take_output)(self, ptr::from_mut(&mut output).cast()) };
        output
    }

    /// The handle goes, having taken the output.
    #[inline]
    pub(super) fn leave_joined(self) {
        self.release();
    }

    /// The handle goes, without having taken the output.
    pub(super) fn detach(self) {
        // AcqRel: the output, if it is there, to us.
        let before = self.header().word.fetch_and(!JOINED, Ordering::AcqRel);
        if before & DONE != 0 {
            // SAFETY: `DONE` was set while there was a handle, so the output is the handle's.
            unsafe { (self.kind().drop_output)(self) };
        }
        self.release();
    }
}

impl<F: Future> TaskCell<F> {
    const BLOCK: Block = Block::new(Layout::new::<Self>());

    const KIND: &'static TaskKind = &TaskKind {
        kind: Kind { run: Self::run, abandon: Self::abandon, discard: Self::discard, is_post: false },
        drop_future: Self::drop_future,
        take_output: Self::take_output,
        drop_output: Self::drop_output,
        free: Self::free,
    };

    /// # Safety
    /// `task` is one of futures of this type, and the caller may touch its stage: see the module's documentation.
    unsafe fn stage<'a>(task: TaskRef) -> &'a mut Stage<F> {
        // SAFETY: by the caller's word.
        let cell = unsafe { task.0.cast::<Self>().as_ref() };
        // SAFETY: by the caller's word nobody else touches it.
        unsafe { &mut *cell.stage.get() }
    }

    unsafe fn run(link: NonNull<Link>, core: &Core) {
        let task = TaskRef(link.cast());
        let header = task.header();
        // Acquire: what the wakers did. From here on a wake-up schedules it anew, also during the poll.
        let before = header.word.fetch_and(!SCHEDULED, Ordering::AcqRel);
        if before & DONE != 0 {
            // It was done while it was scheduled, and left the loop's reference to the queue.
            return task.release();
        }
        core.enrol(task);
        if before & CANCEL != 0 || core.is_cancelling() {
            return task.drop_future(core);
        }
        core.show(header.site);
        core.begin_operations();
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
            (Ok(()), None) => return header.parked.set(core.stamp()),
            (Ok(()), Some(output)) => (Ok(output), Outcome::Completed),
            // It panicked in its drop, after it had given its output.
            (Err(panic), Some(output)) => {
                core.shared().panicked(header.site, panic);
                (Ok(output), Outcome::Completed)
            }
            (Err(panic), None) => {
                // SAFETY: as above.
                let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { Self::drop_future(task) }));
                if let Err(again) = dropped {
                    core.shared().panicked(header.site, again);
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
        let before = task.header().word.fetch_and(!SCHEDULED, Ordering::AcqRel);
        if before & DONE != 0 {
            return task.release();
        }
        core.enrol(task);
        task.drop_future(core);
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
            Stage::Output(Err(panic)) => Err(JoinError::Panicked(panic)),
            Stage::Empty => Err(JoinError::Cancelled),
            Stage::Future(_) => unreachable!("a task that is done has no future"),
        };
        // SAFETY: the caller has made room for what it wants.
        unsafe { *wanted.cast() = Poll::Ready(output) };
    }

    unsafe fn drop_output(task: TaskRef) {
        // SAFETY: the caller may touch the stage.
        let stage = mem::replace(unsafe { Self::stage(task) }, Stage::Empty);
        let header = task.header();
        if let Stage::Output(Err(panic)) = stage {
            // Counted when it was caught.
            header.shared.report(header.site, panic);
        } else if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(stage))) {
            header.shared.panicked(header.site, panic);
        }
    }

    unsafe fn free(task: TaskRef) {
        // SAFETY: the last reference has just gone, so nobody touches the stage any more.
        debug_assert!(matches!(unsafe { Self::stage(task) }, Stage::Empty), "a freed task is empty");
        // The loop of this thread, if it is the task's: looked up while the task still says whose it is.
        let core = Core::current_of(&task.header().shared).map(ptr::from_ref);
        // SAFETY: `new` wrote it, and the last reference to it has just gone.
        unsafe { ptr::drop_in_place(task.0.cast::<Self>().as_ptr()) };
        // SAFETY: the loop that this thread is turning stays where it is while it does.
        let core = core.map(|core| unsafe { &*core });
        // SAFETY: it is the room of `new`, and empty.
        unsafe { depot::give_back(task.0.cast(), Self::BLOCK, core) };
    }
}
