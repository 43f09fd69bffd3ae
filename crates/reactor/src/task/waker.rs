//! A waker is a reference to its task.

use std::task::{RawWaker, RawWakerVTable, Waker};

use super::header::TaskRef;

/// A waker that takes over one reference to the task.
pub(super) fn of(task: TaskRef) -> Waker {
    // SAFETY: the functions below keep the contract of a waker: they may be called on any thread, and the data
    // is a task that lives as long as the waker counts as a reference to it.
    unsafe { Waker::new(task.as_ptr(), &VTABLE) }
}

/// A static, not a constant, of which each crate that a task is made in could have a copy: then no waker would know its
/// clones, and whoever keeps one would take another with each poll.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);

/// # Safety
/// `data` is that of a waker of this kind, which exists.
unsafe fn task(data: *const ()) -> TaskRef {
    // SAFETY: `of` made it, and the waker's reference keeps the task alive.
    unsafe { TaskRef::from_ptr(data) }
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker that is cloned exists.
    unsafe { task(data) }.add_reference();
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the waker exists until its reference is released here.
    unsafe { task(data) }.wake_and_release();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker exists.
    unsafe { task(data) }.wake();
}

unsafe fn drop(data: *const ()) {
    // SAFETY: the waker exists until its reference is released here.
    unsafe { task(data) }.release();
}
