//! Facts about what is said of a program's health.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::time::{Tempo, VirtualClock};
use ebbtide_shutdown::health::{Condition, Health, Probe, ZeroLimit};

const SECOND: Duration = Duration::from_secs(1);

/// Health in virtual time.
fn virtual_health() -> (Health, VirtualClock) {
    let clock = VirtualClock::new();
    (Health::with_tempo(Tempo::Virtual(clock.clone())), clock)
}

/// Its findings, with what JSON says read back by another's reader and found to be the same.
fn findings(probe: &Probe) -> Vec<(String, String)> {
    let findings: Vec<_> =
        probe.findings().iter().map(|f| (f.name.to_string(), f.reason.to_string())).collect();
    let json: serde_json::Value = serde_json::from_str(&probe.to_json()).unwrap();
    let read = json["findings"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    assert_eq!(read.map(|f| (text(&f["name"]), text(&f["reason"]))).collect::<Vec<_>>(), findings);
    assert_eq!(json["status"], if findings.is_empty() { "ok" } else { "unavailable" });
    assert_eq!(probe.is_ok(), findings.is_empty());
    findings
}

#[test]
fn of_what_nobody_has_said_anything_is_ready_and_live() {
    let health = Health::default();
    assert_eq!(findings(&health.ready()), []);
    assert_eq!(findings(&health.live()), []);
    assert_eq!(health.ready().to_string(), "ok");
    assert_eq!(health.live().to_json(), r#"{"status":"ok","findings":[]}"#);
}

#[test]
fn a_program_is_ready_when_every_condition_is_met() {
    let health = Health::new();
    let (database, cache) = (health.condition("database"), health.condition("cache"));
    assert_eq!(health.ready().to_string(), "not ready: database: not yet; cache: not yet");
    cache.met();
    database.unmet("connecting");
    assert_eq!(findings(&health.ready()), [("database".into(), "connecting".into())]);
    database.met();
    assert!(health.ready().is_ok());
    cache.unmet("lost");
    assert_eq!(health.clone().ready().to_string(), "not ready: cache: lost");
}

#[test]
fn a_condition_that_is_dropped_is_none() {
    let health = Health::new();
    let condition = health.condition("database");
    assert!(!health.ready().is_ok());
    drop(condition);
    assert!(health.ready().is_ok());
}

#[test]
fn conditions_of_one_name_count_each_for_itself() {
    let health = Health::new();
    let (first, second) = (health.condition("shard"), health.condition("shard"));
    first.met();
    assert_eq!(health.ready().to_string(), "not ready: shard: not yet");
    drop(first);
    assert!(!health.ready().is_ok());
    second.met();
    assert!(health.ready().is_ok());
}

#[test]
fn whatever_a_reason_has_in_it_json_stays_json() {
    let health = Health::new();
    let reason = "\"}], \\ \n\r\t\u{0}\u{1f}\u{7f} é \u{2028} 🌊";
    let condition = health.condition("a \"name\"");
    condition.unmet(reason);
    assert_eq!(findings(&health.ready()), [("a \"name\"".into(), reason.into())]);
}

/// Polls once, with a waker that nobody listens to.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn became_ready_ends_when_the_last_condition_is_met_or_dropped_and_not_before() {
    let meet = |condition: Condition| {
        condition.met();
        Some(condition)
    };
    for end in [meet, |_| None] {
        let health = Health::new();
        let (first, second) = (health.condition("first"), health.condition("second"));
        let mut ready = health.became_ready();
        assert_eq!(poll_once(&mut ready), Poll::Pending);
        first.met();
        assert_eq!(poll_once(&mut ready), Poll::Pending);
        let _kept = end(second);
        assert_eq!(poll_once(&mut ready), Poll::Ready(()));
    }
}

#[test]
fn became_ready_can_be_blocked_on() {
    let health = Health::new();
    health.became_ready().wait();
    let condition = health.condition("database");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| health.became_ready().wait());
        condition.met();
        waiter.join().unwrap();
    });
}

#[test]
fn a_heartbeat_is_stalled_at_its_limit_and_not_before() {
    let (health, clock) = virtual_health();
    let heartbeat = health.heartbeat("ingest", 10 * SECOND).unwrap();
    let line = line!() - 1;
    heartbeat.beat();
    clock.advance(10 * SECOND - Duration::from_nanos(1));
    assert!(health.live().is_ok());
    clock.advance(Duration::from_nanos(1));
    assert!(!health.live().is_ok());
    clock.advance(Duration::from_millis(2300));
    let findings = findings(&health.live());
    assert_eq!(findings[0].0, "ingest");
    let expected = format!("no heartbeat for 12.3s (limit 10s), made at {}:{line}:", file!());
    assert!(findings[0].1.starts_with(&expected), "{findings:?}");
    heartbeat.beat();
    assert!(health.live().is_ok());
}

#[test]
fn a_loop_that_rests_is_not_stalled() {
    let (health, clock) = virtual_health();
    let heartbeat = health.heartbeat("ingest", SECOND).unwrap();
    clock.advance(10 * SECOND);
    assert!(health.live().is_ok(), "it rests at first");
    heartbeat.beat();
    heartbeat.rest();
    clock.advance(10 * SECOND);
    assert!(health.live().is_ok());
    heartbeat.beat();
    clock.advance(SECOND);
    assert_eq!(findings(&health.live()).len(), 1);
    heartbeat.rest();
    assert!(health.live().is_ok(), "a stall ends with a rest");
}

#[test]
fn a_heartbeat_that_is_dropped_is_not_missed() {
    let (health, clock) = virtual_health();
    let heartbeat = health.heartbeat("ingest", SECOND).unwrap();
    heartbeat.beat();
    clock.advance(SECOND);
    assert!(!health.live().is_ok());
    drop(heartbeat);
    assert!(health.live().is_ok());
}

#[test]
fn live_stays_green_while_the_program_is_not_ready() {
    let (health, clock) = virtual_health();
    let heartbeat = health.heartbeat("ingest", SECOND).unwrap();
    let draining = health.condition("program");
    draining.unmet("draining");
    heartbeat.beat();
    assert!(!health.ready().is_ok());
    assert!(health.live().is_ok());
    draining.met();
    clock.advance(SECOND);
    assert!(health.ready().is_ok(), "a stall is for a supervisor to act on");
    assert!(!health.live().is_ok());
}

#[test]
fn a_limit_of_zero_is_refused_and_one_beyond_all_time_never_comes() {
    let (health, clock) = virtual_health();
    assert_eq!(health.heartbeat("ingest", Duration::ZERO).unwrap_err(), ZeroLimit);
    let heartbeat = health.heartbeat("ingest", Duration::MAX).unwrap();
    clock.advance(SECOND);
    heartbeat.beat();
    clock.advance(Duration::from_secs(400 * 365 * 24 * 3600));
    assert!(health.live().is_ok());
}
