//! Where the futures of a run's async nodes lie.
//!
//! A berth is memory for one future at a time, with the waker that it is polled with. A node needs one while it is
//! under way, and most only while they are polled for the first time: the one that was left last is taken next, and is
//! in the cache still. So a run has as many berths as nodes were under way at a time, and keeps them for the next.
//!
//! A berth is *occupied* by a node while that node's future lies in it and waits; else it is *vacant*, and there is
//! nothing in it, but while its node is polled for the first time or its future is being dropped.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    marker::PhantomData,
    mem,
    ptr::NonNull,
    sync::Arc,
    task::Waker,
};

use crate::{
    inbox::{Inbox, NodeWaker},
    reach::{Reach, Threads},
};

/// In place of a node's number: nobody.
const NOBODY: u32 = u32::MAX;

/// A cache line: what is smaller does not share one with others.
const LINE: usize = 64;

/// The memory that a future of this layout is given. Sizes are rounded so that different futures can follow each other
/// in the same berth.
pub(crate) fn rounded(future: Layout) -> Layout {
    let size = future.size().max(LINE).checked_next_power_of_two().unwrap_or(future.size());
    Layout::from_size_align(size, future.align().max(LINE)).unwrap_or(future)
}

/// The memory of one berth.
pub(crate) struct Block {
    room: NonNull<u8>,
    /// Not of size zero.
    layout: Layout,
}

impl Block {
    fn new(layout: Layout) -> Self {
        assert_ne!(layout.size(), 0, "rounded layouts have a size");
        // SAFETY: its size is not zero.
        let room = unsafe { alloc(layout) };
        let Some(room) = NonNull::new(room) else { handle_alloc_error(layout) };
        Self { room, layout }
    }

    pub(crate) const fn room(&self) -> NonNull<u8> {
        self.room
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and is freed once.
        unsafe { dealloc(self.room.as_ptr(), self.layout) };
    }
}

/// Memory for a future, and its waker.
pub(crate) struct Berth {
    block: Block,
    /// It says the berth's number. Whoever keeps a clone of it for too long wakes who comes later, for nothing.
    rearmed: Arc<NodeWaker>,
    waker: Waker,
    /// Who occupies it.
    node: u32,
    kind: u16,
}

impl Berth {
    /// The waker, for a poll that is about to begin: wake-ups from now on count.
    #[inline]
    pub(crate) fn rearmed(&self) -> &Waker {
        self.rearmed.rearm();
        &self.waker
    }

    #[inline]
    pub(crate) const fn room(&self) -> NonNull<u8> {
        self.block.room
    }
}

/// The berths of a run.
pub(crate) struct Berths<M: Reach> {
    berths: Vec<Berth>,
    /// The vacant ones of each kind, the one that was left last at the end.
    vacant: Box<[Vacant]>,
    /// Where each node is that occupies a berth.
    of: Box<[u32]>,
    reach: PhantomData<fn() -> M>,
}

struct Vacant {
    layout: Layout,
    berths: Vec<u32>,
}

// SAFETY: a graph for `Threads` takes only async nodes whose futures are `Send`, and nothing else lies in berths.
unsafe impl Send for Berths<Threads> {}

impl<M: Reach> Berths<M> {
    /// For so many nodes, whose futures need blocks of these layouts.
    pub(crate) fn new(nodes: usize, layouts: &[Layout]) -> Self {
        let vacant = layouts.iter().map(|layout| Vacant { layout: *layout, berths: Vec::new() });
        Self {
            berths: Vec::new(),
            vacant: vacant.collect(),
            of: vec![NOBODY; nodes].into(),
            reach: PhantomData,
        }
    }

    /// A vacant berth of a kind.
    #[inline]
    pub(crate) fn vacant(&mut self, kind: u16, inbox: &Arc<Inbox>) -> u32 {
        match self.vacant[kind as usize].berths.last() {
            Some(number) => *number,
            None => self.build(kind, inbox),
        }
    }

    #[cold]
    fn build(&mut self, kind: u16, inbox: &Arc<Inbox>) -> u32 {
        let number = self.berths.len() as u32;
        let vacant = &mut self.vacant[kind as usize];
        let rearmed = NodeWaker::new(inbox, number);
        let waker = rearmed.clone().into();
        self.berths.push(Berth { block: Block::new(vacant.layout), rearmed, waker, node: NOBODY, kind });
        vacant.berths.push(number);
        number
    }

    #[inline]
    pub(crate) fn berth(&self, number: u32) -> &Berth {
        &self.berths[number as usize]
    }

    /// Who occupies a berth.
    #[inline]
    pub(crate) fn node_in(&self, number: u32) -> Option<u32> {
        Some(self.berths[number as usize].node).filter(|node| *node != NOBODY)
    }

    /// Which berth a node occupies.
    pub(crate) fn of(&self, node: u32) -> Option<u32> {
        Some(self.of[node as usize]).filter(|number| *number != NOBODY)
    }

    /// A node begins to wait in the berth that was the last of its kind's [vacant](Berths::vacant) ones.
    #[inline]
    pub(crate) fn occupy(&mut self, number: u32, node: u32) {
        let berth = &mut self.berths[number as usize];
        berth.node = node;
        self.of[node as usize] = number;
        let taken = self.vacant[berth.kind as usize].berths.pop();
        debug_assert_eq!(taken, Some(number), "it was the last");
    }

    /// The future in a berth is not there any more.
    #[inline]
    pub(crate) fn vacate(&mut self, number: u32) {
        let berth = &mut self.berths[number as usize];
        let node = mem::replace(&mut berth.node, NOBODY);
        self.of[node as usize] = NOBODY;
        self.vacant[berth.kind as usize].berths.push(number);
    }

    /// The future in a berth goes elsewhere, with its memory.
    pub(crate) fn move_out(&mut self, number: u32) -> Block {
        self.vacate(number);
        let berth = &mut self.berths[number as usize];
        let block = Block::new(berth.block.layout);
        mem::replace(&mut berth.block, block)
    }

    /// All that are occupied, with their nodes.
    pub(crate) fn occupied(&self) -> impl Iterator<Item = (u32, &Berth)> {
        self.berths.iter().filter(|berth| berth.node != NOBODY).map(|berth| (berth.node, berth))
    }
}
