//! What is dropped when nothing runs any more.

use std::time::Duration;

use ebbtide::{
    lifecycle::time::VirtualClock,
    shutdown::{Ending, Priority},
};

use super::{Fixture, Log, SECOND, Tells, report};

/// Does something when it is dropped.
struct Act(Box<dyn Fn() + Send>);

impl Drop for Act {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Of five seconds so much is more than the resources have, and less than they are waited for.
const TOO_LONG: Duration = Duration::from_millis(4700);

fn takes_too_long(clock: &VirtualClock, log: &Log) -> Act {
    let (clock, log) = (clock.clone(), log.clone());
    Act(Box::new(move || {
        clock.advance(TOO_LONG);
        log.add("the slow one is dropped");
    }))
}

#[test]
fn the_last_that_was_kept_is_dropped_first() {
    let fixture = Fixture::new();
    let log = fixture.log.clone();
    let exit = fixture.run(async move |app| {
        for name in ["database", "cache", "log"] {
            app.keep(name, Tells(name, log.clone()));
        }
        Ok(())
    });
    assert_eq!(fixture.log.lines(), ["0ns: log", "0ns: cache", "0ns: database"]);
    let resources = report(&exit).component("resources").unwrap();
    assert_eq!(resources.balance.unwrap().to_string(), "accepted 3, completed 3");
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn a_drop_that_panics_keeps_no_other_from_being_dropped_and_is_told() {
    let fixture = Fixture::new();
    let log = fixture.log.clone();
    let exit = fixture.run(async move |app| {
        app.keep("first", Tells("first", log));
        app.keep("bad", Act(Box::new(|| panic!("told to"))));
        Ok(())
    });
    assert_eq!(fixture.log.lines(), ["0ns: first"]);
    assert_eq!(exit.code(), 70);
    let Ending::Failed(why) = &report(&exit).component("resources").unwrap().ending else {
        panic!("it failed: {exit}");
    };
    assert!(why.starts_with("the drop of \"bad\" at crates/ebbtide/tests/suite/resources.rs:"), "{why}");
    assert!(why.ends_with("panicked: told to"), "{why}");
}

#[test]
fn what_is_left_when_the_time_is_up_is_named_and_not_dropped() {
    let fixture = Fixture::new();
    let (clock, log) = (fixture.clock.clone(), fixture.log.clone());
    let exit = fixture.builder().drain_timeout(5 * SECOND).run(async move |app| {
        app.keep("left", Tells("left", log.clone()));
        app.keep("slow", takes_too_long(&clock, &log));
        Ok(())
    });
    assert_eq!(exit.code(), 75, "{exit}");
    let resources = report(&exit).component("resources").unwrap();
    let named = resources.stragglers.to_string();
    assert!(named.contains("\"left\" at crates/ebbtide/tests/suite/resources.rs:"), "{exit}");
    assert_eq!(resources.ending, Ending::Overdue, "{exit}");
    assert_eq!(resources.balance.unwrap().to_string(), "accepted 2, completed 1, abandoned 1");
    assert_eq!(fixture.log.lines(), ["4.7s: the slow one is dropped"]);
}

#[test]
fn what_is_kept_after_the_resources_have_gone_is_dropped_at_once() {
    let fixture = Fixture::new();
    let log = fixture.log.clone();
    let exit = fixture.run(async move |app| {
        app.keep("first", ());
        let late = app.clone();
        app.on_stop("after the resources", Priority(-200), move |_, _| {
            late.keep("late", Tells("late", log.clone()));
            log.add("kept");
            Ok(())
        })?;
        Ok(())
    });
    assert_eq!(fixture.log.lines(), ["0ns: late", "0ns: kept"]);
    assert!(exit.is_clean(), "{exit}");
}
