//! Ops: what a registry knows of each.

use std::{
    fmt,
    future::Future,
    ops::{Bound, RangeBounds, RangeInclusive},
    sync::Arc,
};

use super::{
    call::Call,
    param::Param,
    params::Params,
    registry::Registry,
    wanted::{Values, Wanted},
};
use crate::{
    cx::Cx,
    failure::Failure,
    graph::{Graph, Handle, Kind},
};

/// What is known of an op, for those who write plans.
#[derive(Clone, Debug)]
pub struct OpInfo {
    pub(super) name: Arc<str>,
    pub(super) about: Arc<str>,
    pub(super) kind: Kind,
    pub(super) inputs: RangeInclusive<usize>,
    pub(super) params: Arc<[Param]>,
}

impl OpInfo {
    /// What it is called in plans.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was said about it; empty if nothing was.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Where and how it runs.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many inputs it takes.
    #[must_use]
    pub fn inputs(&self) -> RangeInclusive<usize> {
        self.inputs.clone()
    }

    /// What it can be told.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// As in "takes 1 or more inputs".
    pub(super) fn arity(&self) -> String {
        match (*self.inputs.start(), *self.inputs.end()) {
            (0, 0) => "no inputs".to_owned(),
            (1, 1) => "1 input".to_owned(),
            (0, usize::MAX) => "any number of inputs".to_owned(),
            (least, most) if least == most => format!("{least} inputs"),
            (least, usize::MAX) => format!("{least} or more inputs"),
            (least, most) => format!("{least} to {most} inputs"),
        }
    }
}

/// A line for the op, and one for each parameter.
impl fmt::Display for OpInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, takes {})", self.name, self.kind, self.arity())?;
        if !self.about.is_empty() {
            write!(f, ": {}", self.about)?;
        }
        self.params.iter().try_for_each(|param| write!(f, "\n  {param}"))
    }
}

/// Adds a node that runs the op to a graph. It is made where the type of the op's function is known, so that a run
/// neither looks it up nor boxes its futures.
pub(super) type Plant<R, V> =
    Box<dyn Fn(&mut Graph<R>, Arc<str>, Wanted<V>, Arc<Params>) -> Handle<V> + Send + Sync>;

/// How much of its inputs an op looks at, by its parameters.
type Look = Box<dyn Fn(&Params) -> usize + Send + Sync>;

/// An op that is registered.
pub(super) struct Op<R, V> {
    pub(super) info: OpInfo,
    pub(super) plant: Plant<R, V>,
    /// None if it looks at everything.
    pub(super) look: Option<Look>,
}

/// An op that has no function yet; made by [`Registry::op`]. It is registered by the last of its calls: `run`,
/// `weighed`, `future`, `inline` or `blocking`.
#[must_use = "an op is registered by giving it a function"]
pub struct OpDraft<'r, R, V> {
    registry: &'r mut Registry<R, V>,
    name: Arc<str>,
    about: Arc<str>,
    inputs: RangeInclusive<usize>,
    params: Vec<Param>,
    look: Option<Look>,
}

impl<'r, R, V> OpDraft<'r, R, V>
where
    R: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    pub(super) fn new(registry: &'r mut Registry<R, V>, name: Arc<str>) -> Self {
        Self { registry, name, about: Arc::from(""), inputs: 0..=0, params: Vec::new(), look: None }
    }

    /// A sentence for those who write plans.
    pub fn about(mut self, about: impl Into<Arc<str>>) -> Self {
        self.about = about.into();
        self
    }

    /// How many inputs it takes; none unless told.
    pub fn inputs(mut self, range: impl RangeBounds<usize>) -> Self {
        let least = match range.start_bound() {
            Bound::Included(least) => *least,
            Bound::Excluded(below) => below.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let most = match range.end_bound() {
            Bound::Included(most) => *most,
            Bound::Excluded(above) => above.saturating_sub(1),
            Bound::Unbounded => usize::MAX,
        };
        self.inputs = least..=most;
        self
    }

    /// Something that it can be told.
    ///
    /// # Panics
    /// If it has another parameter of this name.
    pub fn param(mut self, param: Param) -> Self {
        let is_twice = self.params.iter().any(|other| other.name() == param.name());
        assert!(!is_twice, "op \"{}\" has two parameters \"{}\"", self.name, param.name());
        self.params.push(param);
        self
    }

    /// Says that, told so, it looks at no more than the first so many items of each input. The nodes whose outputs
    /// these are then know that they [need not give more](Params::looked_at).
    pub fn looks_at(mut self, count: impl Fn(&Params) -> usize + Send + Sync + 'static) -> Self {
        self.look = Some(Box::new(count));
        self
    }

    /// Registers what keeps a CPU busy: it runs on the pool's CPU lane.
    pub fn run<F>(self, f: F)
    where
        F: for<'a> Fn(Cx<'a, R>, Call<'a, V>) -> Result<V, Failure> + Send + Sync + 'static,
    {
        let f = Arc::new(f);
        self.register(Kind::Cpu, move |graph, name, sources, params| {
            let f = f.clone();
            graph.cpu(name, sources, move |cx, values| f(cx, Call::lent(&params, values)))
        });
    }

    /// Registers what keeps a CPU busy, unless `is_light` says that this time it does not: then it runs on the thread
    /// that polls the run. See [`Graph::weighed`].
    pub fn weighed<W, F>(self, is_light: W, f: F)
    where
        W: for<'a> Fn(Cx<'a, R>, &Call<'a, V>) -> bool + Send + Sync + 'static,
        F: for<'a> Fn(Cx<'a, R>, Call<'a, V>) -> Result<V, Failure> + Send + Sync + 'static,
    {
        let (is_light, f) = (Arc::new(is_light), Arc::new(f));
        self.register(Kind::Cpu, move |graph, name, sources, params| {
            let (is_light, f, asked) = (is_light.clone(), f.clone(), params.clone());
            let is_light =
                move |cx: Cx<'_, R>, values: Values<'_, V>| is_light(cx, &Call::lent(&asked, values));
            graph.weighed(name, sources, is_light, move |cx, values| f(cx, Call::lent(&params, values)))
        });
    }

    /// Registers what waits: `f` makes a future, which the run polls.
    pub fn future<F, Fut>(self, f: F)
    where
        F: Fn(Cx<'_, R>, Call<'static, V>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<V, Failure>> + Send + 'static,
    {
        let f = Arc::new(f);
        self.register(Kind::Async, move |graph, name, sources, params| {
            let f = f.clone();
            graph.future(name, sources, move |cx, values| f(cx, Call::kept(&params, values)))
        });
    }

    /// Registers what is cheap: it runs on the thread that polls the run.
    pub fn inline<F>(self, f: F)
    where
        F: for<'a> Fn(Cx<'a, R>, Call<'a, V>) -> Result<V, Failure> + Send + Sync + 'static,
    {
        let f = Arc::new(f);
        self.register(Kind::Inline, move |graph, name, sources, params| {
            let f = f.clone();
            graph.inline(name, sources, move |cx, values| f(cx, Call::lent(&params, values)))
        });
    }

    /// Registers what blocks its thread: it runs on the pool's blocking lane.
    pub fn blocking<F>(self, f: F)
    where
        F: for<'a> Fn(Cx<'a, R>, Call<'a, V>) -> Result<V, Failure> + Send + Sync + 'static,
    {
        let f = Arc::new(f);
        self.register(Kind::Blocking, move |graph, name, sources, params| {
            let f = f.clone();
            graph.blocking(name, sources, move |cx, values| f(cx, Call::lent(&params, values)))
        });
    }

    fn register<P>(self, kind: Kind, plant: P)
    where
        P: Fn(&mut Graph<R>, Arc<str>, Wanted<V>, Arc<Params>) -> Handle<V> + Send + Sync + 'static,
    {
        let Self { registry, name, about, inputs, params, look } = self;
        let info = OpInfo { name, about, kind, inputs, params: params.into() };
        registry.add(Op { info, plant: Box::new(plant), look });
    }
}

impl<R, V> fmt::Debug for OpDraft<'_, R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpDraft").field("name", &self.name).finish_non_exhaustive()
    }
}
