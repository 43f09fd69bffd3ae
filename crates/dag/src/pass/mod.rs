//! How a run goes on: what its poll does.
//!
//! A pass takes what has come in, polls the nodes that were woken, looks at the time if that was asked for, and begins
//! what is ready, up to a limit. All of it is done by whoever polls the run; nodes on the pool are run by
//! [shifts](crate::shift).

mod conclusion;
mod fate;
mod giving_up;
mod plain;
mod timing;

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Admission, Panicked, Triggered, contain,
    time::{Deadline, Timer},
    wait::Wait,
};

use crate::{
    core::{Core, state},
    cx::Terms,
    engine::Works,
    error::RunError,
    failure::Failure,
    graph::{Condition, Kind},
    inbox::NodeWaker,
    inputs::Sources,
    memory::{Memory, TIMER, TOKEN},
    op::{Call, Called, Op},
    reach::Reach,
    run::Options,
    slot::Turn,
};

/// How many nodes begin in one poll at most: then others on the same executor have their turn.
const NODES_PER_POLL_MAX: usize = 512;

/// How often a poll looks again for nodes that were woken in it: one that yields lets the others of its run go first,
/// and now and then those of the executor.
const PASSES_PER_POLL_MAX: usize = 8;

/// Why a node has not ended well.
#[derive(Debug)]
pub(crate) enum Fault {
    Failed(Failure),
    Panicked(Panicked),
    TimedOut(Duration),
    /// The pool did not run it.
    NotRun,
}

/// A run that has begun.
pub(crate) struct Going<R, T: Timer + Clone, M: Reach> {
    works: Arc<Works<R, T, M>>,
    /// There until the run has ended.
    memory: Option<Box<Memory<R, T, M>>>,
    /// Its place among those that are under way.
    live: usize,
    number: u64,
    /// There until the run has ended.
    admission: Option<Admission<T>>,
    options: Options,
    deadline: Deadline,
    /// How many nodes the run itself waits for: async ones, those in line for their class, and those that are to be
    /// tried again.
    waits_for: usize,
    /// Why it ends, if it does not end by itself.
    verdict: Option<RunError>,
    /// Why nodes have not ended well, in the order in which that happened.
    faults: Vec<(u32, Fault)>,
    /// Nodes that were given up on and go on.
    late: Vec<u32>,
    token: Option<(Wait<Triggered>, Arc<NodeWaker>, Waker)>,
    /// The token is to be looked at.
    asks_token: bool,
    /// The time is to be looked at.
    asks_time: bool,
    /// What was under way has been given up on.
    has_given_up: bool,
    /// A node has not ended well, or was skipped: others may have to be.
    spoils: bool,
    /// How many nodes may begin in this poll.
    may_begin: usize,
    /// When the last node ended, in a traced run, in nanoseconds since its start, while nothing else has been done
    /// since.
    last_end: Option<u64>,
    /// An alarm is set that looks at nodes on the pool.
    watches: bool,
}

impl<R, T: Timer + Clone, M: Reach> Going<R, T, M> {
    pub(crate) fn new(
        works: Arc<Works<R, T, M>>,
        admission: Admission<T>,
        terms: Terms<R>,
        options: Options,
        now: Instant,
    ) -> Self {
        let mut memory = works.memory(now);
        let number = works.number();
        let deadline = terms.deadline;
        let times_pool = options.node_timeout.is_some() || works.shortest_on_pool.is_some();
        let watches = times_pool && !works.plan.one_thread;
        let core = Arc::get_mut(&mut memory.core).expect("free memory is nobody else's");
        core.reset(terms, &options, now, watches);
        core.inbox.open(number);
        memory.ready.extend(works.plan.roots.iter().copied());
        let live = works.begins(&memory.core);
        let token = options.token.as_ref().map(|token| {
            let waker = NodeWaker::new(&memory.core.inbox, TOKEN);
            (token.triggered(), waker.clone(), waker.into())
        });
        Self {
            works,
            memory: Some(memory),
            live,
            number,
            admission: Some(admission),
            options,
            deadline,
            waits_for: 0,
            verdict: None,
            faults: Vec::new(),
            late: Vec::new(),
            asks_token: token.is_some(),
            asks_time: false,
            has_given_up: false,
            spoils: false,
            may_begin: 0,
            last_end: None,
            token,
            watches: false,
        }
    }

    fn memory(&mut self) -> &mut Memory<R, T, M> {
        self.memory.as_mut().expect("there until the run has ended")
    }

    fn core(&self) -> &Arc<Core<R, M>> {
        &self.memory.as_ref().expect("there until the run has ended").core
    }

    /// Goes on until the run has ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.core().inbox.look(cx.waker());
        self.may_begin = NODES_PER_POLL_MAX;
        for _ in 0..PASSES_PER_POLL_MAX {
            // What comes in now has ended after that.
            self.last_end = None;
            let memory = self.memory();
            let is_idle = !memory.core.inbox.take(&mut memory.post) && memory.ready.is_empty();
            if is_idle && !self.asks_token && !self.asks_time {
                self.asks_time = self.set_alarms();
                if !self.asks_time {
                    break;
                }
            }
            self.take_in();
            self.begin_ready();
            self.bring_to_pool();
        }
        if self.has_ended() {
            return Poll::Ready(());
        }
        // In case the passes have run out before there was nothing to do.
        self.asks_time |= self.set_alarms();
        if self.asks_time || !self.memory().ready.is_empty() || !self.core().inbox.rest() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Whether nothing of it is under way, and nothing is to begin any more.
    fn has_ended(&self) -> bool {
        let core = self.core();
        if core.left() == 0 {
            return true;
        }
        core.is_ending() && self.waits_for == 0 && core.on_pool() == 0
    }

    /// Sees to what has come in.
    fn take_in(&mut self) {
        let mut post = mem::take(&mut self.memory().post);
        for (node, called) in post.ended.drain(..) {
            self.returns_from_pool(node, called);
        }
        for node in post.refused.drain(..) {
            if self.core().exchange(node, state::QUEUED, state::STORING) {
                self.core().change_on_pool(-1);
                self.works.plan.leave_class(node);
                // It was not called, so its inputs are where they were.
                self.turn_of(node, |op, turn| op.release_inputs(turn));
                self.fails_for_good(node, Fault::NotRun);
            }
        }
        for node in post.granted.drain(..) {
            self.granted(node);
        }
        self.memory().ready.extend(post.ready.drain(..));
        for node in post.woken.drain(..) {
            match node {
                TIMER => self.asks_time |= self.memory().poll_sleep(),
                TOKEN => self.asks_token = true,
                berth => self.poll_task(berth),
            }
        }
        post.clear();
        self.memory().post = post;
        if mem::take(&mut self.asks_token) {
            self.look_at_token();
        }
        if mem::take(&mut self.asks_time) {
            self.look_at_time();
        }
    }

    /// A node has ended on the pool, and something has to be seen to.
    fn returns_from_pool(&mut self, node: u32, called: Called) {
        // By its thread's claim nobody else decides about it any more.
        self.core().change_on_pool(-1);
        self.ends(node, called);
    }

    /// Begins what is ready, the first first.
    fn begin_ready(&mut self) {
        while self.may_begin > 0 {
            self.run_plain();
            if self.may_begin > 0 {
                let Some(node) = self.memory().ready.pop() else { return };
                self.may_begin -= 1;
                self.begin(node);
            }
        }
    }

    /// A node is ready: begins it, unless it is to be skipped or nothing is to begin any more.
    #[inline]
    fn begin(&mut self, node: u32) {
        let core = self.core();
        if core.is_ending() {
            return;
        }
        if let Some(spoiler) = core.spoiler(node) {
            return self.skip(node, spoiler, true);
        }
        if self.deadline.instant().is_some_and(|at| self.works.timer.now() >= at) {
            return self.deadline_comes();
        }
        let traits = self.works.plan.traits(node);
        if traits.is_plain {
            return self.start(node);
        }
        // Who is tried again has had its conditions looked at.
        let again = self.is_tried_again(node) && self.core().attempts(node) > 0;
        if again && self.has_no_time_left(node) {
            self.core().set(node, state::STORING);
            self.turn_of(node, |op, turn| op.release_inputs(turn));
            return self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
        }
        if traits.has_conditions && !again {
            match self.conditions_hold(node) {
                Ok(true) => {}
                Ok(false) => return self.skip(node, node, false),
                Err(panic) => {
                    self.core().set(node, state::STORING);
                    self.turn_of(node, |op, turn| op.release_inputs(turn));
                    return self.fails_for_good(node, Fault::Panicked(panic));
                }
            }
        }
        self.enter(node);
    }

    /// Starts a node as soon as there is a place in its class.
    fn enter(&mut self, node: u32) {
        if let Some(class) = &self.works.plan.info(node).class {
            let core = self.core();
            core.set(node, state::IN_LINE);
            if !class.enter(&core.inbox, self.number, node) {
                self.waits_for += 1;
                return;
            }
        }
        self.start(node);
    }

    /// Does something with the slots of a node whose turn it is.
    fn turn_of<V>(&self, node: u32, act: impl FnOnce(&dyn Op<R, M>, Turn<'_>) -> V) -> V {
        let core = self.core();
        // SAFETY: the callers have found that it is the node's turn: all its inputs have ended, it is run by nobody
        // else, and those that depend on it have not been told of its end.
        act(core.plan.actions.op(node), unsafe { core.slots.turn() })
    }

    fn conditions_hold(&self, node: u32) -> Result<bool, Panicked> {
        let core = self.core();
        let mut hold = Ok(true);
        for condition in core.plan.actions.conditions(node) {
            let holds = match condition {
                Condition::Request(f) => contain(|| f(core.cx(node, 1))),
                Condition::Input(source) => {
                    let holds = self.turn_of(node, |_, turn| *source.lend(turn, false));
                    self.turn_of(node, |_, turn| source.give_back(turn));
                    Ok(holds)
                }
            };
            // All are looked at: each lets go of its input.
            hold = match (hold, holds) {
                (Ok(hold), Ok(holds)) => Ok(hold && holds),
                (Err(panic), _) | (_, Err(panic)) => Err(panic),
            };
        }
        hold
    }

    /// A node has got a place in its class.
    fn granted(&mut self, node: u32) {
        self.waits_for -= 1;
        if self.core().is_ending() || self.core().state(node) != state::IN_LINE {
            self.works.plan.leave_class(node);
            return;
        }
        self.start(node);
    }

    /// Starts a node, for the first time or again.
    #[inline]
    fn start(&mut self, node: u32) {
        let traits = self.works.plan.traits(node);
        if self.has_timeout(node) {
            if self.timeout_of(node).is_zero() {
                // It has no time at all: it fails before it starts.
                self.turn_of(node, |op, turn| op.release_inputs(turn));
                self.works.plan.leave_class(node);
                return self.fails_for_good(node, Fault::TimedOut(Duration::ZERO));
            }
            // On the pool it has not begun before a thread takes it.
            if self.is_tried_again(node) && matches!(traits.kind, Kind::Inline | Kind::Async) {
                self.limit(node, self.works.timer.now());
            }
        }
        match traits.kind {
            Kind::Inline => self.call(node),
            Kind::Async => self.start_task(node),
            Kind::Cpu if self.is_light(node) => self.call(node),
            Kind::Cpu => {
                self.core().set(node, state::WAITING);
                self.memory().for_pool.push(node);
            }
            Kind::Blocking => {
                let pool = self.works.pool.as_ref().expect("an engine with blocking nodes has a pool");
                pool.bring_blocking(self.core(), node);
            }
        }
    }

    /// Whether a CPU node has next to nothing to do.
    fn is_light(&self, node: u32) -> bool {
        let core = self.core();
        self.turn_of(node, |op, turn| op.is_light(turn, core.cx(node, core.next_attempt(node))))
    }

    /// Whether a node that fails may be run again, and needs its inputs then.
    #[inline]
    pub(super) fn is_tried_again(&self, node: u32) -> bool {
        !self.works.plan.traits(node).is_plain && self.works.plan.info(node).retry.is_some()
    }

    #[inline]
    fn call(&mut self, node: u32) {
        let last_end = self.last_end.take();
        let core = self.core();
        core.set(node, state::RUNNING);
        core.begins(node, || last_end.unwrap_or_else(|| core.nanos(self.works.timer.now())));
        let call = Call {
            // SAFETY: this alone runs the node, whose inputs have ended; those that depend on it are told after it was
            // stored.
            turn: unsafe { core.slots.turn() },
            cx: core.cx(node, core.count_attempt(node)),
            again: self.is_tried_again(node),
            claim: None,
        };
        let called = core.plan.actions.op(node).call(call);
        self.ends(node, called);
    }

    #[inline]
    fn start_task(&mut self, node: u32) {
        self.last_end = None;
        let (works, again) = (&self.works, self.is_tried_again(node));
        let memory = self.memory.as_mut().expect("there until the run has ended");
        memory.core.set(node, state::RUNNING);
        memory.core.begins(node, || memory.core.nanos(works.timer.now()));
        let number = memory.berths.vacant(works.plan.traits(node).berth, &memory.core.inbox);
        let (core, berth) = (&*memory.core, memory.berths.berth(number));
        let call = Call {
            // SAFETY: as in `call`.
            turn: unsafe { core.slots.turn() },
            cx: core.cx(node, core.count_attempt(node)),
            again,
            claim: None,
        };
        let op = core.plan.actions.op(node);
        let context = &mut Context::from_waker(berth.rearmed());
        // SAFETY: the berth is vacant, and of the kind that was made for the node's future.
        let started = unsafe { op.start(berth.room(), call, context) };
        match started {
            Poll::Ready(called) => self.ends(node, called),
            Poll::Pending => {
                memory.berths.occupy(number, node);
                self.waits_for += 1;
                self.time(node);
            }
        }
    }

    /// Polls the async node that was woken.
    fn poll_task(&mut self, number: u32) {
        let memory = self.memory.as_mut().expect("there until the run has ended");
        // It may be a wake-up that comes too late, of another run even.
        let Some(node) = memory.berths.node_in(number) else { return };
        self.last_end = None;
        let (core, berth) = (&*memory.core, memory.berths.berth(number));
        // SAFETY: as in `call`: it is still the node's turn until it has ended.
        let turn = unsafe { core.slots.turn() };
        let op = core.plan.actions.op(node);
        let context = &mut Context::from_waker(berth.rearmed());
        // SAFETY: the node occupies the berth.
        let polled = unsafe { op.poll(berth.room(), turn, context) };
        if let Poll::Ready(called) = polled {
            memory.berths.vacate(number);
            self.waits_for -= 1;
            self.ends(node, called);
        }
    }
}
