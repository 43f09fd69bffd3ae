//! The pool, stopped at every step of the loop that awaits its jobs.

use ebbtide_offload::{OffloadError, Pool};
use ebbtide_testkit::{Faults, Scene, Witness};

use super::{MS, Ticket};

/// Brings a job of each kind, and says what became of it.
async fn bring(pool: &Pool, witness: &Witness, number: u32) {
    let ticket = Ticket::new(witness, format!("job {number}"));
    let (canary, mark) = (witness.canary(), witness.mark());
    let job = move || {
        mark.ran();
        drop(canary);
        number
    };
    let lane = if number.is_multiple_of(2) { pool.cpu() } else { pool.blocking() };
    match lane.offload(job).await {
        Ok(given) => assert_eq!(given, number),
        // It was closed, or a fault.
        Err(OffloadError::Panicked(_) | OffloadError::Refused(_)) => {}
        Err(other) => panic!("{other}"),
    }
    ticket.settle();
    let jobs = (0..3).map(|_| {
        let canary = witness.canary();
        move || drop(canary)
    });
    let batch = pool.offload_all(jobs);
    if number.is_multiple_of(3) {
        drop(batch);
    } else {
        assert!(batch.await.len() <= 3);
    }
}

fn jobs(scene: &Scene, pool: ebbtide_offload::Builder) {
    let mut runtime = scene.runtime();
    let pool = pool.cpu_threads(1).blocking_threads(2).start().unwrap();
    scene.stops("pool", pool.clone());
    let witness = scene.witness().clone();
    runtime.block_on(async move {
        for number in 0..4 {
            bring(&pool, &witness, number).await;
        }
    });
}

#[test]
fn a_pool_runs_all_that_it_accepted_whenever_it_is_stopped() {
    let summary = Scene::stop_at_every_step(|scene| jobs(scene, scene.pool())).unwrap();
    assert!(summary.stopped > 4, "{summary}");
    Scene::seeds(0..200, |scene| jobs(scene, scene.pool())).unwrap();
}

#[test]
fn so_does_one_whose_jobs_panic_and_take_long_and_that_gets_no_threads() {
    let faults = || Faults::none().job_panics(4).slow_jobs(4, 100 * MS).refused_threads(2);
    Scene::stop_at_every_step(move |scene| jobs(scene, scene.pool_with(faults()))).unwrap();
    Scene::seeds(0..200, move |scene| jobs(scene, scene.pool_with(faults()))).unwrap();
}
