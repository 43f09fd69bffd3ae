//! Work that the drain waits for.

use std::{future::pending, rc::Rc, thread};

use ebbtide::{lifecycle::Refusal, sleep, spawn};

use super::{Fixture, SECOND, report};

#[test]
fn a_request_uses_pool_and_runners_to_its_end() {
    let fixture = Fixture::new();
    let log = fixture.log.clone();
    let exit = fixture.run(async move |app| {
        let inside = app.clone();
        app.spawn(async move {
            inside.closing().triggered().await;
            sleep(SECOND).await;
            let answer = inside.pool().offload(|| 42).await.unwrap();
            let timely = inside.runners().timeout(2 * SECOND, sleep(SECOND)).await;
            // A part of it, that it waits for.
            let part = spawn(async { 1 }).unwrap().await.unwrap();
            log.add(format!("{answer} {} {part}", timely.is_ok()));
        })?
        .detach();
        Ok(())
    });
    assert_eq!(fixture.log.lines(), ["2s: 42 true 1"]);
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn what_comes_after_closing_is_refused_and_handed_back() {
    let exit = Fixture::new().run(async |app| {
        app.stop(ebbtide::lifecycle::Reason::requested("test"));
        app.closing().triggered().await;
        let given = Rc::new(());
        let held = given.clone();
        let refused = app.spawn_local(async move { drop(held) }).expect_err("it is closed");
        assert_eq!((refused.why, Rc::strong_count(&given)), (Refusal::Closed, 2));
        drop(refused.work);
        assert_eq!(Rc::strong_count(&given), 1, "it was all there was");
        assert!(app.spawn(async {}).is_err() && app.spawn_named("late", async {}).is_err());
        assert_eq!(app.admit().err(), Some(Refusal::Closed));
        assert!(app.gate().enter().is_err());
        Ok(())
    });
    let balance = report(&exit).intake().unwrap().balance;
    assert_eq!(balance.accepted, 1, "the start was admitted: {balance}");
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn each_end_of_a_task_is_in_the_books() {
    let exit = Fixture::new().builder().event_loop(|events| events.panic_hook(|_| {})).run(async |app| {
        let _: u8 = app.spawn(async { 7 })?.await?;
        assert!(app.spawn(async { panic!("told to") })?.await.is_err());
        let cancelled = app.spawn(pending::<()>())?;
        cancelled.cancel();
        assert!(cancelled.await.is_err());
        Ok(())
    });
    let balance = report(&exit).intake().unwrap().balance;
    // With the start.
    assert_eq!(balance.to_string(), "accepted 4, completed 2, failed 1, cancelled 1");
    assert!(exit.is_clean(), "work that failed is no failure of the program: {exit}");
}

#[test]
fn what_the_loop_does_not_take_is_handed_back_and_booked() {
    let exit = Fixture::new().run(async |app| {
        let elsewhere = app.clone();
        let refused =
            thread::spawn(move || elsewhere.spawn_local(async {}).map(drop).map_err(|refused| refused.why));
        assert_eq!(refused.join().unwrap(), Err(Refusal::Closed), "no loop runs there");
        Ok(())
    });
    let balance = report(&exit).intake().unwrap().balance;
    assert_eq!(balance.to_string(), "accepted 2, completed 1, handed back 1");
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn futures_that_stay_on_their_thread_are_spawned_on_the_loop() {
    let exit = Fixture::new().run(async |app| {
        let local = Rc::new(1);
        let sum = app.spawn_local(async move { *local + 1 }).map_err(|refused| refused.why)?.await?;
        assert_eq!(sum, 2);
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn any_thread_may_bring_requests() {
    let fixture = Fixture::new();
    let exit = fixture.run(async |app| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let app = app.clone();
                thread::spawn(move || (0..100).filter(|_| app.spawn(async {}).is_ok()).count())
            })
            .collect();
        let brought: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(brought, 400);
        Ok(())
    });
    assert_eq!(report(&exit).intake().unwrap().balance.completed, 401);
    assert!(exit.is_clean(), "{exit}");
}
