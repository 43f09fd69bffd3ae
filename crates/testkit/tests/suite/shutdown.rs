//! The coordinator, told to stop at every step of a loop that it stops.

use std::sync::{Arc, Mutex};

use ebbtide_lifecycle::{Component as _, Outcome, Reason, time::Timer};
use ebbtide_reactor::{sleep, yield_now};
use ebbtide_shutdown::{Coordinator, Event, Feed, Priority, Signals, Stage};
use ebbtide_testkit::Scene;

use super::{MS, SECOND, Ticket};

/// A loop with requests, a pool behind it, and a coordinator that stops both: on a signal at the step.
fn coordinated(scene: &Scene) {
    let feed = Feed::new();
    let stages = Arc::new(Mutex::new(Vec::new()));
    let told = stages.clone();
    let coordinator = Coordinator::builder()
        .clock(scene.clock())
        .signals(Signals::from_feed(&feed))
        .observer(move |event| {
            if let Event::PhaseBegun { priority, .. } = event {
                told.lock().unwrap().push(*priority);
            }
        })
        .exit(|code| panic!("it would end the process with {code}"))
        .start()
        .unwrap();
    let events = Arc::new(scene.event_loop());
    let pool = scene.pool().cpu_threads(1).start().unwrap();
    coordinator.register("loop", Priority::LOOPS, events.clone()).unwrap().keep();
    coordinator.register("pool", Priority::POOLS, pool.clone()).unwrap().keep();
    // Until all requests are there: this thread takes no part in time, which would go on without it.
    let hold = scene.clock().hold();
    events.start().unwrap();
    let (token, witness) = (scene.token(), scene.witness().clone());
    let signals = feed.clone();
    drop(events.spawn(async move {
        // Before the step at which the scene is stopped, or after a while.
        let _ = token.wrap(sleep(SECOND)).await;
        signals.send(15);
    }));
    for number in 0..3 {
        let Ok(admission) = coordinator.intake().admit() else { break };
        let ticket = Ticket::new(&witness, format!("request {number}"));
        let (answers, pool) = (ticket.clone(), pool.clone());
        let request = witness.watch(async move {
            yield_now().await;
            sleep(5 * MS).await;
            // The drain waits for it, so the pool is there.
            assert_eq!(pool.offload(move || number).await.unwrap(), number);
            answers.settle();
            admission.settle(Outcome::Completed);
        });
        if let Err(refused) = events.spawn(request) {
            drop(refused.work);
            ticket.settle();
        }
    }
    drop(hold);
    let report = scene.clock().block_on(coordinator.stopped());
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.stage(), report.reason()), (Stage::Stopped, &Reason::Signal(15)));
    assert_eq!(*stages.lock().unwrap(), [Priority::POOLS, Priority::LOOPS]);
    events.balance().check().unwrap();
    pool.balance().check().unwrap();
}

#[test]
fn s4_requests_are_answered_and_the_order_is_kept_at_whatever_step_the_signal_comes() {
    let summary = Scene::stop_at_every_step(coordinated).unwrap();
    assert!(summary.stopped > 10, "{summary}");
    Scene::seeds(0..200, coordinated).unwrap();
}

/// Time does not stand still for good when everything has stopped.
#[test]
fn nothing_of_a_coordinator_holds_time_after_its_end() {
    Scene::seeds(0..20, |scene| {
        coordinated(scene);
        scene.clock().block_on(scene.clock().sleep(SECOND).unwrap());
    })
    .unwrap();
}
