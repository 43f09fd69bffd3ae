//! Building a graph: nodes, what they depend on, and on what terms they run.

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ebbtide_timeout::{LocalRunner, SendRunner};

use crate::{
    check,
    class::Class,
    cx::Cx,
    error::PlanErrors,
    failure::Failure,
    inputs::{Edge, Inputs, Optional, Source},
    lodger::{Async, Lodger},
    op::{self, Op},
    plan::Plan,
    reach::{Local, Reach, Threads},
    retry::Retry,
    slot::{Place, Turn},
};

/// The output of a node of a [`Graph`]: what other nodes depend on.
///
/// Its type is that of the output, not one that the output could pass for:
///
/// ```compile_fail,E0308
/// fn shrink(handle: ebbtide_dag::Handle<fn(&str)>) -> ebbtide_dag::Handle<fn(&'static str)> {
///     handle
/// }
/// ```
pub struct Handle<T> {
    graph: u64,
    node: u32,
    /// Invariant: a fallback is written through it.
    output: PhantomData<fn(T) -> T>,
}

impl<T> Handle<T> {
    /// The same output, for a node that can do without: it gets `None` if this node has failed, timed out or was
    /// skipped.
    #[must_use]
    pub const fn optional(self) -> Optional<T> {
        Optional(self)
    }

    pub(crate) const fn node(&self) -> u32 {
        self.node
    }

    pub(crate) const fn edge(&self, required: bool) -> Edge {
        Edge { graph: self.graph, node: self.node, required }
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.node).finish()
    }
}

/// Where and how a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// On the thread that polls the run: for what is cheap and does not wait.
    Inline,
    /// As a future that the run polls: for what waits.
    Async,
    /// On the pool's CPU lane.
    Cpu,
    /// On the pool's blocking lane.
    Blocking,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inline => "inline",
            Self::Async => "async",
            Self::Cpu => "cpu",
            Self::Blocking => "blocking",
        })
    }
}

/// What becomes of an async node whose deadline has come. One on the pool that has begun goes on in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnTimeout {
    /// It goes on as a late runner, and its output is discarded. The engine needs runners for that.
    Detach,
    /// It is dropped.
    Cancel,
}

/// A graph of steps that answers a request of type `R`: nodes, and what they depend on. [`plan`](Graph::plan) checks
/// it and makes it ready to run.
///
/// ```
/// use ebbtide_dag::{Env, Graph};
/// use ebbtide_lifecycle::{time::VirtualClock, wait::block_on};
///
/// let mut graph = Graph::<u32>::new("sum");
/// let left = graph.inline("left", (), |cx, ()| Ok(**cx.request() + 1));
/// let right = graph.future("right", (), |cx, ()| {
///     let request = cx.request().clone();
///     async move { Ok(*request * 2) }
/// });
/// let sum = graph.inline("sum", (left, right), |_, (left, right)| Ok(*left + *right));
/// let engine = graph.plan(sum)?.bind(Env::new(VirtualClock::new()))?;
/// assert_eq!(*block_on(engine.run(20))?, 61);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A `Graph` takes nodes that can be run on any thread; a [`LocalGraph`] any, but none on the pool.
pub struct Graph<R, M: Reach = Threads> {
    /// No other graph has it.
    id: u64,
    name: Arc<str>,
    pub(crate) nodes: Vec<Draft<R, M>>,
}

/// A graph whose runs stay on their thread.
pub type LocalGraph<R> = Graph<R, Local>;

/// A node that was not checked yet.
pub(crate) struct Draft<R, M: Reach> {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    /// What it runs, in a plan from data.
    pub(crate) op: Option<Arc<str>>,
    pub(crate) site: &'static Location<'static>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) action: Action<R, M>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_timeout: Option<OnTimeout>,
    pub(crate) retry: Option<Retry>,
    pub(crate) class: Option<Class>,
    pub(crate) endpoints: Vec<Arc<str>>,
}

/// What a node does.
pub(crate) struct Action<R, M: Reach> {
    pub(crate) op: Box<dyn Op<R, M>>,
    /// Without which it is skipped.
    pub(crate) conditions: Vec<Condition<R>>,
    /// Fills its slot when it has failed.
    pub(crate) fallback: Option<Fallback>,
}

/// Fills the slot of the node whose turn it is.
pub(crate) type Fallback = Box<dyn Fn(Turn<'_>)>;

type Predicate<R> = Box<dyn Fn(Cx<'_, R>) -> bool>;

/// What has to hold for a node to be run.
pub(crate) enum Condition<R> {
    Request(Predicate<R>),
    /// The output of another node, which is an input of this one.
    Input(Source<bool>),
}

impl<R, M: Reach> Graph<R, M> {
    fn empty(name: Arc<str>) -> Self {
        static GRAPHS: AtomicU64 = AtomicU64::new(1);
        Self { id: GRAPHS.fetch_add(1, Ordering::Relaxed), name, nodes: Vec::new() }
    }

    /// How many nodes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The terms of a node, to change them.
    ///
    /// # Panics
    /// If the handle is of another graph.
    pub fn node<T>(&mut self, handle: Handle<T>) -> NodeTerms<'_, R, T, M> {
        assert_eq!(handle.graph, self.id, "the handle is of another graph");
        NodeTerms { node: handle.node, draft: &mut self.nodes[handle.node as usize], output: PhantomData }
    }

    /// Checks the graph, and makes it ready to run. `outputs` are what a run gives.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn plan<O: Inputs>(self, outputs: O) -> Result<Plan<R, O, M>, PlanErrors> {
        check::plan(self.id, self.name, self.nodes, outputs)
    }

    fn add<T>(
        &mut self,
        name: Arc<str>,
        kind: Kind,
        site: &'static Location<'static>,
        inputs: &impl Inputs,
        op: impl FnOnce(Place<T>) -> Box<dyn Op<R, M>>,
    ) -> Handle<T> {
        let mut edges = Vec::new();
        inputs.edges(&mut edges);
        // One more than a plan may have is refused by its check.
        let node = u32::try_from(self.nodes.len()).expect("fewer than 2^32 nodes fit into memory");
        // SAFETY: it is the node's own place, and the op that gets it says of which type the slot is.
        let op = op(unsafe { Place::new(node) });
        let action = Action { op, conditions: Vec::new(), fallback: None };
        self.nodes.push(Draft {
            name,
            kind,
            op: None,
            site,
            edges,
            action,
            timeout: None,
            on_timeout: None,
            retry: None,
            class: None,
            endpoints: Vec::new(),
        });
        Handle { graph: self.id, node, output: PhantomData }
    }

    fn add_sync<I, T, F>(
        &mut self,
        name: Arc<str>,
        kind: Kind,
        site: &'static Location<'static>,
        inputs: &I,
        f: F,
    ) -> Handle<T>
    where
        I: Inputs,
        I::Kept: 'static,
        F: for<'a> Fn(Cx<'a, R>, I::Values<'a>) -> Result<T, Failure> + 'static,
        T: 'static,
        R: 'static,
    {
        let kept = inputs.kept();
        self.add(name, kind, site, inputs, |place| Box::new(op::Sync { f, inputs: kept, place }))
    }

    fn add_async<I, T, F, Fut>(
        &mut self,
        name: Arc<str>,
        site: &'static Location<'static>,
        inputs: &I,
        f: F,
        house: fn(Lodger<Fut>) -> M::Runner,
    ) -> Handle<T>
    where
        I: Inputs,
        F: Fn(Cx<'_, R>, I::Values<'static>) -> Fut + 'static,
        Fut: Future<Output = Result<T, Failure>> + 'static,
        T: 'static,
        R: 'static,
    {
        let kept = inputs.kept();
        let op = |place| Box::new(Async { f, inputs: kept, place, house }) as Box<dyn Op<R, M>>;
        self.add(name, Kind::Async, site, inputs, op)
    }
}

impl<R: Send + Sync + 'static> Graph<R, Threads> {
    /// A graph without nodes.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::empty(name.into())
    }

    /// Adds a node that is run on the thread that polls the run, between two nodes: for what is cheap.
    #[track_caller]
    pub fn inline<I, T, F>(&mut self, name: impl Into<Arc<str>>, inputs: I, f: F) -> Handle<T>
    where
        I: Inputs,
        F: for<'a> Fn(Cx<'a, R>, I::Values<'a>) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        self.add_sync(name.into(), Kind::Inline, Location::caller(), &inputs, f)
    }

    /// Adds a node that waits: `f` makes a future, which the run polls.
    #[track_caller]
    pub fn future<I, T, F, Fut>(&mut self, name: impl Into<Arc<str>>, inputs: I, f: F) -> Handle<T>
    where
        I: Inputs,
        F: Fn(Cx<'_, R>, I::Values<'static>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + Sync + 'static,
    {
        let house = |lodger: Lodger<Fut>| -> SendRunner { Box::pin(lodger) };
        self.add_async(name.into(), Location::caller(), &inputs, f, house)
    }

    /// Adds a node that keeps a CPU busy: it is run on the pool's CPU lane.
    #[track_caller]
    pub fn cpu<I, T, F>(&mut self, name: impl Into<Arc<str>>, inputs: I, f: F) -> Handle<T>
    where
        I: Inputs,
        F: for<'a> Fn(Cx<'a, R>, I::Values<'a>) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        self.add_sync(name.into(), Kind::Cpu, Location::caller(), &inputs, f)
    }

    /// Adds a node that keeps a CPU busy, unless `is_light` says that this time it does not: then it is run on the
    /// thread that polls the run, as an [inline](Graph::inline) node is, and costs no way to the pool and back.
    ///
    /// What follows a node on the pool stays there, light or not. `is_light` is asked each time that the node is tried,
    /// and should itself cost next to nothing.
    ///
    /// ```
    /// # use ebbtide_dag::Graph;
    /// # let mut graph = Graph::<()>::new("weighed");
    /// let rows = graph.future("rows", (), |_, ()| async { Ok(vec![3, 1, 2]) });
    /// let sorted = graph.weighed("sorted", rows, |_, rows| rows.len() < 1_000, |_, rows| {
    ///     let mut rows = rows.into_inner();
    ///     rows.sort_unstable();
    ///     Ok(rows)
    /// });
    /// ```
    #[track_caller]
    pub fn weighed<I, T, W, F>(
        &mut self,
        name: impl Into<Arc<str>>,
        inputs: I,
        is_light: W,
        f: F,
    ) -> Handle<T>
    where
        I: Inputs,
        W: for<'a> Fn(Cx<'a, R>, I::Values<'a>) -> bool + Send + Sync + 'static,
        F: for<'a> Fn(Cx<'a, R>, I::Values<'a>) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let kept = inputs.kept();
        let op = |place| {
            Box::new(op::Weighed { is_light, op: op::Sync { f, inputs: kept, place } })
                as Box<dyn Op<R, Threads>>
        };
        self.add(name.into(), Kind::Cpu, Location::caller(), &inputs, op)
    }

    /// Adds a node that blocks its thread: it is run on the pool's blocking lane.
    #[track_caller]
    pub fn blocking<I, T, F>(&mut self, name: impl Into<Arc<str>>, inputs: I, f: F) -> Handle<T>
    where
        I: Inputs,
        F: for<'a> Fn(Cx<'a, R>, I::Values<'a>) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        self.add_sync(name.into(), Kind::Blocking, Location::caller(), &inputs, f)
    }
}

impl<R: 'static> Graph<R, Local> {
    /// A graph without nodes, whose runs stay on their thread.
    #[must_use]
    pub fn new_local(name: impl Into<Arc<str>>) -> Self {
        Self::empty(name.into())
    }

    /// Adds a node that is run between two nodes: for what is cheap.
    #[track_caller]
    pub fn inline<I, T, F>(&mut self, name: impl Into<Arc<str>>, inputs: I, f: F) -> Handle<T>
    where
        I: Inputs,
        F: for<'a> Fn(Cx<'a, R>, I::Values<'a>) -> Result<T, Failure> + 'static,
        T: 'static,
    {
        self.add_sync(name.into(), Kind::Inline, Location::caller(), &inputs, f)
    }

    /// Adds a node that waits: `f` makes a future, which the run polls.
    #[track_caller]
    pub fn future<I, T, F, Fut>(&mut self, name: impl Into<Arc<str>>, inputs: I, f: F) -> Handle<T>
    where
        I: Inputs,
        F: Fn(Cx<'_, R>, I::Values<'static>) -> Fut + 'static,
        Fut: Future<Output = Result<T, Failure>> + 'static,
        T: 'static,
    {
        let house = |lodger: Lodger<Fut>| -> LocalRunner { Box::pin(lodger) };
        self.add_async(name.into(), Location::caller(), &inputs, f, house)
    }
}

impl<R, M: Reach> fmt::Debug for Graph<R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes.iter().map(|node| &node.name).collect();
        f.debug_struct("Graph").field("name", &self.name).field("nodes", &nodes).finish()
    }
}

/// On what terms a node runs; see [`Graph::node`].
#[derive(Debug)]
pub struct NodeTerms<'g, R, T, M: Reach> {
    node: u32,
    draft: &'g mut Draft<R, M>,
    output: PhantomData<fn(T) -> T>,
}

impl<R, T, M: Reach> NodeTerms<'_, R, T, M> {
    /// How long it may take, all attempts together. The request's deadline holds besides.
    ///
    /// Async nodes have it from their first poll on, those on the pool from when a thread begins them. A node that runs
    /// on the run's own thread cannot be interrupted: if it is inline, or CPU but light, its timeout only keeps it from
    /// being tried again.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.draft.timeout = Some(timeout);
        self
    }

    /// What becomes of an async node whose deadline has come. Unless told otherwise it goes on as a late runner if the
    /// engine has runners, and is dropped if it has none.
    pub fn on_timeout(self, on_timeout: OnTimeout) -> Self {
        self.draft.on_timeout = Some(on_timeout);
        self
    }

    /// Has it tried again when it fails. A panic or a timeout is not tried again.
    pub fn retry(self, retry: Retry) -> Self {
        self.draft.retry = Some(retry);
        self
    }

    /// It uses a resource of which there is only so much.
    pub fn class(self, class: &Class) -> Self {
        self.draft.class = Some(class.clone());
        self
    }

    /// It needs this endpoint: an engine is not bound without it.
    pub fn endpoint(self, name: impl Into<Arc<str>>) -> Self {
        self.draft.endpoints.push(name.into());
        self
    }

    /// It is skipped unless `condition`'s output is true.
    pub fn only_if(self, condition: Handle<bool>) -> Self {
        use crate::inputs::Dependencies;
        self.draft.edges.push(condition.edge(true));
        self.draft.action.conditions.push(Condition::Input(condition.kept()));
        self
    }
}

impl<R, T, M: Reach> NodeTerms<'_, R, T, M>
where
    T: Send + Sync + Clone + 'static,
{
    /// What it gives when it fails, panics or times out, instead of failing its run.
    pub fn fallback(self, value: T) -> Self {
        // SAFETY: the handle that these terms were asked for by says that the node's slot is of this type.
        let place = unsafe { Place::<T>::new(self.node) };
        self.draft.action.fallback = Some(Box::new(move |turn| turn.fill(place, value.clone())));
        self
    }
}

impl<R, T, M: Reach> NodeTerms<'_, R, T, M> {
    /// It is skipped unless `condition` holds when its inputs are there. Those that depend on it are skipped with it,
    /// unless they [can do without](Handle::optional).
    pub fn when(self, condition: impl Fn(Cx<'_, R>) -> bool + Send + Sync + 'static) -> Self {
        self.draft.action.conditions.push(Condition::Request(Box::new(condition)));
        self
    }
}

impl<R, M: Reach> fmt::Debug for Draft<R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}
