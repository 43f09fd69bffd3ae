//! The same plan gives the same results on whatever executor.

use std::{future::pending, time::Duration};

use ebbtide_dag::{Env, Failure, Graph, Handle, Input, OnTimeout, Policy, RunError};
use ebbtide_lifecycle::{
    Component,
    time::{ThreadTimer, Timer},
    wait::block_on,
};
use ebbtide_offload::Pool;
use ebbtide_reactor::{EventLoop, Runtime};
use ebbtide_timeout::{Runners, TokioTimer};

type Outputs = (Handle<u64>, Handle<String>, Handle<()>);

/// A plan of all kinds of nodes, some of which wait on `timer`.
fn graph<T>(timer: T) -> (Graph<u64>, Outputs)
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    let mut graph = Graph::<u64>::new("everywhere");
    let read = graph.future("read", (), move |cx, ()| {
        let (request, timer) = (**cx.request(), timer.clone());
        async move {
            timer.sleep_until(timer.now() + Duration::from_millis(request % 3)).await;
            Ok(request)
        }
    });
    let squares: Vec<_> = (0..8_u64)
        .map(|n| graph.cpu(format!("square {n}"), read, move |_, read| Ok((*read + n).pow(2))))
        .collect();
    let sum =
        graph.inline("sum", squares, |_, squares| Ok(squares.iter().map(|square| **square).sum::<u64>()));
    let flaky = graph.blocking("flaky", read, |_, read| {
        if read.is_multiple_of(5) { Err(Failure::new("five")) } else { Ok(read.to_string()) }
    });
    graph.node(flaky).fallback("fell back".to_owned());
    let picky = graph.cpu("picky", read, |_, read| match *read % 7 {
        3 => Err(Failure::new("three")),
        4 => panic!("four"),
        _ => Ok(()),
    });
    let slow = graph.future("slow", picky, |cx, _| {
        let is_stuck = **cx.request() % 7 == 5;
        async move { if is_stuck { pending().await } else { Ok(()) } }
    });
    graph.node(slow).timeout(Duration::from_millis(5)).on_timeout(OnTimeout::Cancel);
    (graph, (sum, flaky, slow))
}

type Values<'a> = (Input<'a, u64>, Input<'a, String>, Input<'a, ()>);

/// What comes of a request, as it is told.
type Told = Result<(u64, String), String>;

fn told(result: Result<Values<'_>, RunError>) -> Told {
    match result {
        Ok((sum, text, _)) => Ok((*sum, text.to_string())),
        Err(error) => Err(error.to_string()),
    }
}

fn wanted(request: u64) -> Told {
    match request % 7 {
        3 => return Err("R004 node \"picky\" failed: three".to_owned()),
        4 => return Err("R005 node \"picky\" panicked: four".to_owned()),
        5 => return Err("R003 node \"slow\" timed out after 5ms".to_owned()),
        _ => {}
    }
    let text = if request.is_multiple_of(5) { "fell back".to_owned() } else { request.to_string() };
    Ok(((0..8).map(|n| (request + n).pow(2)).sum(), text))
}

const REQUESTS: u64 = 30;

#[test]
fn d5_the_same_results_on_tokio_on_our_loop_and_on_plain_threads() {
    let pool = Pool::builder().cpu_threads(2).start().unwrap();

    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    tokio.block_on(async {
        let runners = Runners::spawned(TokioTimer, |driver| drop(tokio::spawn(driver)));
        let (graph, outputs) = graph(TokioTimer);
        let env = Env::new(TokioTimer).pool(&pool).runners(&runners);
        let engine = graph.plan(outputs).unwrap().bind(env).unwrap();
        let runs: Vec<_> = (0..REQUESTS)
            .map(|request| tokio::spawn(engine.run(request).within(Duration::from_secs(30))))
            .collect();
        for (request, run) in (0..).zip(runs) {
            assert_eq!(told(run.await.unwrap()), wanted(request));
        }
        let well = (0..REQUESTS).filter(|request| wanted(*request).is_ok()).count() as u64;
        assert_eq!((engine.balance().completed, engine.balance().failed), (well, REQUESTS - well));
    });

    let mut runtime = Runtime::new();
    let (graph_of_loop, outputs) = graph(runtime.handle());
    let engine = graph_of_loop.plan(outputs).unwrap().bind(Env::new(runtime.handle()).pool(&pool)).unwrap();
    runtime.block_on(async {
        let runs: Vec<_> =
            (0..REQUESTS).map(|request| ebbtide_reactor::spawn(engine.run(request)).ok().unwrap()).collect();
        for (request, run) in (0..).zip(runs) {
            assert_eq!(told(run.await.unwrap()), wanted(request));
        }
    });

    let timer = ThreadTimer::start().unwrap();
    let (graph_of_threads, outputs) = graph(timer.clone());
    let engine = graph_of_threads.plan(outputs).unwrap().bind(Env::new(timer).pool(&pool)).unwrap();
    std::thread::scope(|scope| {
        for request in 0..REQUESTS {
            let engine = &engine;
            scope.spawn(move || {
                let run = engine.run(request).policy(Policy::FinishIndependent);
                assert_eq!(told(block_on(run)), wanted(request));
            });
        }
    });
}

#[test]
fn a_run_on_an_event_loop_of_its_own_thread() {
    let events = EventLoop::new();
    events.start().unwrap();
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let (graph, outputs) = graph(events.handle());
    let engine = graph.plan(outputs).unwrap().bind(Env::new(events.handle()).pool(&pool)).unwrap();
    let task = events.handle().spawn(engine.run(7)).ok().unwrap();
    assert_eq!(told(block_on(task).unwrap()), wanted(7));
}
