//! What the threads that work on a run share: how far each node has come, and what is left to be done.
//!
//! Who decides: the state of a node is one word, and whoever exchanges it wins. A node on the pool is `RUNNING` until
//! its thread exchanges that for `STORING` and stores its output, or the run exchanges it for `TIMED_OUT` or
//! `CANCELLED`: then the thread finds that nobody wants its output any more.
//!
//! ```text
//!   WAITING ─► IN_LINE ─► QUEUED ─► RUNNING ─► STORING ─► OK, FELL_BACK, FAILED, PANICKED, TIMED_OUT
//!      │          ▲          │       │    └──────────────► TIMED_OUT, CANCELLED
//!      │          └─ PAUSED ◄┼───────┘
//!      └─► SKIPPED           └─► CANCELLED
//! ```

use std::{
    panic::Location,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    blame::{Activity, Origin, Straggler},
    time::Deadline,
};

use crate::{
    cx::{Cx, Terms},
    graph::Kind,
    inbox::Inbox,
    plan::{Compiled, Step},
    reach::Reach,
    run::Options,
    slot::Slots,
    stacks::Stacks,
    trace::Trace,
};

/// How far a node has come.
pub(crate) mod state {
    /// Inputs are missing, or it has not been looked at.
    pub(crate) const WAITING: u8 = 0;
    /// It waits for a place in its class.
    pub(crate) const IN_LINE: u8 = 1;
    /// It waits to be tried again.
    pub(crate) const PAUSED: u8 = 2;
    /// It waits for a thread of the pool.
    pub(crate) const QUEUED: u8 = 3;
    pub(crate) const RUNNING: u8 = 4;
    /// It has ended, and its end is being seen to.
    pub(crate) const STORING: u8 = 5;
    pub(crate) const OK: u8 = 6;
    /// It has failed, and its fallback is its output.
    pub(crate) const FELL_BACK: u8 = 7;
    pub(crate) const FAILED: u8 = 8;
    pub(crate) const TIMED_OUT: u8 = 9;
    pub(crate) const PANICKED: u8 = 10;
    pub(crate) const SKIPPED: u8 = 11;
    /// The run ended before it did.
    pub(crate) const CANCELLED: u8 = 12;
}

/// The shared memory of a run. It serves many runs, one after the other.
pub(crate) struct Core<R, M: Reach> {
    pub(crate) plan: Arc<Compiled<R, M>>,
    /// There during a run.
    terms: Option<Terms<R>>,
    states: Box<[AtomicU8]>,
    /// How many inputs each node is missing.
    missing: Box<[AtomicU32]>,
    /// Because of whom a node is to be skipped: its number plus one, or zero.
    spoilers: Box<[AtomicU32]>,
    /// When each node on the pool was first begun, in nanoseconds since the run's start, where anybody needs to know;
    /// else zero.
    begun: Box<[AtomicU64]>,
    pub(crate) slots: Slots,
    /// Nothing new is to begin.
    is_ending: AtomicBool,
    /// How many nodes have not ended.
    left: AtomicU32,
    /// How many nodes the pool has: queued or running, and not given up on. It may be too many for a while, never too
    /// few: a node that a thread goes on with takes the count of the one before.
    on_pool: AtomicI32,
    /// How often each node was begun, if any may be begun again.
    attempts: Box<[AtomicU32]>,
    pub(crate) stacks: Arc<Stacks<R, M>>,
    pub(crate) inbox: Arc<Inbox>,
    /// Nodes on the pool that were given up on, and what counts them until they end.
    late: Mutex<Vec<(u32, LateTicket)>>,
    pub(crate) trace: Option<Trace>,
    /// When the run began, and where.
    pub(crate) start: Instant,
    site: &'static Location<'static>,
    /// Nodes on the pool say when they have begun.
    pub(crate) watches: bool,
    /// The run may end, or go on, without a node that is under way.
    pub(crate) may_give_up: bool,
    /// Nodes without a timeout of their own have no time at all.
    pub(crate) has_no_time: bool,
    /// There was no run, or something has gone wrong in the last one: the slots are not as it found them.
    is_stale: bool,
}

/// Counts a node that goes on after its run. Dropping it counts it out.
pub(crate) type LateTicket = Box<dyn FnOnce(bool) + Send>;

impl<R, M: Reach> Core<R, M> {
    pub(crate) fn new(plan: Arc<Compiled<R, M>>, now: Instant, threads: usize) -> Self {
        let len = plan.outline.nodes.len();
        let slots = Slots::new(plan.actions.slots(), &plan.consumers, plan.one_thread);
        let on_pool = if plan.one_thread { 0 } else { len };
        let retries = if plan.outline.nodes.iter().any(|info| info.retry.is_some()) { len } else { 0 };
        Self {
            terms: None,
            states: (0..len).map(|_| AtomicU8::new(0)).collect(),
            missing: (0..len).map(|_| AtomicU32::new(0)).collect(),
            spoilers: (0..len).map(|_| AtomicU32::new(0)).collect(),
            begun: (0..on_pool).map(|_| AtomicU64::new(0)).collect(),
            slots,
            is_ending: AtomicBool::new(false),
            left: AtomicU32::new(0),
            on_pool: AtomicI32::new(0),
            attempts: (0..retries).map(|_| AtomicU32::new(0)).collect(),
            stacks: Arc::new(Stacks::new(threads)),
            inbox: Arc::default(),
            late: Mutex::default(),
            trace: None,
            start: now,
            site: Location::caller(),
            watches: false,
            may_give_up: false,
            has_no_time: false,
            is_stale: true,
            plan,
        }
    }

    /// Makes it ready for a run.
    pub(crate) fn reset(&mut self, terms: Terms<R>, options: &Options, start: Instant, watches: bool) {
        let (len, traced) = (self.plan.outline.nodes.len(), options.traced);
        self.terms = Some(terms);
        self.states.iter_mut().for_each(|state| *state.get_mut() = state::WAITING);
        for (missing, inputs) in self.missing.iter_mut().zip(&self.plan.inputs) {
            *missing.get_mut() = *inputs;
        }
        self.spoilers.iter_mut().for_each(|spoiler| *spoiler.get_mut() = 0);
        if self.is_stale {
            self.slots.reset();
        }
        debug_assert!(self.slots.are_ready(), "a run that went well leaves the slots as it found them");
        self.is_stale = true;
        self.begun.iter_mut().for_each(|begun| *begun.get_mut() = 0);
        *self.is_ending.get_mut() = false;
        *self.left.get_mut() = len as u32;
        *self.on_pool.get_mut() = 0;
        self.attempts.iter_mut().for_each(|attempts| *attempts.get_mut() = 0);
        (self.start, self.site) = (start, options.site);
        self.watches = watches || traced;
        let has_end = self.terms().deadline.instant().is_some();
        self.may_give_up = watches || has_end || options.token.is_some();
        self.has_no_time = options.node_timeout.is_some_and(|timeout| timeout.is_zero());
        self.trace = traced.then(|| Trace::new(len));
    }

    /// The run is over: lets go of what it was about. If it has not come to a good end, that is more.
    pub(crate) fn forget(&mut self, is_good: bool) {
        if !is_good {
            // What no consumer has taken.
            self.slots.clear();
        }
        self.is_stale = !is_good;
        self.terms = None;
        self.trace = None;
    }

    pub(crate) fn terms(&self) -> &Terms<R> {
        self.terms.as_ref().expect("there during a run")
    }

    pub(crate) fn cx(&self, node: u32, attempt: u32) -> Cx<'_, R> {
        Cx { terms: self.terms(), node: self.plan.info(node), attempt }
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.terms().deadline
    }

    /// A time, in nanoseconds since the run's start.
    pub(crate) fn nanos(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_nanos() as u64
    }

    // ---- states ----

    #[inline]
    pub(crate) fn state(&self, node: u32) -> u8 {
        self.states[node as usize].load(Ordering::SeqCst)
    }

    /// Says how far a node has come that nobody else decides about.
    #[inline]
    pub(crate) fn set(&self, node: u32, state: u8) {
        self.states[node as usize].store(state, Ordering::Release);
    }

    /// Moves a node on, unless it has been moved elsewhere.
    #[inline]
    pub(crate) fn exchange(&self, node: u32, from: u8, to: u8) -> bool {
        // Sequentially consistent, as is the mark that the run ends: either the run sees that a node has begun, or who
        // begins it sees that the run ends.
        self.states[node as usize].compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Whether a node's output, now there, is wanted: then it is to be stored.
    #[inline]
    pub(crate) fn claim(&self, node: u32) -> bool {
        self.exchange(node, state::RUNNING, state::STORING)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
    }

    /// Because of whom a node is to be skipped.
    #[inline]
    pub(crate) fn spoiler(&self, node: u32) -> Option<u32> {
        // Relaxed: it was written before the node's missing inputs were counted down.
        self.spoilers[node as usize].load(Ordering::Relaxed).checked_sub(1)
    }

    /// A node begins, if anybody needs to know when, in nanoseconds since the run's start.
    #[inline]
    pub(crate) fn begins(&self, node: u32, now: impl FnOnce() -> u64) {
        if self.watches {
            let now = now();
            if let Some(begun) = self.begun.get(node as usize)
                && begun.load(Ordering::Relaxed) == 0
            {
                begun.store(now.max(1), Ordering::Relaxed);
            }
            if let Some(trace) = &self.trace {
                trace.begins(node, now);
            }
        }
    }

    /// A node has ended, if anybody needs to know when: those that are ready now can begin.
    #[inline]
    pub(crate) fn has_ended(&self, node: u32, now: impl FnOnce() -> u64) {
        if let Some(trace) = &self.trace {
            trace.ends(node, now());
        }
    }

    /// When a node on the pool has begun; zero if that is not known.
    pub(crate) fn begun(&self, node: u32) -> Duration {
        let begun = self.begun.get(node as usize).map_or(0, |begun| begun.load(Ordering::Relaxed));
        Duration::from_nanos(begun)
    }

    // ---- counting ----

    pub(crate) fn left(&self) -> u32 {
        self.left.load(Ordering::Acquire)
    }

    /// So many nodes have ended. Gives how many are left.
    #[inline]
    pub(crate) fn count_ended(&self, ended: u32) -> u32 {
        if self.plan.one_thread {
            let left = self.left.load(Ordering::Relaxed) - ended;
            self.left.store(left, Ordering::Relaxed);
            return left;
        }
        self.left.fetch_sub(ended, Ordering::AcqRel) - ended
    }

    /// How many nodes the pool has.
    pub(crate) fn on_pool(&self) -> i32 {
        self.on_pool.load(Ordering::Acquire)
    }

    /// The pool has so many nodes more, or less. Gives how many it has.
    pub(crate) fn change_on_pool(&self, change: i32) -> i32 {
        self.on_pool.fetch_add(change, Ordering::AcqRel) + change
    }

    /// A node is begun. Gives how often it was, if it may be begun again; else 1.
    #[inline]
    pub(crate) fn count_attempt(&self, node: u32) -> u32 {
        self.attempts.get(node as usize).map_or(1, |attempts| attempts.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// How often it will have been begun, once it is: 1 if it cannot be begun again.
    pub(crate) fn next_attempt(&self, node: u32) -> u32 {
        self.attempts.get(node as usize).map_or(1, |attempts| attempts.load(Ordering::Relaxed) + 1)
    }

    pub(crate) fn attempts(&self, node: u32) -> u32 {
        self.attempts.get(node as usize).map_or(1, |attempts| attempts.load(Ordering::Relaxed))
    }

    /// A node has ended, well or not: counts it out with those who depend on it, and gives those that are missing
    /// nothing now.
    #[inline]
    pub(crate) fn tell_successors(
        &self,
        step: &Step<R, M>,
        spoiler: Option<u32>,
        mut ready: impl FnMut(u32),
    ) {
        let successors = self.plan.successors(step);
        if let Some(spoiler) = spoiler {
            for successor in successors.iter().filter(|successor| successor.is_required()) {
                let spoilers = &self.spoilers[successor.node() as usize];
                // The first counts. Relaxed: the counts below publish it.
                let _: Result<_, _> =
                    spoilers.compare_exchange(0, spoiler + 1, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        let missing = &*self.missing;
        if self.plan.one_thread {
            for successor in successors {
                let missing = &missing[successor.node() as usize];
                let left = missing.load(Ordering::Relaxed) - 1;
                missing.store(left, Ordering::Relaxed);
                if left == 0 {
                    ready(successor.node());
                }
            }
            return;
        }
        for successor in successors {
            let missing = &missing[successor.node() as usize];
            // Who brings the last input is alone with the count: it costs no locked instruction to see that. Release:
            // the output that is there now. Acquire: those of the other inputs.
            if missing.load(Ordering::Acquire) == 1 || missing.fetch_sub(1, Ordering::AcqRel) == 1 {
                ready(successor.node());
            }
        }
    }

    // ---- late nodes ----

    /// Gives up on a node that a thread of the pool runs: `ticket` counts it from now on. Gives false if it has ended
    /// meanwhile.
    pub(crate) fn give_up(&self, node: u32, to: u8, ticket: impl FnOnce() -> Option<LateTicket>) -> bool {
        let mut late = self.lock_late();
        if !self.exchange(node, state::RUNNING, to) {
            return false;
        }
        if let Some(ticket) = ticket() {
            late.push((node, ticket));
        }
        true
    }

    /// A node that was given up on has ended.
    pub(crate) fn late_ends(&self, node: u32, well: bool) {
        let mut late = self.lock_late();
        let at = late.iter().position(|(number, _)| *number == node);
        let ticket = at.map(|at| late.swap_remove(at));
        drop(late);
        if let Some((_, ticket)) = ticket {
            ticket(well);
        }
    }

    fn lock_late(&self) -> MutexGuard<'_, Vec<(u32, LateTicket)>> {
        // Nothing that can panic runs under the lock.
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run, with what it is at, for reports.
    pub(crate) fn straggler(&self, now: Instant) -> Straggler {
        let (mut activity, mut names) = (Activity::Parked, Vec::new());
        for (info, state) in self.plan.outline.nodes.iter().zip(&self.states) {
            let state = state.load(Ordering::Relaxed);
            if matches!(state, state::IN_LINE..=state::STORING) {
                names.push(&*info.name);
                if state == state::RUNNING && info.kind != Kind::Async {
                    activity = Activity::Running;
                }
            }
        }
        let shown = names.len().min(NODES_SHOWN_MAX);
        let more = if names.len() > shown { ", …" } else { "" };
        let name = format!("{}: {}{more}", self.plan.name, names[..shown].join(", "));
        let age = now.saturating_duration_since(self.start);
        Straggler::new(Origin::from(self.site).named(name), activity, age)
    }
}

/// How many of the nodes that a run is at are named.
const NODES_SHOWN_MAX: usize = 5;
