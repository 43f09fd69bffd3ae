//! Programs with more than one loop.

use std::{
    future::pending,
    sync::{Arc, mpsc},
    thread,
};

use ebbtide::{
    app::LoopNotStarted,
    lifecycle::{
        Reason,
        time::{Clock as _, SystemClock},
    },
    reactor::EventLoop,
    shutdown::{Ending, Priority},
};

use super::{Fixture, SECOND, Tells, report};

#[test]
fn another_loop_runs_on_a_thread_of_its_own_and_in_the_time_of_the_program() {
    let fixture = Fixture::new();
    let exit = fixture.run(async |app| {
        let second = app.start_loop("second", EventLoop::builder())?;
        let (timer, main) = (second.clone(), thread::current().id());
        let there = second.spawn(async move {
            timer.sleep(3 * SECOND).await;
            let here = thread::current();
            (here.id(), here.name().map(str::to_owned))
        })?;
        let (thread, name) = there.await?;
        assert_ne!(thread, main);
        assert_eq!(name.as_deref(), Some("second"));
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
    assert_eq!(fixture.elapsed(), 3 * SECOND);
}

#[test]
fn another_loop_is_stopped_with_the_first_one_when_its_tasks_have_ended() {
    let fixture = Fixture::new();
    let log = fixture.log.clone();
    let exit = fixture.run(async move |app| {
        let second = app.start_loop("second", EventLoop::builder())?;
        let (timer, told) = (second.clone(), log.clone());
        second
            .spawn(async move {
                timer.sleep(2 * SECOND).await;
                told.add("task ends");
            })?
            .detach();
        app.keep("resource", Tells("resource is dropped", log.clone()));
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
    let told: Vec<_> = fixture.log.lines().into_iter().filter(|line| line.contains("2s")).collect();
    assert_eq!(told, ["2s: task ends", "2s: resource is dropped"]);
    let phases = report(&exit).phases();
    let loops = phases.iter().find(|phase| phase.priority == Priority::LOOPS).unwrap();
    let loops: Vec<_> = loops.components.iter().map(|component| &*component.name).collect();
    assert_eq!(loops, ["loop", "second"]);
}

#[test]
fn a_loop_with_the_name_of_another_component_is_not_started() {
    let exit = Fixture::new().run(async |app| {
        let error = app.start_loop("pool", EventLoop::builder()).unwrap_err();
        assert!(matches!(&error, LoopNotStarted::Duplicate(name) if &**name == "pool"));
        assert!(error.to_string().contains("\"pool\" is registered already"), "{error}");
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn a_program_that_has_stopped_starts_no_loop() {
    let (sender, receiver) = mpsc::channel();
    let exit = Fixture::new().run(async move |app| {
        app.stop(Reason::requested("it is a test"));
        sender.send(app.clone())?;
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
    let app = receiver.recv().unwrap();
    assert!(matches!(app.start_loop("late", EventLoop::builder()), Err(LoopNotStarted::Stopping)));
}

#[test]
fn a_task_that_is_stuck_on_another_loop_is_named_by_that_one() {
    let exit = Fixture::new().builder().drain_timeout(5 * SECOND).run(async |app| {
        let second = app.start_loop("second", EventLoop::builder())?;
        second.spawn_named("stuck", pending::<()>())?.detach();
        Ok(())
    });
    let second = report(&exit).component("second").unwrap();
    assert_eq!((exit.code(), &second.ending), (75, &Ending::Overdue), "{exit}");
    assert!(second.stragglers.to_string().contains("\"stuck\" at crates/ebbtide/tests/suite/loops.rs:"));
}

#[test]
fn another_loop_that_hangs_holds_the_program_up_no_longer_than_it_may() {
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let begin = SystemClock.now();
    let exit = ebbtide::App::builder().without_signals().drain_timeout(SECOND).observer(|_| ()).run(
        async move |app| {
            let second = app.start_loop("second", EventLoop::builder())?;
            let held = held.clone();
            // It blocks its thread.
            let posted = second.post(move || drop(held.lock().map(|held| held.recv())));
            assert!(posted.is_ok());
            Ok(())
        },
    );
    assert_eq!(exit.code(), 75, "{exit}");
    assert!(SystemClock.now() - begin < 20 * SECOND);
    drop(release);
}
