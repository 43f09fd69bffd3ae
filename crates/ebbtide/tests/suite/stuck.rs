//! What does not end: it is named, and holds nothing up for good.

use std::{future::pending, sync::mpsc, thread, time::Duration};

use ebbtide::{
    App, Exit,
    lifecycle::time::{Clock as _, SystemClock},
    shutdown::{Ending, Feed, Signals},
    sleep, spawn, spawn_named,
};

use super::{Fixture, SECOND, report};

const HERE: &str = "crates/ebbtide/tests/suite/stuck.rs:";

/// The code is 75, and the component, or the intake, names `who` in this file.
fn assert_named(exit: &Exit, component: &str, who: &str) {
    assert_eq!(exit.code(), 75, "{exit}");
    let stragglers = match component {
        "intake" => &report(exit).intake().unwrap().stragglers,
        name => &report(exit).component(name).unwrap().stragglers,
    };
    let named = stragglers.to_string();
    assert!(named.contains(&format!("{who}{HERE}")), "{component}: {named}");
}

#[test]
fn a_request_that_is_stuck_is_named_at_its_file_and_line_and_the_code_is_75() {
    let fixture = Fixture::new();
    let exit = fixture.builder().drain_timeout(5 * SECOND).run(async |app| {
        app.spawn_named("GET /stuck", pending::<()>())?.detach();
        app.spawn(sleep(SECOND))?.detach();
        Ok(())
    });
    assert_named(&exit, "intake", "\"GET /stuck\" at ");
    assert_eq!(report(&exit).intake().unwrap().balance.abandoned, 1);
    assert!(fixture.elapsed() <= 5 * SECOND, "{:?}", fixture.elapsed());
}

#[test]
fn a_task_that_is_stuck_is_named_by_the_loop() {
    let fixture = Fixture::new();
    let exit = fixture.builder().drain_timeout(5 * SECOND).run(async |_| {
        drop(spawn_named("ticker", pending::<()>()));
        Ok(())
    });
    assert_named(&exit, "loop", "\"ticker\" at ");
    assert_eq!(report(&exit).component("loop").unwrap().ending, Ending::Overdue);
    assert!(fixture.elapsed() <= 5 * SECOND, "{:?}", fixture.elapsed());
}

#[test]
fn a_late_runner_that_is_stuck_is_named() {
    let exit = Fixture::new().run(async |app| {
        let late = app.runners().timeout(SECOND, pending::<()>()).named("query");
        assert!(late.await.is_err());
        Ok(())
    });
    assert_named(&exit, "late runners", "\"query\" at ");
}

#[test]
fn p3_a_main_that_does_not_end_is_named_where_it_was_run() {
    let fixture = Fixture::new();
    let feed = fixture.feed.clone();
    let exit = fixture.builder().drain_timeout(5 * SECOND).run(async move |_| {
        feed.send(15);
        pending().await
    });
    assert_named(&exit, "main", "\"main\" at ");
    assert!(fixture.elapsed() <= 5 * SECOND, "{:?}", fixture.elapsed());
}

/// In real time: a thread that blocks keeps virtual time from moving.
fn real() -> (Feed, ebbtide::app::Builder) {
    let feed = Feed::new();
    let builder = App::builder()
        .signals(Signals::from_feed(&feed))
        .drain_timeout(SECOND)
        .pool(|pool| pool.cpu_threads(1))
        .coordinator(|coordinator| coordinator.observer(|_| {}));
    (feed, builder)
}

/// A second, and what a busy machine needs.
const A_SECOND_OR_SO: Duration = Duration::from_secs(10);

#[test]
fn p3_a_main_that_never_awaits_holds_up_no_report() {
    let (feed, builder) = real();
    let (release, released) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let told = thread::spawn(move || {
        begins.recv().unwrap();
        feed.send(15);
    });
    let start = SystemClock.now();
    let exit = builder.run(async move |_| {
        begun.send(()).unwrap();
        let _ = released.recv();
        Ok(())
    });
    assert!(SystemClock.now() - start < A_SECOND_OR_SO);
    assert_named(&exit, "main", "\"main\" at ");
    let of_loop = &report(&exit).component("loop").unwrap().ending;
    assert!(matches!(of_loop, Ending::Hung | Ending::Overdue), "{exit}");
    drop(release);
    told.join().unwrap();
}

#[test]
fn a_job_that_is_stuck_is_named_and_holds_up_no_report() {
    let (_, builder) = real();
    let (release, released) = mpsc::channel::<()>();
    let start = SystemClock.now();
    let exit = builder.run(async move |app| {
        app.pool().blocking().named("fsync").offload(move || released.recv()).detach();
        Ok(())
    });
    assert!(SystemClock.now() - start < A_SECOND_OR_SO);
    assert_named(&exit, "pool", "\"fsync\" at ");
    assert_eq!(report(&exit).component("loop").unwrap().ending, Ending::Clean, "{exit}");
    drop(release);
}

#[test]
fn a_task_that_blocks_the_loop_is_named() {
    // A loop that does not answer is given a while to do so, for which a second in all is too short.
    let (_, builder) = real();
    let builder = builder.drain_timeout(3 * SECOND);
    let (release, released) = mpsc::channel::<()>();
    let exit = builder.run(async move |_| {
        let blocks = async move {
            let _ = released.recv();
        };
        drop(spawn(blocks));
        Ok(())
    });
    assert_named(&exit, "loop", "");
    drop(release);
}
