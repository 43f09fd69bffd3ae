//! What runs do when nothing goes wrong.

use std::{
    collections::HashSet,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use ebbtide_dag::{Class, Env, Graph, Handle};
use ebbtide_lifecycle::{
    Component,
    time::{Clock, ThreadTimer, VirtualClock},
    wait::block_on,
};
use ebbtide_offload::Pool;
use ebbtide_reactor::sleep;

use super::{Canaries, MS, World};

#[test]
fn d1_independent_branches_run_side_by_side_without_a_barrier_between_layers() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("three branches");
    let root = graph.inline("root", (), |_, ()| Ok(()));
    let branch = |graph: &mut Graph<()>, nth: u32| {
        let slow = graph.future(format!("sleep {nth}"), root, move |_, _| async move {
            sleep(nth * 10 * MS).await;
            Ok(nth)
        });
        graph.cpu(format!("vm {nth}"), slow, |_, nth| Ok(*nth * 2))
    };
    let branches = [branch(&mut graph, 1), branch(&mut graph, 2), branch(&mut graph, 3)];
    // As soon as its own input is there, whatever the others do.
    let clock = world.clock.clone();
    let early = graph.inline("early", branches[0], move |_, _| Ok(clock.now()));
    let sum = graph.inline("sum", branches, |_, branches| Ok(branches.iter().map(|n| **n).sum::<u32>()));
    let engine = graph.plan((early, sum)).unwrap().bind(world.env()).unwrap();
    let start = world.clock.now();
    let (early, sum) = world.runtime.block_on(engine.run(())).unwrap();
    assert_eq!((*early - start, world.clock.now() - start, *sum), (10 * MS, 30 * MS, 12));
    world.settle(&engine);
}

#[test]
fn d2_each_kind_of_node_runs_where_it_belongs() {
    let world = World::new();
    let mut graph = Graph::<()>::new("kinds");
    let name = || Ok(thread::current().name().unwrap_or_default().to_owned());
    let inline = graph.inline("inline", (), move |_, ()| name());
    let future = graph.future("async", (), move |_, ()| async move { name() });
    let cpu = graph.cpu("cpu", (), move |_, ()| name());
    let blocking = graph.blocking("blocking", (), move |_, ()| name());
    let engine = graph.plan((inline, future, cpu, blocking)).unwrap().bind(world.env()).unwrap();
    let (inline, future, cpu, blocking) = block_on(engine.run(())).unwrap();
    let here = thread::current().name().unwrap().to_owned();
    assert_eq!((&*inline, &*future), (&here, &here));
    assert!(cpu.starts_with("offload-cpu") && blocking.starts_with("offload-blocking"), "{cpu}, {blocking}");
}

#[test]
fn d2_a_node_knows_its_request_its_name_and_what_the_engine_was_bound_to() {
    let mut graph = Graph::<String>::new("context");
    let node = graph.inline("node", (), |cx, ()| {
        let endpoint = cx.endpoint::<u32>("answer").unwrap();
        assert!(cx.endpoint::<u64>("answer").is_none() && cx.endpoint::<u32>("question").is_none());
        assert_eq!(cx.timeout(), Some(5 * MS));
        Ok(format!("{} {} {endpoint} {}", cx.request(), cx.node(), cx.attempt()))
    });
    graph.node(node).endpoint("answer").timeout(5 * MS);
    let plan = graph.plan(node).unwrap();
    let missing = plan.bind(Env::new(VirtualClock::new())).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "node \"node\" needs the endpoint \"answer\": give it to the environment with `endpoint`"
    );
    let engine = plan.bind(Env::new(VirtualClock::new()).endpoint("answer", Arc::new(42_u32))).unwrap();
    assert_eq!(*block_on(engine.run("request".to_owned())).unwrap(), "request node 42 1");
}

#[test]
fn d5_a_thousand_requests_at_once_get_each_their_own_result() {
    let mut world = World::new();
    let mut graph = Graph::<u64>::new("shared");
    let read = graph.future("read", (), |cx, ()| {
        let request = cx.request().clone();
        async move {
            sleep((*request % 7) as u32 * MS).await;
            Ok(*request)
        }
    });
    let doubled = graph.cpu("doubled", read, |_, n| Ok(*n * 2));
    let tripled = graph.cpu("tripled", read, |_, n| Ok(*n * 3));
    let sum = graph.inline("sum", (read, doubled, tripled), |_, (a, b, c)| Ok(*a + *b + *c));
    let engine = graph.plan(sum).unwrap().bind(world.env()).unwrap();
    world.runtime.block_on(async {
        let tasks: Vec<_> =
            (0..1000_u64).map(|n| (n, ebbtide_reactor::spawn(engine.run(n)).ok().unwrap())).collect();
        for (n, task) in tasks {
            assert_eq!(*task.await.unwrap().unwrap(), n * 6);
        }
    });
    assert_eq!(engine.balance().to_string(), "accepted 1000, completed 1000");
    world.settle(&engine);
}

#[test]
fn d5_a_plan_is_run_again_and_again() {
    let mut graph = Graph::<u32>::new("again");
    let one = graph.inline("one", (), |cx, ()| Ok(vec![**cx.request()]));
    let two = graph.inline("two", (one, one), |_, (a, b)| Ok(a.len() + b.len()));
    let plan = graph.plan((one, two)).unwrap();
    let engine = plan.bind(Env::new(VirtualClock::new())).unwrap();
    for n in 0..100 {
        let (one, two) = block_on(engine.run(n)).unwrap();
        assert_eq!((one.into_inner(), *two), (vec![n], 2));
    }
}

#[test]
fn d7_the_last_consumer_gets_the_output_itself_and_others_borrow_or_share_it() {
    // It cannot be cloned: nobody can make a copy.
    struct Unique(u32);
    let world = World::new();
    let mut graph = Graph::<()>::new("values");
    let source = graph.inline("source", (), |_, ()| Ok(Unique(1)));
    let borrows = graph.inline("borrows", source, |_, unique| Ok(unique.0));
    let on_pool = graph.cpu("on the pool", source, |_, unique| Ok(unique.0));
    let keeps = graph.future("keeps", source, |_, unique| async move { Ok(unique.0) });
    let alone = graph.cpu("alone", (), |_, ()| Ok(Unique(5)));
    let moved =
        graph.cpu("moved", alone, |_, unique| Ok(unique.try_into_inner().map(|unique| unique.0).ok()));
    let outputs = (borrows, on_pool, keeps, moved);
    let engine = graph.plan(outputs).unwrap().bind(world.env()).unwrap();
    let (a, b, c, moved) = block_on(engine.run(())).unwrap();
    assert_eq!((*a, *b, *c, *moved), (1, 1, 1, Some(5)));
}

#[test]
fn a_future_lies_where_its_type_wants_it() {
    #[repr(align(512))]
    struct Aligned(u8);
    let mut world = World::new();
    let mut graph = Graph::<()>::new("aligned");
    let nodes: Vec<_> = (0..20_u8)
        .map(|n| {
            graph.future(n.to_string(), (), move |_, ()| async move {
                let aligned = Aligned(n);
                sleep(u32::from(n) * MS).await;
                Ok((&raw const aligned).addr() % 512 + usize::from(aligned.0))
            })
        })
        .collect();
    let engine = graph.plan(nodes).unwrap().bind(world.env()).unwrap();
    for _ in 0..3 {
        let outputs = world.runtime.block_on(engine.run(())).unwrap();
        assert!(outputs.iter().map(|output| **output).eq(0..20));
    }
}

#[test]
fn d7_an_output_is_dropped_when_its_last_consumer_has_had_it() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let mut graph = Graph::<()>::new("freed");
    let hatch = canaries.clone();
    let canary = graph.inline("canary", (), move |_, ()| Ok(hatch.hatch()));
    let first = graph.inline("first", canary, |_, _| Ok(()));
    let second = graph.future("second", canary, |_, canary| async move {
        drop(canary);
        Ok(())
    });
    let third = graph.cpu("third", (canary, first, second), |_, _| Ok(()));
    let alive = canaries.clone();
    let after = graph.inline("after", third, move |_, _| Ok(alive.alive()));
    let unused = canaries.clone();
    graph.inline("unused", (), move |_, ()| Ok(unused.hatch()));
    let engine = graph.plan(after).unwrap().bind(world.env()).unwrap();
    for _ in 0..10 {
        assert_eq!(*world.runtime.block_on(engine.run(())).unwrap(), 0);
        assert_eq!(canaries.alive(), 0);
    }
}

#[test]
fn any_number_of_inputs_is_taken_as_a_tuple_an_array_a_slice_or_a_vector() {
    let mut graph = Graph::<()>::new("inputs");
    let ones: Vec<Handle<usize>> =
        (0..20).map(|n| graph.inline(format!("n{n}"), (), |_, ()| Ok(1))).collect();
    let slice = graph.inline("slice", &ones[..5], |_, ones| Ok(ones.iter().map(|one| **one).sum::<usize>()));
    let vector = graph.inline("vector", ones.clone(), |_, ones| Ok(ones.len()));
    let array = graph.inline("array", [ones[0], ones[1]], |_, [a, b]| Ok(*a + *b));
    let nested =
        graph.inline("nested", (ones[0], [ones[1], ones[2]], (slice, vector.optional())), |_, inputs| {
            let (a, [b, c], (slice, vector)) = inputs;
            Ok(*a + *b + *c + *slice + *vector.unwrap())
        });
    let engine = graph.plan((array, nested)).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    let (array, nested) = block_on(engine.run(())).unwrap();
    assert_eq!((*array, *nested), (2, 28));
}

#[test]
fn cpu_nodes_that_are_ready_together_run_side_by_side() {
    let world = World::new();
    let barrier = Arc::new(Barrier::new(2));
    let mut graph = Graph::<()>::new("side by side");
    let root = graph.cpu("root", (), |_, ()| Ok(()));
    // They end only if both run at the same time.
    let meet = |graph: &mut Graph<()>, name: &str| {
        let barrier = barrier.clone();
        graph.cpu(name, root, move |_, _| {
            barrier.wait();
            Ok(thread::current().id())
        })
    };
    let both = [meet(&mut graph, "left"), meet(&mut graph, "right")];
    let engine = graph.plan(both).unwrap().bind(world.env()).unwrap();
    for _ in 0..20 {
        let [left, right] = block_on(engine.run(())).unwrap();
        assert_ne!(*left, *right);
    }
}

#[test]
fn a_chain_of_cpu_nodes_stays_on_one_thread() {
    let pool = Pool::builder().cpu_threads(2).start().unwrap();
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let mut graph = Graph::<()>::new("chain");
    let mut last = graph.cpu("0", (), |_, ()| Ok(0));
    for n in 1..100 {
        let threads = threads.clone();
        last = graph.cpu(format!("{n}"), last, move |_, n| {
            threads.lock().unwrap().insert(thread::current().id());
            Ok(*n + 1)
        });
    }
    let engine = graph.plan(last).unwrap().bind(Env::new(ThreadTimer::start().unwrap()).pool(&pool)).unwrap();
    assert_eq!(*block_on(engine.run(())).unwrap(), 99);
    assert_eq!((threads.lock().unwrap().len(), pool.balance().accepted), (1, 1));
}

#[test]
fn a_long_plan_lets_others_on_its_executor_go_first() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("long");
    let turns = Arc::new(AtomicUsize::new(0));
    let mut last = graph.inline("0", (), |_, ()| Ok(0_usize));
    let mut seen = Vec::new();
    for n in 1..5_000 {
        let turns = turns.clone();
        last = graph.inline(format!("{n}"), last, move |_, _| Ok(turns.load(Ordering::Relaxed)));
        seen.push(last);
    }
    let engine = graph.plan((seen[0], last)).unwrap().bind(world.env()).unwrap();
    world.runtime.block_on(async {
        let neighbour = ebbtide_reactor::spawn(async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                ebbtide_reactor::yield_now().await;
            }
        });
        let (first, last) = ebbtide_reactor::spawn(engine.run(())).ok().unwrap().await.unwrap().unwrap();
        assert!(*last > *first + 3, "the neighbour had {} turns", *last - *first);
        drop(neighbour);
    });
}

#[test]
fn a_class_lets_only_so_many_nodes_of_all_runs_in() {
    let mut world = World::new();
    let class = Class::new("redis", 2);
    let inside = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::<()>::new("class");
    let nodes: Vec<_> = (0..3)
        .map(|n| {
            let inside = inside.clone();
            let node = graph.future(format!("n{n}"), (), move |_, ()| {
                let inside = inside.clone();
                async move {
                    assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
                    sleep(10 * MS).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                }
            });
            graph.node(node).class(&class);
            node
        })
        .collect();
    let engine = graph.plan(nodes).unwrap().bind(world.env()).unwrap();
    let start = world.clock.now();
    world.runtime.block_on(async {
        let runs: Vec<_> = (0..4).map(|_| ebbtide_reactor::spawn(engine.run(())).ok().unwrap()).collect();
        for run in runs {
            run.await.unwrap().unwrap();
        }
    });
    // Twelve nodes, two at a time.
    assert_eq!((world.clock.now() - start, class.load()), (60 * MS, (0, 0)));
}

#[test]
fn a_class_holds_for_cpu_nodes_too() {
    let world = World::new();
    let class = Class::new("gpu", 1);
    let inside = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::<()>::new("class");
    let nodes: Vec<_> = (0..50)
        .map(|n| {
            let inside = inside.clone();
            let node = graph.cpu(format!("n{n}"), (), move |_, ()| {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                inside.fetch_sub(1, Ordering::SeqCst);
                Ok(1)
            });
            graph.node(node).class(&class);
            node
        })
        .collect();
    let engine = graph.plan(nodes).unwrap().bind(world.env()).unwrap();
    assert_eq!(block_on(engine.run(())).unwrap().len(), 50);
    assert_eq!(class.load(), (0, 0));
}
