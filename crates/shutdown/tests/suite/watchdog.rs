//! Facts about the thread that tells of stalls.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::{Clock, Tempo, Timer, VirtualClock};
use ebbtide_shutdown::health::{Health, Stalled, Watchdog};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A watched program in virtual time.
struct Scene {
    clock: VirtualClock,
    health: Health,
    start: Instant,
    told: Arc<Mutex<Vec<(String, u64)>>>,
}

impl Scene {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let health = Health::with_tempo(Tempo::Virtual(clock.clone()));
        Self { start: clock.now(), health, clock, told: Arc::default() }
    }

    /// Takes down what it is told, with the second.
    fn watch(&self) -> Watchdog {
        let (clock, start, told) = (self.clock.clone(), self.start, self.told.clone());
        let on_stall = move |stalled: &Stalled| {
            told.lock().unwrap().push((stalled.name.to_string(), seconds(clock.now() - start)));
        };
        Watchdog::start(&self.health, on_stall).unwrap()
    }

    async fn sleep(&self, seconds: u32) {
        self.clock.sleep(seconds * SECOND).unwrap().await;
    }

    fn told(&self) -> Vec<(String, u64)> {
        self.told.lock().unwrap().clone()
    }
}

fn seconds(duration: Duration) -> u64 {
    assert_eq!(duration.subsec_nanos(), 0, "told at a moment of its own");
    duration.as_secs()
}

#[test]
fn a_stall_is_told_once_at_its_very_moment() {
    let scene = Scene::new();
    let _watchdog = scene.watch();
    let heartbeat = scene.health.heartbeat("ingest", 10 * SECOND).unwrap();
    scene.clock.block_on(async {
        scene.sleep(3).await;
        heartbeat.beat();
        scene.sleep(4).await;
        heartbeat.beat();
        scene.sleep(60).await;
    });
    assert_eq!(scene.told(), [("ingest".into(), 17)]);
}

#[test]
fn a_stall_is_told_again_only_after_a_beat() {
    let scene = Scene::new();
    let _watchdog = scene.watch();
    let heartbeat = scene.health.heartbeat("ingest", 10 * SECOND).unwrap();
    scene.clock.block_on(async {
        heartbeat.beat();
        scene.sleep(100).await;
        heartbeat.beat();
        scene.sleep(100).await;
        heartbeat.rest();
        scene.sleep(100).await;
        heartbeat.beat();
        scene.sleep(100).await;
    });
    assert_eq!(scene.told(), [10, 110, 310].map(|at| ("ingest".into(), at)));
}

#[test]
fn a_beat_after_a_rest_wakes_a_watchdog_that_would_sleep_too_long() {
    let scene = Scene::new();
    let _watchdog = scene.watch();
    let slow = scene.health.heartbeat("slow", 1000 * SECOND).unwrap();
    let quick = scene.health.heartbeat("quick", 5 * SECOND).unwrap();
    scene.clock.block_on(async {
        slow.beat();
        scene.sleep(7).await;
        quick.beat();
        scene.sleep(2000).await;
    });
    assert_eq!(scene.told(), [("quick".into(), 12), ("slow".into(), 1000)]);
}

#[test]
fn who_beats_in_time_rests_or_is_gone_is_not_told_of() {
    let scene = Scene::new();
    let _watchdog = scene.watch();
    let limited = |name: &'static str| scene.health.heartbeat(name, 10 * SECOND).unwrap();
    let (beating, resting, dropped, _never) =
        (limited("beating"), limited("resting"), limited("dropped"), limited("never"));
    scene.clock.block_on(async {
        resting.beat();
        dropped.beat();
        for _ in 0..20 {
            beating.beat();
            scene.sleep(9).await;
            resting.rest();
        }
        beating.rest();
        drop(dropped);
        scene.sleep(100).await;
    });
    assert_eq!(scene.told(), [("dropped".into(), 10)]);
}

#[test]
fn a_watchdog_tells_of_a_stall_that_was_there_before_it_and_each_of_two_tells() {
    let scene = Scene::new();
    let heartbeat = scene.health.heartbeat("ingest", 10 * SECOND).unwrap();
    heartbeat.beat();
    scene.clock.advance(20 * SECOND);
    let _first = scene.watch();
    scene.clock.block_on(scene.sleep(1));
    assert_eq!(scene.told(), [("ingest".into(), 20)]);
    let _second = scene.watch();
    scene.clock.block_on(async {
        scene.sleep(1).await;
        assert_eq!(scene.told()[1..], [("ingest".into(), 21)]);
        heartbeat.beat();
        scene.sleep(100).await;
    });
    assert_eq!(scene.told()[2..], [("ingest".into(), 32), ("ingest".into(), 32)]);
}

#[test]
fn a_call_that_panics_ends_nothing() {
    let scene = Scene::new();
    let _panics = Watchdog::start(&scene.health, |stalled| panic!("on purpose: {stalled}")).unwrap();
    let _watchdog = scene.watch();
    let heartbeat = scene.health.heartbeat("ingest", SECOND).unwrap();
    scene.clock.block_on(async {
        for _ in 0..2 {
            heartbeat.beat();
            scene.sleep(5).await;
        }
    });
    assert_eq!(scene.told(), [("ingest".into(), 1), ("ingest".into(), 6)]);
}

#[test]
fn a_stall_names_the_component_its_place_and_its_age() {
    let scene = Scene::new();
    let (tell, told) = channel();
    let _watchdog =
        Watchdog::start(&scene.health, move |stalled| tell.send(stalled.clone()).unwrap()).unwrap();
    let heartbeat = scene.health.heartbeat("ingest", 10 * SECOND).unwrap();
    let place = format!("{}:{}:", file!(), line!() - 1);
    scene.clock.block_on(async {
        heartbeat.beat();
        scene.sleep(11).await;
    });
    let stalled = told.recv().unwrap();
    assert_eq!((stalled.age, stalled.limit), (10 * SECOND, 10 * SECOND));
    assert_eq!(stalled.origin.name(), Some("ingest"));
    let text = stalled.to_string();
    assert!(text.starts_with(&format!("\"ingest\" at {place}")), "{text}");
    assert!(text.ends_with(": no heartbeat for 10.0s (limit 10s)"), "{text}");
}

#[test]
fn no_lock_is_held_while_a_stall_is_told() {
    let scene = Scene::new();
    let (tell, told) = channel();
    let health = scene.health.clone();
    let heartbeat = Arc::new(scene.health.heartbeat("ingest", SECOND).unwrap());
    heartbeat.beat();
    let on_stall = {
        let heartbeat = heartbeat.clone();
        move |_: &Stalled| {
            let live = health.live().is_ok();
            let other = health.heartbeat("other", SECOND).unwrap();
            other.beat();
            heartbeat.rest();
            tell.send(live).unwrap();
        }
    };
    let _watchdog = Watchdog::start(&scene.health, on_stall).unwrap();
    assert!(!told.recv().unwrap());
}

#[test]
fn dropping_a_watchdog_ends_its_thread_and_what_it_holds() {
    let health = Health::new();
    let heartbeat = health.heartbeat("ingest", HOUR).unwrap();
    let held = Arc::new(());
    for beats in [false, true] {
        if beats {
            heartbeat.beat();
        }
        let captured = held.clone();
        let watchdog = Watchdog::start(&health, move |_| drop(captured.clone())).unwrap();
        assert_eq!(Arc::strong_count(&held), 2);
        drop(watchdog);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

#[test]
fn a_watchdog_may_be_dropped_by_the_call_that_it_makes() {
    let health = Health::new();
    let heartbeat = health.heartbeat("ingest", Duration::from_nanos(1)).unwrap();
    let (give, given) = channel::<Watchdog>();
    let (tell, told) = channel();
    let watchdog = Watchdog::start(&health, move |_| {
        drop(given.recv().unwrap());
        tell.send(()).unwrap();
    });
    heartbeat.beat();
    give.send(watchdog.unwrap()).unwrap();
    told.recv().unwrap();
    assert!(told.recv().is_err(), "the thread has ended, and dropped what it held");
}

/// The watchdog's thread, as Linux knows it, and how often it has gone to sleep.
#[cfg(target_os = "linux")]
fn sleeps_of(thread: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn beats_do_not_wake_the_watchdog() {
    const TURNS: u64 = 20_000;
    let health = Health::new();
    let (tell, told): (_, Receiver<String>) = channel();
    let _watchdog = Watchdog::start(&health, move |_| {
        let thread = std::fs::read_link("/proc/thread-self").unwrap();
        tell.send(thread.to_str().unwrap().to_owned()).unwrap();
    });
    let stalls = health.heartbeat("stalls", Duration::from_nanos(1)).unwrap();
    stalls.beat();
    let thread = told.recv().unwrap();
    drop(stalls);

    let heartbeat = health.heartbeat("turns", HOUR).unwrap();
    let before = sleeps_of(&thread);
    for _ in 0..TURNS {
        heartbeat.beat();
        heartbeat.rest();
        heartbeat.beat();
        // A broken one gets the time to show it.
        std::thread::yield_now();
    }
    let sleeps = sleeps_of(&thread) - before;
    assert!(sleeps < 10, "it slept {sleeps} times while {TURNS} turns were made");
}

/// The race between a watchdog that goes to sleep and a beat that it would sleep past, many times over.
#[test]
fn no_first_beat_is_missed_by_a_watchdog_that_is_falling_asleep() {
    let health = Health::new();
    let (tell, told) = channel();
    let _watchdog = Watchdog::start(&health, move |_| tell.send(()).unwrap()).unwrap();
    let heartbeat = health.heartbeat("ingest", Duration::from_nanos(1)).unwrap();
    for turn in 0..20_000 {
        heartbeat.beat();
        told.recv_timeout(60 * SECOND).unwrap_or_else(|_| panic!("the stall of turn {turn} was not told"));
        if turn % 2 == 0 {
            heartbeat.rest();
        }
    }
}
