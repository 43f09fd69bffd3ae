//! Blocks for tasks, kept by the loop that freed them: spawning a task after another has ended asks no allocator.
//!
//! A task's block has one of a few sizes, so that tasks of different futures can follow each other in it. Any
//! thread may allocate or free one; only the loop's own thread keeps them.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    cell::Cell,
    ptr::NonNull,
};

use crate::{core::Core, inbox::LINK_ALIGN};

/// The sizes of blocks. A task without much in its future takes the first; what is larger than the last is as
/// large as it is, and is not kept. Allocators add a word to a block and round up to 16 bytes: these leave
/// nothing unused.
const SIZES: [usize; 6] = [88, 104, 136, 168, 232, 360];

/// How many blocks of each size a loop keeps: about a megabyte in all.
const KEPT_MAX: u32 = 1024;

/// The blocks that a loop keeps. On its thread only.
#[derive(Debug, Default)]
pub(crate) struct Depot {
    shelves: [Shelf; SIZES.len()],
}

/// Blocks of one size, each of which holds the pointer to the next.
#[derive(Debug, Default)]
struct Shelf {
    top: Cell<Option<NonNull<Kept>>>,
    len: Cell<u32>,
}

struct Kept {
    below: Option<NonNull<Kept>>,
}

impl Shelf {
    #[inline]
    fn pop(&self) -> Option<NonNull<u8>> {
        let top = self.top.get()?;
        // SAFETY: what is on the shelf is the shelf's, and was written when it was put there.
        self.top.set(unsafe { top.as_ref() }.below);
        self.len.set(self.len.get() - 1);
        Some(top.cast())
    }

    /// Gives false if there is no room.
    ///
    /// # Safety
    /// The block is of this shelf's size, and nothing is in it any more.
    #[inline]
    unsafe fn push(&self, room: NonNull<u8>) -> bool {
        if self.len.get() == KEPT_MAX {
            return false;
        }
        let kept = room.cast::<Kept>();
        // SAFETY: every size has room for a pointer, and blocks are aligned for more than that.
        unsafe { kept.write(Kept { below: self.top.get() }) };
        self.top.set(Some(kept));
        self.len.set(self.len.get() + 1);
        true
    }
}

/// What is allocated for a task, and where it is kept. The same for all tasks of one type.
#[derive(Clone, Copy)]
pub(super) struct Block {
    layout: Layout,
    class: Option<usize>,
}

impl Block {
    /// The block for a task of this layout.
    pub(super) const fn new(task: Layout) -> Self {
        let mut class = 0;
        while class < SIZES.len() {
            if task.size() <= SIZES[class] && task.align() <= LINK_ALIGN {
                return Self::of(class);
            }
            class += 1;
        }
        match task.align_to(LINK_ALIGN) {
            Ok(layout) => Self { layout, class: None },
            Err(_) => panic!("the task is too large for any memory"),
        }
    }

    const fn of(class: usize) -> Self {
        match Layout::from_size_align(SIZES[class], LINK_ALIGN) {
            Ok(layout) => Self { layout, class: Some(class) },
            Err(_) => panic!("the sizes are small"),
        }
    }
}

/// Room for a task, on the loop's thread or on another one.
#[inline]
pub(super) fn take(block: Block, core: Option<&Core>) -> NonNull<u8> {
    let kept = block.class.and_then(|class| core?.depot.shelves[class].pop());
    kept.unwrap_or_else(|| {
        // SAFETY: a task has a header, so the layout is not of size zero.
        let room = unsafe { alloc(block.layout) };
        NonNull::new(room).unwrap_or_else(|| handle_alloc_error(block.layout))
    })
}

/// Gives back the room for a task.
///
/// # Safety
/// It came from [`take`] with the same block, and nothing is in it any more.
#[inline]
pub(super) unsafe fn give_back(room: NonNull<u8>, block: Block, core: Option<&Core>) {
    if let (Some(class), Some(core)) = (block.class, core)
        // SAFETY: by the caller's word.
        && unsafe { core.depot.shelves[class].push(room) }
    {
        return;
    }
    // SAFETY: `take` allocated it with this very layout.
    unsafe { dealloc(room.as_ptr(), block.layout) };
}

impl Drop for Depot {
    fn drop(&mut self) {
        for (class, shelf) in self.shelves.iter().enumerate() {
            while let Some(room) = shelf.pop() {
                // SAFETY: what is kept here was allocated with the layout of its class.
                unsafe { dealloc(room.as_ptr(), Block::of(class).layout) };
            }
        }
    }
}
