//! Whole programs, stopped at every step.

use ebbtide::{
    App,
    lifecycle::Outcome,
    shutdown::{Priority, Verdict},
    sleep, spawn,
};
use ebbtide_testkit::{Explorer, Faults, Witness};

use super::{MS, SECOND, Ticket};

/// A service: requests that use the pool and time out, a component, a resource, and a main that waits for the word.
async fn service(app: App, witness: Witness) -> Result<(), ebbtide::Error> {
    app.keep("connection", witness.canary());
    let ticks = witness.clone();
    // Refused once the loop stops.
    let _ = app.spawn_component("ticker", Priority::SERVERS, async move |stop| {
        while stop.wrap(sleep(200 * MS)).await.is_ok() {
            ticks.ran();
        }
        Ok(())
    });
    app.ready();
    for number in 0..5 {
        let ticket = Ticket::new(&witness, format!("request {number}"));
        let (answers, program, canary) = (ticket.clone(), app.clone(), witness.canary());
        let request = witness.watch(async move {
            let job = program.pool().offload(move || drop(canary));
            // Well, or a fault.
            let _ = program.runners().timeout(50 * MS, async move { job.await.is_ok() }).await;
            answers.settle();
        });
        match app.spawn(request) {
            Ok(task) => task.detach(),
            Err(refused) => {
                drop(refused.work);
                ticket.settle();
            }
        }
        if app.closing().wrap(sleep(20 * MS)).await.is_err() {
            break;
        }
    }
    if let Ok(admission) = app.admit() {
        drop(spawn(async move {
            sleep(SECOND).await;
            admission.settle(Outcome::Completed);
        }));
    }
    app.token().triggered().await;
    Ok(())
}

fn explorer() -> Explorer {
    let witness = Witness::new();
    let seen = witness.clone();
    Explorer::new(async move |app| service(app, seen.clone()).await)
        .witness(&witness)
        .lifetime(5 * SECOND)
        .app(|app| app.pool(|pool| pool.cpu_threads(1)))
}

#[test]
fn p1_a_service_stops_cleanly_before_whatever_step_it_is_told_to() {
    let summary = explorer().stop_at_every_step().unwrap();
    assert!(summary.stopped > 30, "{summary}");
}

#[test]
fn p1_and_in_whatever_order_its_tasks_run_and_whatever_goes_wrong_on_the_pool() {
    let faults = Faults::none().job_panics(3).slow_jobs(3, 100 * MS).refused_threads(2).refused_starts(20);
    let summary = explorer().faults(faults).seeds(0..300).unwrap();
    assert!(summary.endings["clean"] > 200, "{summary}");
}

#[test]
fn p2_a_main_that_fails_is_the_same_at_every_step() {
    let witness = Witness::new();
    let seen = witness.clone();
    let explorer = Explorer::new(async move |app: App| {
        let _canary = seen.canary();
        app.spawn(seen.watch(sleep(SECOND)))?.detach();
        sleep(MS).await;
        Err("told to".into())
    });
    let summary = explorer.witness(&witness).allow(Verdict::Failed).stop_at_every_step().unwrap();
    assert_eq!(summary.endings["a component failed"], summary.cases);
}
