//! The order of a stop, step by step, on the virtual clock.

use std::time::Duration;

use ebbtide_shutdown::{
    Priority, Stage,
    lifecycle::{
        Outcome,
        time::{Clock, Timer},
    },
};

use crate::{Fixture, Part, SECOND, reason};

#[test]
fn s4_readiness_goes_off_then_intake_closes_then_requests_end_then_phases_then_the_report() {
    let fixture = Fixture::new();
    let coordinator = fixture.builder().readiness_delay(2 * SECOND).start().unwrap();
    coordinator.on_trigger("first", || {});
    coordinator.register("pool", Priority::POOLS, fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    coordinator.register("loop", Priority::LOOPS, fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    coordinator.register("server", Priority::SERVERS, fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    coordinator.ready();
    assert!(coordinator.health().ready().is_ok());

    let request = coordinator.intake().admit().unwrap();
    let ready = coordinator.health().clone();
    let serving = coordinator.intake().clone();
    let closing = coordinator.closing();
    let report = fixture.clock.block_on(async {
        let stopped = coordinator.stop(reason());
        let start = fixture.clock.now();
        fixture.clock.sleep_until(start + SECOND).await;
        assert!(!ready.ready().is_ok(), "readiness is off");
        assert!(!closing.is_triggered());
        assert_eq!(coordinator.stage(), Stage::Delaying);
        serving.admit().expect("it still serves").settle(Outcome::Completed);
        fixture.clock.sleep_until(start + 3 * SECOND).await;
        assert!(closing.is_triggered());
        assert!(serving.admit().is_err(), "the intake is closed");
        assert_eq!((coordinator.stage(), coordinator.pending()), (Stage::Draining, 1));
        assert!(coordinator.is_draining() && !coordinator.ready_to_stop());
        fixture.clock.sleep_until(start + 5 * SECOND).await;
        request.settle(Outcome::Completed);
        assert!(coordinator.ready_to_stop());
        stopped.await
    });

    assert!(report.is_clean(), "{report}");
    assert!(!coordinator.is_draining());
    assert_eq!(
        fixture.log.lines(),
        [
            "0ns: ready",
            "0ns: stopping: requested: test",
            "0ns: not ready any more",
            "0ns: callback first: clean",
            "0ns: serving for 2.0s more",
            "2s: drain begins: 1 in flight, 30.0s left",
            "5s: drained in 3.0s: accepted 2, completed 2, refused 1",
            "5s: phase 400 (servers): stopping 1",
            "6s: server: clean in 1.0s",
            "6s: phase 400 (servers) has ended",
            "6s: phase 100 (pools): stopping 1",
            "7s: pool: clean in 1.0s",
            "7s: phase 100 (pools) has ended",
            "7s: phase 0 (loops): stopping 1",
            "8s: loop: clean in 1.0s",
            "8s: phase 0 (loops) has ended",
            "8s: stopped in 8.0s: clean (requested: test)",
        ]
    );
}

#[test]
fn s4_components_of_one_priority_stop_side_by_side() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    for (name, takes) in [("a", 3), ("b", 2), ("c", 3)] {
        let actor = fixture.actor(Part::Takes(takes * SECOND));
        coordinator.register(name, Priority(7), actor).unwrap().keep();
    }
    let report = fixture.stop(&coordinator);
    assert!(report.is_clean(), "{report}");
    assert_eq!(fixture.elapsed(), 3 * SECOND, "as long as the slowest of them");
    assert_eq!(report.component("b").unwrap().took, 2 * SECOND);
}

#[test]
fn an_idle_stop_takes_no_time_at_all() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let report = fixture.stop(&coordinator);
    assert!(report.is_clean());
    assert_eq!(fixture.elapsed(), Duration::ZERO);
}

#[test]
fn a_program_that_is_paused_is_not_ready_and_can_be_resumed_until_it_stops() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.ready();
    let request = coordinator.intake().admit().unwrap();
    let paused = coordinator.pause();
    assert!(coordinator.intake().admit().is_err());
    assert_eq!(coordinator.health().ready().to_string(), "not ready: serving: paused");
    assert!(!coordinator.ready_to_stop());
    request.settle(Outcome::Completed);
    paused.wait();
    assert!(coordinator.ready_to_stop());

    assert!(coordinator.resume());
    assert!(coordinator.health().ready().is_ok());
    coordinator.intake().admit().unwrap().settle(Outcome::Completed);
    assert_eq!(coordinator.stage(), Stage::Running);

    let report = fixture.stop(&coordinator);
    assert!(report.is_clean());
    assert!(!coordinator.resume(), "what a stop has closed stays closed");
    assert!(!coordinator.health().ready().is_ok());
    assert!(coordinator.health().live().is_ok(), "a program that has stopped is still alive");
}
