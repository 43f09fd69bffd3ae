//! What a run allocates.

use std::{future::poll_fn, mem, sync::Arc, task::Poll};

use ebbtide_dag::{Env, Graph, Handle};
use ebbtide_lifecycle::{
    time::{ThreadTimer, VirtualClock},
    wait::block_on,
};
use ebbtide_offload::Pool;

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

/// Waits once, and is woken at once.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if mem::replace(&mut has_yielded, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
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
                yield_once().await;
                Ok(*n + 1)
            });
        }
        last
    });
    assert_eq!(chain, OF_THE_RUN);
    struct Large([u64; 8]);
    let shared = blocks(|graph| {
        let root = graph.future("root", (), |_, ()| async { Ok(Large([1; 8])) });
        let mut last = graph.future("0", root, |_, large| async move { Ok(large.0[0]) });
        for n in 1..NODES {
            let inputs = (root, last);
            last = graph.future(n.to_string(), inputs, |_, (root, n)| async move { Ok(root.0[0] + *n) });
        }
        last
    });
    assert_eq!(shared, OF_THE_RUN + 1);
}

#[test]
fn a_number_that_several_keep_is_copied() {
    let copied = blocks(|graph| {
        let root = graph.future("root", (), |_, ()| async { Ok(1) });
        let mut last = graph.future("0", root, |_, n| async move { Ok(*n) });
        for n in 1..NODES {
            last = graph.future(n.to_string(), (root, last), |_, (root, n)| async move { Ok(*root + *n) });
        }
        last
    });
    assert_eq!(copied, OF_THE_RUN);
}

#[test]
fn nodes_that_wait_one_after_the_other_share_their_memory() {
    /// Larger than what a node costs besides.
    const SIZE: usize = 4096;
    let mut graph = Graph::<()>::new("chain");
    let mut last = graph.future("0", (), |_, ()| async { Ok(1_u64) });
    for n in 1..NODES {
        last = graph.future(n.to_string(), last, |_, n| async move {
            let large = [1_u8; SIZE];
            yield_once().await;
            Ok(*n + u64::from(large[*n as usize % SIZE]))
        });
    }
    let engine = graph.plan(last).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    let clock = VirtualClock::new();
    let first = allocation_counter::measure(|| drop(clock.block_on(engine.run(())).unwrap()));
    assert!(first.bytes_total < (NODES * SIZE / 2) as u64, "{}", first.bytes_total);
}

#[test]
fn a_run_of_cpu_nodes_allocates_jobs_for_its_threads_and_nothing_for_them() {
    /// A box of the run, and for each of two threads what the pool keeps of a job.
    const MOST: u64 = OF_THE_RUN + 2 * 3;
    let pool = Pool::builder().cpu_threads(2).start().unwrap();
    let mut graph = Graph::<()>::new("pool");
    let root = graph.inline("root", (), |_, ()| Ok(1_u64));
    let many: Vec<_> = (0..NODES).map(|n| graph.cpu(format!("cpu {n}"), root, |_, n| Ok(*n))).collect();
    // The run ends here, while threads of the pool may have just been about to help.
    let sum = graph.inline("sum", many, |_, numbers| Ok(numbers.iter().map(|n| **n).sum::<u64>()));
    let env = Env::new(ThreadTimer::start().unwrap()).pool(&pool);
    let engine = graph.plan(sum).unwrap().bind(env).unwrap();
    let request = Arc::new(());
    let blocks = || {
        let run = || drop(block_on(engine.run(request.clone())).unwrap());
        let counted = allocation_counter::measure(run).count_total;
        pool.wait_idle().wait();
        counted
    };
    (0..20).for_each(|_| assert!(blocks() > 0));
    let counts: Vec<_> = (0..100).map(|_| blocks()).collect();
    // Now and then one of them still has the run in its hands when that ends.
    let few = counts.iter().filter(|count| **count <= MOST).count();
    assert!(few >= 90, "{counts:?}");
}
