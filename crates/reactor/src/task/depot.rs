//! Blocks for tasks, kept by the loop that freed them: spawning a task after another has ended asks no allocator.
//!
//! A task's block has one of a few sizes, so that tasks of different futures can follow each other in it. Any
//! thread may allocate or free one; only the loop's own thread keeps them.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    cell::RefCell,
    ptr::NonNull,
};

use crate::{core::Core, inbox::Link};

/// The sizes of blocks. A task without much in its future takes the first; what is larger than the last is as
/// large as it is, and is not kept.
const SIZES: [usize; 4] = [128, 192, 256, 384];

/// That of a task's link.
const ALIGN: usize = align_of::<Link>();

/// How many blocks of each size a loop keeps: a megabyte in all.
const KEPT_MAX: usize = 1024;

/// The blocks that a loop keeps. On its thread only.
#[derive(Debug, Default)]
pub(crate) struct Depot {
    kept: [RefCell<Vec<NonNull<u8>>>; SIZES.len()],
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
            if task.size() <= SIZES[class] && task.align() <= ALIGN {
                return Self::of(class);
            }
            class += 1;
        }
        Self { layout: task, class: None }
    }

    const fn of(class: usize) -> Self {
        match Layout::from_size_align(SIZES[class], ALIGN) {
            Ok(layout) => Self { layout, class: Some(class) },
            Err(_) => panic!("the sizes are small"),
        }
    }
}

/// Room for a task, on the loop's thread or on another one.
#[inline]
pub(super) fn take(block: Block, core: Option<&Core>) -> NonNull<u8> {
    let kept = block.class.and_then(|class| core?.depot.kept[class].borrow_mut().pop());
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
    if let (Some(class), Some(core)) = (block.class, core) {
        let mut kept = core.depot.kept[class].borrow_mut();
        if kept.len() < KEPT_MAX {
            return kept.push(room);
        }
    }
    // SAFETY: `take` allocated it with this very layout.
    unsafe { dealloc(room.as_ptr(), block.layout) };
}

impl Drop for Depot {
    fn drop(&mut self) {
        for (class, kept) in self.kept.iter().enumerate() {
            for room in kept.take() {
                // SAFETY: what is kept here was allocated with the layout of its class.
                unsafe { dealloc(room.as_ptr(), Block::of(class).layout) };
            }
        }
    }
}
