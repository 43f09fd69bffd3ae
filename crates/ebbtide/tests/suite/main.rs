//! Facts about whole programs. Those with a number are contracts, listed in `ARCHITECTURE.md`.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod components;
mod endings;
mod health;
mod listener;
mod loops;
mod order;
mod paths;
mod process;
mod requests;
mod resources;
mod signals;
mod starting;
mod stuck;
mod under_load;

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ebbtide::{
    App, Error, Exit,
    app::Builder,
    lifecycle::time::{Clock as _, VirtualClock},
    shutdown::{Event, Feed, Report, Signals},
};

const SECOND: Duration = Duration::from_secs(1);

/// A program in virtual time, with signals that a test sends, and an account of what happens.
struct Fixture {
    clock: VirtualClock,
    start: Instant,
    feed: Feed,
    log: Log,
    /// What the process would have ended with.
    exits: Arc<Mutex<Vec<u8>>>,
}

/// What happened, and when: `3s: the pool's job ends`. A clone adds to the same.
#[derive(Clone)]
struct Log {
    clock: VirtualClock,
    start: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    fn add(&self, what: impl std::fmt::Display) {
        let at = self.clock.now() - self.start;
        self.lines.lock().unwrap().push(format!("{at:?}: {what}"));
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

/// Says so when it is dropped.
struct Tells(&'static str, Log);

impl Drop for Tells {
    fn drop(&mut self) {
        self.1.add(self.0);
    }
}

impl Fixture {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let start = clock.now();
        let log = Log { clock: clock.clone(), start, lines: Arc::default() };
        Self { clock, start, feed: Feed::new(), log, exits: Arc::default() }
    }

    /// It tells nothing of what the coordinator says; see [`observed`](Fixture::observed).
    fn builder(&self) -> Builder {
        let exits = self.exits.clone();
        App::builder()
            .clock(&self.clock)
            .signals(Signals::from_feed(&self.feed))
            .pool(|pool| pool.cpu_threads(1))
            .coordinator(|coordinator| {
                coordinator.observer(|_| {}).exit(move |code| exits.lock().unwrap().push(code))
            })
    }

    /// The log has the steps of the stop as well.
    fn observed(&self) -> Builder {
        let log = self.log.clone();
        self.builder().coordinator(|coordinator| {
            coordinator.observer(move |event| {
                if !matches!(event, Event::Stopped(_) | Event::PhaseEnded { .. }) {
                    log.add(event.to_string().lines().next().unwrap_or_default());
                }
            })
        })
    }

    fn run<M, F>(&self, main: M) -> Exit
    where
        M: FnOnce(App) -> F + Send + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        self.builder().run(main)
    }

    fn elapsed(&self) -> Duration {
        self.clock.now() - self.start
    }
}

/// The report of a program that was started.
fn report(exit: &Exit) -> &Report {
    exit.report().expect("it was started")
}
