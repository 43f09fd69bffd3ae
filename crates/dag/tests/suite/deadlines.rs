//! Deadlines of requests and timeouts of nodes, in virtual time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use ebbtide_dag::{Engine, Env, Failure, Graph, Handle, NodeEnd, OnTimeout, Policy, RunError};
use ebbtide_lifecycle::{
    Component,
    time::{Clock, Deadline, VirtualClock},
    wait::block_on,
};
use ebbtide_reactor::sleep;

use super::{Canaries, Latch, MS, World};

type Timed = Engine<(), Handle<u32>, ebbtide_reactor::Handle>;

/// A node that sleeps so long.
fn sleeps(graph: &mut Graph<()>, name: &str, input: Option<Handle<u32>>, time: Duration) -> Handle<u32> {
    let future = move || async move {
        sleep(time).await;
        Ok(1)
    };
    match input {
        Some(input) => graph.future(name, input, move |_, _| future()),
        None => graph.future(name, (), move |_, ()| future()),
    }
}

/// A node that takes so long on the pool: it is over when everybody who sleeps has seen that time pass.
fn busy(
    graph: &mut Graph<()>,
    world: &World,
    name: &str,
    input: Option<Handle<u32>>,
    time: Duration,
) -> (Handle<u32>, mpsc::Sender<()>) {
    let (latch, _, release) = Latch::new();
    let clock = world.clock.clone();
    let work = move || {
        clock.advance(time);
        let _: Result<(), _> = latch.released.lock().unwrap().recv();
        Ok::<_, Failure>(1)
    };
    let node = match input {
        Some(input) => graph.cpu(name, input, move |_, _| work()),
        None => graph.cpu(name, (), move |_, ()| work()),
    };
    (node, release)
}

/// A graph of one node that sleeps for 100 ms.
fn sleeper(world: &World) -> Timed {
    let mut graph = Graph::new("sleeper");
    let node = sleeps(&mut graph, "sleep", None, 100 * MS);
    graph.plan(node).unwrap().bind(world.env()).unwrap()
}

#[test]
fn d4_the_deadline_of_a_request_ends_it_with_what_was_running_and_what_had_not_started() {
    let mut world = World::new();
    let mut graph = Graph::new("pipeline");
    let first = sleeps(&mut graph, "first", None, 100 * MS);
    let second = sleeps(&mut graph, "second", Some(first), 100 * MS);
    let engine = graph.plan(second).unwrap().bind(world.env()).unwrap();
    let start = world.clock.now();
    let error = world.runtime.block_on(engine.run(()).within(50 * MS)).unwrap_err();
    assert_eq!(error.to_string(), "R001 request deadline exceeded: running [first], not started [second]");
    assert_eq!(world.clock.now() - start, 50 * MS);
    world.settle(&engine);
    assert_eq!((world.runners.balance().late, world.runners.lateness().longest), (1, 50 * MS));
    assert_eq!(engine.balance().failed, 1);
}

#[test]
fn d4_a_deadline_that_has_passed_starts_nothing() {
    let world = World::new();
    let ran = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::<()>::new("expired");
    let count = ran.clone();
    let node = graph.inline("node", (), move |_, ()| Ok(count.fetch_add(1, Ordering::Relaxed)));
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    let (result, report) = block_on(engine.run(()).deadline(Deadline::at(world.clock.now())).reported());
    assert_eq!(result.unwrap_err().to_string(), "R002 deadline exceeded before the run started");
    assert_eq!((ran.load(Ordering::Relaxed), report.at(0).end), (0, &NodeEnd::NotStarted));
    assert!(matches!(block_on(engine.run(()).within(Duration::ZERO)), Err(RunError::Expired)));
    assert_eq!(engine.balance().accepted, 0);
}

#[test]
fn d4_a_very_short_deadline_and_a_generous_one() {
    let mut world = World::new();
    let engine = sleeper(&world);
    let run = engine.run(()).within(MS);
    assert!(matches!(world.runtime.block_on(run), Err(RunError::Deadline { .. })));
    assert_eq!(*world.runtime.block_on(engine.run(()).within(1000 * MS)).unwrap(), 1);
    // What is ready at the very moment wins.
    assert_eq!(*world.runtime.block_on(engine.run(()).within(100 * MS)).unwrap(), 1);
    let run = engine.run(()).within(Duration::MAX);
    assert_eq!(*world.runtime.block_on(run).unwrap(), 1);
    world.settle(&engine);
}

#[test]
fn d4_a_node_that_takes_too_long_fails_its_run_and_goes_on_as_a_late_runner() {
    let mut world = World::new();
    let engine = sleeper(&world);
    for (timeout, goes_well) in [(MS, false), (99 * MS, false), (101 * MS, true), (Duration::MAX, true)] {
        let result = world.runtime.block_on(engine.run(()).node_timeout(timeout));
        assert_eq!(result.is_ok(), goes_well, "{timeout:?}");
        if let Err(error) = result {
            assert_eq!(error.to_string(), format!("R003 node \"sleep\" timed out after {timeout:?}"));
        }
    }
    let run = engine.run(()).node_timeout(Duration::ZERO);
    assert!(matches!(world.runtime.block_on(run), Err(RunError::TimedOut { .. })));
    world.settle(&engine);
    assert_eq!(world.runners.balance().late, 2);
}

#[test]
fn d4_a_timeout_of_the_node_itself_counts_more_than_that_of_the_run() {
    let mut world = World::new();
    let mut graph = Graph::new("own timeout");
    let node = sleeps(&mut graph, "sleep", None, 100 * MS);
    graph.node(node).timeout(200 * MS);
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    assert!(world.runtime.block_on(engine.run(()).node_timeout(10 * MS)).is_ok());
}

#[test]
fn d4_of_both_the_earlier_one_wins() {
    let mut world = World::new();
    let engine = sleeper(&world);
    let run = engine.run(()).within(200 * MS).node_timeout(50 * MS);
    assert!(matches!(world.runtime.block_on(run), Err(RunError::TimedOut { .. })));
    let run = engine.run(()).within(50 * MS).node_timeout(80 * MS);
    assert!(matches!(world.runtime.block_on(run), Err(RunError::Deadline { .. })));
    world.settle(&engine);
}

#[test]
fn d4_a_cpu_node_that_takes_too_long_is_counted_as_late_and_drained() {
    let mut world = World::new();
    let mut graph = Graph::new("busy");
    let (node, release) = busy(&mut graph, &world, "busy", None, 60 * MS);
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    let error = world.runtime.block_on(engine.run(()).node_timeout(50 * MS)).unwrap_err();
    assert_eq!(error.to_string(), "R003 node \"busy\" timed out after 50ms");
    // The engine knows of it, by name, until it has ended.
    assert_eq!(engine.in_flight(), 1);
    let text = engine.stragglers().to_string();
    assert!(text.contains("busy/busy"), "{text}");
    release.send(()).unwrap();
    world.settle(&engine);
    let balance = engine.balance();
    assert_eq!((balance.accepted, balance.failed, balance.late), (2, 1, 1));
}

#[test]
fn d4_the_deadline_of_a_request_gives_up_on_cpu_nodes() {
    let mut world = World::new();
    let mut graph = Graph::new("busy");
    let (first, release) = busy(&mut graph, &world, "first", None, 60 * MS);
    let second = graph.cpu("second", first, |_, n| Ok(*n));
    let engine = graph.plan(second).unwrap().bind(world.env()).unwrap();
    let error = world.runtime.block_on(engine.run(()).within(50 * MS)).unwrap_err();
    assert_eq!(error.to_string(), "R001 request deadline exceeded: running [first], not started [second]");
    release.send(()).unwrap();
    world.settle(&engine);
}

#[test]
fn d4_within_a_chain_of_cpu_nodes_the_deadline_is_looked_at_before_each() {
    let mut world = World::new();
    let ran = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::<()>::new("chain");
    let mut last = graph.cpu("0", (), |_, ()| Ok(0));
    for n in 1..10 {
        let (clock, ran) = (world.clock.clone(), ran.clone());
        last = graph.cpu(n.to_string(), last, move |_, n| {
            clock.advance(10 * MS);
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(*n + 1)
        });
    }
    let engine = graph.plan(last).unwrap().bind(world.env()).unwrap();
    let error = world.runtime.block_on(engine.run(()).within(35 * MS)).unwrap_err();
    assert!(matches!(error, RunError::Deadline { .. }), "{error}");
    world.settle(&engine);
    assert_eq!(ran.load(Ordering::SeqCst), 4);
}

#[test]
fn d4_pipelines_of_async_and_cpu_nodes_time_out_in_either_part_or_succeed() {
    for (deadline, part) in [(50 * MS, Some("read")), (150 * MS, Some("rank")), (1000 * MS, None)] {
        let mut world = World::new();
        let mut graph = Graph::new("mixed");
        let read = sleeps(&mut graph, "read", None, 100 * MS);
        let (rank, release) = busy(&mut graph, &world, "rank", Some(read), 100 * MS);
        if part.is_none() {
            release.send(()).unwrap();
        }
        let engine = graph.plan(rank).unwrap().bind(world.env()).unwrap();
        let result = world.runtime.block_on(engine.run(()).within(deadline));
        match (result, part) {
            (Ok(_), None) => {}
            (Err(RunError::Deadline { running, .. }), Some(part)) => assert_eq!(running, [part.into()]),
            (result, _) => panic!("{result:?}"),
        }
        drop(release);
        world.settle(&engine);
    }
}

#[test]
fn d4_all_branches_that_run_are_given_up_on_at_the_deadline() {
    let mut world = World::new();
    let mut graph = Graph::new("parallel");
    let branches: Vec<_> = (0..5).map(|n| sleeps(&mut graph, &format!("b{n}"), None, 100 * MS)).collect();
    let engine = graph.plan(branches).unwrap().bind(world.env()).unwrap();
    let error = world.runtime.block_on(engine.run(()).within(10 * MS)).unwrap_err();
    assert!(error.to_string().contains("running [b0, b1, b2, b3, b4]"), "{error}");
    assert_eq!(world.runners.in_flight(), 5);
    world.settle(&engine);
    assert_eq!(world.runners.balance().late, 5);
}

#[test]
fn runs_that_time_out_and_runs_that_succeed_leave_nothing_behind() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let mut graph = Graph::<()>::new("alternating");
    let hatch = canaries.clone();
    let node = graph.future("node", (), move |_, ()| {
        let canary = hatch.hatch();
        async move {
            sleep(20 * MS).await;
            Ok(canary)
        }
    });
    let next = graph.cpu("next", node, |_, _| Ok(1));
    let engine = graph.plan(next).unwrap().bind(world.env()).unwrap();
    for n in 0..60 {
        let run = engine.run(()).within(if n % 2 == 0 { 5 * MS } else { 500 * MS });
        assert_eq!(world.runtime.block_on(run).is_err(), n % 2 == 0);
    }
    world.settle(&engine);
    assert_eq!((canaries.alive(), world.runners.balance().late), (0, 30));
    assert_eq!(engine.balance().to_string(), "accepted 60, completed 30, failed 30");
}

#[test]
fn a_node_that_is_to_be_cancelled_at_its_timeout_is_dropped_at_once() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let mut graph = Graph::<()>::new("cancel");
    let hatch = canaries.clone();
    let node = graph.future("node", (), move |_, ()| {
        let canary = hatch.hatch();
        async move {
            sleep(20 * MS).await;
            drop(canary);
            Ok(())
        }
    });
    graph.node(node).timeout(MS).on_timeout(OnTimeout::Cancel);
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    assert!(world.runtime.block_on(engine.run(())).is_err());
    assert_eq!((canaries.alive(), world.runners.balance().accepted), (0, 0));
}

#[test]
fn without_runners_what_is_too_late_is_dropped() {
    let clock = VirtualClock::new();
    let canaries = Canaries::default();
    let (hatch, timer) = (canaries.clone(), clock.clone());
    let mut graph = Graph::<()>::new("no runners");
    let node = graph.future("node", (), move |_, ()| {
        use ebbtide_lifecycle::time::Timer;
        let (canary, sleep) = (hatch.hatch(), timer.sleep(20 * MS).unwrap());
        async move {
            sleep.await;
            drop(canary);
            Ok(())
        }
    });
    let engine = graph.plan(node).unwrap().bind(Env::new(clock.clone())).unwrap();
    assert!(clock.block_on(engine.run(()).within(MS)).is_err());
    assert_eq!(canaries.alive(), 0);
}

#[test]
fn what_is_ready_when_its_time_comes_wins() {
    let mut world = World::new();
    let mut graph = Graph::new("tie");
    let node = sleeps(&mut graph, "sleep", None, 10 * MS);
    graph.node(node).timeout(10 * MS);
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    assert_eq!(*world.runtime.block_on(engine.run(())).unwrap(), 1);
}

#[test]
fn a_node_that_times_out_spares_those_that_do_not_need_it() {
    let mut world = World::new();
    let mut graph = Graph::new("independent");
    let (stuck, release) = busy(&mut graph, &world, "stuck", None, 60 * MS);
    let quick = graph.inline("quick", (), |_, ()| Ok(1));
    let after = graph.cpu("after", quick, |_, n| Ok(*n + 1));
    let last = graph.inline("last", (stuck.optional(), after), |_, (stuck, after)| {
        assert!(stuck.is_none());
        Ok(*after)
    });
    graph.node(stuck).timeout(50 * MS);
    let engine = graph.plan(last).unwrap().bind(world.env()).unwrap();
    let run = engine.run(()).policy(Policy::FinishIndependent).reported();
    let (result, report) = world.runtime.block_on(run);
    assert_eq!(*result.unwrap(), 2);
    assert_eq!(*report.node("stuck").unwrap().end, NodeEnd::TimedOut);
    release.send(()).unwrap();
    world.settle(&engine);
}

#[test]
fn a_run_whose_deadline_is_shorter_than_experience_is_refused_if_that_is_wanted() {
    let mut world = World::new();
    let mut graph = Graph::new("usual");
    let node = sleeps(&mut graph, "sleep", None, 100 * MS);
    let plan = graph.plan(node).unwrap();
    let engine = plan.bind(world.env().refuse_short_deadlines()).unwrap();
    let short = || engine.run(()).within(50 * MS);
    // Without experience nothing is refused.
    assert!(matches!(world.runtime.block_on(short()), Err(RunError::Deadline { .. })));
    for _ in 0..16 {
        world.runtime.block_on(engine.run(())).unwrap();
    }
    let error = world.runtime.block_on(short()).unwrap_err();
    assert_eq!(error.to_string(), "R008 run refused: 50ms are left, and it usually takes 100ms");
    assert!(world.runtime.block_on(engine.run(()).within(150 * MS)).is_ok());
    // One of sixteen is let begin, or it would never be known that less time has become enough.
    let refused =
        (0..32).filter(|_| matches!(world.runtime.block_on(short()), Err(RunError::TooShort { .. })));
    assert_eq!(refused.count(), 30);
    world.settle(&engine);
}
