//! The loop, stopped at every step.

use std::{sync::Arc, time::Duration};

use ebbtide_lifecycle::time::Timer;
use ebbtide_reactor::{Handle, sleep, spawn, yield_now};
use ebbtide_testkit::{Scene, Witness};

use super::{MS, SECOND, Ticket};

/// Tasks that spawn, sleep, yield, post and await each other. Returns whatever is refused.
async fn work(handle: Handle, witness: Witness) {
    let canary = witness.canary();
    let child = spawn(witness.watch(async move {
        let _canary = canary;
        yield_now().await;
        sleep(5 * MS).await;
    }));
    for number in 0..3 {
        let ticket = Ticket::new(&witness, format!("post {number}"));
        let (answers, mark) = (ticket.clone(), witness.mark());
        let posted = handle.post(move || {
            mark.ran();
            answers.settle();
        });
        if let Err(refused) = posted {
            drop(refused.work);
            ticket.settle();
        }
        yield_now().await;
    }
    if let Ok(child) = child {
        // Its output or an error, never a hang.
        let _ = child.await;
    }
}

fn on_a_thread(scene: &Scene) {
    let events = Arc::new(scene.event_loop());
    scene.stops("loop", events.clone());
    // `stop` drops the tasks that are there.
    scene.may_break("loop");
    events.start().unwrap();
    for number in 0..3 {
        let ticket = Ticket::new(scene.witness(), format!("task {number}"));
        let (answers, handle, witness) = (ticket.clone(), events.handle(), scene.witness().clone());
        let task = async move {
            work(handle, witness).await;
            answers.settle();
        };
        match events.spawn(task) {
            Ok(task) => task.detach(),
            Err(refused) => {
                drop(refused.work);
                ticket.settle();
            }
        }
    }
    scene.clock().block_on(scene.clock().sleep(SECOND).unwrap());
}

#[test]
fn a_loop_runs_all_that_it_accepted_whenever_it_is_stopped() {
    let summary = Scene::stop_at_every_step(on_a_thread).unwrap();
    assert!(summary.stopped > 10, "{summary}");
    Scene::seeds(0..200, on_a_thread).unwrap();
}

/// A shutdown that the future of `block_on` waits for, and a quiesce after it.
fn driven(scene: &Scene) {
    let mut runtime = scene.runtime();
    let (handle, witness, token) = (runtime.handle(), scene.witness().clone(), scene.token());
    let ticket = Ticket::new(&witness, "main");
    let answers = ticket.clone();
    runtime.block_on(witness.clone().watch(async move {
        let task = spawn(work(handle.clone(), witness.clone()));
        let _ = token.wrap(work(handle, witness)).await;
        drop(task);
        answers.settle();
    }));
    runtime.shutdown_quiesce(Duration::from_secs(10)).unwrap();
    let stats = runtime.shutdown_stats();
    drop(runtime);
    let snapshot = stats.snapshot();
    snapshot.balance.check().unwrap();
    assert_eq!((snapshot.balance.in_flight, snapshot.balance.cancelled), (0, 0), "{snapshot}");
    assert_eq!(
        (snapshot.panics, snapshot.unbalanced_shutdowns, snapshot.undrained_wakes),
        (0, 0, 0),
        "{snapshot}"
    );
}

#[test]
fn a_runtime_is_quiet_and_balanced_whenever_its_shutdown_is_triggered() {
    let summary = Scene::stop_at_every_step(driven).unwrap();
    assert!(summary.stopped > 10, "{summary}");
    Scene::seeds(0..200, driven).unwrap();
}

/// Dropped in the middle, it cancels and counts.
fn cut_off(scene: &Scene) {
    let mut runtime = scene.runtime();
    let (handle, witness, token) = (runtime.handle(), scene.witness().clone(), scene.token());
    runtime.spawn(work(handle.clone(), witness.clone())).ok().unwrap().detach();
    runtime.block_on(async move { token.wrap(work(handle, witness)).await.is_ok() });
    let stats = runtime.shutdown_stats();
    drop(runtime);
    stats.snapshot().balance.check().unwrap();
    assert_eq!(stats.snapshot().balance.in_flight, 0);
}

#[test]
fn a_runtime_that_is_dropped_at_any_step_runs_its_posts_and_leaves_nothing_behind() {
    let summary = Scene::stop_at_every_step(cut_off).unwrap();
    assert!(summary.stopped > 5, "{summary}");
    Scene::seeds(0..200, cut_off).unwrap();
}
