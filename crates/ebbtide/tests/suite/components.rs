//! What runs for as long as the program does.

use std::{future::pending, sync::Arc};

use ebbtide::{
    app::NotSpawned,
    lifecycle::Reason,
    mailbox::{Mailbox as _, Message, Office, worker::Worker},
    shutdown::{Ending, Priority},
    sleep,
};

use super::{Fixture, SECOND, report};

#[test]
fn a_component_that_fails_or_panics_stops_the_program() {
    for panics in [false, true] {
        let fixture = Fixture::new();
        let exit = fixture.run(async move |app| {
            app.spawn_component("consumer", Priority::SERVERS, async move |_| {
                sleep(SECOND).await;
                assert!(!panics, "told to");
                Err("the broker is gone".into())
            })?;
            app.token().triggered().await;
            Ok(())
        });
        let why = if panics { "panicked: told to" } else { "the broker is gone" };
        let reason = Reason::Failed { component: "consumer".into(), error: why.into() };
        assert_eq!((exit.code(), report(&exit).reason()), (70, &reason));
        assert_eq!(report(&exit).component("consumer").unwrap().ending, Ending::Failed(why.into()));
        assert_eq!(report(&exit).component("main").unwrap().ending, Ending::Clean);
        assert!(exit.error().is_none(), "main has not failed");
    }
}

#[test]
fn a_component_is_told_in_its_phase_and_not_before() {
    let fixture = Fixture::new();
    let log = fixture.log.clone();
    let exit = fixture.run(async move |app| {
        app.spawn_component("server", Priority::SERVERS, async move |stop| {
            stop.triggered().await;
            log.add("told");
            Ok(())
        })?;
        app.spawn(sleep(2 * SECOND))?.detach();
        Ok(())
    });
    assert_eq!(fixture.log.lines(), ["2s: told"], "when the requests have ended");
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn a_component_that_ends_leaves_the_program_running() {
    let fixture = Fixture::new();
    let exit = fixture.run(async |app| {
        app.spawn_component("warm up", Priority::WORKERS, async |_| Ok(()))?;
        sleep(SECOND).await;
        assert!(!app.token().is_triggered());
        Ok(())
    });
    assert_eq!(report(&exit).reason(), &Reason::requested("main ended"));
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn a_component_that_does_not_end_is_named_and_left_behind() {
    let exit = Fixture::new().run(async |app| {
        app.spawn_component("stubborn", Priority::SERVERS, async |_| pending().await)?;
        Ok(())
    });
    assert_eq!(exit.code(), 75, "{exit}");
    let named = report(&exit).component("stubborn").unwrap().stragglers.to_string();
    assert!(named.contains("\"stubborn\" at crates/ebbtide/tests/suite/components.rs:"), "{named}");
}

#[test]
fn a_name_is_given_once() {
    let exit = Fixture::new().run(async |app| {
        for taken in ["main", "loop", "pool", "late runners"] {
            let refused = app.spawn_component(taken, Priority::WORKERS, async |_| Ok(()));
            assert_eq!(refused, Err(NotSpawned::Duplicate(taken.into())));
        }
        app.on_stop("flush", Priority::RESOURCES, |_, _| Ok(()))?;
        assert!(app.on_stop("flush", Priority::RESOURCES, |_, _| Ok(())).is_err());
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn a_component_that_comes_after_the_loop_is_refused() {
    let exit = Fixture::new().run(async |app| {
        let late = app.clone();
        app.on_stop("too late", Priority::RESOURCES, move |_, _| {
            let refused = late.spawn_component("late", Priority::WORKERS, async |_| Ok(()));
            assert_eq!(refused, Err(NotSpawned::Closed("late".into())));
            Ok(())
        })?;
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn main_may_await_a_worker_that_is_stopped_beside_it() {
    let fixture = Fixture::new();
    let feed = fixture.feed.clone();
    let exit = fixture.run(async move |app| {
        let orders = Arc::new(Office::new(app.handle().clone()).mailbox("orders"));
        let worker = Worker::builder(orders.clone(), app.handle().clone(), move |_job| {
            let feed = feed.clone();
            async move {
                feed.send(15);
                sleep(SECOND).await;
                Ok(None)
            }
        })
        .build();
        app.register("orders", Priority::WORKERS, worker.clone())?;
        orders.send(Message::new("two apples")).await?;
        worker.work().await?;
        Ok(())
    });
    let worker = report(&exit).component("orders").unwrap();
    assert_eq!(worker.balance.unwrap().to_string(), "accepted 1, completed 1");
    assert_eq!(fixture.elapsed(), SECOND);
    assert!(exit.is_clean(), "{exit}");
}
