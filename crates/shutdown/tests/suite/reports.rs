//! The report: what people read, what machines read, and what the exit code says.

use ebbtide_shutdown::{Ending, Priority, Stage, Verdict};

use crate::{Fixture, Part, SECOND, reason};

#[test]
fn the_exit_code_tells_the_truth() {
    for (part, code) in [
        (Part::Takes(SECOND), 0),
        (Part::Takes(100 * SECOND), 75),
        (Part::Hangs, 75),
        (Part::Panics, 70),
        (Part::PanicsLater, 70),
        (Part::Loses, 70),
    ] {
        let fixture = Fixture::new();
        let coordinator = fixture.coordinator();
        coordinator.register("part", Priority(0), fixture.actor(part)).unwrap().keep();
        let report = fixture.stop(&coordinator);
        assert_eq!(report.exit_code(), code, "{report}");
    }
    assert_eq!(Verdict::Forced.exit_code(), 76);
    assert_eq!(Verdict::IMMEDIATE, 77);
}

#[test]
fn books_that_do_not_balance_are_shown() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.register("loses", Priority(0), fixture.actor(Part::Loses)).unwrap().keep();
    let report = fixture.stop(&coordinator);
    assert!(report.to_string().contains("1 accepted without an outcome"), "{report}");
}

#[test]
fn a_report_can_be_read_from_top_to_bottom() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.on_trigger("say so", || {});
    coordinator.register("pool", Priority::POOLS, fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    coordinator.on_stop("log", 5, |_, _| Err("disk full".into())).unwrap().keep();
    let report = fixture.stop(&coordinator);
    assert_eq!(
        report.to_string(),
        "stopped in 1.0s: a component failed (requested: test)
  callback say so: clean
  intake: clean in 0.0ns; accepted 0
  phase 100 (pools)
    pool: clean in 1.0s; accepted 0
  phase 5
    log: failed: disk full in 0.0ns"
    );
}

#[test]
fn there_is_a_report_before_the_end() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.register("first", Priority(2), fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    coordinator.register("hangs", Priority(1), fixture.actor(Part::Hangs)).unwrap().keep();
    coordinator.register("last", Priority(0), fixture.actor(Part::Takes(SECOND))).unwrap().keep();
    assert_eq!(coordinator.report_so_far().stage(), Stage::Running);
    let so_far = fixture.clock.block_on(async {
        use ebbtide_shutdown::lifecycle::time::Timer;
        coordinator.trigger(reason());
        fixture.clock.sleep_until(fixture.start + 4 * SECOND).await;
        coordinator.report_so_far()
    });
    assert_eq!(so_far.stage(), Stage::Stopping);
    assert_eq!(so_far.component("first").unwrap().ending, Ending::Clean);
    assert_eq!(so_far.component("hangs").unwrap().ending, Ending::Hung);
    assert_eq!(so_far.component("hangs").unwrap().took, 3 * SECOND);
    assert_eq!(so_far.component("last").unwrap().ending, Ending::Pending);
    let _report = fixture.stop(&coordinator);
}

#[cfg(feature = "serde")]
#[test]
fn a_report_is_json_for_machines() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.on_trigger("bad", || panic!("no"));
    coordinator.register("hangs", Priority::POOLS, fixture.actor(Part::Hangs)).unwrap().keep();
    let request = coordinator.intake().admit().unwrap();
    let report = serde_json::to_value(fixture.stop(&coordinator)).unwrap();
    drop(request);
    assert_eq!(report["reason"], "requested: test");
    assert_eq!(report["verdict"], "a component failed");
    assert_eq!(report["exit_code"], 70);
    assert_eq!(report["callbacks"][0]["ending"], "panicked");
    assert_eq!(report["callbacks"][0]["error"], "no");
    assert_eq!(report["intake"]["ending"], "overdue");
    assert_eq!(report["intake"]["balance"]["abandoned"], 1);
    assert_eq!(report["intake"]["stragglers"]["count"], 1);
    let hangs = &report["phases"][0]["components"][0];
    assert_eq!((&hangs["name"], &hangs["ending"]), (&"hangs".into(), &"hung".into()));
    assert_eq!(hangs["stragglers"]["tracked"][0]["name"], "the one that hangs");
    assert!(hangs["registered_at"].as_str().unwrap().contains("tests/suite/reports.rs:"));
}
