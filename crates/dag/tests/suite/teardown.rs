//! Runs that are dropped, stopped or end badly, at any step.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use ebbtide_dag::{Engine, Failure, Graph, Handle, RunError};
use ebbtide_lifecycle::{Component, Reason, Stopped, Stopping, Trigger, time::Deadline, wait::block_on};
use ebbtide_reactor::{sleep, yield_now};

use super::{Canaries, Canary, MS, World};

type Mixed = Engine<Canary, Handle<Canary>, ebbtide_reactor::Handle>;

/// A plan with nodes of all kinds, each of which holds a canary while it is under way and gives one.
fn mixed(world: &World, canaries: &Canaries) -> Mixed {
    let mut graph = Graph::<Canary>::new("mixed");
    let hatch = canaries.clone();
    let root = graph.inline("root", (), move |_, ()| Ok(hatch.hatch()));
    let layer = |graph: &mut Graph<Canary>, nth: u32, inputs: Vec<Handle<Canary>>| {
        let hatch = canaries.clone();
        let waits = graph.future(format!("waits {nth}"), inputs.clone(), move |_, inputs| {
            let canary = hatch.hatch();
            async move {
                yield_now().await;
                drop(inputs);
                sleep(MS).await;
                Ok(canary)
            }
        });
        let hatch = canaries.clone();
        let cpu = graph.cpu(format!("cpu {nth}"), inputs.clone(), move |_, _| Ok(hatch.hatch()));
        let hatch = canaries.clone();
        let blocking = graph.blocking(format!("blocking {nth}"), inputs, move |_, _| Ok(hatch.hatch()));
        vec![waits, cpu, blocking]
    };
    let first = layer(&mut graph, 1, vec![root]);
    let second = layer(&mut graph, 2, first);
    let hatch = canaries.clone();
    let end = graph.inline("end", second, move |_, _| Ok(hatch.hatch()));
    graph.plan(end).unwrap().bind(world.env()).unwrap()
}

/// Polls a future so often at most, each time on the loop. Gives whether it has ended.
async fn steps<F: Future + Unpin>(future: &mut F, steps: usize) -> bool {
    for _ in 0..steps {
        let polled = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await;
        if polled.is_ready() {
            return true;
        }
        sleep(MS / 2).await;
    }
    false
}

#[test]
fn a_run_that_is_dropped_at_any_step_leaves_nothing_in_flight() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let engine = mixed(&world, &canaries);
    for step in 0.. {
        let mut run = engine.run(canaries.hatch());
        let has_ended = world.runtime.block_on(steps(&mut run, step));
        drop(run);
        world.settle(&engine);
        assert_eq!(canaries.alive(), 0, "dropped at step {step}");
        if has_ended {
            assert!(step > 3);
            break;
        }
    }
    let balance = engine.balance();
    assert!(balance.completed == 1 && balance.cancelled > 3, "{balance}");
}

#[test]
fn a_run_that_is_cancelled_at_any_step_ends_and_leaves_nothing_in_flight() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let engine = mixed(&world, &canaries);
    for step in 0.. {
        let trigger = Trigger::new();
        let mut run = engine.run(canaries.hatch()).cancelled_by(&trigger.token());
        if world.runtime.block_on(steps(&mut run, step)) {
            break;
        }
        trigger.fire(Reason::requested("test"));
        let error = world.runtime.block_on(run).unwrap_err();
        assert!(matches!(error, RunError::Cancelled { .. }), "{error}");
        world.settle(&engine);
        assert_eq!(canaries.alive(), 0, "cancelled at step {step}");
    }
}

#[test]
fn a_deadline_at_any_time_ends_a_run_and_leaves_nothing_in_flight() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let engine = mixed(&world, &canaries);
    for micros in (100..3_000).step_by(100) {
        let deadline = std::time::Duration::from_micros(micros);
        let result = world.runtime.block_on(engine.run(canaries.hatch()).within(deadline));
        assert_eq!(result.is_ok(), micros > 2_000, "{micros}");
        drop(result);
        world.settle(&engine);
        assert_eq!(canaries.alive(), 0, "after {micros} µs");
    }
}

#[test]
fn a_run_that_fails_at_any_node_leaves_nothing_in_flight() {
    let mut world = World::new();
    let canaries = Canaries::default();
    for bad in 0..8 {
        let mut graph = Graph::<Canary>::new("fails");
        let count = Arc::new(AtomicUsize::new(0));
        let made = |canaries: &Canaries| {
            let (hatch, count) = (canaries.clone(), count.clone());
            move || {
                let canary = hatch.hatch();
                if count.fetch_add(1, Ordering::SeqCst) == bad {
                    Err(Failure::new("broken"))
                } else {
                    Ok(canary)
                }
            }
        };
        let make = made(&canaries);
        let mut last = graph.inline("0", (), move |_, ()| make());
        for n in 1..4 {
            let make = made(&canaries);
            let cpu = graph.cpu(format!("cpu {n}"), last, move |_, _| make());
            let make = Arc::new(made(&canaries));
            let waits = graph.future(format!("waits {n}"), last, move |_, input| {
                let make = make.clone();
                async move {
                    sleep(MS).await;
                    drop(input);
                    make()
                }
            });
            last = graph.inline(format!("both {n}"), (cpu, waits), {
                let hatch = canaries.clone();
                move |_, _| Ok(hatch.hatch())
            });
        }
        let engine = graph.plan(last).unwrap().bind(world.env()).unwrap();
        let result = world.runtime.block_on(engine.run(canaries.hatch()));
        assert_eq!(result.is_err(), bad < 7);
        drop(result);
        world.settle(&engine);
        assert_eq!(canaries.alive(), 0, "node {bad} fails");
    }
}

#[test]
fn d3_a_run_may_be_dropped_on_another_thread_while_its_nodes_run() {
    let canaries = Canaries::default();
    let world = World::new();
    let mut graph = Graph::<()>::new("storm");
    let hatch = canaries.clone();
    let root = graph.cpu("root", (), move |_, ()| Ok(hatch.hatch()));
    let nodes: Vec<_> = (0..20)
        .map(|n| {
            let hatch = canaries.clone();
            graph.cpu(format!("n{n}"), root, move |_, _| Ok(hatch.hatch()))
        })
        .collect();
    let end = graph.cpu("end", nodes, |_, nodes| Ok(nodes.len()));
    let engine = graph.plan(end).unwrap().bind(world.env()).unwrap();
    let mut cancelled = 0;
    for n in 0..3_000_usize {
        let mut run = pin!(engine.run(()));
        for _ in 0..n % 4 {
            if run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                break;
            }
            for _ in 0..(n % 50) * 20 {
                std::hint::spin_loop();
            }
        }
        cancelled += 1;
    }
    world.pool.wait_idle().wait();
    let balance = engine.balance();
    balance.check().unwrap();
    assert_eq!((canaries.alive(), balance.in_flight, cancelled), (0, 0, 3_000));
}

#[test]
fn many_runs_of_success_and_timeout_do_not_leak() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let engine = mixed(&world, &canaries);
    for n in 0..500 {
        let deadline = if n % 3 == 0 { MS / 2 } else { 100 * MS };
        drop(world.runtime.block_on(engine.run(canaries.hatch()).within(deadline)));
    }
    world.settle(&engine);
    assert_eq!(canaries.alive(), 0);
    assert_eq!(engine.balance().accepted - engine.balance().late, 500);
}

#[test]
fn an_engine_that_stops_refuses_runs_and_waits_for_those_that_are_under_way() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let engine = mixed(&world, &canaries);
    let mut run = engine.run(canaries.hatch());
    assert!(!world.runtime.block_on(steps(&mut run, 1)));
    let stopping = engine.stop(Deadline::never(), &Reason::requested("test"));
    let error = block_on(engine.run(canaries.hatch())).unwrap_err();
    assert_eq!(error.to_string(), "R007 run refused: closed to new work");
    let text = engine.stragglers().to_string();
    assert!(text.contains("\"mixed: waits 1") || text.contains("waits 1, "), "{text}");
    world.runtime.block_on(run).unwrap();
    assert_eq!(stopping.wait(), Stopped::Clean);
    // What is left at the deadline is abandoned.
    let engine = mixed(&world, &canaries);
    let mut run = engine.run(canaries.hatch());
    assert!(!world.runtime.block_on(steps(&mut run, 1)));
    let deadline = Deadline::after(&world.clock, MS);
    let stopped = match engine.stop(deadline, &Reason::requested("test")) {
        Stopping::Future(stopping) => world.runtime.block_on(stopping),
        Stopping::Blocking(stop) => stop(),
    };
    assert_eq!((stopped, engine.balance().abandoned), (Stopped::Overdue, 1));
    drop(run);
    assert_eq!(engine.balance().returned_after, 1);
}
