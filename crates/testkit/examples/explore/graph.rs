//! Random graphs: nodes of all kinds that give, fail, panic, are tried again, time out and fall back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use ebbtide::{
    dag::{Cx, Failure, Graph, Handle, OnTimeout, Retry},
    sleep, yield_now,
};
use ebbtide_testkit::{Canary, Draws, Witness};

/// More make a case slower, and nothing new happens.
const NODES_MAX: u64 = 8;

/// What nodes give each other. What one node gives must be gone at the end.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) sum: u64,
    _canary: Option<Arc<Canary>>,
}

/// What a node does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Give,
    Fail,
    /// The first time; then it gives.
    FailOnce,
    Panic,
}

#[derive(Clone, Copy, Debug)]
enum On {
    Inline,
    Async(Duration),
    Yields,
    Cpu,
    Blocking,
}

/// A graph, and the nodes that are its outputs: all of them, as far as they come about.
pub(crate) fn random(draws: &mut Draws, witness: &Witness) -> (Graph<u64>, Vec<Handle<Value>>) {
    let mut graph = Graph::new("random");
    let mut handles = Vec::new();
    for number in 0..=draws.below(NODES_MAX) {
        let handle = add(&mut graph, number, &handles, draws, witness);
        handles.push(handle);
    }
    (graph, handles)
}

fn add(
    graph: &mut Graph<u64>,
    number: u64,
    before: &[Handle<Value>],
    draws: &mut Draws,
    witness: &Witness,
) -> Handle<Value> {
    let (mut required, mut optional) = (Vec::new(), Vec::new());
    for _ in 0..draws.below(3).min(before.len() as u64) {
        let input = draws.pick(before);
        if draws.one_in(4) {
            optional.push(input.optional());
        } else {
            required.push(input);
        }
    }
    let act = match draws.below(16) {
        0 => Act::Fail,
        1 => Act::Panic,
        2 | 3 => Act::FailOnce,
        _ => Act::Give,
    };
    let node = Node { number, act, tries: Arc::new(AtomicU32::new(0)), witness: witness.clone() };
    let on = match draws.below(8) {
        0 => On::Inline,
        1 => On::Yields,
        2 | 3 => On::Async(draws.duration(Duration::from_secs(1))),
        4 | 5 => On::Blocking,
        _ => On::Cpu,
    };
    let name = number.to_string();
    let handle =
        match on {
            On::Inline => graph
                .inline(name, (required, optional), move |cx, (all, some)| node.run(&cx, sum(&all, &some))),
            On::Cpu => {
                graph.cpu(name, (required, optional), move |cx, (all, some)| node.run(&cx, sum(&all, &some)))
            }
            On::Blocking => graph
                .blocking(name, (required, optional), move |cx, (all, some)| node.run(&cx, sum(&all, &some))),
            On::Async(_) | On::Yields => {
                let node = Arc::new(node);
                graph.future(name, (required, optional), move |cx, (all, some)| {
                    let (node, sum, request) = (node.clone(), sum(&all, &some), **cx.request());
                    node.witness.clone().watch(async move {
                        match on {
                            On::Async(time) => sleep(time).await,
                            _ => yield_now().await,
                        }
                        node.end(request, sum)
                    })
                })
            }
        };
    terms(graph, handle, draws);
    handle
}

/// On what terms it runs.
fn terms(graph: &mut Graph<u64>, handle: Handle<Value>, draws: &mut Draws) {
    if draws.one_in(3) {
        graph.node(handle).timeout(draws.duration(Duration::from_millis(500)));
    }
    if draws.one_in(3) {
        graph.node(handle).on_timeout(draws.pick(&[OnTimeout::Cancel, OnTimeout::Detach]));
    }
    if draws.one_in(3) {
        let backoff = Duration::from_millis(draws.below(50));
        graph.node(handle).retry(Retry::times(3).backoff(backoff, 4 * backoff));
    }
    if draws.one_in(5) {
        graph.node(handle).fallback(Value { sum: 0, _canary: None });
    }
    if draws.one_in(10) {
        graph.node(handle).when(|cx| cx.request().is_multiple_of(2));
    }
}

struct Node {
    number: u64,
    act: Act,
    tries: Arc<AtomicU32>,
    witness: Witness,
}

impl Node {
    fn run(&self, cx: &Cx<'_, u64>, sum: u64) -> Result<Value, Failure> {
        self.end(**cx.request(), sum)
    }

    fn end(&self, request: u64, sum: u64) -> Result<Value, Failure> {
        self.witness.ran();
        match self.act {
            Act::Fail => return Err(Failure::new("planted")),
            Act::FailOnce if self.tries.fetch_add(1, Ordering::Relaxed) == 0 => {
                return Err(Failure::new("planted"));
            }
            Act::Panic => panic!("planted"),
            Act::Give | Act::FailOnce => {}
        }
        Ok(Value { sum: request + self.number + sum, _canary: Some(Arc::new(self.witness.canary())) })
    }
}

fn sum<V: std::ops::Deref<Target = Value>>(required: &[V], optional: &[Option<V>]) -> u64 {
    required.iter().chain(optional.iter().flatten()).map(|value| value.sum).fold(0, u64::wrapping_add)
}
