//! The memory of a run that only whoever polls it touches. It serves many runs, one after the other.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use ebbtide_lifecycle::time::Timer;

use crate::{
    berth::Berths,
    core::Core,
    inbox::{NodeWaker, Post},
    plan::Compiled,
    queue::Queue,
    reach::Reach,
};

/// In place of a berth's number: the run's own timer.
pub(crate) const TIMER: u32 = u32::MAX;

/// In place of a berth's number: the token that cancels the run.
pub(crate) const TOKEN: u32 = u32::MAX - 1;

pub(crate) struct Memory<R, T: Timer, M: Reach> {
    pub(crate) core: Arc<Core<R, M>>,
    pub(crate) berths: Berths<M>,
    pub(crate) post: Post,
    /// Nodes that are ready.
    pub(crate) ready: Queue,
    /// CPU nodes that are to be brought to the pool at the end of this turn.
    pub(crate) for_pool: Vec<u32>,
    /// Async nodes that have begun to wait in this turn, and may do so only for a while.
    pub(crate) to_be_timed: Vec<u32>,
    /// By when all attempts of a node together have to be over, once it has begun the first and if there is a limit;
    /// there if any may be tried again.
    pub(crate) ends_by: Box<[Option<Instant>]>,
    pub(crate) alarms: BinaryHeap<Reverse<Alarm>>,
    sleep: Pin<Box<Option<T::Sleep>>>,
    sleep_waker: (Arc<NodeWaker>, Waker),
    /// When the sleep ends, while there is one.
    pub(crate) sleeps_until: Option<Instant>,
}

/// Something that is to be looked at, at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Alarm {
    pub(crate) at: Instant,
    pub(crate) node: u32,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// An async node has had its time.
    Timeout,
    /// A node is to be tried again.
    Retry,
    /// Nodes on the pool may have had their time.
    Watch,
}

impl<R, T: Timer, M: Reach> Memory<R, T, M> {
    /// For runs on a pool with so many threads.
    pub(crate) fn new(plan: &Arc<Compiled<R, M>>, now: Instant, threads: usize) -> Self {
        let core = Arc::new(Core::new(plan.clone(), now, threads));
        let retries = if plan.outline.nodes.iter().any(|info| info.retry.is_some()) {
            plan.outline.nodes.len()
        } else {
            0
        };
        let sleep_waker = NodeWaker::new(&core.inbox, TIMER);
        Self {
            berths: Berths::new(plan.outline.nodes.len(), &plan.berths),
            post: Post::default(),
            ready: Queue::default(),
            for_pool: Vec::new(),
            to_be_timed: Vec::new(),
            ends_by: vec![None; retries].into(),
            alarms: BinaryHeap::new(),
            sleep: Box::pin(None),
            sleep_waker: (sleep_waker.clone(), sleep_waker.into()),
            sleeps_until: None,
            core,
        }
    }

    /// Whether nobody else has it any more.
    pub(crate) fn is_free(&mut self) -> bool {
        Arc::get_mut(&mut self.core).is_some()
    }

    /// Sleeps until `at`. Gives whether that has come already.
    pub(crate) fn sleep_until(&mut self, timer: &T, at: Instant) -> bool {
        self.sleep.set(Some(timer.sleep_until(at)));
        self.sleeps_until = Some(at);
        self.poll_sleep()
    }

    /// Whether the sleep has ended.
    pub(crate) fn poll_sleep(&mut self) -> bool {
        let (rearmed, waker) = &self.sleep_waker;
        rearmed.rearm();
        let polled = match self.sleep.as_mut().as_pin_mut() {
            Some(sleep) => sleep.poll(&mut Context::from_waker(waker)),
            None => Poll::Pending,
        };
        if polled.is_ready() {
            self.sleep.set(None);
            self.sleeps_until = None;
        }
        polled.is_ready()
    }

    /// The run is over.
    pub(crate) fn clear(&mut self) {
        debug_assert!(
            self.berths.occupied().next().is_none(),
            "whoever was under way has ended, or been given up on"
        );
        self.post.clear();
        self.ready.clear();
        self.for_pool.clear();
        self.to_be_timed.clear();
        self.ends_by.fill(None);
        self.alarms.clear();
        self.sleep.set(None);
        self.sleeps_until = None;
    }
}

/// What still lies in a berth, if anything, is of its node's op.
impl<R, T: Timer, M: Reach> Drop for Memory<R, T, M> {
    fn drop(&mut self) {
        for (node, berth) in self.berths.occupied() {
            // SAFETY: the node occupies the berth, which nobody looks at any more.
            unsafe { self.core.plan.actions.op(node).cancel(berth.room()) };
        }
    }
}
