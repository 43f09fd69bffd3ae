//! How a run goes on: what its poll does.
//!
//! A pass takes what has come in, polls the nodes that were woken, looks at the time if that was asked for, and begins
//! what is ready, up to a limit. All of it is done by whoever polls the run; nodes on the pool are run by
//! [shifts](crate::shift).

use std::{
    cmp::Reverse,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Admission, Outcome, Panicked, Reason, Triggered, contain,
    time::{Deadline, Timer},
    wait::Wait,
};

use crate::{
    class::Place,
    core::{Core, state},
    cx::Terms,
    engine::Works,
    error::RunError,
    failure::Failure,
    graph::{Condition, Kind, OnTimeout},
    inbox::NodeWaker,
    inputs::Sources,
    memory::{Alarm, Memory, TIMER, TOKEN, What},
    op::{Call, Called, Op},
    reach::{Kept, Reach},
    report::Report,
    run::{Options, Policy},
    slot::Turn,
};

/// How many nodes begin in one pass at most: then others on the same executor have their turn.
const NODES_PER_PASS_MAX: usize = 512;

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
    token: Option<(Wait<Triggered>, Arc<NodeWaker>, Waker)>,
    /// The token is to be looked at.
    asks_token: bool,
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
        memory.ready.extend_from_slice(&works.plan.roots);
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
            asks_token: token.is_some(),
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
        let memory = self.memory();
        memory.core.inbox.take(&mut memory.post, cx.waker());
        self.take_in();
        self.begin_ready();
        self.end_pass();
        if self.has_ended() {
            return Poll::Ready(());
        }
        if !self.memory().ready.is_empty() {
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
        if self.memory().post.is_empty() && !self.asks_token {
            return;
        }
        let mut post = mem::take(&mut self.memory().post);
        for (node, called) in post.ended.drain(..) {
            self.returns_from_pool(node, called);
        }
        for node in post.refused.drain(..) {
            if self.core().exchange(node, state::QUEUED, state::STORING) {
                self.core().change_on_pool(-1);
                self.fails(node, Fault::NotRun);
            }
        }
        for node in post.granted.drain(..) {
            self.granted(node);
        }
        self.memory().ready.append(&mut post.ready);
        let mut is_time = false;
        for node in post.woken.drain(..) {
            match node {
                TIMER => is_time |= self.memory().poll_sleep(),
                TOKEN => self.asks_token = true,
                // It may be a wake-up that comes too late, of another run even.
                node if self.core().state(node) == state::RUNNING => self.poll_task(node),
                _ => {}
            }
        }
        self.memory().post = post;
        if mem::take(&mut self.asks_token) {
            self.look_at_token();
        }
        if is_time {
            self.look_at_time();
        }
    }

    /// A node has ended on the pool, and something has to be seen to.
    fn returns_from_pool(&mut self, node: u32, called: Called) {
        // By its thread's claim nobody else decides about it any more.
        self.core().change_on_pool(-1);
        self.ends(node, called);
    }

    /// Begins what is ready, the last first.
    fn begin_ready(&mut self) {
        for _ in 0..NODES_PER_PASS_MAX {
            let Some(node) = self.memory().ready.pop() else { return };
            self.begin(node);
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
        if traits.has_conditions {
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
                    self.turn_of(node, |_, turn| source.release(turn));
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
            if let Some(class) = &self.works.plan.info(node).class {
                class.leave();
            }
            return;
        }
        self.start(node);
    }

    /// Starts a node, for the first time or again.
    #[inline]
    fn start(&mut self, node: u32) {
        let traits = self.works.plan.traits(node);
        let is_timed = traits.has_timeout || self.options.node_timeout.is_some();
        if is_timed && self.timeout_of(node).is_zero() {
            // It has no time at all: it fails before it starts.
            self.turn_of(node, |op, turn| op.release_inputs(turn));
            if let Some(class) = &self.works.plan.info(node).class {
                class.leave();
            }
            return self.fails_for_good(node, Fault::TimedOut(Duration::ZERO));
        }
        match traits.kind {
            Kind::Inline => self.call(node),
            Kind::Async => self.start_task(node),
            Kind::Cpu => self.memory().for_pool.push(node),
            Kind::Blocking => {
                let pool = self.works.pool.as_ref().expect("an engine with blocking nodes has a pool");
                pool.bring_blocking(self.core(), node);
            }
        }
    }

    /// Whether a node that fails may be run again, and needs its inputs then.
    #[inline]
    fn is_tried_again(&self, node: u32) -> bool {
        !self.works.plan.traits(node).is_plain && self.works.plan.info(node).retry.is_some()
    }

    #[inline]
    fn call(&mut self, node: u32) {
        let core = self.core();
        core.set(node, state::RUNNING);
        core.begins(node, || self.works.timer.now());
        let call = Call {
            // SAFETY: this alone runs the node, whose inputs have ended; those that depend on it are told after it was
            // stored.
            turn: unsafe { core.slots.turn() },
            cx: core.cx(node, core.count_attempt(node)),
            again: self.is_tried_again(node),
            claim: &|| true,
        };
        let called = core.plan.actions.op(node).call(call);
        self.ends(node, called);
    }

    #[inline]
    fn start_task(&mut self, node: u32) {
        let (works, again) = (&self.works, self.is_tried_again(node));
        let memory = self.memory.as_mut().expect("there until the run has ended");
        memory.core.set(node, state::RUNNING);
        memory.core.begins(node, || works.timer.now());
        let waker = memory.take_waker(node);
        let task = memory.tasks.0[node as usize].as_mut().expect("an async node has a task");
        let core = &*memory.core;
        let call = Call {
            // SAFETY: as in `call`.
            turn: unsafe { core.slots.turn() },
            cx: core.cx(node, core.count_attempt(node)),
            again,
            claim: &|| true,
        };
        let started = task.start(call, &mut Context::from_waker(&waker.1));
        memory.put_waker(node, waker);
        match started {
            Poll::Ready(called) => self.ends(node, called),
            Poll::Pending => {
                self.waits_for += 1;
                let has_timeout = self.works.plan.traits(node).has_timeout;
                if (has_timeout || self.options.node_timeout.is_some()) && self.core().attempts(node) == 1 {
                    self.memory().to_be_timed.push(node);
                }
            }
        }
    }

    /// Polls an async node that runs.
    fn poll_task(&mut self, node: u32) {
        let memory = self.memory.as_mut().expect("there until the run has ended");
        let waker = memory.take_waker(node);
        let task = memory.tasks.0[node as usize].as_mut().expect("an async node has a task");
        // SAFETY: as in `call`: it is still the node's turn until it has ended.
        let turn = unsafe { memory.core.slots.turn() };
        let polled = task.poll(turn, &mut Context::from_waker(&waker.1));
        memory.put_waker(node, waker);
        if let Poll::Ready(called) = polled {
            self.waits_for -= 1;
            self.ends(node, called);
        }
    }

    /// A node has ended, here or on the pool, or is to be tried again.
    #[inline]
    fn ends(&mut self, node: u32, called: Called) {
        match called {
            Called::Stored => self.ends_well(node),
            Called::Failed(failure) => self.fails(node, Fault::Failed(failure)),
            Called::Panicked(panic) => self.fails(node, Fault::Panicked(panic)),
            Called::Late => unreachable!("what the run itself polls is not late"),
        }
    }

    #[inline]
    fn ends_well(&mut self, node: u32) {
        if !self.works.plan.traits(node).is_plain {
            self.let_go(node);
        }
        self.settle(node, state::OK, None);
    }

    /// A node that is not plain lets go of its inputs and of its class.
    fn let_go(&mut self, node: u32) {
        let info = self.works.plan.info(node);
        if info.retry.is_some() {
            self.turn_of(node, |op, turn| op.release_inputs(turn));
        }
        if let Some(class) = &info.class {
            class.leave();
        }
    }

    /// A node has come to its end: tells those that depend on it.
    #[inline]
    fn settle(&mut self, node: u32, to: u8, spoiler: Option<u32>) {
        let memory = self.memory.as_mut().expect("there until the run has ended");
        let (core, ready) = (&memory.core, &mut memory.ready);
        core.has_ended(node, || self.works.timer.now());
        core.set(node, to);
        core.tell_successors(node, spoiler, |next| ready.push(next));
        core.count_ended(1);
    }

    /// A node is not run. If its conditions have not been looked at, they let go of their inputs, too.
    fn skip(&mut self, node: u32, spoiler: u32, with_conditions: bool) {
        if with_conditions {
            for condition in self.core().plan.actions.conditions(node) {
                if let Condition::Input(source) = condition {
                    self.turn_of(node, |_, turn| source.release(turn));
                }
            }
        }
        self.turn_of(node, |op, turn| op.release_inputs(turn));
        self.settle(node, state::SKIPPED, Some(spoiler));
    }

    /// A node has failed: it is tried again, or that was it.
    fn fails(&mut self, node: u32, fault: Fault) {
        if let (Fault::Failed(_), Some(retry)) = (&fault, self.works.plan.info(node).retry)
            && !self.core().is_ending()
            && let Some(pause) = retry.after(self.core().attempts(node))
        {
            if let Some(class) = &self.works.plan.info(node).class {
                class.leave();
            }
            self.core().set(node, state::PAUSED);
            self.waits_for += 1;
            if let Some(at) = self.works.timer.now().checked_add(pause) {
                self.memory().alarms.push(Reverse(Alarm { at, node, what: What::Retry }));
            }
            return;
        }
        self.let_go(node);
        self.fails_for_good(node, fault);
    }

    fn fails_for_good(&mut self, node: u32, fault: Fault) {
        let to = match fault {
            Fault::Panicked(_) => state::PANICKED,
            Fault::TimedOut(_) => state::TIMED_OUT,
            Fault::Failed(_) | Fault::NotRun => state::FAILED,
        };
        let core = self.core();
        if let Some(fallback) = core.plan.actions.fallback(node)
            && contain(|| self.turn_of(node, |_, turn| fallback(turn))).is_ok()
        {
            self.faults.push((node, fault));
            return self.settle(node, state::FELL_BACK, None);
        }
        self.faults.push((node, fault));
        self.settle(node, to, Some(node));
        if self.options.policy == Policy::FailFast {
            self.end_early();
        }
    }

    /// Nothing further begins: what has not begun is taken back.
    fn end_early(&mut self) {
        if self.core().is_ending() {
            return;
        }
        self.core().end();
        for node in 0..self.works.plan.nodes.len() as u32 {
            self.take_back(node);
        }
        for node in mem::take(&mut self.memory().for_pool) {
            if let Some(class) = &self.works.plan.info(node).class {
                class.leave();
            }
        }
        self.memory().ready.clear();
        self.memory().alarms.retain(|alarm| alarm.0.what != What::Retry);
    }

    /// Takes a node back that has not begun.
    fn take_back(&mut self, node: u32) {
        let class = self.works.plan.info(node).class.as_ref();
        let core = self.core();
        match core.state(node) {
            state::IN_LINE if class.is_some_and(|class| class.withdraw(&core.inbox, node)) => {
                core.set(node, state::CANCELLED);
                self.waits_for -= 1;
            }
            state::PAUSED => {
                core.set(node, state::CANCELLED);
                self.turn_of(node, |op, turn| op.release_inputs(turn));
                self.waits_for -= 1;
            }
            state::QUEUED if core.exchange(node, state::QUEUED, state::CANCELLED) => {
                core.change_on_pool(-1);
                if let Some(class) = class {
                    class.leave();
                }
            }
            _ => {}
        }
    }

    // ---- time ----

    /// Some time has come.
    fn look_at_time(&mut self) {
        let now = self.works.timer.now();
        while let Some(Reverse(alarm)) = self.memory().alarms.peek().copied() {
            if alarm.at > now {
                break;
            }
            self.memory().alarms.pop();
            let Alarm { node, what, .. } = alarm;
            match what {
                // It may have ended long ago.
                What::Timeout => match self.core().state(node) {
                    state::RUNNING => self.times_out(node),
                    state::PAUSED => self.times_out_paused(node),
                    _ => {}
                },
                What::Retry if self.has_had_its_time(node, now) => self.times_out_paused(node),
                What::Retry => {
                    self.waits_for -= 1;
                    self.enter(node);
                }
                What::Watch => self.watch(now),
            }
        }
        if self.deadline.is_expired(now) && !self.core().is_ending() {
            self.deadline_comes();
        }
    }

    fn timeout_of(&self, node: u32) -> Duration {
        self.works.plan.info(node).timeout.or(self.options.node_timeout).unwrap_or(Duration::MAX)
    }

    /// Whether a node on the pool, or one that was there, has had its time.
    fn has_had_its_time(&self, node: u32, now: Instant) -> bool {
        let core = self.core();
        let begun = core.begun(node);
        !begun.is_zero()
            && now.saturating_duration_since(core.start).saturating_sub(begun) >= self.timeout_of(node)
    }

    /// An async node has had its time.
    fn times_out(&mut self, node: u32) {
        self.give_up_on_task(node);
        self.waits_for -= 1;
        self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
    }

    /// A node that was to be tried again has had its time.
    fn times_out_paused(&mut self, node: u32) {
        self.memory().alarms.retain(|alarm| alarm.0.node != node || alarm.0.what != What::Retry);
        self.waits_for -= 1;
        self.turn_of(node, |op, turn| op.release_inputs(turn));
        self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
    }

    /// An async node that runs is late: it goes on elsewhere, or is dropped.
    fn give_up_on_task(&mut self, node: u32) {
        let works = self.works.clone();
        let info = works.plan.info(node);
        if info.retry.is_some() {
            self.turn_of(node, |op, turn| op.release_inputs(turn));
        }
        let place = info.class.clone().map(Place);
        let task = self.memory().tasks.0[node as usize].as_mut().expect("an async node has a task");
        debug_assert!(task.is_there(), "a node that runs has its future");
        match (info.on_timeout, &works.runners) {
            (None | Some(OnTimeout::Detach), Some(runners)) => {
                let mut runner = task.detach();
                if let Some(place) = place {
                    runner = M::keep_place(runner, Kept(place));
                }
                runners.adopt(runner, works.plan.origin(node));
            }
            _ => task.cancel(),
        }
    }

    /// Looks at the nodes on the pool: those that have had their time are given up on.
    fn watch(&mut self, now: Instant) {
        self.watches = false;
        for node in 0..self.works.plan.nodes.len() as u32 {
            let info = self.works.plan.info(node);
            if !matches!(info.kind, Kind::Cpu | Kind::Blocking) || self.core().state(node) != state::RUNNING {
                continue;
            }
            if self.has_had_its_time(node, now) && self.give_up_on_pool(node, state::STORING) {
                self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
            }
        }
    }

    /// Gives up on a node that a thread of the pool runs.
    fn give_up_on_pool(&mut self, node: u32, to: u8) -> bool {
        let (works, core) = (&self.works, self.core());
        let given_up = core.give_up(node, to, || {
            let admission = self.admission.as_ref()?.fork(&works.plan.origin(node)).ok()?;
            works.ticket(admission, works.plan.info(node).class.clone().map(Place))
        });
        if given_up {
            core.change_on_pool(-1);
        }
        given_up
    }

    /// The request's deadline has come: gives up on all that is under way.
    fn deadline_comes(&mut self) {
        let (mut running, mut not_started) = (Vec::new(), Vec::new());
        let core = self.core();
        for (node, info) in core.plan.nodes.iter().enumerate() {
            match core.state(node as u32) {
                state::WAITING | state::IN_LINE | state::PAUSED | state::QUEUED => {
                    not_started.push(info.name.clone());
                }
                state::RUNNING | state::STORING => running.push(info.name.clone()),
                _ => {}
            }
        }
        self.give_up(RunError::Deadline { running, not_started });
    }

    /// The run ends because of `verdict`: nothing further begins, and what is under way is given up on.
    fn give_up(&mut self, verdict: RunError) {
        let cancels = matches!(verdict, RunError::Cancelled { .. });
        self.verdict.get_or_insert(verdict);
        self.end_early();
        for node in 0..self.works.plan.nodes.len() as u32 {
            if self.core().state(node) != state::RUNNING {
                continue;
            }
            let to = if cancels { state::CANCELLED } else { state::TIMED_OUT };
            match self.works.plan.info(node).kind {
                Kind::Async => {
                    if cancels {
                        self.cancel_task(node);
                    } else {
                        self.give_up_on_task(node);
                    }
                    self.waits_for -= 1;
                    self.core().set(node, to);
                }
                Kind::Cpu | Kind::Blocking => {
                    self.give_up_on_pool(node, to);
                }
                Kind::Inline => {}
            }
        }
    }

    fn cancel_task(&mut self, node: u32) {
        if let Some(task) = &mut self.memory().tasks.0[node as usize] {
            task.cancel();
        }
        self.let_go(node);
    }

    fn look_at_token(&mut self) {
        let Some((wait, rearmed, waker)) = &mut self.token else { return };
        rearmed.rearm();
        let polled = Future::poll(Pin::new(wait), &mut Context::from_waker(waker));
        if let Poll::Ready(reason) = polled {
            self.token = None;
            self.cancelled(reason);
        }
    }

    fn cancelled(&mut self, reason: Reason) {
        self.give_up(RunError::Cancelled { reason });
    }

    // ---- the end of a pass ----

    /// Brings nodes to the pool, and sees to it that the run is woken in time.
    fn end_pass(&mut self) {
        let works = self.works.clone();
        let memory = self.memory.as_mut().expect("there until the run has ended");
        if !memory.for_pool.is_empty() {
            let pool = works.pool.as_ref().expect("an engine with CPU nodes has a pool");
            pool.bring(&memory.core, &mut memory.for_pool);
        }
        if self.has_ended() {
            return;
        }
        let on_pool = self.core().watches && self.core().on_pool() > 0 && !self.watches;
        if !self.memory().to_be_timed.is_empty() || on_pool {
            // One reading for all, at the end: none of them is given up on too early.
            let now = self.works.timer.now();
            let mut to_be_timed = mem::take(&mut self.memory().to_be_timed);
            for node in to_be_timed.drain(..) {
                if let Some(at) = now.checked_add(self.timeout_of(node)) {
                    self.memory().alarms.push(Reverse(Alarm { at, node, what: What::Timeout }));
                }
            }
            self.memory().to_be_timed = to_be_timed;
            if on_pool {
                self.set_watch(now);
            }
        }
        self.set_sleep();
    }

    /// Sets an alarm for when the first node on the pool may have had its time.
    fn set_watch(&mut self, now: Instant) {
        let shortest = [self.works.shortest_on_pool, self.options.node_timeout].into_iter().flatten().min();
        let Some(shortest) = shortest else { return };
        let core = self.core();
        // Those that run know when they began; who begins later has at least the shortest time.
        let ends = (0..self.works.plan.nodes.len() as u32)
            .filter(|node| {
                let on_pool = matches!(self.works.plan.info(*node).kind, Kind::Cpu | Kind::Blocking);
                on_pool && core.state(*node) == state::RUNNING
            })
            .filter_map(|node| core.start.checked_add(core.begun(node))?.checked_add(self.timeout_of(node)))
            .min();
        let Some(later) = now.checked_add(shortest) else { return };
        let at = ends.map_or(later, |end| end.min(later)).max(now);
        self.memory().alarms.push(Reverse(Alarm { at, node: 0, what: What::Watch }));
        self.watches = true;
    }

    /// Sleeps until the first time that something is to be looked at.
    fn set_sleep(&mut self) {
        loop {
            let first = self.memory().alarms.peek().map(|alarm| alarm.0.at);
            let deadline = self.deadline.instant().filter(|_| !self.core().is_ending());
            let Some(first) = first.into_iter().chain(deadline).min() else { return };
            if self.memory().sleeps_until.is_some_and(|until| until <= first) {
                return;
            }
            let works = self.works.clone();
            if !self.memory().sleep_until(&works.timer, first) {
                return;
            }
            self.look_at_time();
            if self.has_ended() || !self.memory().ready.is_empty() {
                return;
            }
        }
    }

    // ---- the end of the run ----

    /// The run has ended: gives its outputs, or why there are none.
    pub(crate) fn conclude<V>(
        &mut self,
        take: impl FnOnce(Turn<'_>) -> V,
    ) -> (Result<V, RunError>, Option<Report>) {
        let core = self.core().clone();
        let missing = core
            .plan
            .outputs
            .iter()
            .find(|edge| edge.required && !matches!(core.state(edge.node), state::OK | state::FELL_BACK));
        let verdict = self.verdict.take();
        let fails = verdict.is_some() || missing.is_some() || self.must_fail();
        let result = if fails {
            Err(verdict.unwrap_or_else(|| self.first_error(missing.map(|edge| edge.node))))
        } else {
            // SAFETY: all nodes have ended, and the outputs are taken once, by this.
            Ok(take(unsafe { core.slots.turn() }))
        };
        let report = self.options.reported.then(|| Report::of(&core, &self.faults, result.as_ref().err()));
        if result.is_ok() {
            let (works, start) = (&self.works, core.start);
            works.went_well(|| works.timer.now().saturating_duration_since(start));
        }
        drop(core);
        let outcome = match &result {
            Ok(_) => Outcome::Completed,
            Err(RunError::Cancelled { .. }) => Outcome::Cancelled,
            Err(_) => Outcome::Failed,
        };
        self.leave(outcome);
        (result, report)
    }

    /// Whether a failed node alone makes the run fail.
    fn must_fail(&self) -> bool {
        let core = self.core();
        let is_bad = |(node, _): &(u32, Fault)| core.state(*node) != state::FELL_BACK;
        self.options.policy == Policy::FailFast && self.faults.iter().any(is_bad)
    }

    /// What to say of a run that has failed.
    fn first_error(&mut self, missing: Option<u32>) -> RunError {
        let core = self.core().clone();
        let name = |node: u32| core.plan.info(node).name.clone();
        let fell_back = |node: u32| core.state(node) == state::FELL_BACK;
        let at = self.faults.iter().position(|(node, _)| !fell_back(*node));
        let Some((node, fault)) = at.map(|at| &mut self.faults[at]) else {
            let node = missing.expect("a run without a fault lacks an output");
            return RunError::Skipped { node: name(node), by: name(core.spoiler(node).unwrap_or(node)) };
        };
        let (number, node) = (*node, name(*node));
        match mem::replace(fault, Fault::NotRun) {
            Fault::Failed(failure) => RunError::Failed { node, failure, attempts: core.attempts(number) },
            Fault::Panicked(panic) => RunError::Panicked { node, panic },
            Fault::TimedOut(after) => RunError::TimedOut { node, after },
            Fault::NotRun => RunError::NotRun { node },
        }
    }

    /// The run is dropped before its end.
    pub(crate) fn abandon(&mut self, outcome: Outcome) {
        if self.memory.is_some() {
            self.give_up(RunError::Cancelled { reason: Reason::requested("dropped") });
            self.leave(outcome);
        }
    }

    /// Lets go of everything.
    fn leave(&mut self, outcome: Outcome) {
        let Some(mut memory) = self.memory.take() else { return };
        self.works.ends(self.live);
        self.token = None;
        memory.clear();
        memory.core.inbox.close(&mut memory.post);
        // Places that were granted, and that nobody has taken.
        for node in memory.post.granted.drain(..) {
            if let Some(class) = &self.works.plan.info(node).class {
                class.leave();
            }
        }
        if self.waits_for > 0 {
            for class in self.works.plan.nodes.iter().filter_map(|info| info.class.as_ref()) {
                class.forget(&memory.core.inbox);
            }
        }
        memory.post.clear();
        // If a thread of the pool still has it, because a node goes on there or has just ended, it goes with that.
        if let Some(core) = Arc::get_mut(&mut memory.core) {
            if outcome != Outcome::Completed {
                // What no consumer has taken.
                core.slots.clear();
            }
            core.forget();
            self.works.keep(memory);
        } else {
            drop(memory);
        }
        if let Some(admission) = self.admission.take() {
            admission.settle(outcome);
        }
    }
}
