//! A plan with what it needs to run.

use std::{
    any::Any,
    fmt,
    panic::Location,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Admission, Balance, Component, Intake, Ledger, Outcome, Reason, Refusal, Stopping,
    blame::{Origin, Stragglers},
    time::{Deadline, Timer},
};
use ebbtide_offload::Pool;
use ebbtide_timeout::Runners;
use slab::Slab;

use crate::{
    class::Place,
    core::{Core, LateTicket},
    cx::Endpoints,
    error::Missing,
    graph::{Kind, OnTimeout},
    history::History,
    inputs::Inputs,
    memory::Memory,
    plan::{Compiled, Plan},
    reach::{Local, Reach, Threads},
    run::{Options, Run},
    shift::Shop,
};

/// The memory of so many runs is kept for the next ones: more are seldom under way at a time, and what is above is
/// freed.
const MEMORIES_KEPT_MAX: usize = 64;

/// What a plan is bound to: a timer always; a pool, runners and endpoints where its nodes need them.
pub struct Env<T, M: Reach = Threads> {
    timer: T,
    pool: Option<Pool>,
    runners: Option<Runners<T, M::Runner>>,
    endpoints: Endpoints,
    refuses_short: bool,
}

impl<T: Timer, M: Reach> Env<T, M> {
    /// An environment that tells the time by `timer`: the handle of a loop, a `TokioTimer`, an `AsyncIoTimer`, a
    /// `ThreadTimer`, or in tests a `VirtualClock`.
    #[must_use]
    pub fn new(timer: T) -> Self {
        Self { timer, pool: None, runners: None, endpoints: Endpoints::default(), refuses_short: false }
    }

    /// Where CPU and blocking nodes run.
    #[must_use]
    pub fn pool(mut self, pool: &Pool) -> Self {
        self.pool = Some(pool.clone());
        self
    }

    /// Who drives async nodes whose deadline has come, to their end.
    #[must_use]
    pub fn runners(mut self, runners: &Runners<T, M::Runner>) -> Self
    where
        T: Clone,
    {
        self.runners = Some(runners.clone());
        self
    }

    /// Something outside that nodes [ask for](crate::Cx::endpoint) by name.
    #[must_use]
    pub fn endpoint(mut self, name: impl Into<Arc<str>>, endpoint: Arc<dyn Any + Send + Sync>) -> Self {
        self.endpoints.0.insert(name.into(), endpoint);
        self
    }

    /// Refuses a run at once when its deadline leaves less time than nine of ten of the last runs that went well have
    /// taken at least; but for one of sixteen, to learn whether that is still so.
    #[must_use]
    pub fn refuse_short_deadlines(mut self) -> Self {
        self.refuses_short = true;
        self
    }
}

impl<T, M: Reach> fmt::Debug for Env<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("pool", &self.pool.is_some())
            .field("runners", &self.runners.is_some())
            .finish_non_exhaustive()
    }
}

/// A plan that is ready to answer requests, any number at the same time, on any executor. A clone is another handle to
/// the same engine.
///
/// It is a [`Component`]: a stop refuses further runs, waits for those that are under way and for nodes on the pool
/// that go on after their deadline, and names who is left. Close it before its pool, its runners and its loop.
pub struct Engine<R, O: Inputs, T: Timer, M: Reach = Threads> {
    pub(crate) shop: Arc<Works<R, T, M>>,
    pub(crate) outputs: Arc<O::Kept>,
}

/// Memory that no run uses.
#[allow(clippy::vec_box, reason = "runs take and give back the boxes")]
type Memories<R, T, M> = Vec<Box<Memory<R, T, M>>>;

/// Makes what counts a node that goes on after its run, and keeps its place in its class.
type MakeTicket<T> = fn(Option<Admission<T>>, Option<Place>) -> LateTicket;

/// The engine, with the type of its outputs forgotten.
pub(crate) struct Works<R, T: Timer, M: Reach> {
    pub(crate) plan: Arc<Compiled<R, M>>,
    pub(crate) timer: T,
    pub(crate) intake: Intake<T>,
    pub(crate) pool: Option<Arc<Shop<R, M>>>,
    pub(crate) runners: Option<Runners<T, M::Runner>>,
    pub(crate) endpoints: Arc<Endpoints>,
    memories: Mutex<Memories<R, T, M>>,
    /// The runs that are under way.
    live: Mutex<Slab<Weak<Core<R, M>>>>,
    runs: AtomicU64,
    history: Option<History>,
    /// Makes a ticket for a node on the pool that goes on after its run. It is given by who knows that it can go to
    /// another thread.
    ticket: Option<MakeTicket<T>>,
    /// The shortest time that a node on the pool may have of itself.
    pub(crate) shortest_on_pool: Option<Duration>,
}

impl<R, O> Plan<R, O, Threads>
where
    R: Send + Sync + 'static,
    O: Inputs,
{
    /// Gives the plan what it needs to run.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn bind<T>(&self, env: Env<T, Threads>) -> Result<Engine<R, O, T, Threads>, Missing>
    where
        T: Timer + Clone + Send + Sync + 'static,
    {
        let (timer, pool) = (env.timer.clone(), env.pool.clone());
        let shop = pool.map(|pool| Arc::new(Shop::new(pool, Arc::new(move || timer.now()))));
        let ticket: MakeTicket<T> = |admission, place| {
            Box::new(move |well| {
                drop(place);
                if let Some(admission) = admission {
                    admission.settle(if well { Outcome::Late } else { Outcome::Failed });
                }
            })
        };
        self.engine(env, shop, Some(ticket))
    }
}

impl<R, O: Inputs> Plan<R, O, Local> {
    /// Gives the plan what it needs to run, on this thread.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn bind<T>(&self, env: Env<T, Local>) -> Result<Engine<R, O, T, Local>, Missing>
    where
        T: Timer + Clone,
    {
        self.engine(env, None, None)
    }
}

impl<R, O: Inputs, M: Reach> Plan<R, O, M> {
    fn engine<T: Timer + Clone>(
        &self,
        env: Env<T, M>,
        pool: Option<Arc<Shop<R, M>>>,
        ticket: Option<MakeTicket<T>>,
    ) -> Result<Engine<R, O, T, M>, Missing> {
        let Env { timer, runners, endpoints, refuses_short, .. } = env;
        for info in &self.compiled.outline.nodes {
            let node = info.name.clone();
            if matches!(info.kind, Kind::Cpu | Kind::Blocking) && pool.is_none() {
                return Err(Missing::Pool { node });
            }
            if info.on_timeout == Some(OnTimeout::Detach) && runners.is_none() {
                return Err(Missing::Runners { node });
            }
            if let Some(endpoint) = info.endpoints.iter().find(|name| !endpoints.0.contains_key(*name)) {
                return Err(Missing::Endpoint { node, endpoint: endpoint.clone() });
            }
        }
        let on_pool = |kind| matches!(kind, Kind::Cpu | Kind::Blocking);
        let timeouts = self.compiled.outline.nodes.iter().filter(|info| on_pool(info.kind));
        let works = Works {
            plan: self.compiled.clone(),
            intake: Intake::new(timer.clone()),
            timer,
            pool,
            runners,
            endpoints: Arc::new(endpoints),
            memories: Mutex::default(),
            live: Mutex::default(),
            runs: AtomicU64::new(0),
            history: refuses_short.then(History::default),
            ticket,
            shortest_on_pool: timeouts.filter_map(|info| info.timeout).min(),
        };
        Ok(Engine { shop: Arc::new(works), outputs: self.outputs.clone() })
    }
}

impl<R, O: Inputs, T: Timer + Clone, M: Reach> Engine<R, O, T, M> {
    /// Answers a request. The run begins when it is polled; it can be given a deadline, a policy and more before.
    #[track_caller]
    pub fn run(&self, request: impl Into<Arc<R>>) -> Run<R, O, T, M> {
        Run::new(self.shop.clone(), self.outputs.clone(), request.into(), Options::new(Location::caller()))
    }

    /// Lets no further run begin. Gives whether it did until now.
    pub fn close(&self) -> bool {
        self.shop.intake.gate().seal()
    }

    /// How many runs are under way, and nodes on the pool that go on after theirs.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shop.intake.gate().in_flight()
    }

    /// The counters, which outlive the engine. What is accepted is a run, or a node on the pool that goes on after its
    /// run: that one is counted as late when it ends.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.shop.intake.ledger().clone()
    }

    /// The plan's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shop.plan.name
    }
}

impl<R, O: Inputs, T: Timer, M: Reach> Clone for Engine<R, O, T, M> {
    fn clone(&self) -> Self {
        Self { shop: self.shop.clone(), outputs: self.outputs.clone() }
    }
}

impl<R, O: Inputs, T: Timer, M: Reach> fmt::Debug for Engine<R, O, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("plan", &self.shop.plan.name).finish_non_exhaustive()
    }
}

impl<R, O, T> Component for Engine<R, O, T, Threads>
where
    R: Send + Sync + 'static,
    O: Inputs,
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    fn stop(&self, deadline: Deadline, reason: &Reason) -> Stopping {
        self.shop.intake.stop(deadline, reason)
    }

    fn balance(&self) -> Balance {
        self.shop.intake.balance()
    }

    /// The runs that are under way, each with the nodes that it is at, and nodes on the pool that go on after theirs.
    fn stragglers(&self) -> Stragglers {
        let now = self.shop.timer.now();
        let live: Vec<_> = self.shop.lock_live().iter().filter_map(|(_, core)| core.upgrade()).collect();
        // Of a run the intake knows only the plan's name; a node that is late has one of its own.
        let counted = self.shop.intake.stragglers();
        let late = counted.iter().filter(|straggler| straggler.origin.name() != Some(self.name())).cloned();
        late.chain(live.iter().map(|core| core.straggler(now))).collect()
    }
}

impl<R, T: Timer + Clone, M: Reach> Works<R, T, M> {
    /// Admits a run.
    pub(crate) fn admit(&self, origin: &Origin) -> Result<Admission<T>, Refusal> {
        self.intake.admit_as(origin)
    }

    /// A number that no other run has, and never zero.
    pub(crate) fn number(&self) -> u64 {
        self.runs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Memory for a run.
    pub(crate) fn memory(&self, now: Instant) -> Box<Memory<R, T, M>> {
        loop {
            let kept = self.lock_memories().pop();
            let Some(mut memory) = kept else { return self.new_memory(now) };
            // Somebody may be asking it for its stragglers.
            if memory.is_free() {
                return memory;
            }
        }
    }

    fn new_memory(&self, now: Instant) -> Box<Memory<R, T, M>> {
        let threads = self.pool.as_ref().map_or(0, |pool| pool.threads().max(1));
        Box::new(Memory::new(&self.plan, now, threads))
    }

    /// Takes back the memory of a run that has ended.
    pub(crate) fn keep(&self, memory: Box<Memory<R, T, M>>) {
        let mut memories = self.lock_memories();
        if memories.len() < MEMORIES_KEPT_MAX {
            memories.push(memory);
        } else {
            drop(memories);
            drop(memory);
        }
    }

    pub(crate) fn begins(&self, core: &Arc<Core<R, M>>) -> usize {
        self.lock_live().insert(Arc::downgrade(core))
    }

    pub(crate) fn ends(&self, number: usize) {
        self.lock_live().try_remove(number);
    }

    /// Whether a run that has so much time left is to be refused; then, how long runs take at least, by experience.
    pub(crate) fn refuses(&self, left: Duration) -> Option<Duration> {
        self.history.as_ref()?.refuses(left)
    }

    pub(crate) fn went_well(&self, took: impl FnOnce() -> Duration) {
        if let Some(history) = &self.history {
            history.add(took());
        }
    }

    pub(crate) fn ticket(&self, admission: Option<Admission<T>>, place: Option<Place>) -> Option<LateTicket> {
        self.ticket.map(|ticket| ticket(admission, place))
    }

    fn lock_memories(&self) -> MutexGuard<'_, Memories<R, T, M>> {
        // Nothing that can panic runs under the lock.
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_live(&self) -> MutexGuard<'_, Slab<Weak<Core<R, M>>>> {
        // Nothing that can panic runs under the lock.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
