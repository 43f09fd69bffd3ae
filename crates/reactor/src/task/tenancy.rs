//! How a task keeps the side of its loop alive that other threads see, without counting references.
//!
//! A task may outlive its loop: a waker of it may be anywhere. So it keeps the loop's `Shared`, to which a wake-up
//! goes. An `Arc` in each would cost two atomic operations a task. Instead all tasks of a loop share one reference,
//! and are counted as its tenants: on the loop's thread in a plain number, elsewhere in an atomic one. Neither is
//! the whole count, and only their sum matters. While the loop lives the atomic one is raised so far that it
//! cannot come to nothing. When the loop ends it lays its own number on top and takes the raise away; who then
//! brings the count to nothing, be it the loop itself, raises it again for good and gives the one reference back.
//! So a task that is refused after that, and moves in and out, gives nothing back a second time.

use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering, fence},
    },
};

use crate::{core::Core, shared::Shared};

/// Half of what the count can hold: no number of tasks brings it to nothing, or over the top.
const RAISE: isize = isize::MAX / 2;

/// The tenants that other threads have counted in and out.
#[derive(Debug)]
pub(crate) struct Tenants(AtomicIsize);

impl Default for Tenants {
    fn default() -> Self {
        Self(AtomicIsize::new(RAISE))
    }
}

/// Takes the one reference that all tasks share, for a loop that begins.
pub(crate) fn open(shared: &Arc<Shared>) {
    std::mem::forget(shared.clone());
}

/// A task moves in. `core` is the loop, on its own thread; on another one the caller has a handle to it.
#[inline]
pub(super) fn begin(shared: &Arc<Shared>, core: Option<&Core>) -> NonNull<Shared> {
    match core {
        Some(core) => core.tenants.set(core.tenants.get() + 1),
        // Relaxed: the caller's handle keeps the loop's side alive.
        None => drop(shared.tenants.0.fetch_add(1, Ordering::Relaxed)),
    }
    NonNull::from(&**shared)
}

/// A task moves out, and does not touch `shared` any more. `core` is the loop, on its own thread.
#[inline]
pub(super) fn end(shared: NonNull<Shared>, core: Option<&Core>) {
    match core {
        Some(core) => core.tenants.set(core.tenants.get() - 1),
        None => settle(shared, -1),
    }
}

/// The loop ends, with so many tenants by its own count.
pub(crate) fn close(shared: &Arc<Shared>, tenants: isize) {
    settle(NonNull::from(&**shared), tenants - RAISE);
}

fn settle(shared: NonNull<Shared>, change: isize) {
    // SAFETY: whoever settles is a tenant, or the loop itself, so the shared reference has not been given back.
    let tenants = unsafe { &shared.as_ref().tenants.0 };
    let next = |count: isize| match count + change {
        0 => RAISE,
        count => count,
    };
    let mut count = tenants.load(Ordering::Relaxed);
    // Release: our use of it, to whoever gives the reference back. In one exchange, because who has not brought the
    // count to nothing must not look again.
    while let Err(now) =
        tenants.compare_exchange_weak(count, next(count), Ordering::Release, Ordering::Relaxed)
    {
        count = now;
    }
    if count + change == 0 {
        fence(Ordering::Acquire);
        // SAFETY: the pointer is that of an `Arc`, whose count `open` has raised by the one that is given back here:
        // once, because the count comes to nothing once, after the loop has ended and with its last tenant.
        unsafe { Arc::decrement_strong_count(shared.as_ptr()) };
    }
}
