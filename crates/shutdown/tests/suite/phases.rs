//! Components: what is registered, when it is stopped, and what becomes of it.

use std::{sync::mpsc, time::Duration};

use ebbtide_shutdown::{
    Component, Ending, Priority, Reason, Stopping,
    lifecycle::{
        Balance,
        blame::Stragglers,
        time::{Deadline, Timer},
    },
};

use crate::{Actor, Fixture, Part, SECOND, reason};

fn takes_no_time(fixture: &Fixture) -> Actor {
    fixture.actor(Part::Takes(Duration::ZERO))
}

#[test]
fn a_component_that_panics_keeps_no_other_from_stopping() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.register("panics", Priority(1), fixture.actor(Part::Panics)).unwrap().keep();
    coordinator.register("later", Priority(1), fixture.actor(Part::PanicsLater)).unwrap().keep();
    coordinator.register("good", Priority(0), takes_no_time(&fixture)).unwrap().keep();
    let report = fixture.stop(&coordinator);
    assert_eq!(report.component("panics").unwrap().ending, Ending::Panicked("told to".into()));
    assert_eq!(report.component("later").unwrap().ending, Ending::Panicked("told to, later".into()));
    assert_eq!(report.component("good").unwrap().ending, Ending::Clean);
    assert_eq!(report.exit_code(), 70);
}

#[test]
fn an_error_is_reported_with_its_text() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let fail = |_: _, _: &_| Err("disk full".into());
    coordinator.on_stop("flush", Priority::RESOURCES, fail).unwrap().keep();
    coordinator
        .on_stop_async("async flush", Priority::RESOURCES, |_, _| async { Err("no route".into()) })
        .unwrap()
        .keep();
    let report = fixture.stop(&coordinator);
    assert_eq!(report.component("flush").unwrap().ending, Ending::Failed("disk full".into()));
    assert_eq!(report.component("async flush").unwrap().ending, Ending::Failed("no route".into()));
    assert_eq!(report.exit_code(), 70);
}

#[test]
fn what_is_done_at_a_stop_knows_why_and_by_when() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (say, said) = mpsc::channel();
    let tell = move |deadline: Deadline, reason: &Reason| {
        say.send((deadline, reason.clone())).unwrap();
        Ok(())
    };
    coordinator.on_stop("asks", Priority(0), tell).unwrap().keep();
    assert!(fixture.stop(&coordinator).is_clean());
    let (deadline, why) = said.recv().unwrap();
    assert_eq!(why, reason());
    assert_eq!(deadline.instant().unwrap() - fixture.start, 29 * SECOND, "all but the tail");
}

#[test]
fn one_that_is_unregistered_is_not_stopped() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let registration = coordinator.register("gone", Priority(1), fixture.actor(Part::Panics)).unwrap();
    drop(registration);
    let report = fixture.stop(&coordinator);
    assert!(report.is_clean() && report.component("gone").is_none());
}

#[test]
fn a_name_is_given_once_and_what_was_refused_comes_back() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let registration = coordinator.register("pool", Priority(1), takes_no_time(&fixture)).unwrap();
    let refused = coordinator.register("pool", Priority(2), fixture.actor(Part::Panics)).unwrap_err();
    assert_eq!(refused.to_string(), "a component \"pool\" is registered already: give this one another name");
    assert!(matches!(refused.component.part, Part::Panics), "it is handed back");
    drop(registration);
    coordinator.register("pool", Priority(2), refused.component).expect("the name is free again").keep();
    assert_eq!(fixture.stop(&coordinator).exit_code(), 70);
}

#[test]
fn one_that_is_registered_during_the_drain_is_stopped_in_its_phase() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.register("high", Priority(9), fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    let request = coordinator.intake().admit().unwrap();
    let report = fixture.clock.block_on(async {
        let stopped = coordinator.stop(reason());
        fixture.clock.sleep_until(fixture.start + SECOND).await;
        coordinator.register("low", Priority(1), fixture.actor(Part::Takes(SECOND))).unwrap().keep();
        drop(request);
        stopped.await
    });
    assert!(report.is_clean(), "{report}");
    let order: Vec<_> = report.components().map(|component| &*component.name).collect();
    assert_eq!(order, ["high", "low"]);
    assert_eq!(fixture.elapsed(), 3 * SECOND);
}

#[test]
fn one_whose_phase_has_passed_is_stopped_at_once_and_waited_for() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.register("low", Priority(1), fixture.actor(Part::Takes(2 * SECOND))).unwrap().keep();
    let report = fixture.clock.block_on(async {
        let stopped = coordinator.stop(reason());
        fixture.clock.sleep_until(fixture.start + SECOND).await;
        let late = fixture.actor(Part::Takes(5 * SECOND));
        coordinator.register("late", Priority(9), late).unwrap().keep();
        stopped.await
    });
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.component("late").unwrap().took, 5 * SECOND);
    assert_eq!(fixture.elapsed(), 6 * SECOND);
}

#[test]
fn one_that_is_registered_after_the_end_is_stopped_too() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let _report = fixture.stop(&coordinator);
    let (say, said) = mpsc::channel();
    let tell = move |_: _, _: &_| {
        say.send(()).unwrap();
        Ok(())
    };
    coordinator.on_stop("after", Priority(0), tell).unwrap().keep();
    said.recv().expect("it is stopped");
    assert!(coordinator.run().component("after").is_none(), "the report was made before");
}

#[test]
fn every_caller_of_stop_gets_the_same_report_and_the_first_reason_counts() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.register("one", Priority(1), fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    let first = coordinator.stop(Reason::failed("ingest", &"it broke"));
    let second = coordinator.stop(reason());
    let (first, second) = fixture.clock.block_on(async { (first.await, second.await) });
    assert_eq!(first.to_string(), second.to_string());
    assert_eq!(first.to_string(), coordinator.run().to_string());
    assert_eq!(first.reason().to_string(), "ingest failed: it broke");
    assert_eq!(first.exit_code(), 70, "the reason was a failure");
}

#[test]
fn the_last_handle_that_is_dropped_stops_everything() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (say, said) = mpsc::channel();
    let tell = move |_: _, reason: &Reason| {
        say.send(reason.to_string()).unwrap();
        Ok(())
    };
    coordinator.on_stop("told", Priority(0), tell).unwrap().keep();
    drop(coordinator.clone());
    assert!(said.try_recv().is_err());
    drop(coordinator);
    assert_eq!(said.recv().unwrap(), "requested: the coordinator was dropped");
}

/// Says when it is dropped, and how.
struct Canary {
    actor: Actor,
    say: mpsc::Sender<&'static str>,
    panics: bool,
}

impl Component for Canary {
    fn stop(&self, deadline: Deadline, reason: &Reason) -> Stopping {
        self.say.send("stopped").unwrap();
        self.actor.stop(deadline, reason)
    }

    fn balance(&self) -> Balance {
        self.actor.balance()
    }

    fn stragglers(&self) -> Stragglers {
        self.actor.stragglers()
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.say.send("dropped").unwrap();
        assert!(!self.panics, "told to, when dropped");
    }
}

#[test]
fn a_component_is_dropped_when_it_has_stopped_and_before_the_next_phase() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (say, said) = mpsc::channel();
    for (name, priority) in [("high", 2), ("low", 1)] {
        let canary = Canary { actor: takes_no_time(&fixture), say: say.clone(), panics: false };
        coordinator.register(name, priority, canary).unwrap().keep();
    }
    assert!(fixture.stop(&coordinator).is_clean());
    assert_eq!(said.try_iter().collect::<Vec<_>>(), ["stopped", "dropped", "stopped", "dropped"]);
}

#[test]
fn a_component_that_panics_in_its_drop_is_reported() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (say, _said) = mpsc::channel();
    let canary = Canary { actor: takes_no_time(&fixture), say, panics: true };
    coordinator.register("canary", 0, canary).unwrap().keep();
    let report = fixture.stop(&coordinator);
    let ending = &report.component("canary").unwrap().ending;
    assert_eq!(*ending, Ending::Panicked("told to, when dropped (when it was dropped)".into()));
}
