//! Facts about graphs, plans and runs. Those with a number are contracts, listed in `ARCHITECTURE.md`.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod allocation;
mod component;
mod deadlines;
mod executors;
mod faults;
mod foreign;
mod giving_up;
mod graphs;
#[cfg(feature = "json")]
mod json;
mod local;
#[cfg(feature = "page")]
mod page;
mod random;
mod reports;
mod retries;
mod runs;
mod teardown;
mod weighed;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use ebbtide_dag::Env;
use ebbtide_lifecycle::{Component, time::VirtualClock};
use ebbtide_offload::Pool;
use ebbtide_reactor::{Handle, Runtime};
use ebbtide_timeout::Runners;

/// A unit of virtual time.
const MS: Duration = Duration::from_millis(1);

/// A loop, a pool and runners in one virtual time.
struct World {
    clock: VirtualClock,
    runtime: Runtime,
    pool: Pool,
    runners: Runners<Handle>,
}

impl World {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let runtime = Runtime::builder().clock(&clock).runtime();
        let pool = Pool::builder().cpu_threads(2).clock(&clock).start().unwrap();
        let runners = Runners::new(&runtime.handle(), runtime.handle()).unwrap();
        Self { clock, runtime, pool, runners }
    }

    fn env(&self) -> Env<Handle> {
        Env::new(self.runtime.handle()).pool(&self.pool).runners(&self.runners)
    }

    /// Waits until nothing is late any more, and checks all books.
    fn settle(&mut self, engine: &impl Component) {
        let runners = self.runners.clone();
        self.runtime.block_on(async move { runners.wait_idle().await });
        self.settle_but_runners(engine);
        self.runners.balance().check().unwrap();
    }

    /// The same, for late runners that never end.
    fn settle_but_runners(&self, engine: &impl Component) {
        self.pool.wait_idle().wait();
        for balance in [engine.balance(), self.pool.balance()] {
            balance.check().unwrap();
            assert_eq!(balance.in_flight, 0, "{balance}");
        }
    }
}

/// Counts how many of it are there.
#[derive(Clone, Default)]
struct Canaries(Arc<AtomicUsize>);

#[derive(Debug)]
struct Canary(Arc<AtomicUsize>);

impl Canaries {
    fn hatch(&self) -> Canary {
        self.0.fetch_add(1, Ordering::SeqCst);
        Canary(self.0.clone())
    }

    fn alive(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Panics when it is dropped, unless a panic is under way.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("boom");
        }
    }
}

/// Something that a node waits for on its thread, until the test lets it go.
#[derive(Clone)]
struct Latch {
    begun: mpsc::Sender<()>,
    released: Arc<std::sync::Mutex<mpsc::Receiver<()>>>,
}

impl Latch {
    /// The latch, what tells that a node has come to it, and what lets one go.
    fn new() -> (Self, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let ((begun, is_begun), (release, released)) = (mpsc::channel(), mpsc::channel());
        (Self { begun, released: Arc::new(std::sync::Mutex::new(released)) }, is_begun, release)
    }

    fn wait(&self) {
        self.begun.send(()).unwrap();
        let _: Result<(), _> = self.released.lock().unwrap().recv();
    }
}
