//! Facts about stopping a program. Those with a number are contracts, listed in `ARCHITECTURE.md`.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod budget;
mod callbacks;
mod drain;
mod group;
mod health;
#[cfg(feature = "http")]
mod http;
mod odd;
mod order;
mod phases;
mod process;
mod reports;
mod signals;
mod storm;
#[cfg(all(unix, feature = "systemd"))]
mod systemd;
mod vitals;
mod watchdog;

use std::{
    future::pending,
    sync::{Arc, Mutex, mpsc},
    task::{Wake, Waker},
    time::{Duration, Instant},
};

use ebbtide_shutdown::{
    Builder, Component, Coordinator, Event, Reason, Stopped, Stopping,
    lifecycle::{
        Balance,
        blame::{Activity, Origin, Straggler, Stragglers},
        time::{Clock, Deadline, Timer, VirtualClock},
    },
};

const SECOND: Duration = Duration::from_secs(1);

fn reason() -> Reason {
    Reason::requested("test")
}

/// A coordinator in virtual time, with an account of all that it tells.
struct Fixture {
    clock: VirtualClock,
    start: Instant,
    log: Log,
}

/// What was told, and when: `3s: phase 100 (pools): stopping 1`.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Fixture {
    fn new() -> Self {
        let clock = VirtualClock::new();
        Self { start: clock.now(), clock, log: Log::default() }
    }

    fn builder(&self) -> Builder {
        let (clock, start, log) = (self.clock.clone(), self.start, self.log.clone());
        Coordinator::builder()
            .clock(&self.clock)
            .observer(move |event| log.add(format!("{:?}: {}", clock.now() - start, first_line(event))))
    }

    fn coordinator(&self) -> Coordinator {
        self.builder().start().unwrap()
    }

    /// Stops everything, in virtual time.
    fn stop(&self, coordinator: &Coordinator) -> ebbtide_shutdown::Report {
        self.clock.block_on(coordinator.stop(reason()))
    }

    fn elapsed(&self) -> Duration {
        self.clock.now() - self.start
    }
}

fn first_line(event: &Event<'_>) -> String {
    event.to_string().lines().next().unwrap_or_default().to_owned()
}

/// A component that does as it is told.
#[derive(Clone)]
struct Actor {
    clock: VirtualClock,
    part: Part,
}

#[derive(Clone, Copy)]
enum Part {
    /// Ends after so long, but at its deadline at the latest.
    Takes(Duration),
    /// Its stop never ends, whatever the deadline.
    Hangs,
    /// Panics when it is told to stop.
    Panics,
    /// Panics while it stops.
    PanicsLater,
    /// Its books do not balance.
    Loses,
}

impl Fixture {
    fn actor(&self, part: Part) -> Actor {
        Actor { clock: self.clock.clone(), part }
    }
}

impl Component for Actor {
    fn stop(&self, deadline: Deadline, _: &Reason) -> Stopping {
        let clock = self.clock.clone();
        match self.part {
            Part::Takes(duration) => {
                let done = clock.now() + duration;
                let late = deadline.instant().is_some_and(|deadline| deadline < done);
                let until = if late { deadline.instant().unwrap() } else { done };
                Stopping::future(async move {
                    clock.sleep_until(until).await;
                    if late { Stopped::Overdue } else { Stopped::Clean }
                })
            }
            Part::Hangs => Stopping::future(pending()),
            Part::Panics => panic!("told to"),
            Part::PanicsLater => Stopping::future(async { panic!("told to, later") }),
            Part::Loses => Stopping::future(async { Stopped::Clean }),
        }
    }

    fn balance(&self) -> Balance {
        let mut balance = Balance::default();
        balance.accepted = u64::from(matches!(self.part, Part::Loses));
        balance
    }

    fn stragglers(&self) -> Stragglers {
        match self.part {
            Part::Hangs => {
                let origin = Origin::here().named("the one that hangs");
                [Straggler::new(origin, Activity::Parked, SECOND)].into_iter().collect()
            }
            _ => Stragglers::none(),
        }
    }
}

/// A blocking stop that the test lets go.
fn gate() -> (mpsc::Sender<()>, mpsc::Receiver<()>) {
    mpsc::channel()
}

/// A waker that does not come back from waking somebody, until the last is dropped; the other tells that it is called.
fn hanging_waker() -> (Waker, mpsc::Receiver<()>, mpsc::Sender<()>) {
    struct Hangs {
        begun: mpsc::Sender<()>,
        released: Mutex<mpsc::Receiver<()>>,
    }
    impl Wake for Hangs {
        fn wake(self: Arc<Self>) {
            self.begun.send(()).unwrap();
            let _ = self.released.lock().unwrap().recv();
        }
    }
    let ((release, released), (begun, begins)) = (gate(), gate());
    (Waker::from(Arc::new(Hangs { begun, released: Mutex::new(released) })), begins, release)
}
