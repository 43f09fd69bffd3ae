//! The shapes as one would run them by hand: futures are begun when the count of their missing inputs comes to zero.

use std::{future::Future, pin::Pin, time::Duration};

use futures_lite::future::yield_now;
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::task::JoinSet;

use super::shapes::{Shape, give, total};

/// Counters and values, used again in each run.
#[derive(Default)]
pub(super) struct State {
    /// How many inputs each node is missing.
    missing: Vec<u32>,
    values: Vec<u64>,
}

/// What runs futures, and gives the node and the value of each that has ended.
pub(super) trait Running {
    fn begin(&mut self, node: u32, inputs: impl AsRef<[u64]> + Send + 'static);

    async fn next(&mut self) -> Option<(u32, u64)>;
}

impl State {
    /// Runs the shape once.
    pub(super) async fn run(&mut self, shape: &Shape, running: &mut impl Running) {
        self.missing.clear();
        self.missing.extend((0..shape.len() as u32).map(|node| shape.inputs.row(node).len() as u32));
        self.values.resize(shape.len(), 0);
        for root in &shape.roots {
            self.begin(shape, *root, running);
        }
        while let Some((node, value)) = running.next().await {
            self.values[node as usize] = value;
            for next in shape.successors.row(node) {
                let missing = &mut self.missing[*next as usize];
                *missing -= 1;
                if *missing == 0 {
                    self.begin(shape, *next, running);
                }
            }
        }
        let outputs = shape.outputs.iter().map(|output| self.values[*output as usize]);
        assert_eq!(total(outputs), shape.total);
    }

    fn begin(&self, shape: &Shape, node: u32, running: &mut impl Running) {
        let value = |input: u32| self.values[input as usize];
        match *shape.inputs.row(node) {
            [] => running.begin(node, []),
            [one] => running.begin(node, [value(one)]),
            [a, b, c] => running.begin(node, [value(a), value(b), value(c)]),
            ref inputs => running.begin(node, inputs.iter().map(|input| value(*input)).collect::<Vec<_>>()),
        }
    }
}

/// A node that has what it needs.
async fn ready(node: u32, inputs: impl AsRef<[u64]>) -> (u32, u64) {
    (node, give(inputs.as_ref().iter().copied()))
}

/// Boxed, as nodes that do different things have to be.
type Boxed = Pin<Box<dyn Future<Output = (u32, u64)>>>;

/// Nodes that are ready when they are first polled.
impl Running for FuturesUnordered<Boxed> {
    fn begin(&mut self, node: u32, inputs: impl AsRef<[u64]> + Send + 'static) {
        self.push(Box::pin(ready(node, inputs)));
    }

    async fn next(&mut self) -> Option<(u32, u64)> {
        StreamExt::next(self).await
    }
}

/// Nodes that wait once, each with a timeout of tokio's.
#[derive(Default)]
pub(super) struct Timed(FuturesUnordered<Boxed>);

impl Running for Timed {
    fn begin(&mut self, node: u32, inputs: impl AsRef<[u64]> + Send + 'static) {
        let waits = async move {
            yield_now().await;
            ready(node, inputs).await
        };
        let timed = tokio::time::timeout(Duration::from_secs(3600), waits);
        self.0.push(Box::pin(async { timed.await.expect("it comes in time") }));
    }

    async fn next(&mut self) -> Option<(u32, u64)> {
        StreamExt::next(&mut self.0).await
    }
}

/// A task for each node.
impl Running for JoinSet<(u32, u64)> {
    fn begin(&mut self, node: u32, inputs: impl AsRef<[u64]> + Send + 'static) {
        self.spawn(ready(node, inputs));
    }

    async fn next(&mut self) -> Option<(u32, u64)> {
        self.join_next().await.map(|ended| ended.expect("ends"))
    }
}

/// Graphs of `async_dag` can be run once, and so are built for each run.
pub(super) struct AsyncDag {
    graph: async_dag::Graph<'static>,
    outputs: Vec<async_dag::NodeIndex>,
}

impl AsyncDag {
    /// None for a shape with a node that has more inputs than it takes.
    pub(super) fn new(shape: &Shape) -> Option<Self> {
        let mut graph = async_dag::Graph::new();
        let mut nodes = Vec::with_capacity(shape.len());
        for node in 0..shape.len() as u32 {
            let inputs = shape.inputs.row(node);
            let task = match inputs.len() {
                0 => graph.add_task(|| async { give([]) }),
                1 => graph.add_task(|one: u64| async move { give([one]) }),
                3 => graph.add_task(|a: u64, b: u64, c: u64| async move { give([a, b, c]) }),
                _ => return None,
            };
            for (nth, input) in (0..).zip(inputs) {
                graph.update_dependency(nodes[*input as usize], task, nth).expect("it has no circles");
            }
            nodes.push(task);
        }
        let outputs = shape.outputs.iter().map(|output| nodes[*output as usize]).collect();
        Some(Self { graph, outputs })
    }

    pub(super) async fn run(&mut self, shape: &Shape) {
        self.graph.run().await;
        let value =
            |output: &async_dag::NodeIndex| self.graph.get_value::<u64>(*output).expect("it has ended");
        assert_eq!(total(self.outputs.iter().map(value)), shape.total);
    }
}
