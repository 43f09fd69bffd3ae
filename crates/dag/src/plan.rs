//! A graph that was checked, in the form in which it is run.

use std::{alloc::Layout, cmp::Reverse, fmt, sync::Arc};

use ebbtide_lifecycle::blame::Origin;

use crate::{
    error::{Code, PlanError},
    graph::{Condition, Draft, Fallback, Kind},
    inputs::{Edge, Inputs},
    op::Op,
    outline::{Info, Outline, Rows},
    reach::{Reach, Threads},
    slot::{Consumers, SlotKind, Turn},
};

/// A graph that was checked: each node after its inputs, no circles, all names known. Made by
/// [`Graph::plan`](crate::Graph::plan) alone, it does not change any more; a clone is another handle to it.
///
/// [`bind`](Plan::bind) it to a pool and a timer to run it.
pub struct Plan<R, O: Inputs, M: Reach = Threads> {
    pub(crate) compiled: Arc<Compiled<R, M>>,
    pub(crate) outputs: Arc<O::Kept>,
}

impl<R, O: Inputs, M: Reach> Plan<R, O, M> {
    pub(crate) fn new(compiled: Arc<Compiled<R, M>>, outputs: O::Kept) -> Self {
        Self { compiled, outputs: Arc::new(outputs) }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.compiled.name
    }

    /// How many nodes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.compiled.outline.nodes.len()
    }

    /// Never: a graph without nodes is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.compiled.outline.nodes.is_empty()
    }

    /// What is not wrong, but may not be meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<PlanError> {
        let feeds = self.compiled.feed_outputs();
        let unused = self.compiled.outline.nodes.iter().zip(feeds).filter(|(_, feeds)| !feeds);
        let warning = |(info, _): (&Info, bool)| {
            let message = "it feeds no output; it is run for its effects only";
            PlanError::new(Code::W001, format!("node \"{}\"", info.name), message)
        };
        unused.map(warning).collect()
    }

    /// The graph in the language of Graphviz.
    #[must_use]
    pub fn dot(&self) -> String {
        crate::draw::dot(&self.compiled.drawing())
    }

    /// The graph in the language of Mermaid, for Markdown.
    #[must_use]
    pub fn mermaid(&self) -> String {
        crate::draw::mermaid(&self.compiled.drawing())
    }
}

impl<R, O: Inputs, M: Reach> Clone for Plan<R, O, M> {
    fn clone(&self) -> Self {
        Self { compiled: self.compiled.clone(), outputs: self.outputs.clone() }
    }
}

impl<R, O: Inputs, M: Reach> fmt::Debug for Plan<R, O, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("name", &self.compiled.name).field("nodes", &self.len()).finish()
    }
}

/// What is asked of a node in each run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub(crate) kind: Kind,
    pub(crate) has_conditions: bool,
    /// Nothing has to be seen to before or after it: whoever runs it may go on with the next.
    pub(crate) is_plain: bool,
    /// It may take only so long, of itself.
    pub(crate) has_timeout: bool,
    /// Which of the plan's berths its future needs, if it is async.
    pub(crate) berth: u16,
}

/// One that depends on a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor(u32);

impl Successor {
    const OPTIONAL: u32 = 1 << 31;

    fn new(node: u32, required: bool) -> Self {
        Self(if required { node } else { node | Self::OPTIONAL })
    }

    #[inline]
    pub(crate) const fn node(self) -> u32 {
        self.0 & !Self::OPTIONAL
    }

    /// Whether it cannot do without.
    #[inline]
    pub(crate) const fn is_required(self) -> bool {
        self.0 & Self::OPTIONAL == 0
    }
}

/// A plan with its types forgotten. Numbers of nodes are those of the graph.
pub(crate) struct Compiled<R, M: Reach> {
    pub(crate) name: Arc<str>,
    pub(crate) outline: Arc<Outline>,
    pub(crate) actions: Actions<R, M>,
    /// Those who depend on a node lie one after the other; the longest way to go comes first.
    successors: Box<[Successor]>,
    /// How many inputs each node has.
    pub(crate) inputs: Box<[u32]>,
    /// The inputs of each node.
    pub(crate) predecessors: Box<[Box<[Edge]>]>,
    pub(crate) consumers: Box<[Consumers]>,
    /// The kinds of berths that futures need.
    pub(crate) berths: Vec<Layout>,
    pub(crate) outputs: Box<[Edge]>,
    /// Those without inputs; the longest way to go comes first.
    pub(crate) roots: Box<[u32]>,
    /// No node is run on a pool.
    pub(crate) one_thread: bool,
}

/// What the nodes of a plan do. What every run needs lies apart from what few nodes have.
pub(crate) struct Actions<R, M: Reach> {
    steps: Box<[Step<R, M>]>,
    conditions: Box<[Vec<Condition<R>>]>,
    fallbacks: Box<[Option<Fallback>]>,
}

/// What every run needs of a node, two nodes to a cache line.
pub(crate) struct Step<R, M: Reach> {
    op: Box<dyn Op<R, M>>,
    pub(crate) traits: Traits,
    /// Where those who depend on it start among the plan's successors, and end.
    row: (u32, u32),
}

impl<R, M: Reach> Step<R, M> {
    #[inline]
    pub(crate) fn op(&self) -> &dyn Op<R, M> {
        &*self.op
    }
}

// SAFETY: a graph for `Threads` takes only ops, conditions and fallbacks that are `Send` and `Sync`, by the bounds of
// the functions that add them, and the request is shared by all.
unsafe impl<R: Send + Sync> Send for Actions<R, Threads> {}
// SAFETY: the same.
unsafe impl<R: Send + Sync> Sync for Actions<R, Threads> {}

impl<R, M: Reach> Actions<R, M> {
    #[inline]
    pub(crate) fn step(&self, node: u32) -> &Step<R, M> {
        &self.steps[node as usize]
    }

    #[inline]
    pub(crate) fn op(&self, node: u32) -> &dyn Op<R, M> {
        self.step(node).op()
    }

    pub(crate) fn conditions(&self, node: u32) -> &[Condition<R>] {
        &self.conditions[node as usize]
    }

    pub(crate) fn fallback(&self, node: u32) -> Option<&dyn Fn(Turn<'_>)> {
        self.fallbacks[node as usize].as_deref()
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = &'static SlotKind> {
        self.steps.iter().map(|step| step.op.slot())
    }
}

impl<R, M: Reach> Compiled<R, M> {
    pub(crate) fn new(name: Arc<str>, drafts: Vec<Draft<R, M>>, outputs: Vec<Edge>) -> Self {
        let len = drafts.len();
        let one_thread = drafts.iter().all(|draft| matches!(draft.kind, Kind::Inline | Kind::Async));
        let predecessors: Box<[Box<[Edge]>]> =
            drafts.iter().map(|draft| draft.edges.as_slice().into()).collect();
        let inputs: Box<[u32]> = predecessors.iter().map(|edges| edges.len() as u32).collect();

        let (mut counts, mut keepers) = (vec![0; len], vec![0; len]);
        for edge in outputs.iter() {
            counts[edge.node as usize] += 1;
            keepers[edge.node as usize] += 1;
        }
        for draft in &drafts {
            // Who is tried again wants its inputs again.
            let keeps = match (draft.kind, draft.retry) {
                (Kind::Async, None) => 1,
                (Kind::Async, Some(_)) => 2,
                (Kind::Inline | Kind::Cpu | Kind::Blocking, _) => 0,
            };
            for edge in &draft.edges {
                counts[edge.node as usize] += 1;
                keepers[edge.node as usize] += keeps;
            }
        }
        let consumers = counts.into_iter().zip(keepers).zip(&drafts).map(|((count, keepers), draft)| {
            // One keeper alone may not be the last to come: others borrow it then.
            let is_kept = keepers > 1 || (keepers == 1 && count > 1);
            Consumers::new(count, is_kept && !(draft.action.op.slot().is_copied)())
        });
        let consumers = consumers.collect();

        let (starts, mut successors) = rows(&predecessors);
        let heights = heights(&inputs, &starts, &successors);
        for node in 0..len {
            let row = &mut successors[starts[node] as usize..starts[node + 1] as usize];
            row.sort_by_key(|successor| Reverse(heights[successor.node() as usize]));
        }
        let mut roots: Vec<u32> = (0..len as u32).filter(|node| inputs[*node as usize] == 0).collect();
        roots.sort_by_key(|node| Reverse(heights[*node as usize]));

        let (mut nodes, mut steps) = (Vec::with_capacity(len), Vec::with_capacity(len));
        let (mut conditions, mut fallbacks) = (Vec::with_capacity(len), Vec::with_capacity(len));
        let mut berths = Vec::new();
        for (draft, row) in drafts.into_iter().zip(starts.windows(2)) {
            let Draft { name, kind, op, site, action, timeout, on_timeout, retry, class, endpoints, .. } =
                draft;
            let has_conditions = !action.conditions.is_empty();
            let has_no_time = timeout.is_some_and(|timeout| timeout.is_zero());
            let is_plain = !has_conditions && retry.is_none() && class.is_none() && !has_no_time;
            let berth = action.op.layout().map_or(0, |layout| number_of(&mut berths, layout));
            let traits = Traits { kind, has_conditions, is_plain, has_timeout: timeout.is_some(), berth };
            steps.push(Step { op: action.op, traits, row: (row[0], row[1]) });
            nodes.push(Info { name, kind, op, site, timeout, on_timeout, retry, class, endpoints });
            conditions.push(action.conditions);
            fallbacks.push(action.fallback);
        }
        let actions =
            Actions { steps: steps.into(), conditions: conditions.into(), fallbacks: fallbacks.into() };
        let outline = Outline {
            nodes: nodes.into(),
            inputs: Rows::new(&predecessors, |_| true),
            optional: Rows::new(&predecessors, |edge| !edge.required),
        };
        Self {
            name,
            outline: Arc::new(outline),
            actions,
            successors: successors.into(),
            inputs,
            predecessors,
            consumers,
            berths,
            outputs: outputs.into(),
            roots: roots.into(),
            one_thread,
        }
    }

    #[inline]
    pub(crate) fn successors(&self, step: &Step<R, M>) -> &[Successor] {
        let (start, end) = step.row;
        &self.successors[start as usize..end as usize]
    }

    #[inline]
    pub(crate) fn traits(&self, node: u32) -> Traits {
        self.actions.step(node).traits
    }

    #[inline]
    pub(crate) fn info(&self, node: u32) -> &Info {
        &self.outline.nodes[node as usize]
    }

    /// What a node is called in reports, and where it was added.
    pub(crate) fn origin(&self, node: u32) -> Origin {
        let info = self.info(node);
        Origin::from(info.site).named(format!("{}/{}", self.name, info.name))
    }

    /// Gives a node's place in its class back, if it is of one.
    pub(crate) fn leave_class(&self, node: u32) {
        if !self.traits(node).is_plain
            && let Some(class) = &self.info(node).class
        {
            class.leave();
        }
    }

    /// Which nodes are an output, or an input of one, however far away.
    fn feed_outputs(&self) -> Vec<bool> {
        let mut feeds = vec![false; self.outline.nodes.len()];
        let mut stack: Vec<u32> = self.outputs.iter().map(|edge| edge.node).collect();
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut feeds[node as usize], true) {
                stack.extend(self.predecessors[node as usize].iter().map(|edge| edge.node));
            }
        }
        feeds
    }
}

/// The number of a layout among those that there are, which it is one of then.
fn number_of(layouts: &mut Vec<Layout>, layout: Layout) -> u16 {
    let at = layouts.iter().position(|known| *known == layout).unwrap_or_else(|| {
        layouts.push(layout);
        layouts.len() - 1
    });
    u16::try_from(at).expect("sizes and alignments are powers of two, of which there are few")
}

/// Who depends on whom, turned round: where the row of each node starts, and all rows one after the other.
fn rows(predecessors: &[Box<[Edge]>]) -> (Box<[u32]>, Vec<Successor>) {
    let mut starts = vec![0_u32; predecessors.len() + 1];
    for edge in predecessors.iter().flatten() {
        starts[edge.node as usize + 1] += 1;
    }
    for node in 0..predecessors.len() {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut successors = vec![Successor(0); starts[predecessors.len()] as usize];
    for (node, edges) in predecessors.iter().enumerate() {
        for edge in edges {
            let at = &mut next[edge.node as usize];
            successors[*at as usize] = Successor::new(node as u32, edge.required);
            *at += 1;
        }
    }
    (starts.into(), successors)
}

/// The longest way from each node to a node that nobody depends on.
fn heights(inputs: &[u32], starts: &[u32], successors: &[Successor]) -> Vec<u32> {
    let row = |node: u32| &successors[starts[node as usize] as usize..starts[node as usize + 1] as usize];
    let mut missing = inputs.to_vec();
    let mut order: Vec<u32> = (0..inputs.len() as u32).filter(|node| inputs[*node as usize] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for successor in row(order[at]) {
            let missing = &mut missing[successor.node() as usize];
            *missing -= 1;
            if *missing == 0 {
                order.push(successor.node());
            }
        }
        at += 1;
    }
    let mut heights = vec![0; inputs.len()];
    for node in order.into_iter().rev() {
        let above = row(node).iter().map(|successor| heights[successor.node() as usize] + 1).max();
        heights[node as usize] = above.unwrap_or(0);
    }
    heights
}
