//! Runs of a graph, stopped at every step.

use ebbtide_dag::{Engine, Env, Failure, Graph, Handle, OnTimeout, Policy, Retry, RunError};
use ebbtide_reactor::{sleep, spawn, yield_now};
use ebbtide_testkit::{Canary, Faults, Scene, Witness};
use ebbtide_timeout::Runners;

use super::{MS, SECOND, Ticket};

type Diamond = Engine<u32, Handle<(u32, Canary)>, ebbtide_reactor::Handle>;

/// Two branches, one on the loop and one on the pool, and a sum that is tried again.
fn diamond(env: Env<ebbtide_reactor::Handle>, witness: &Witness) -> Diamond {
    let mut graph = Graph::<u32>::new("diamond");
    let seen = witness.clone();
    let left = graph.future("left", (), move |cx, ()| {
        let request = **cx.request();
        seen.watch(async move {
            yield_now().await;
            sleep(3 * MS).await;
            Ok(request)
        })
    });
    let seen = witness.clone();
    let right = graph.cpu("right", (), move |cx, ()| {
        seen.ran();
        Ok(**cx.request() * 2)
    });
    let late = graph.future("late", (), |_, ()| async {
        sleep(20 * MS).await;
        Ok(1)
    });
    graph.node(late).timeout(2 * MS).on_timeout(OnTimeout::Detach).fallback(0);
    let seen = witness.clone();
    let tries = std::sync::atomic::AtomicU32::new(0);
    let sum = graph.blocking("sum", (left, right, late), move |_, (left, right, late)| {
        match tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 {
            0 => Err(Failure::new("once")),
            _ => Ok((*left + *right + *late, seen.canary())),
        }
    });
    graph.node(sum).retry(Retry::times(5).backoff(MS, MS));
    graph.plan(sum).unwrap().bind(env).unwrap()
}

fn runs(scene: &Scene, pool: ebbtide_offload::Builder, has_faults: bool) {
    let mut runtime = scene.runtime();
    let handle = runtime.handle();
    let pool = pool.cpu_threads(1).blocking_threads(1).start().unwrap();
    let runners = Runners::new(&handle, handle.clone()).unwrap();
    let engine = diamond(Env::new(handle.clone()).pool(&pool).runners(&runners), scene.witness());
    // At the stop no further run is taken; pool and runners go on until the end.
    scene.stops("engine", engine.clone());
    let (witness, token) = (scene.witness().clone(), scene.token());
    let late = runners.tracker().clone();
    runtime.block_on(async move {
        let mut tasks = Vec::new();
        for number in 0..4 {
            let ticket = Ticket::new(&witness, format!("run {number}"));
            let (answers, engine, token) = (ticket.clone(), engine.clone(), token.clone());
            let run = witness.watch(async move {
                let run = engine.run(number).within(SECOND).policy(Policy::FailFast);
                let run = if number == 1 { run.cancelled_by(&token) } else { run };
                match run.await {
                    Ok(sum) => assert_eq!(sum.0, 3 * number),
                    Err(RunError::Refused(_) | RunError::Cancelled { .. }) => {}
                    // A fault.
                    Err(RunError::NotRun { .. }) if has_faults => {}
                    Err(other) => panic!("{other}"),
                }
                answers.settle();
            });
            tasks.extend(spawn(run).ok().map(|task| (task, ticket)));
            yield_now().await;
        }
        // One that is dropped in the middle.
        if let Some((task, ticket)) = tasks.pop() {
            task.cancel();
            ticket.excuse("its task was cancelled");
        }
        for (task, _) in tasks {
            task.await.unwrap();
        }
        late.wait_idle().await;
    });
    pool.close();
    pool.wait_idle().wait();
}

#[test]
fn runs_end_and_are_accounted_for_whenever_their_engine_is_stopped() {
    let summary = Scene::stop_at_every_step(|scene| runs(scene, scene.pool(), false)).unwrap();
    assert!(summary.stopped > 10, "{summary}");
    Scene::seeds(0..200, |scene| runs(scene, scene.pool(), false)).unwrap();
}

#[test]
fn so_do_those_whose_nodes_panic_on_the_pool_before_they_begin() {
    let faults = || Faults::none().job_panics(3).slow_jobs(5, 10 * MS);
    Scene::stop_at_every_step(move |scene| runs(scene, scene.pool_with(faults()), true)).unwrap();
    Scene::seeds(0..200, move |scene| runs(scene, scene.pool_with(faults()), true)).unwrap();
}
