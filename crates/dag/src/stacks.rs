//! The nodes of a run that are ready and wait for a thread of the pool.
//!
//! A run has a few stacks of them, as many as the pool has threads. A stack is *manned* while there is a job of the
//! pool for it. Until that begins, its stack keeps the run for it: a job that waits in the pool's line has nothing but
//! a ticket. If others have done its work by then, and the run has ended, the run has [called it
//! off](Stacks::call_off).

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{core::Core, reach::Reach};

pub(crate) struct Stacks<R, M: Reach> {
    stacks: Box<[Mutex<Stack<R, M>>]>,
    /// How many are manned. A hint to those who do not hold the locks.
    manned: AtomicU32,
}

/// Aligned so that two threads do not share a pair of cache lines.
#[repr(align(128))]
pub(crate) struct Stack<R, M: Reach> {
    /// To be run; the last one first.
    pub(crate) nodes: Vec<u32>,
    /// There is a job for it. Nodes lie only on stacks that are manned.
    is_manned: bool,
    /// The run, for its job; there while it is manned and that has not begun.
    pub(crate) run: Option<Arc<Core<R, M>>>,
    /// What its last shift has left for the next one.
    pub(crate) room: Room,
}

impl<R, M: Reach> Default for Stack<R, M> {
    fn default() -> Self {
        Self { nodes: Vec::new(), is_manned: false, run: None, room: Room::default() }
    }
}

/// Where a shift keeps nodes for a moment; both are empty between two shifts, and used again.
#[derive(Default)]
pub(crate) struct Room {
    /// CPU nodes that the last one has made ready.
    pub(crate) ready: Vec<u32>,
    /// Nodes that are ready and have to be seen to by the run itself.
    pub(crate) for_run: Vec<u32>,
}

impl<R, M: Reach> Stacks<R, M> {
    pub(crate) fn new(number: usize) -> Self {
        Self { stacks: (0..number).map(|_| Mutex::default()).collect(), manned: AtomicU32::new(0) }
    }

    pub(crate) fn lock(&self, number: usize) -> MutexGuard<'_, Stack<R, M>> {
        // Nothing that can panic runs under the lock.
        self.stacks[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn unmanned(&self) -> usize {
        self.stacks.len() - (self.manned.load(Ordering::Relaxed) as usize).min(self.stacks.len())
    }

    /// Mans a stack, if there is one that is not, and fills it. Gives its number: the caller brings a job for it.
    pub(crate) fn man(&self, core: &Arc<Core<R, M>>, fill: impl FnOnce(&mut Vec<u32>)) -> Option<usize> {
        for number in 0..self.stacks.len() {
            let mut stack = self.lock(number);
            if !stack.is_manned {
                stack.is_manned = true;
                stack.run = Some(core.clone());
                fill(&mut stack.nodes);
                self.manned.fetch_add(1, Ordering::Relaxed);
                return Some(number);
            }
        }
        None
    }

    /// Puts nodes on a stack that is manned, if there is one.
    pub(crate) fn put(&self, nodes: &mut Vec<u32>) {
        for number in 0..self.stacks.len() {
            let mut stack = self.lock(number);
            if stack.is_manned {
                return stack.nodes.append(nodes);
            }
        }
    }

    /// The next node for the shift of a stack: from its own, or half of another one, by way of `taken`, which is empty.
    /// None if there is nothing on any: then the stack is not manned any more.
    pub(crate) fn next(&self, number: usize, taken: &mut Vec<u32>) -> Option<u32> {
        loop {
            if let Some(node) = self.lock(number).nodes.pop() {
                return Some(node);
            }
            for offset in 1..self.stacks.len() {
                let mut other = self.lock((number + offset) % self.stacks.len());
                let half = other.nodes.len().div_ceil(2);
                if half > 0 {
                    // What lies at the bottom has waited longest.
                    taken.extend(other.nodes.drain(..half));
                    drop(other);
                    let node = taken.pop();
                    self.lock(number).nodes.append(taken);
                    return node;
                }
            }
            let mut own = self.lock(number);
            if own.nodes.is_empty() {
                own.is_manned = false;
                self.manned.fetch_sub(1, Ordering::Relaxed);
                return None;
            }
        }
    }

    /// What is on a stack whose job will not be run.
    pub(crate) fn desert(&self, number: usize) -> Vec<u32> {
        let mut stack = self.lock(number);
        stack.is_manned = false;
        self.manned.fetch_sub(1, Ordering::Relaxed);
        mem::take(&mut stack.nodes)
    }

    /// The run is over: shifts that have not begun have nothing to do any more, and do not keep it.
    pub(crate) fn call_off(&self) {
        for number in 0..self.stacks.len() {
            let mut stack = self.lock(number);
            let run = stack.run.take();
            if run.is_some() {
                // What lies there was taken back.
                stack.nodes.clear();
                stack.is_manned = false;
                self.manned.fetch_sub(1, Ordering::Relaxed);
            }
            drop(stack);
            // The caller has the run, too: nothing of it is dropped here.
            drop(run);
        }
    }
}
