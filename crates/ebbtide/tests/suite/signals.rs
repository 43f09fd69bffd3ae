//! Signals, from a feed.

use std::sync::{Arc, Mutex};

use ebbtide::{
    lifecycle::Reason,
    shutdown::{Event, Stage},
    sleep,
};

use super::{Fixture, SECOND, report};

#[test]
fn a_signal_while_main_runs_is_a_graceful_stop() {
    let fixture = Fixture::new();
    let feed = fixture.feed.clone();
    let exit = fixture.run(async move |app| {
        app.spawn(async move {
            feed.send(15);
            sleep(3 * SECOND).await;
        })?
        .detach();
        // Requests are let in no more from here on; that one is still in flight.
        app.closing().triggered().await;
        assert_eq!(app.coordinator().stage(), Stage::Draining);
        assert!(app.admit().is_err());
        Ok(())
    });
    assert_eq!((exit.code(), report(&exit).reason()), (0, &Reason::Signal(15)));
    assert_eq!(fixture.elapsed(), 3 * SECOND);
    assert!(fixture.exits.lock().unwrap().is_empty());
}

#[test]
fn a_second_signal_ends_the_process_with_the_report_so_far() {
    let fixture = Fixture::new();
    let forced = Arc::new(Mutex::new(None));
    let (feed, seen) = (fixture.feed.clone(), forced.clone());
    let builder = fixture.builder().coordinator(|coordinator| {
        coordinator.observer(move |event| {
            if let Event::Forced(report) = event {
                *seen.lock().unwrap() = Some((report.exit_code(), report.to_string()));
            }
        })
    });
    let exit = builder.run(async move |app| {
        app.spawn_named("slow request", async move {
            feed.send(15);
            sleep(SECOND).await;
            feed.send(2);
        })?
        .detach();
        Ok(())
    });
    let (code, text) = forced.lock().unwrap().take().expect("the report was told");
    assert_eq!((code, fixture.exits.lock().unwrap().as_slice()), (76, [76].as_slice()));
    assert!(text.contains("\"slow request\" at crates/ebbtide/tests/suite/signals.rs:"), "{text}");
    // Here the process did not end, so the stop did.
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn a_program_without_signals_hears_none() {
    let fixture = Fixture::new();
    let feed = fixture.feed.clone();
    let exit = fixture.builder().without_signals().run(async move |app| {
        feed.send(15);
        sleep(SECOND).await;
        assert!(!app.token().is_triggered());
        Ok(())
    });
    assert_eq!(report(&exit).reason(), &Reason::requested("main ended"));
}
