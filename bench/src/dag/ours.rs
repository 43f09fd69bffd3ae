//! The shapes as graphs of ours.

use ebbtide_dag::{Engine, Env, Graph, Handle, Input};
use ebbtide_offload::Pool;
use ebbtide_reactor::Runtime;
use futures_lite::future::yield_now;

use super::shapes::{Shape, give, total};

/// What the nodes of a graph are.
#[derive(Clone, Copy)]
pub(crate) enum Nodes {
    Inline,
    /// Async, and ready when they are first polled.
    Ready,
    /// Async, and woken as soon as they wait, once.
    Yielding,
    Cpu,
}

type Outputs = Vec<Handle<u64>>;

/// An engine, and the loop that its runs are awaited on.
pub(crate) struct Ours {
    runtime: Runtime,
    engine: Engine<(), Outputs, ebbtide_reactor::Handle>,
    total: u64,
}

/// A run of ours, before it begins.
pub(crate) type Run = ebbtide_dag::Run<(), Outputs, ebbtide_reactor::Handle>;

impl Ours {
    pub(crate) fn new(shape: &Shape, nodes: Nodes) -> Self {
        Self::with(shape, nodes, |env| env)
    }

    pub(super) fn on(pool: &Pool, shape: &Shape) -> Self {
        Self::with(shape, Nodes::Cpu, |env| env.pool(pool))
    }

    fn with(
        shape: &Shape,
        nodes: Nodes,
        bring: impl FnOnce(Env<ebbtide_reactor::Handle>) -> Env<ebbtide_reactor::Handle>,
    ) -> Self {
        let runtime = Runtime::new();
        let (graph, outputs) = graph(shape, nodes);
        let plan = graph.plan(outputs).expect("it has no circles");
        let engine = plan.bind(bring(Env::new(runtime.handle()))).expect("it has what its nodes need");
        Self { runtime, engine, total: shape.total }
    }

    /// So many runs, one after the other, on such terms.
    pub(crate) fn run(&mut self, runs: usize, on_terms: impl Fn(Run) -> Run) {
        let Self { runtime, engine, total: expected } = self;
        runtime.block_on(async {
            for _ in 0..runs {
                let outputs = on_terms(engine.run(())).await.expect("ends well");
                assert_eq!(total(outputs.iter().map(|output| **output)), *expected);
            }
        });
    }

    /// The same with a report of each run, and the times of its nodes if it is `traced`.
    pub(super) fn run_reported(&mut self, runs: usize, traced: bool) {
        let Self { runtime, engine, total: expected } = self;
        runtime.block_on(async {
            for _ in 0..runs {
                let run = engine.run(());
                let (outputs, _report) = if traced { run.traced().await } else { run.reported().await };
                let outputs = outputs.expect("ends well");
                assert_eq!(total(outputs.iter().map(|output| **output)), *expected);
            }
        });
    }
}

/// A shape as a graph, and its outputs.
pub(super) fn graph(shape: &Shape, nodes: Nodes) -> (Graph<()>, Outputs) {
    let mut graph = Graph::new("shape");
    let mut handles: Vec<Handle<u64>> = Vec::with_capacity(shape.len());
    for node in 0..shape.len() as u32 {
        let inputs: Vec<_> = shape.inputs.row(node).iter().map(|input| handles[*input as usize]).collect();
        handles.push(add(&mut graph, nodes, format!("node {node}"), &inputs));
    }
    let outputs = shape.outputs.iter().map(|output| handles[*output as usize]).collect();
    (graph, outputs)
}

/// Adds a node in the way in which one would write it by hand, by its number of inputs.
fn add(graph: &mut Graph<()>, nodes: Nodes, name: String, inputs: &[Handle<u64>]) -> Handle<u64> {
    fn sum(inputs: &[Input<'_, u64>]) -> u64 {
        give(inputs.iter().map(|input| **input))
    }

    match (nodes, inputs) {
        (Nodes::Inline, []) => graph.inline(name, (), |_, ()| Ok(give([]))),
        (Nodes::Inline, &[one]) => graph.inline(name, one, |_, one| Ok(give([*one]))),
        (Nodes::Inline, &[a, b, c]) => graph.inline(name, [a, b, c], |_, inputs| Ok(sum(&inputs))),
        (Nodes::Inline, _) => graph.inline(name, inputs, |_, inputs| Ok(sum(&inputs))),

        (Nodes::Cpu, []) => graph.cpu(name, (), |_, ()| Ok(give([]))),
        (Nodes::Cpu, &[one]) => graph.cpu(name, one, |_, one| Ok(give([*one]))),
        (Nodes::Cpu, &[a, b, c]) => graph.cpu(name, [a, b, c], |_, inputs| Ok(sum(&inputs))),
        (Nodes::Cpu, _) => graph.cpu(name, inputs, |_, inputs| Ok(sum(&inputs))),

        (Nodes::Ready, []) => graph.future(name, (), |_, ()| async { Ok(give([])) }),
        (Nodes::Ready, &[one]) => graph.future(name, one, |_, one| async move { Ok(give([*one])) }),
        (Nodes::Ready, &[a, b, c]) => {
            graph.future(name, [a, b, c], |_, inputs| async move { Ok(sum(&inputs)) })
        }
        (Nodes::Ready, _) => graph.future(name, inputs, |_, inputs| async move { Ok(sum(&inputs)) }),

        (Nodes::Yielding, []) => graph.future(name, (), |_, ()| async {
            yield_now().await;
            Ok(give([]))
        }),
        (Nodes::Yielding, &[one]) => graph.future(name, one, |_, one| async move {
            yield_now().await;
            Ok(give([*one]))
        }),
        (Nodes::Yielding, &[a, b, c]) => graph.future(name, [a, b, c], |_, inputs| async move {
            yield_now().await;
            Ok(sum(&inputs))
        }),
        (Nodes::Yielding, _) => graph.future(name, inputs, |_, inputs| async move {
            yield_now().await;
            Ok(sum(&inputs))
        }),
    }
}
