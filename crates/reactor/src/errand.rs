//! Something to be done on the loop's thread for work that is inside already. Not work of its own: no ledger
//! counts it.

use std::ptr::NonNull;

use ebbtide_lifecycle::contain;

use crate::{
    core::Core,
    inbox::{Door, Kind, Link, Sort},
    shared::Shared,
};

/// A boxed closure with its link, aligned as an inbox wants it.
#[repr(C, align(16))]
struct Errand<F> {
    /// First, so that a pointer to it is a pointer to the errand.
    link: Link,
    act: F,
}

/// Has `act` done on the loop's thread, in its next turn; gives false if the loop has ended.
pub(crate) fn send(shared: &Shared, act: impl FnOnce(&Core) + Send + 'static) -> bool {
    fn put<F: FnOnce(&Core) + Send + 'static>(shared: &Shared, act: F) -> bool {
        let errand = Box::new(Errand { link: Link::new(Errand::<F>::KIND), act });
        let link = NonNull::from(Box::leak(errand)).cast::<Link>();
        // SAFETY: it lives until it is run, or taken back below.
        match unsafe { shared.inbox.put(link, Door::Inner) } {
            Ok(wake) => {
                shared.wake(wake);
                true
            }
            Err(_dead) => {
                // SAFETY: it was not accepted, so it is ours alone again.
                drop(unsafe { Errand::<F>::unbox(link) });
                false
            }
        }
    }
    put(shared, act)
}

impl<F: FnOnce(&Core) + Send + 'static> Errand<F> {
    /// A forced stop runs errands too: they are what lets work inside come to an end.
    const KIND: &'static Kind =
        &Kind { run: Self::run, abandon: Self::run, discard: Self::discard, sort: Sort::Errand };

    /// # Safety
    /// `link` is that of an errand of this type, and nobody else has it.
    unsafe fn unbox(link: NonNull<Link>) -> Box<Self> {
        // SAFETY: `send` leaked the box, and by the caller's word the pointer is ours alone.
        unsafe { Box::from_raw(link.cast::<Self>().as_ptr()) }
    }

    unsafe fn run(link: NonNull<Link>, core: &Core) {
        // SAFETY: this is the `run` of its own kind, and the run queue has given it to us.
        let errand = *unsafe { Self::unbox(link) };
        // It may drop a waker, which is foreign code.
        if contain(|| (errand.act)(core)).is_err() {
            core.shared().stats.panic();
        }
    }

    unsafe fn discard(link: NonNull<Link>) {
        // SAFETY: as in `run`.
        let errand = unsafe { Self::unbox(link) };
        drop(contain(|| drop(errand)));
    }
}
