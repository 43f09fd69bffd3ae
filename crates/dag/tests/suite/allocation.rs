//! What a run allocates.

use std::sync::Arc;

use ebbtide_dag::{Env, Graph, Handle};
use ebbtide_lifecycle::time::VirtualClock;

/// So many nodes.
const NODES: usize = 200;

/// How many blocks a run takes that is not the first.
fn blocks(build: impl FnOnce(&mut Graph<()>) -> Handle<u64>) -> u64 {
    let mut graph = Graph::<()>::new("counted");
    let output = build(&mut graph);
    let engine = graph.plan(output).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    let (clock, request) = (VirtualClock::new(), Arc::new(()));
    let run = || drop(clock.block_on(engine.run(request.clone())).unwrap());
    // Memory, wakers and room are there after the first runs.
    run();
    run();
    let nothing = allocation_counter::measure(|| clock.block_on(std::future::ready(()))).count_total;
    allocation_counter::measure(run).count_total - nothing
}

/// Each run has a box of its own; nodes have none.
const OF_THE_RUN: u64 = 1;

#[test]
fn a_run_of_inline_nodes_allocates_nothing_for_them() {
    let chain = blocks(|graph| {
        let mut last = graph.inline("0", (), |_, ()| Ok(1));
        for n in 1..NODES {
            last = graph.inline(n.to_string(), last, |_, n| Ok(*n + 1));
        }
        last
    });
    assert_eq!(chain, OF_THE_RUN);
    // What is only borrowed needs no block either.
    let shared = blocks(|graph| {
        let root = graph.inline("root", (), |_, ()| Ok(1));
        let mut last = graph.inline("0", root, |_, n| Ok(*n));
        for n in 1..NODES {
            last = graph.inline(n.to_string(), (root, last), |_, (root, n)| Ok(*root + *n));
        }
        last
    });
    assert_eq!(shared, OF_THE_RUN);
}

#[test]
fn a_run_of_async_nodes_allocates_a_block_for_each_output_that_several_keep() {
    let chain = blocks(|graph| {
        let mut last = graph.future("0", (), |_, ()| async { Ok(1) });
        for n in 1..NODES {
            last = graph.future(n.to_string(), last, |_, n| async move {
                // It waits once, and is woken.
                let mut yielded = false;
                std::future::poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    if std::mem::replace(&mut yielded, true) {
                        std::task::Poll::Ready(())
                    } else {
                        std::task::Poll::Pending
                    }
                })
                .await;
                Ok(*n + 1)
            });
        }
        last
    });
    assert_eq!(chain, OF_THE_RUN);
    let shared = blocks(|graph| {
        let root = graph.future("root", (), |_, ()| async { Ok(1) });
        let mut last = graph.future("0", root, |_, n| async move { Ok(*n) });
        for n in 1..NODES {
            last = graph.future(n.to_string(), (root, last), |_, (root, n)| async move { Ok(*root + *n) });
        }
        last
    });
    assert_eq!(shared, OF_THE_RUN + 1);
}
