//! CPU nodes that are run where their run is polled when they have little to do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use ebbtide_dag::{Cx, Failure, Graph, Input, Retry};

use super::{Canaries, Canary, World};

/// Whether this is a thread of the pool.
fn on_pool() -> bool {
    thread::current().name().is_some_and(|name| name.starts_with("offload-cpu"))
}

#[test]
fn d2_a_light_node_runs_where_its_run_is_polled_and_a_heavy_one_on_the_pool() {
    let mut world = World::new();
    let mut graph = Graph::<usize>::new("weighed");
    let rows = graph.inline("rows", (), |cx, ()| Ok(vec![7; *cx.request().as_ref()]));
    let weighed =
        graph.weighed("weighed", rows, |_, rows| rows.len() < 10, |_, rows| Ok((rows.len(), on_pool())));
    let engine = graph.plan(weighed).unwrap().bind(world.env()).unwrap();
    for (len, on_pool) in [(9, false), (10, true), (0, false)] {
        assert_eq!(*world.runtime.block_on(engine.run(len)).unwrap(), (len, on_pool));
    }
    world.settle(&engine);
}

#[test]
fn what_follows_a_node_on_the_pool_stays_there_light_or_not() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("follows");
    let heavy = graph.cpu("heavy", (), |_, ()| Ok(()));
    let light = graph.weighed("light", heavy, |_, _| true, |_, _| Ok(on_pool()));
    let engine = graph.plan(light).unwrap().bind(world.env()).unwrap();
    assert!(*world.runtime.block_on(engine.run(())).unwrap());
    world.settle(&engine);
}

#[test]
fn weighing_takes_nothing_from_the_node_that_is_run() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let born = canaries.clone();
    let mut graph = Graph::<bool>::new("last consumer");
    let value = graph.inline("value", (), move |_, ()| Ok(born.hatch()));
    // The last consumer gets the value itself, which it could not if anybody still had a share of it.
    let is_owned = |_: Cx<'_, bool>, value: Input<'_, Canary>| Ok(value.try_into_inner().is_ok());
    let owned = graph.weighed("owned", value, |cx, _| **cx.request(), is_owned);
    let engine = graph.plan(owned).unwrap().bind(world.env()).unwrap();
    for light in [true, false] {
        assert!(*world.runtime.block_on(engine.run(light)).unwrap());
        assert_eq!(canaries.alive(), 0);
    }
    world.settle(&engine);
}

#[test]
fn a_node_that_is_tried_again_is_weighed_again() {
    let mut world = World::new();
    let weighings = Arc::new(AtomicUsize::new(0));
    let count = weighings.clone();
    let mut graph = Graph::<()>::new("again");
    let input = graph.inline("input", (), |_, ()| Ok(String::from("kept")));
    let flaky = graph.weighed(
        "flaky",
        input,
        move |_, _| count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2),
        |cx, input| {
            if cx.attempt() < 3 { Err(Failure::new("again")) } else { Ok((input.clone(), on_pool())) }
        },
    );
    graph.node(flaky).retry(Retry::times(3));
    let engine = graph.plan(flaky).unwrap().bind(world.env()).unwrap();
    let ended = world.runtime.block_on(engine.run(())).unwrap();
    assert_eq!((ended.0.as_str(), ended.1), ("kept", false));
    assert_eq!(weighings.load(Ordering::Relaxed), 3);
    world.settle(&engine);
}

#[test]
fn a_node_whose_weighing_panics_is_run_on_the_pool() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("panics");
    let node = graph.weighed("node", (), |_, ()| panic!("no scales"), |_, ()| Ok(on_pool()));
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    assert!(*world.runtime.block_on(engine.run(())).unwrap());
    world.settle(&engine);
}

#[test]
fn a_light_node_that_panics_is_an_error_of_that_node() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("panics");
    let node = graph.weighed("node", (), |_, ()| true, |_, ()| -> Result<(), _> { panic!("broken") });
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    let error = world.runtime.block_on(engine.run(())).unwrap_err();
    assert_eq!(error.to_string(), "R005 node \"node\" panicked: broken");
    world.settle(&engine);
}

#[test]
fn attempts_count_from_one_also_for_what_weighs_a_node() {
    let mut world = World::new();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen_by = seen.clone();
    let mut graph = Graph::<()>::new("attempts");
    let node = graph.weighed(
        "node",
        (),
        move |cx, ()| {
            seen_by.lock().unwrap().push(cx.attempt());
            true
        },
        |cx, ()| if cx.attempt() < 3 { Err(Failure::new("again")) } else { Ok(()) },
    );
    graph.node(node).retry(Retry::times(3));
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    world.runtime.block_on(engine.run(())).unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 2, 3]);
    world.settle(&engine);
}
