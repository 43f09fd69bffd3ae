//! One deadline for all, and what becomes of those who do not keep it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Wake, Waker},
    time::Duration,
};

use ebbtide_reactor::EventLoop;
use ebbtide_shutdown::{
    DrainTimeout, Ending, Event, Priority,
    lifecycle::{
        Admission, Outcome,
        time::{Tempo, Timer},
    },
};

use crate::{Fixture, Log, Part, SECOND, reason};

#[test]
fn s5_one_deadline_holds_for_all_and_one_that_hangs_leaves_time_for_the_others() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let names = ["a", "b", "c", "d"];
    for (priority, name) in (0..).zip(names) {
        coordinator.register(name, Priority(-priority), fixture.actor(Part::Hangs)).unwrap().keep();
    }
    let short = fixture.actor(Part::Takes(Duration::from_millis(400)));
    coordinator.register("short", Priority(-9), short).unwrap().keep();
    let report = fixture.stop(&coordinator);
    assert!(fixture.elapsed() <= 30 * SECOND, "{:?}", fixture.elapsed());
    for name in names {
        assert_eq!(report.component(name).unwrap().ending, Ending::Hung);
    }
    assert_eq!(report.component("short").unwrap().ending, Ending::Clean, "{report}");
    assert_eq!(report.exit_code(), 75);
    let text = report.to_string();
    assert!(text.contains("a: has not returned for"), "{text}");
    assert!(text.contains("tests/suite/budget.rs:"), "it says where it was registered: {text}");
    assert!(text.contains("1 × \"the one that hangs\" at"), "and who hangs there: {text}");
}

#[test]
fn s5_what_is_too_slow_is_told_in_time_to_give_up_by_itself() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.register("slow", Priority(1), fixture.actor(Part::Takes(100 * SECOND))).unwrap().keep();
    coordinator.register("next", Priority(0), fixture.actor(Part::Takes(SECOND / 2))).unwrap().keep();
    let report = fixture.stop(&coordinator);
    assert_eq!(report.component("slow").unwrap().ending, Ending::Overdue);
    assert_eq!(report.component("slow").unwrap().took, 28 * SECOND);
    assert_eq!(report.component("next").unwrap().ending, Ending::Clean);
}

#[test]
fn s5_requests_that_are_left_are_abandoned_counted_and_named() {
    let fixture = Fixture::new();
    let coordinator = fixture.builder().drain_timeout(10 * SECOND).start().unwrap();
    let stuck = coordinator.intake().admit().unwrap();
    coordinator.intake().admit().unwrap().settle(Outcome::Completed);
    let report = fixture.stop(&coordinator);
    let intake = report.intake().unwrap();
    assert_eq!(intake.ending, Ending::Overdue);
    assert_eq!((intake.balance.completed, intake.balance.abandoned), (1, 1));
    assert_eq!(intake.stragglers.len(), 1);
    assert_eq!(fixture.elapsed(), 9 * SECOND, "a second is kept for the end");
    assert_eq!(report.exit_code(), 75);
    assert!(report.to_string().contains("tests/suite/budget.rs:"), "{report}");
    assert!(
        fixture.log.lines().contains(&"9s: not drained in 9.0s: 1 abandoned, drain timeout 10.0s".to_owned()),
        "{:#?}",
        fixture.log.lines()
    );
    drop(stuck);
}

/// Whoever waits for the drain is woken when it is given up on, and has the request end there and then.
#[test]
fn s5_a_request_that_ends_just_after_it_was_given_up_on_is_named_all_the_same() {
    struct Ends(Mutex<Option<Admission<Tempo>>>);
    impl Wake for Ends {
        fn wake(self: Arc<Self>) {
            if let Some(request) = self.0.lock().unwrap().take() {
                request.settle(Outcome::Completed);
            }
        }
    }
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let request = coordinator.intake().admit().unwrap();
    let waker = Waker::from(Arc::new(Ends(Mutex::new(Some(request)))));
    let mut drained = coordinator.intake().gate().drained();
    assert!(Pin::new(&mut drained).poll(&mut Context::from_waker(&waker)).is_pending());
    let report = fixture.stop(&coordinator);
    let intake = report.intake().unwrap();
    assert_eq!((intake.ending.clone(), intake.balance.abandoned), (Ending::Overdue, 1));
    assert!(intake.stragglers.to_string().contains("tests/suite/budget.rs:"), "{report}");
}

/// A process that is suspended, or starved, for longer than there is time.
#[test]
fn s4_the_order_is_kept_when_all_time_is_lost_at_once() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let names = ["first", "second", "third"];
    for (priority, name) in (0..).zip(names) {
        coordinator.register(name, Priority(-priority), fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    }
    let request = coordinator.intake().admit().unwrap();
    let report = fixture.clock.block_on(async {
        let stopped = coordinator.stop(reason());
        coordinator.closing().triggered().await;
        fixture.clock.advance(3600 * SECOND);
        stopped.await
    });
    for name in names {
        assert_eq!(report.component(name).unwrap().ending, Ending::Overdue, "{report}");
    }
    let told: Vec<_> = fixture.log.lines();
    let at = |what: &str| told.iter().position(|line| line.contains(what)).expect(what);
    assert!(at("first") < at("second") && at("second") < at("third"), "{told:#?}");
    drop(request);
}

#[test]
fn a_component_may_have_a_cap_inside_of_the_one_deadline() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let slow = || fixture.actor(Part::Takes(100 * SECOND));
    coordinator.register_capped("capped", Priority(1), 3 * SECOND, slow()).unwrap().keep();
    coordinator.register_capped("hangs", Priority(0), 2 * SECOND, fixture.actor(Part::Hangs)).unwrap().keep();
    coordinator.register_capped("all", Priority(-1), Duration::MAX, slow()).unwrap().keep();
    let report = fixture.stop(&coordinator);
    assert_eq!(report.component("capped").unwrap().took, 3 * SECOND);
    assert_eq!(report.component("hangs").unwrap().ending, Ending::Hung);
    assert_eq!(report.component("all").unwrap().took, 29 * SECOND - 3 * SECOND - 2 * SECOND - SECOND / 2);
}

#[test]
fn s8_every_few_seconds_it_is_told_what_is_left_and_who() {
    let fixture = Fixture::new();
    let told = Log::default();
    let log = told.clone();
    let tell = move |event: &Event<'_>| {
        if let Event::Progress(progress) = event {
            log.add(progress.to_string());
        }
    };
    let coordinator = fixture.builder().observer(tell).start().unwrap();
    let stuck = coordinator.intake().admit().unwrap();
    coordinator.register("hangs", Priority(1), fixture.actor(Part::Hangs)).unwrap().keep();
    coordinator.register("slow", Priority(1), fixture.actor(Part::Takes(7 * SECOND))).unwrap().keep();
    let report = fixture.clock.block_on(async {
        let stopped = coordinator.stop(reason());
        fixture.clock.sleep_until(fixture.start + 6 * SECOND).await;
        stuck.settle(Outcome::Completed);
        stopped.await
    });
    assert_eq!(report.exit_code(), 75);
    let told = told.lines();
    assert_eq!(told.len(), 5, "{told:#?}");
    assert!(told[0].starts_with("draining: 1 to go, 25.0s left\n  intake: 1 in flight\n"), "{}", told[0]);
    assert!(told[0].contains("tests/suite/budget.rs:"), "{}", told[0]);
    // From the beginning of the phase on.
    assert!(told[1].starts_with("stopping: 2 to go, 19.0s left\n  hangs: 1 in flight\n"), "{}", told[1]);
    assert!(told[1].ends_with("\n  slow: 0 in flight"), "{}", told[1]);
    assert!(told[2].starts_with("stopping: 1 to go, 14.0s left\n  hangs: 1 in flight\n"), "{}", told[2]);
}

#[test]
fn s5_the_drain_timeout_is_thirty_seconds_and_clamped_with_a_warning() {
    assert_eq!(DrainTimeout::default().duration(), 30 * SECOND);
    assert_eq!(DrainTimeout::default().warning(), None);
    for (text, seconds, warning) in [
        ("12", 12.0, None),
        (" 1.5 ", 1.5, None),
        ("1", 1.0, None),
        ("300", 300.0, None),
        ("0", 1.0, Some("a drain timeout of 0ns is too short: 1s is used instead")),
        ("-3", 1.0, Some("a drain timeout of -3 seconds is too short: 1s is used instead")),
        ("301", 300.0, Some("a drain timeout of 301s is too long: 300s is used instead")),
        ("soon", 30.0, Some("\"soon\" is not a number of seconds: a drain timeout of 30s is used instead")),
        ("", 30.0, Some("\"\" is not a number of seconds: a drain timeout of 30s is used instead")),
        ("NaN", 30.0, Some("\"NaN\" is not a number of seconds: a drain timeout of 30s is used instead")),
        ("inf", 30.0, Some("\"inf\" is not a number of seconds: a drain timeout of 30s is used instead")),
    ] {
        let timeout = DrainTimeout::parse(text);
        assert_eq!(timeout.duration(), Duration::from_secs_f64(seconds), "{text:?}");
        assert_eq!(timeout.warning(), warning, "{text:?}");
    }
    assert_eq!(DrainTimeout::parse("1e300").duration(), 300 * SECOND);
    assert_eq!(DrainTimeout::new(Duration::MAX).duration(), 300 * SECOND);
}

#[test]
fn s5_a_bad_drain_timeout_is_in_the_report() {
    let fixture = Fixture::new();
    let coordinator = fixture.builder().drain_timeout(DrainTimeout::parse("soon")).start().unwrap();
    let report = fixture.stop(&coordinator);
    assert!(report.is_clean(), "a warning is not a failure");
    assert_eq!(report.warnings().len(), 1);
    assert!(report.to_string().contains("warning: \"soon\" is not a number of seconds"), "{report}");
}

/// A loop drops its tasks at its deadline: after that nobody knows them any more.
#[test]
fn who_is_given_up_on_at_the_deadline_is_named_in_the_report() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let events = EventLoop::builder().clock(&fixture.clock).event_loop();
    events.start().unwrap();
    events.spawn_named("never ends", std::future::pending::<()>()).unwrap().detach();
    coordinator.register("loop", Priority::LOOPS, events).unwrap().keep();
    let report = fixture.stop(&coordinator);
    let events = report.component("loop").unwrap();
    assert_eq!(events.ending, Ending::Overdue);
    assert_eq!(events.balance.unwrap().cancelled, 1);
    assert!(
        report.to_string().contains("1 × \"never ends\" at crates/shutdown/tests/suite/budget.rs:"),
        "{report}"
    );
}
