//! A closure on its way to the loop.

use std::{
    panic::{AssertUnwindSafe, Location, catch_unwind},
    ptr::NonNull,
};

use ebbtide_lifecycle::{Entry, Outcome};

use crate::{
    core::Core,
    inbox::{Kind, LINK_ALIGN, Link, Sort},
    segment::{self, Segment},
};

/// A closure with its link, aligned as an inbox wants it.
#[repr(C, align(16))]
pub(crate) struct Post<F> {
    /// First, so that a pointer to it is a pointer to the post.
    link: Link,
    site: &'static Location<'static>,
    /// Where it is; none for one that is allocated by itself.
    segment: Option<NonNull<Segment>>,
    act: F,
}

impl<F: FnOnce() + 'static> Post<F> {
    const KIND: &'static Kind =
        &Kind { run: Self::run, abandon: Self::abandon, discard: Self::discard, sort: Sort::Post };

    /// Whether there is room for it in a segment.
    const IS_SMALL: bool = size_of::<Self>() <= segment::ROOM_MAX && align_of::<Self>() <= LINK_ALIGN;

    pub(crate) fn packed(site: &'static Location<'static>, act: F) -> NonNull<Link> {
        let room = if Self::IS_SMALL { segment::take(size_of::<Self>()) } else { None };
        let segment = room.map(|(_, segment)| segment);
        let post = Self { link: Link::new(Self::KIND), site, segment, act };
        let Some((room, _)) = room else { return NonNull::from(Box::leak(Box::new(post))).cast() };
        // SAFETY: it is large enough, aligned, and ours.
        unsafe { room.cast().write(post) };
        room.cast()
    }

    /// Takes the closure back out of a post that was not accepted.
    ///
    /// # Safety
    /// `link` came from [`Post::packed`] of this very type, and nobody else has it.
    pub(crate) unsafe fn take_back(link: NonNull<Link>) -> F {
        // SAFETY: by the caller's word.
        unsafe { Self::unpack(link) }.act
    }

    /// # Safety
    /// As [`take_back`](Post::take_back).
    unsafe fn unpack(link: NonNull<Link>) -> Self {
        let post = link.cast::<Self>();
        // SAFETY: `packed` wrote it, and by the caller's word it is ours alone.
        let Some(segment) = unsafe { post.as_ref() }.segment else {
            // SAFETY: it is in no segment, so `packed` leaked a box.
            return *unsafe { Box::from_raw(post.as_ptr()) };
        };
        // SAFETY: as above. It is not used in place any more.
        let unpacked = unsafe { post.read() };
        // SAFETY: it was in the room that was taken with this segment, and has just been read out.
        unsafe { segment::empty(segment) };
        unpacked
    }

    unsafe fn run(link: NonNull<Link>, core: &Core) {
        // SAFETY: this is the `run` of the post's own kind, and the run queue has given it to us.
        let post = unsafe { Self::unpack(link) };
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
        let post = unsafe { Self::unpack(link) };
        core.count(Entry::Accepted);
        core.count(Entry::Abandoned);
        core.show(post.site);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(post.act))) {
            core.shared().panicked(post.site.into(), panic);
        }
    }

    unsafe fn discard(link: NonNull<Link>) {
        // SAFETY: as in `run`.
        drop(unsafe { Self::unpack(link) });
    }
}
