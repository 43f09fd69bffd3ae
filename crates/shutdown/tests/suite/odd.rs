//! Odd components, odd names, odd moments: none of them keeps a program from stopping, or has it lie about how.

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::Context,
    time::Duration,
};

use ebbtide_shutdown::{
    Component, Coordinator, Ending, Event, Feed, OnStall, Priority, Reason, Signals, Stage, Stopped,
    Stopping,
    health::Health,
    lifecycle::{
        Balance, Outcome,
        blame::Stragglers,
        time::{Deadline, Tempo, Timer},
    },
};

use crate::{Fixture, Part, SECOND, gate, hanging_waker, reason};

#[test]
fn a_stop_that_panics_does_not_let_virtual_time_pass() {
    for _ in 0..50 {
        let fixture = Fixture::new();
        let coordinator = fixture.coordinator();
        coordinator.register("panics", 0, fixture.actor(Part::PanicsLater)).unwrap().keep();
        assert_eq!(fixture.stop(&coordinator).exit_code(), 70);
        assert_eq!(fixture.elapsed(), Duration::ZERO);
    }
}

#[test]
fn names_may_have_anything_in_them() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.on_trigger("call\0back", || {});
    coordinator.on_stop("compo\0nent", 0, |_, _| Ok(())).unwrap().keep();
    assert!(fixture.stop(&coordinator).is_clean());
}

/// An error that cannot be printed.
#[derive(Debug)]
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("told to")
    }
}

impl std::error::Error for Unprintable {}

#[test]
fn an_error_that_cannot_be_printed_is_a_failure_all_the_same() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.on_stop("odd", 0, |_, _| Err(Unprintable.into())).unwrap().keep();
    let report = fixture.stop(&coordinator);
    assert_eq!(report.exit_code(), 70, "{report}");
    assert_eq!(fixture.elapsed(), Duration::ZERO);
}

/// Stops at once, and says what it is told to say.
struct Says {
    stopped: Stopped,
    balance: fn() -> Balance,
    failure: Option<&'static str>,
}

impl Component for Says {
    fn stop(&self, _: Deadline, _: &Reason) -> Stopping {
        let stopped = self.stopped;
        Stopping::future(async move { stopped })
    }

    fn balance(&self) -> Balance {
        (self.balance)()
    }

    fn stragglers(&self) -> Stragglers {
        Stragglers::none()
    }

    fn failure(&self) -> Option<String> {
        self.failure.map(str::to_owned)
    }
}

#[test]
fn whatever_a_component_says_the_exit_code_tells_the_truth() {
    fn books(of: impl FnOnce(&mut Balance)) -> Balance {
        let mut balance = Balance::default();
        of(&mut balance);
        balance
    }
    let abandoned = || books(|b| (b.accepted, b.abandoned) = (3, 3));
    let in_flight = || books(|b| (b.accepted, b.in_flight) = (3, 3));
    let failed = || books(|b| (b.accepted, b.failed) = (3, 3));
    let cases: [(fn() -> Balance, _, _); 5] = [
        (abandoned, None, 75),
        (in_flight, None, 75),
        (failed, None, 0),
        (failed, Some("could not flush"), 70),
        (|| panic!("told to"), None, 70),
    ];
    for (balance, failure, code) in cases {
        let fixture = Fixture::new();
        let coordinator = fixture.coordinator();
        let says = Says { stopped: Stopped::Clean, balance, failure };
        coordinator.register("says", 0, says).unwrap().keep();
        let report = fixture.stop(&coordinator);
        assert_eq!(report.exit_code(), code, "{report}");
    }
}

#[test]
fn what_stops_badly_and_is_dropped_badly_is_said_to_have_stopped_badly() {
    struct Twice;
    impl Drop for Twice {
        fn drop(&mut self) {
            panic!("second");
        }
    }
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let twice = Twice;
    let fail = move |_: _, _: &_| {
        std::mem::forget(twice);
        Err("first".into())
    };
    coordinator.on_stop("twice", 0, fail).unwrap().keep();
    let report = fixture.stop(&coordinator);
    assert_eq!(report.component("twice").unwrap().ending, Ending::Failed("first".into()));
}

#[test]
fn phases_that_come_during_the_drain_have_their_time_and_keep_to_the_one_deadline() {
    for hangs in [false, true] {
        let fixture = Fixture::new();
        let coordinator = fixture.coordinator();
        let start = coordinator.intake().admit().unwrap();
        let report = fixture.clock.block_on(async {
            let stopped = coordinator.stop(reason());
            fixture.clock.sleep_until(fixture.start + SECOND).await;
            for n in 0..100 {
                let part = if hangs { Part::Hangs } else { Part::Takes(Duration::from_millis(100)) };
                coordinator.register(format!("{n}"), n, fixture.actor(part)).unwrap().keep();
            }
            start.settle(Outcome::Completed);
            stopped.await
        });
        assert_eq!(report.is_clean(), !hangs, "{report}");
        assert!(fixture.elapsed() <= 30 * SECOND, "{:?}", fixture.elapsed());
    }
}

#[test]
fn callbacks_that_hang_do_not_add_up() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (release, released) = gate();
    let released = Arc::new(Mutex::new(released));
    for n in 0..10 {
        let (clock, released) = (fixture.clock.clone(), released.clone());
        coordinator.on_trigger(n.to_string(), move || {
            // Blocking in a thread holds virtual time, so it is moved by hand: for three seconds. After those nobody
            // is waited for.
            if n < 3 {
                clock.advance(SECOND);
            }
            let _ = released.lock().unwrap().recv();
        });
    }
    let (say, said) = mpsc::channel();
    coordinator.on_trigger("last", move || say.send(()).unwrap());
    coordinator.trigger(reason());
    said.recv().expect("it is called all the same");
    drop(release);
    let report = fixture.clock.block_on(coordinator.stopped());
    assert_eq!(report.exit_code(), 75);
}

#[test]
fn a_waker_that_hangs_keeps_nothing_from_stopping() {
    let feed = Feed::new();
    let builder = Coordinator::builder().signals(Signals::from_feed(&feed)).observer(|_| ());
    let coordinator = builder.start().unwrap();
    coordinator.ready();
    let (waker, begins, release) = hanging_waker();
    let token = coordinator.token();
    let mut waits = pin!(token.triggered());
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    feed.send(15);
    begins.recv().unwrap();
    assert!(!coordinator.health().ready().is_ok(), "it is not ready any more, for one");
    let report = coordinator.run();
    assert_eq!((report.exit_code(), report.reason()), (0, &Reason::Signal(15)));
    drop(release);
}

#[test]
fn a_program_that_stops_is_not_ready_again_whoever_resumes_it() {
    let health = Health::with_tempo(Tempo::Real);
    let fixture = Fixture::new();
    let coordinator = fixture.builder().health(&health).start().unwrap();
    coordinator.ready();
    let _paused = coordinator.pause();
    coordinator.trigger(reason());
    coordinator.resume();
    coordinator.ready();
    let report = fixture.stop(&coordinator);
    assert!(report.is_clean());
    assert!(health.ready().to_string().contains("running: stopping: requested: test"), "{}", health.ready());
    drop(coordinator);
    assert!(!health.ready().is_ok(), "nor when the coordinator is gone");

    let told = fixture.log.lines();
    assert_eq!(told.iter().filter(|line| *line == "0ns: ready").count(), 1, "{told:?}");
}

#[test]
fn each_coordinator_counts_the_signals_that_it_gets() {
    let feed = Feed::new();
    let mut stopped = Vec::new();
    for _ in 0..3 {
        let fixture = Fixture::new();
        let exit = |code| panic!("the first signal ends nothing, but this: {code}");
        let builder = fixture.builder().signals(Signals::from_feed(&feed)).exit(exit);
        let coordinator = builder.start().unwrap();
        feed.send(15);
        assert!(fixture.clock.block_on(coordinator.stopped()).is_clean());
        // It is there, and gets no more.
        stopped.push(coordinator);
    }
}

#[test]
fn an_observer_that_hangs_does_not_keep_a_second_signal_from_ending_the_process() {
    let feed = Feed::new();
    let (exit, exits) = mpsc::channel();
    let (release, released) = gate();
    let released = Mutex::new(released);
    let hang = move |event: &Event<'_>| {
        if matches!(event, Event::Forced(_)) {
            let _ = released.lock().unwrap().recv();
        }
    };
    let builder = Coordinator::builder().signals(Signals::from_feed(&feed)).observer(hang);
    let coordinator = builder.exit(move |code| exit.send(code).unwrap()).start().unwrap();
    feed.send(15);
    feed.send(15);
    assert_eq!(exits.recv().unwrap(), 76);
    drop(release);
    let _report = coordinator.run();
}

#[test]
fn a_stall_that_ends_the_process_is_the_reason_in_its_report() {
    let fixture = Fixture::new();
    let (tell, told) = mpsc::channel();
    let builder = fixture.builder().on_stall(OnStall::Exit).exit(|_| ());
    let coordinator = builder
        .observer(move |event| {
            if let Event::Forced(report) = event {
                tell.send((report.exit_code(), report.to_string())).unwrap();
            }
        })
        .start()
        .unwrap();
    let heartbeat = coordinator.health().heartbeat("ingest", SECOND).unwrap();
    fixture.clock.block_on(async {
        heartbeat.beat();
        fixture.clock.sleep_until(fixture.start + 2 * SECOND).await;
    });
    let (code, report) = told.recv().unwrap();
    assert_eq!(code, 70);
    assert!(report.contains("ingest failed: \"ingest\" at"), "{report}");
}

#[test]
fn one_of_the_phase_that_is_going_on_is_stopped_after_it() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.register("first", 5, fixture.actor(Part::Takes(2 * SECOND))).unwrap().keep();
    let report = fixture.clock.block_on(async {
        let stopped = coordinator.stop(reason());
        fixture.clock.sleep_until(fixture.start + SECOND).await;
        assert_eq!(coordinator.stage(), Stage::Stopping);
        coordinator.register("second", 5, fixture.actor(Part::Takes(SECOND))).unwrap().keep();
        stopped.await
    });
    assert!(report.is_clean());
    assert_eq!(fixture.elapsed(), 3 * SECOND, "and not beside it");
}

#[test]
fn a_drain_that_is_not_over_in_time_is_a_warning() {
    let fixture = Fixture::new();
    let (tell, told) = mpsc::channel();
    let warn = move |event: &Event<'_>| {
        if event.is_warning() {
            tell.send(event.to_string()).unwrap();
        }
    };
    let coordinator = fixture.builder().observer(warn).start().unwrap();
    let request = coordinator.intake().admit().unwrap();
    let _report = fixture.stop(&coordinator);
    assert!(told.recv().unwrap().starts_with("not drained in 29.0s: 1 abandoned"));
    drop(request);
}

#[test]
fn a_component_that_does_not_answer_is_not_asked_again() {
    /// Its stop and whoever asks it hang until the test ends.
    struct Mute(Arc<Mutex<mpsc::Receiver<()>>>, mpsc::Sender<()>);
    impl Component for Mute {
        fn stop(&self, _: Deadline, _: &Reason) -> Stopping {
            let released = self.0.clone();
            Stopping::blocking(move || {
                let _ = released.lock().unwrap().recv();
                Stopped::Clean
            })
        }
        fn balance(&self) -> Balance {
            Balance::default()
        }
        fn stragglers(&self) -> Stragglers {
            self.1.send(()).unwrap();
            let _ = self.0.lock().unwrap().recv();
            Stragglers::none()
        }
    }
    let (release, released) = gate();
    let (ask, asked) = gate();
    let coordinator = Coordinator::builder()
        .drain_timeout(SECOND)
        .progress_every(Duration::from_millis(20))
        .observer(|_| ())
        .start()
        .unwrap();
    let mute = Mute(Arc::new(Mutex::new(released)), ask);
    coordinator.register("mute", Priority(0), mute).unwrap().keep();
    let report = coordinator.stop(reason()).wait();
    assert_eq!(report.component("mute").unwrap().ending, Ending::Hung);
    assert_eq!(asked.try_iter().count(), 1);
    drop(release);
}

/// Stops as soon as somebody has asked about it, who then is the last to have it. Its drop hangs.
struct HangsWhenDropped {
    ask: mpsc::Sender<()>,
    is_asked: AtomicBool,
    asked: Arc<Mutex<mpsc::Receiver<()>>>,
    released: Mutex<mpsc::Receiver<()>>,
}

impl Component for HangsWhenDropped {
    fn stop(&self, _: Deadline, _: &Reason) -> Stopping {
        let asked = self.asked.clone();
        Stopping::blocking(move || {
            asked.lock().unwrap().recv().unwrap();
            Stopped::Clean
        })
    }

    fn balance(&self) -> Balance {
        // The thread that stops it waits for this, and then asks, too, before it lets go.
        if !self.is_asked.swap(true, Ordering::Relaxed) {
            self.ask.send(()).unwrap();
            std::thread::park_timeout(Duration::from_millis(150));
        }
        Balance::default()
    }

    fn stragglers(&self) -> Stragglers {
        Stragglers::default()
    }
}

impl Drop for HangsWhenDropped {
    fn drop(&mut self) {
        let _ = self.released.lock().unwrap().recv();
    }
}

#[test]
fn a_component_whose_drop_hangs_does_not_hang_whoever_asks_about_it() {
    let builder = Coordinator::builder().observer(|_| ()).progress_every(Duration::from_millis(1));
    let coordinator = builder.start().unwrap();
    let (ask, asked) = mpsc::channel();
    let (release, released) = gate();
    let asked = Arc::new(Mutex::new(asked));
    let component = HangsWhenDropped { ask, is_asked: false.into(), asked, released: Mutex::new(released) };
    coordinator.register("hangs when dropped", 0, component).unwrap().keep();
    coordinator.trigger(reason());
    let report = coordinator.run();
    assert_eq!(report.exit_code(), 0, "{report}");
    drop(release);
}
