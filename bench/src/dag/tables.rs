//! The contests, each for all shapes.

use std::{hint::black_box, time::Duration};

use ebbtide_offload::Pool;
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinSet;

use super::{
    ours::{Nodes, Ours, graph},
    peers::{AsyncDag, State, Timed},
    pool::Rayon,
    shapes::Shape,
};
use crate::{
    contest::{Contestant, Table, each, measure},
    offload::OneCpu,
};

/// How many rounds each contestant runs.
const ROUNDS: usize = 101;

/// A round has at least so many nodes: as many runs as that takes. The largest shape has five: the first of them finds
/// its memory gone from the caches, because of those who ran before.
const NODES: usize = 50_000;

/// How many threads each pool has.
const THREADS: usize = 2;

/// A far time: these timeouts never come.
const FAR: Duration = Duration::from_secs(3600);

/// How many runs of a shape a round has.
fn runs(shape: &Shape) -> usize {
    NODES.div_ceil(shape.len())
}

/// What a node costs in a round of `act`, which does so many runs.
fn for_each_node(shape: &Shape, act: impl FnOnce(usize)) -> f64 {
    let runs = runs(shape);
    each(runs * shape.len(), || act(runs))
}

/// Without a local set, which these contestants do not need.
fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime of one thread")
}

pub(super) fn ready() -> Vec<Table> {
    let table = |title, shape: Shape| {
        let (shape, tokio) = (&shape, tokio());
        let (mut by_hand, mut unordered) = (State::default(), FuturesUnordered::new());
        let mut ours = Ours::new(shape, Nodes::Ready);
        let (mut tasks, mut set) = (State::default(), JoinSet::new());
        let mut others = vec![
            Contestant::value("ebbtide", || for_each_node(shape, |runs| ours.run(runs, |run| run)))
                .target(0.6),
            Contestant::value("tokio JoinSet", || {
                for_each_node(shape, |runs| {
                    tokio.block_on(async {
                        for _ in 0..runs {
                            tasks.run(shape, &mut set).await;
                        }
                    });
                })
            }),
        ];
        if AsyncDag::new(shape).is_some() {
            others.push(Contestant::value("async_dag", || {
                let graphs: Option<Vec<_>> = (0..runs(shape)).map(|_| AsyncDag::new(shape)).collect();
                let mut graphs = graphs.expect("it takes this shape");
                for_each_node(shape, |_| {
                    futures_lite::future::block_on(async {
                        for graph in &mut graphs {
                            graph.run(shape).await;
                        }
                    });
                })
            }));
        }
        let peer = Contestant::value("FuturesUnordered", || {
            for_each_node(shape, |runs| {
                futures_lite::future::block_on(async {
                    for _ in 0..runs {
                        by_hand.run(shape, &mut unordered).await;
                    }
                });
            })
        });
        measure(title, "ns", ROUNDS, peer, others)
    };
    vec![
        table("ready async nodes, chain of 1,000, a node", Shape::chain()),
        table("ready async nodes, fan 1 → 1,000 → 1, a node", Shape::fan()),
        table("ready async nodes, 100 layers of 100, a node", Shape::layered()),
    ]
}

pub(super) fn inline() -> Vec<Table> {
    let table = |title, shape: Shape| {
        let (shape, mut values) = (&shape, Vec::new());
        let mut ours = Ours::new(shape, Nodes::Inline);
        measure(
            title,
            "ns",
            ROUNDS,
            Contestant::value("the bar", || 30.0),
            [
                Contestant::value("ebbtide", || for_each_node(shape, |runs| ours.run(runs, |run| run)))
                    .target(1.0),
                Contestant::value("floor: a loop over the nodes in order", || {
                    for_each_node(shape, |runs| {
                        for _ in 0..runs {
                            assert_eq!(black_box(shape).in_order(&mut values), shape.total);
                        }
                    })
                }),
            ],
        )
    };
    vec![
        table("inline nodes, chain of 1,000, a node", Shape::chain()),
        table("inline nodes, fan 1 → 1,000 → 1, a node", Shape::fan()),
        table("inline nodes, 100 layers of 100, a node", Shape::layered()),
    ]
}

pub(super) fn timeouts() -> Vec<Table> {
    let table = |title, shape: Shape| {
        let (shape, tokio) = (&shape, tokio());
        let (mut by_hand, mut timed) = (State::default(), Timed::default());
        let mut ours = Ours::new(shape, Nodes::Yielding);
        measure(
            title,
            "ns",
            ROUNDS,
            Contestant::value("the bar", || 120.0),
            [
                Contestant::value("ebbtide", || {
                    for_each_node(shape, |runs| ours.run(runs, |run| run.node_timeout(FAR)))
                })
                .target(1.0),
                Contestant::value("FuturesUnordered + tokio timeout", || {
                    for_each_node(shape, |runs| {
                        tokio.block_on(async {
                            for _ in 0..runs {
                                by_hand.run(shape, &mut timed).await;
                            }
                        });
                    })
                }),
            ],
        )
    };
    vec![
        table("waiting nodes under a timeout, chain of 1,000, a node", Shape::chain()),
        table("waiting nodes under a timeout, fan 1 → 1,000 → 1, a node", Shape::fan()),
        table("waiting nodes under a timeout, 100 layers of 100, a node", Shape::layered()),
    ]
}

pub(super) fn cpu() -> Vec<Table> {
    let mut tables = on_pools([
        ("CPU nodes, chain of 1,000, a node", Shape::chain(), Some(1.0)),
        ("CPU nodes, fan 1 → 1,000 → 1, a node", Shape::fan(), Some(1.0)),
        ("CPU nodes, 100 layers of 100, a node", Shape::layered(), Some(2.0)),
    ]);
    // Where no cache line goes from one CPU to the other the ratios are others, rayon's fan above all. A neighbour that
    // keeps a CPU busy makes the tables above like these.
    let _one = OneCpu::new();
    tables.extend(on_pools([
        ("CPU nodes, all on one CPU, chain of 1,000, a node", Shape::chain(), None),
        ("CPU nodes, all on one CPU, fan 1 → 1,000 → 1, a node", Shape::fan(), None),
        ("CPU nodes, all on one CPU, 100 layers of 100, a node", Shape::layered(), None),
    ]));
    tables
}

/// The shapes on pools of two threads, with the ratio to rayon's that is wanted.
fn on_pools(shapes: [(&'static str, Shape, Option<f64>); 3]) -> Vec<Table> {
    let pool = Pool::builder().cpu_threads(THREADS).start().expect("two threads");
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().expect("two threads");
    let table = |(title, shape, target): (_, Shape, Option<f64>)| {
        let shape = &shape;
        let mut ours = Ours::on(&pool, shape);
        let mut scope = Rayon::new(shape);
        let peer = Contestant::value("rayon scope + atomics", || {
            for_each_node(shape, |runs| (0..runs).for_each(|_| scope.run(&rayon)))
        });
        let ours = Contestant::value("ebbtide", || for_each_node(shape, |runs| ours.run(runs, |run| run)));
        let ours = if let Some(target) = target { ours.target(target) } else { ours };
        measure(title, "ns", ROUNDS, peer, [ours])
    };
    shapes.into_iter().map(table).collect()
}

pub(super) fn plan() -> Vec<Table> {
    let table = |title, shape: Shape| {
        let compile = |runs| {
            let graphs: Vec<_> = (0..runs).map(|_| graph(&shape, Nodes::Inline)).collect();
            let mut plans = Vec::with_capacity(runs);
            for_each_node(&shape, |_| {
                plans.extend(graphs.into_iter().map(|(graph, outputs)| graph.plan(outputs)));
            })
        };
        measure(
            title,
            "ns",
            ROUNDS,
            Contestant::value("the bar", || 500.0),
            [Contestant::value("ebbtide", || compile(runs(&shape))).target(1.0)],
        )
    };
    vec![
        table("compiling a plan, chain of 1,000, a node", Shape::chain()),
        table("compiling a plan, fan 1 → 1,000 → 1, a node", Shape::fan()),
        table("compiling a plan, 100 layers of 100, a node", Shape::layered()),
    ]
}

pub(super) fn trace() -> Vec<Table> {
    let table = |title, shape: Shape| {
        let shape = &shape;
        // What a report adds to a run, in turn with runs that have none.
        let added = |traced| {
            let (mut off, mut on) = (Ours::new(shape, Nodes::Inline), Ours::new(shape, Nodes::Inline));
            move || {
                let off = for_each_node(shape, |runs| off.run(runs, |run| run));
                for_each_node(shape, |runs| on.run_reported(runs, traced)) - off
            }
        };
        measure(
            title,
            "ns",
            ROUNDS,
            Contestant::value("the bar", || 60.0),
            [
                Contestant::value("ebbtide, traced", added(true)).target(1.0),
                Contestant::value("ebbtide, reported without times", added(false)),
            ],
        )
    };
    vec![
        table("what a trace adds to inline nodes, chain of 1,000, a node", Shape::chain()),
        table("what a trace adds to inline nodes, 100 layers of 100, a node", Shape::layered()),
    ]
}
