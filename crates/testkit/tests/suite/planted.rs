//! Programs with a bug, which the kit must find: one for each kind of bug, with the message that it gives.

use std::{
    future::pending,
    sync::{Arc, Mutex, mpsc},
    thread,
};

use ebbtide::{App, shutdown::Verdict, sleep, spawn};
use ebbtide_testkit::{Explorer, Failing, Faults, Scene, Witness};

use super::{MS, SECOND};

/// The message has all of this, and the line that replays the case.
#[track_caller]
fn assert_says(failing: &Failing, parts: &[&str]) {
    let message = failing.to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in:\n{message}");
    }
    let replay =
        format!("EBBTIDE_SEED={} cargo test -p ebbtide-testkit -- --exact planted::", failing.code.unwrap());
    assert!(failing.replay().starts_with(&replay), "{message}");
    assert!(message.ends_with(failing.replay()), "{message}");
}

/// Requests go through a queue of the program's own, whose reader ends at the first word of a stop.
#[test]
fn a_program_that_loses_a_request_at_a_stop_is_found() {
    let witness = Witness::new();
    let seen = witness.clone();
    let program = async move |app: App| {
        let queue = Arc::new(Mutex::new(Vec::new()));
        for number in 0..5 {
            queue.lock().unwrap().push(seen.promise(format!("request {number}")));
            if app.token().wrap(sleep(MS)).await.is_err() {
                // What is in the queue is dropped with it.
                return Ok(());
            }
            queue.lock().unwrap().drain(..).for_each(|request| request.keep());
        }
        Ok(())
    };
    let failing = Explorer::new(program).witness(&witness).stop_at_every_step().unwrap_err();
    assert_says(
        &failing,
        &[
            "1 accepted and never answered, of which a stop that was cut short may break 0",
            "\"request 0\" at",
            "stop before step",
        ],
    );
}

#[test]
fn a_program_that_hangs_at_a_stop_is_found_and_who_is_stuck_is_named() {
    // Time stands still while a job runs, so nothing but the watchdog ends this.
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let program = async move |app: App| {
        if app.token().wrap(sleep(MS)).await.is_err() {
            let released = released.clone();
            app.pool().blocking().named("flush").offload(move || released.lock().unwrap().recv()).await?.ok();
        }
        Ok(())
    };
    let failing = Explorer::new(program).limit(SECOND).stop_at_every_step().unwrap_err();
    assert_says(
        &failing,
        &["it did not end within 1s", "it is stopping", "\"flush\" at", "in the end: hung"],
    );
    drop(release);
}

#[test]
fn a_program_that_leaks_is_found() {
    let witness = Witness::new();
    let seen = witness.clone();
    let program = async move |app: App| {
        let buffer = (Box::new([0; 64]), seen.canary());
        if app.token().wrap(sleep(SECOND)).await.is_err() {
            std::mem::forget(buffer);
        }
        Ok(())
    };
    let failing = Explorer::new(program).witness(&witness).stop_at_every_step().unwrap_err();
    assert_says(&failing, &["1 alive after the end: crates/testkit/tests/suite/planted.rs:"]);
}

/// A thread of which nobody knows: it gets on while the second case runs.
#[test]
fn a_program_that_runs_after_its_stop_is_found_also_when_the_next_case_runs() {
    let witness = Witness::new();
    let seen = witness.clone();
    let late = Mutex::new(None::<(mpsc::Sender<()>, thread::JoinHandle<()>)>);
    let program = async move |_: App| {
        let before = late.lock().unwrap().take();
        if let Some((release, late)) = before {
            drop(release);
            late.join().unwrap();
        } else {
            let ((release, released), mark) = (mpsc::channel(), seen.mark());
            let runs = move || {
                assert!(released.recv().is_err(), "it is dropped");
                mark.ran();
            };
            *late.lock().unwrap() = Some((release, thread::spawn(runs)));
        }
        Ok(())
    };
    let failing = Explorer::new(program).witness(&witness).seeds(10..12).unwrap_err();
    assert_says(
        &failing,
        &["case seed:10 went wrong", "it ran after the end: crates/testkit/tests/suite/planted.rs:"],
    );
}

#[test]
fn work_that_is_given_up_on_is_found_unless_it_is_allowed() {
    let program = async |app: App| {
        app.spawn_named("stuck", pending::<()>())?.detach();
        Ok(())
    };
    let explorer = Explorer::new(program);
    let failing = explorer.seeds(0..1).unwrap_err();
    assert_says(&failing, &["the verdict is \"work was abandoned\", which is not allowed", "\"stuck\" at"]);
    let summary = explorer.allow(Verdict::Abandoned).allow(Verdict::Failed).seeds(0..20).unwrap();
    assert!(summary.endings["work was abandoned"] > 10, "{summary}");
}

#[test]
fn a_program_that_cannot_bear_a_job_that_panics_is_found_by_a_fault() {
    let program = async |app: App| {
        app.pool().offload(|| ()).await?;
        Ok(())
    };
    let explorer = Explorer::new(program);
    assert_eq!(explorer.seeds(0..20).unwrap().cases, 20);
    let failing = explorer.faults(Faults::none().job_panics(3)).seeds(0..20).unwrap_err();
    assert_says(&failing, &["the verdict is \"a component failed\"", "1 of 3 jobs panics", "; job 1 panics"]);
}

#[test]
fn an_order_of_tasks_that_breaks_a_program_is_found_by_a_seed_and_replays() {
    // In turn the first task is always first.
    let program = async |_: App| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..3)
            .filter_map(|number| {
                let log = log.clone();
                spawn(async move { log.lock().unwrap().push(number) }).ok()
            })
            .collect();
        for task in tasks {
            task.await?;
        }
        if *log.lock().unwrap() != [0, 1, 2] { Err("out of order".into()) } else { Ok(()) }
    };
    let explorer = Explorer::new(program);
    explorer.stop_at_every_step().unwrap();
    let failing = explorer.seeds(0..100).unwrap_err();
    assert_says(&failing, &["out of order", "tasks in the order 0x"]);
    // At once, as a rule; on a busy machine the threads that start the program may change its first steps.
    let code = failing.code.unwrap().to_string();
    assert!((0..20).any(|_| explorer.replay(&code).is_err()));
}

#[test]
fn a_component_with_a_bug_is_found_without_a_program() {
    let failing = Scene::stop_at_every_step(|scene| {
        let mut runtime = scene.runtime();
        let (token, seen) = (scene.token(), scene.witness().clone());
        runtime.block_on(async move {
            let promise = seen.promise("the write");
            if token.wrap(sleep(SECOND)).await.is_ok() {
                promise.keep();
            }
        });
    });
    assert_says(&failing.unwrap_err(), &["\"the write\" at", "stop before step 1, by a signal"]);
    let failing = Scene::seeds(0..3, |_| panic!("told to")).unwrap_err();
    assert_says(&failing, &["the case panicked: told to"]);
}
