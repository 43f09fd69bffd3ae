//! Room for posts, one behind the other in segments of the thread that posts.
//!
//! A post is allocated on one thread and freed on another, which is what allocators are slowest at, and which
//! scatters posts over memory. So a thread that posts allocates a segment at a time, and lays its posts into
//! that in turn; the segment is freed as a whole when the thread has gone on to the next one and all its posts
//! have been taken out.
//!
//! So a post that waits long keeps its segment. That of a thread that posts to one loop is full of posts that
//! wait as long; only a thread that posts much to a quick loop and a little to a busy one pays, with up to a
//! segment for each post that waits.
//!
//! A segment counts what is still to be taken out. As long as its thread fills it, the count is raised so far that it
//! cannot come to nothing, and filling it counts nothing but in a plain number; that is laid on top when it is full.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    cell::Cell,
    ptr::NonNull,
    sync::atomic::{AtomicIsize, Ordering, fence},
};

use crate::inbox::LINK_ALIGN;

/// A segment: some forty posts.
const SEGMENT: Layout = match Layout::from_size_align(4096, 64) {
    Ok(layout) => layout,
    Err(_) => panic!("the size is small"),
};

/// What is larger than this is allocated by itself.
pub(crate) const ROOM_MAX: usize = 256;

/// Where the first room begins: behind the count, on a cache line of its own.
const FIRST: usize = 64;

/// No number of posts brings the count to nothing while it is raised.
const RAISE: isize = isize::MAX / 2;

/// The head of a segment.
#[derive(Debug)]
pub(crate) struct Segment {
    /// How many rooms are still to be emptied.
    rooms: AtomicIsize,
}

/// The segment that a thread fills.
struct Filling {
    segment: Cell<Option<NonNull<Segment>>>,
    /// Where the next room begins.
    offset: Cell<usize>,
    /// How many rooms were taken.
    taken: Cell<isize>,
}

thread_local! {
    static FILLING: Filling = const {
        Filling { segment: Cell::new(None), offset: Cell::new(SEGMENT.size()), taken: Cell::new(0) }
    };
}

/// A room for a post of this size, and the segment that it is in. None for a thread that is about to end.
#[inline]
pub(crate) fn take(size: usize) -> Option<(NonNull<u8>, NonNull<Segment>)> {
    debug_assert!(size <= ROOM_MAX, "a post that is not small is allocated by itself");
    FILLING.try_with(|filling| filling.take(size)).ok()
}

impl Filling {
    #[inline]
    fn take(&self, size: usize) -> (NonNull<u8>, NonNull<Segment>) {
        let segment = match self.segment.get() {
            Some(segment) if self.offset.get() + size <= SEGMENT.size() => segment,
            _ => self.begin(),
        };
        let offset = self.offset.get();
        self.offset.set((offset + size).next_multiple_of(LINK_ALIGN));
        self.taken.set(self.taken.get() + 1);
        // SAFETY: it ends within the segment, as was just looked at, or is the first of a new one.
        (unsafe { segment.cast::<u8>().add(offset) }, segment)
    }

    #[cold]
    fn begin(&self) -> NonNull<Segment> {
        self.finish();
        // SAFETY: the layout is not of size zero.
        let new = NonNull::new(unsafe { alloc(SEGMENT) }).unwrap_or_else(|| handle_alloc_error(SEGMENT));
        let new = new.cast::<Segment>();
        // SAFETY: it is large enough, aligned, and ours.
        unsafe { new.write(Segment { rooms: AtomicIsize::new(RAISE) }) };
        self.segment.set(Some(new));
        self.offset.set(FIRST);
        new
    }

    /// Goes on from the segment: it counts what was taken of it, and is freed with the last of that.
    fn finish(&self) {
        if let Some(segment) = self.segment.take() {
            settle(segment, self.taken.take() - RAISE);
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A room has been emptied.
///
/// # Safety
/// It is one that [`take`] gave with this segment, is not touched any more, and was not emptied before.
#[inline]
pub(crate) unsafe fn empty(segment: NonNull<Segment>) {
    settle(segment, -1);
}

#[inline]
fn settle(segment: NonNull<Segment>, change: isize) {
    // SAFETY: who settles fills the segment, or has a room in it, which it counts; so it lives.
    let rooms = unsafe { &segment.as_ref().rooms };
    // Release: our use of it, to whoever frees it.
    if rooms.fetch_add(change, Ordering::Release) + change == 0 {
        fence(Ordering::Acquire);
        // SAFETY: nobody fills it, and no room in it is used. `begin` allocated it with this layout.
        unsafe { dealloc(segment.cast().as_ptr(), SEGMENT) };
    }
}
