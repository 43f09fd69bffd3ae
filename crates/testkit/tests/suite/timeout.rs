//! Timeouts and late runners, stopped at every step.

use ebbtide_reactor::{sleep, yield_now};
use ebbtide_testkit::{Scene, Witness};
use ebbtide_timeout::{Runners, race, timeout};

use super::{MS, Ticket};

/// Each of them is over in time, and its loser is dropped, or goes on and is counted.
fn losers(scene: &Scene) {
    let mut runtime = scene.runtime();
    let handle = runtime.handle();
    let runners = Runners::new(&handle, handle.clone()).unwrap();
    scene.stops("late runners", runners.tracker().clone());
    let witness = scene.witness().clone();
    let slow = |witness: &Witness, ms: u32| {
        let (canary, witness) = (witness.canary(), witness.clone());
        witness.watch(async move {
            sleep(ms * MS).await;
            drop(canary);
            ms
        })
    };
    let late = runners.tracker().clone();
    runtime.block_on(async move {
        let ticket = Ticket::new(&witness, "all");
        for (limit, takes) in [(5, 2), (2, 5), (3, 3)] {
            let dropped = timeout(&handle, limit * MS, slow(&witness, takes)).await;
            assert_eq!(dropped.is_ok(), takes < limit || dropped.is_ok());
            let detached = runners.timeout(limit * MS, slow(&witness, takes)).await;
            assert!(detached.is_ok() || takes >= limit, "{detached:?}");
            race(slow(&witness, limit), slow(&witness, takes)).await;
            yield_now().await;
        }
        late.wait_idle().await;
        ticket.settle();
    });
}

#[test]
fn late_runners_come_to_their_end_whenever_they_are_stopped() {
    let summary = Scene::stop_at_every_step(losers).unwrap();
    assert!(summary.stopped > 10, "{summary}");
    Scene::seeds(0..200, losers).unwrap();
}
