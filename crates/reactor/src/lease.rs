//! How tasks and timers keep the side of their loop alive that other threads see, without counting references.
//!
//! A task may outlive its loop: a waker of it may be anywhere. So it keeps the loop's `Shared`, to which a
//! wake-up goes. An `Arc` in each would cost two atomic operations a task. Instead the leases that are taken on
//! the loop's own thread share one reference, and are counted: in a plain number those that begin and end on
//! that thread, in an atomic one those that end elsewhere. While the loop lives the atomic one is raised so far
//! that it cannot come to nothing. When the loop ends it lays its own number on top and takes the raise away;
//! who then brings the count to nothing, be it the loop itself, gives the one reference back. No lease begins
//! after that.
//!
//! A lease that is taken by way of a handle is an `Arc` of its own.

use std::{
    mem,
    ops::Deref,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering, fence},
    },
};

use crate::{core::Core, shared::Shared};

/// Half of what the count can hold: no number of leases brings it to nothing, or over the top.
const RAISE: isize = isize::MAX / 2;

/// Marks the address of a lease that is an `Arc`.
const OWN: usize = 1;

/// The leases of a loop, but for what its own thread counts.
#[derive(Debug)]
pub(crate) struct Leases(AtomicIsize);

impl Default for Leases {
    fn default() -> Self {
        Self(AtomicIsize::new(RAISE))
    }
}

/// Keeps a loop's `Shared` alive.
pub(crate) struct Lease {
    /// Lives as long as this does. With the mark [`OWN`], or without.
    shared: NonNull<Shared>,
}

// SAFETY: it is a reference to a `Shared`, as an `Arc` is, and may be dropped on any thread.
unsafe impl Send for Lease {}
// SAFETY: as above.
unsafe impl Sync for Lease {}

impl Lease {
    /// A lease of the loop of this thread.
    #[inline]
    pub(crate) fn of(core: &Core) -> Self {
        core.leases.set(core.leases.get() + 1);
        Self { shared: as_ptr(core.shared()) }
    }

    /// A lease of a loop to which the caller has a handle.
    pub(crate) fn of_handle(shared: &Arc<Shared>) -> Self {
        const { assert!(align_of::<Shared>() > OWN, "an address has room for the mark") };
        let shared = Arc::into_raw(shared.clone()).cast_mut();
        // SAFETY: that of an `Arc` is not null, nor is it with one more bit.
        Self { shared: unsafe { NonNull::new_unchecked(shared.map_addr(|address| address | OWN)) } }
    }

    fn is_own(&self) -> bool {
        self.shared.addr().get() & OWN != 0
    }

    #[inline]
    fn as_ptr(&self) -> *mut Shared {
        self.shared.as_ptr().map_addr(|address| address & !OWN)
    }

    /// A handle to the loop.
    pub(crate) fn to_arc(&self) -> Arc<Shared> {
        // SAFETY: the pointer is that of an `Arc`, which lives as long as the lease.
        unsafe { Arc::increment_strong_count(self.as_ptr()) };
        // SAFETY: that is the count that this takes over.
        unsafe { Arc::from_raw(self.as_ptr()) }
    }

    /// Ends the lease, on the loop's thread if that is known to be `core`.
    #[inline]
    pub(crate) fn end(self, core: Option<&Core>) {
        match core {
            Some(core) if !self.is_own() => {
                core.leases.set(core.leases.get() - 1);
                mem::forget(self);
            }
            _ => drop(self),
        }
    }
}

impl Deref for Lease {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        // SAFETY: it lives as long as this does.
        unsafe { &*self.as_ptr() }
    }
}

/// On any thread: the loop's own number is for who knows to be there.
impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_own() {
            // SAFETY: `of_handle` made it of an `Arc`, whose count this takes over.
            drop(unsafe { Arc::from_raw(self.as_ptr()) });
        } else {
            settle(self.shared, -1);
        }
    }
}

/// The pointer of an `Arc`, which leads to its counts too.
fn as_ptr(shared: &Arc<Shared>) -> NonNull<Shared> {
    // SAFETY: that of an `Arc` is not null.
    unsafe { NonNull::new_unchecked(Arc::as_ptr(shared).cast_mut()) }
}

/// Takes the one reference that leases share, for a loop that begins.
pub(crate) fn open(shared: &Arc<Shared>) {
    mem::forget(shared.clone());
}

/// The loop ends, with so many leases by its own count.
pub(crate) fn close(shared: &Arc<Shared>, leases: isize) {
    settle(as_ptr(shared), leases - RAISE);
}

fn settle(shared: NonNull<Shared>, change: isize) {
    // SAFETY: whoever settles has a lease, or is the loop itself, so the shared reference has not been given back.
    let leases = unsafe { &shared.as_ref().leases.0 };
    // Release: our use of it, to whoever gives the reference back.
    if leases.fetch_add(change, Ordering::Release) + change == 0 {
        fence(Ordering::Acquire);
        // SAFETY: the pointer is that of an `Arc`, whose count `open` has raised by the one that is given back
        // here: once, because the count comes to nothing once, after the loop has ended and with its last
        // lease.
        unsafe { Arc::decrement_strong_count(shared.as_ptr()) };
    }
}
