//! What is ready to run, in the order in which it became so: a list through the links themselves.

use std::{cell::Cell, ptr, ptr::NonNull};

#[cfg(feature = "testing")]
use crate::inbox::Sort;
use crate::{inbox::Link, sync::Ordering};

/// The ready list of a loop. On its thread only.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    /// The next to run.
    head: Cell<Option<NonNull<Link>>>,
    /// The last to run. Meaningful only while there is a head.
    tail: Cell<Option<NonNull<Link>>>,
}

impl RunQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.head.get().is_none()
    }

    /// Puts `link` at the end.
    ///
    /// # Safety
    /// The link lives until it is popped, and is in no other list meanwhile.
    #[inline]
    pub(crate) unsafe fn push(&self, link: NonNull<Link>) {
        // SAFETY: by the caller's word the link lives, and is ours.
        unsafe { link.as_ref() }.next.store(ptr::null_mut(), Ordering::Relaxed);
        self.attach(link);
        self.tail.set(Some(link));
    }

    /// Puts a list at the end, as [`Inbox::take`](crate::inbox::Inbox::take) gives it.
    ///
    /// # Safety
    /// As [`push`](RunQueue::push), for each link of the list, which goes from the first to the last.
    pub(crate) unsafe fn append(&self, first: NonNull<Link>, last: NonNull<Link>) {
        self.attach(first);
        self.tail.set(Some(last));
    }

    fn attach(&self, list: NonNull<Link>) {
        match self.tail.get().filter(|_| self.head.get().is_some()) {
            None => self.head.set(Some(list)),
            // SAFETY: the tail of a queue with a head has not been popped, so it lives.
            Some(tail) => unsafe { tail.as_ref() }.next.store(list.as_ptr(), Ordering::Relaxed),
        }
    }

    /// What the first `most` of those that are ready stand for, in order.
    #[cfg(feature = "testing")]
    pub(crate) fn sorts(&self, most: usize) -> impl Iterator<Item = Sort> {
        let mut next = self.head.get();
        std::iter::from_fn(move || {
            // SAFETY: what is in the queue has not been popped, so it lives.
            let link = unsafe { next?.as_ref() };
            next = NonNull::new(link.next.load(Ordering::Relaxed));
            Some(link.kind().sort)
        })
        .take(most)
    }

    /// Takes the one at `place` out; the next to run is at 0.
    #[cfg(feature = "testing")]
    pub(crate) fn take_at(&self, place: usize) -> Option<NonNull<Link>> {
        let Some(ahead) = place.checked_sub(1) else { return self.pop() };
        let after = |link: NonNull<Link>| {
            // SAFETY: what is in the queue has not been popped, so it lives.
            NonNull::new(unsafe { link.as_ref() }.next.load(Ordering::Relaxed))
        };
        let before = (0..ahead).try_fold(self.head.get()?, |link, _| after(link))?;
        let taken = after(before)?;
        let rest = after(taken).map_or(ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: as above.
        unsafe { before.as_ref() }.next.store(rest, Ordering::Relaxed);
        if rest.is_null() {
            self.tail.set(Some(before));
        }
        Some(taken)
    }

    /// Takes the next to run.
    #[inline]
    pub(crate) fn pop(&self) -> Option<NonNull<Link>> {
        let link = self.head.get()?;
        // SAFETY: it has not been popped before now, so it lives.
        let next = unsafe { link.as_ref() }.next.load(Ordering::Relaxed);
        self.head.set(NonNull::new(next));
        Some(link)
    }
}
