//! A closure on its way to the loop.

use std::{
    panic::{AssertUnwindSafe, Location, catch_unwind},
    ptr::NonNull,
};

use ebbtide_lifecycle::{Entry, Outcome};

use crate::{
    core::Core,
    inbox::{Kind, Link},
};

/// A boxed closure with its link, aligned as an inbox wants it.
#[repr(C, align(16))]
pub(crate) struct Post<F> {
    /// First, so that a pointer to it is a pointer to the post.
    link: Link,
    site: &'static Location<'static>,
    act: F,
}

impl<F: FnOnce() + 'static> Post<F> {
    const KIND: &'static Kind =
        &Kind { run: Self::run, abandon: Self::abandon, discard: Self::discard, is_post: true };

    pub(crate) fn boxed(site: &'static Location<'static>, act: F) -> NonNull<Link> {
        NonNull::from(Box::leak(Box::new(Self { link: Link::new(Self::KIND), site, act }))).cast()
    }

    /// Takes the closure back out of a post that was not accepted.
    ///
    /// # Safety
    /// `link` came from [`Post::boxed`] of this very type, and nobody else has it.
    pub(crate) unsafe fn take_back(link: NonNull<Link>) -> F {
        // SAFETY: by the caller's word.
        unsafe { Self::unbox(link) }.act
    }

    /// # Safety
    /// As [`take_back`](Post::take_back).
    unsafe fn unbox(link: NonNull<Link>) -> Box<Self> {
        // SAFETY: `boxed` leaked the box, and by the caller's word the pointer is that one and ours alone.
        unsafe { Box::from_raw(link.cast::<Self>().as_ptr()) }
    }

    unsafe fn run(link: NonNull<Link>, core: &Core) {
        // SAFETY: this is the `run` of the post's own kind, and the run queue has given it to us.
        let post = *unsafe { Self::unbox(link) };
        core.count(Entry::Accepted);
        core.show(post.site);
        match catch_unwind(AssertUnwindSafe(post.act)) {
            Ok(()) => core.settle(Outcome::Completed),
            Err(panic) => {
                core.settle(Outcome::Failed);
                core.shared().panicked(post.site.into(), panic);
            }
        }
    }

    unsafe fn abandon(link: NonNull<Link>, core: &Core) {
        // SAFETY: as in `run`.
        let post = *unsafe { Self::unbox(link) };
        core.count(Entry::Accepted);
        core.count(Entry::Abandoned);
        core.show(post.site);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(post.act))) {
            core.shared().panicked(post.site.into(), panic);
        }
    }

    unsafe fn discard(link: NonNull<Link>) {
        // SAFETY: as in `run`.
        drop(unsafe { Self::unbox(link) });
    }
}
