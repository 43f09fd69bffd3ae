//! What every task has, whatever its future: its word, and what the word decides.
//!
//! | mark | it says |
//! |---|---|
//! | `SCHEDULED` | it is in the run queue or in the inbox; who sets it puts it there |
//! | `DONE` | the future is gone for good |
//! | `CANCEL` | it is to be dropped instead of polled |
//! | `JOINED` | a handle exists: it takes the output, or drops it |
//! | `WAITING` | the handle's waker is in its slot |
//! | `ENROLLED` | it is, or has been, on the loop's roll |
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
    cell::{Cell, UnsafeCell},
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    process::abort,
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering, fence},
    },
    task::{Context, Poll, Waker},
};

use ebbtide_lifecycle::{Outcome, blame::Origin, contain};

use super::{JoinError, roll::Place};
use crate::{
    core::Core,
    inbox::{Door, Kind, Link},
    lease::Lease,
    shared::Shared,
};

pub(super) const SCHEDULED: usize = 1;
pub(super) const DONE: usize = 1 << 1;
pub(super) const CANCEL: usize = 1 << 2;
const JOINED: usize = 1 << 3;
const WAITING: usize = 1 << 4;
const ENROLLED: usize = 1 << 5;
/// One reference.
const REFERENCE: usize = 1 << 6;

/// The head of a task's block.
#[repr(C)]
pub(super) struct Header {
    /// First, so that a pointer to it is a pointer to the task. Its kind is the first field of a [`TaskKind`].
    link: Link,
    pub(super) word: AtomicUsize,
    /// The loop. Ended by who frees the block.
    pub(super) lease: ManuallyDrop<Lease>,
    /// Where it is in the loop's roll. The loop's thread only.
    pub(super) place: Place,
    /// Since when it is parked, by the loop's stamp; to a sixteen-millionth of it, which is 5 ms after a day. Only
    /// reports need it, and half a word for each task is worth more. The loop's thread only.
    parked: Cell<f32>,
    pub(super) site: &'static Location<'static>,
    joiner: UnsafeCell<Option<Waker>>,
}

/// What can be done with a task whose future's type is not known any more.
#[repr(C)]
pub(super) struct TaskKind {
    /// First, so that a link's kind is a task's.
    pub(super) kind: Kind,
    /// What the task is called.
    pub(super) name: unsafe fn(TaskRef) -> Option<Arc<str>>,
    /// Drops the future. The loop's thread only.
    pub(super) drop_future: unsafe fn(TaskRef),
    /// Moves the output to where it is wanted, a `*mut Poll<Result<T, JoinError>>`.
    pub(super) take_output: unsafe fn(TaskRef, *mut ()),
    pub(super) drop_output: unsafe fn(TaskRef),
    pub(super) free: unsafe fn(TaskRef),
}

impl Header {
    /// The head of a task that is in no list yet, scheduled, with the references of a loop and of a handle.
    pub(super) fn new(kind: &'static TaskKind, lease: Lease, site: &'static Location<'static>) -> Self {
        Self {
            // SAFETY: a `TaskKind` begins with its `Kind`.
            link: unsafe { Link::with_head(NonNull::from(kind).cast()) },
            word: AtomicUsize::new(SCHEDULED | JOINED | (2 * REFERENCE)),
            lease: ManuallyDrop::new(lease),
            place: Place::default(),
            parked: Cell::new(0.0),
            site,
            joiner: UnsafeCell::new(None),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.lease
    }
}

/// A pointer to a task. Whether it counts as a reference is said where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskRef(pub(super) NonNull<Header>);

impl TaskRef {
    pub(super) fn header(&self) -> &Header {
        // SAFETY: whoever has a `TaskRef` keeps the block alive by a reference, or by that of the loop.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn link(self) -> NonNull<Link> {
        self.0.cast()
    }

    /// Where it was spawned, and what it is called.
    pub(crate) fn origin(&self) -> Origin {
        let origin = Origin::from(self.header().site);
        // SAFETY: it is the kind's own task.
        match unsafe { (self.kind().name)(*self) } {
            Some(name) => origin.named(name),
            None => origin,
        }
    }

    /// Since when it is parked, by the loop's stamp; none while it is scheduled. The loop's thread only.
    pub(crate) fn parked_since(&self) -> Option<u64> {
        let parked = self.header().word.load(Ordering::Relaxed) & SCHEDULED == 0;
        parked.then(|| self.header().parked.get() as u64)
    }

    /// Says that it is parked from `stamp` on. The loop's thread only.
    #[inline]
    pub(super) fn park(&self, stamp: u64) {
        self.header().parked.set(stamp as f32);
    }

    /// Whether there is a handle.
    pub(crate) fn is_joined(&self) -> bool {
        self.header().word.load(Ordering::Relaxed) & JOINED != 0
    }

    pub(crate) fn is_done(&self) -> bool {
        self.header().word.load(Ordering::Acquire) & DONE != 0
    }

    fn kind(&self) -> &'static TaskKind {
        // SAFETY: `Header::new` made the link with a `TaskKind`.
        unsafe { self.header().link.head().cast().as_ref() }
    }

    /// Puts a new task on the roll that nobody else has yet. The loop's thread only.
    #[inline]
    pub(crate) fn enrol_new(self, core: &Core) {
        let word = &self.header().word;
        word.store(word.load(Ordering::Relaxed) | ENROLLED, Ordering::Relaxed);
        core.enrol(self);
    }

    /// Takes the task out of the list that it is in, and puts it on the roll if this is the first that the loop
    /// sees of it. Gives its marks; none if it was done, and with that has been let go. The loop's thread only.
    #[inline]
    pub(super) fn take_up(self, core: &Core) -> Option<usize> {
        // Acquire: what the wakers did. From here on a wake-up schedules it anew, also during the poll.
        let before = self.header().word.fetch_and(!SCHEDULED, Ordering::AcqRel);
        if before & DONE != 0 {
            // It was done while it was scheduled, and left the loop's reference to the queue.
            self.release();
            return None;
        }
        if before & ENROLLED == 0 {
            self.header().word.fetch_or(ENROLLED, Ordering::Relaxed);
            core.enrol(self);
        }
        Some(before)
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
        if let Some(core) = Core::current_of(self.header().shared()) {
            // SAFETY: the mark that we set says that it is in no list; the loop's reference, which stays until
            // it is taken out again, keeps it alive.
            unsafe { core.queue.push(self.link()) };
            return;
        }
        // The loop may give up the task as soon as it is in the inbox, and with it what keeps the inbox.
        let kept = self.header().lease.to_arc();
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

    /// Wakes the task, and gives up a reference that is not the loop's.
    #[inline]
    pub(super) fn wake_and_release(self) {
        let word = &self.header().word;
        let mut seen = word.load(Ordering::Relaxed);
        while seen & (SCHEDULED | DONE) == 0 {
            // Both in one exchange. It is not the last reference: the loop has one, as the task is not done.
            let next = (seen | SCHEDULED) - REFERENCE;
            // AcqRel: what the waker did before, to the poll that follows; our use of the block, to whoever frees it.
            match word.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return self.enqueue(),
                Err(now) => seen = now,
            }
        }
        self.wake();
        self.release();
    }

    /// Asks for the future to be dropped.
    pub(super) fn cancel(&self) {
        self.schedule(CANCEL);
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

    /// The joiner's waker, of a task that nobody else refers to any more.
    #[inline]
    pub(super) fn take_joiner(&self) -> Option<Waker> {
        // SAFETY: by the caller's word nobody else touches the slot.
        unsafe { (*self.header().joiner.get()).take() }
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

    /// Drops the future of a task that is enrolled, and books it as cancelled. The loop's thread only.
    pub(crate) fn drop_future(self, core: &Core) {
        core.show(self.header().site);
        // SAFETY: this is the loop's thread, and the task is not done, so the future is there and not being
        // polled: a future cannot cancel its own task but by scheduling it.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { (self.kind().drop_future)(self) }));
        if let Err(panic) = dropped {
            core.shared().panicked(self.origin(), panic);
        }
        self.finish(core, Outcome::Cancelled);
    }

    /// The future is gone: tells the handle, and gives up the loop's reference unless the task is in a list.
    pub(super) fn finish(self, core: &Core, outcome: Outcome) {
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
            if contain(|| joiner.map(Waker::wake)).is_err() {
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
