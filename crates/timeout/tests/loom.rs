//! Models of late runners, explored by loom: what is handed over against a driver that goes to sleep, ends, or
//! is dropped.
//!
//! Run by `cargo xtask ci loom`; the mutants that they must catch are listed in `ARCHITECTURE.md`.

#![cfg(loom)]

use std::{
    future::{Future, Ready, poll_fn, ready},
    sync::atomic::{AtomicUsize as Count, Ordering as CountOrdering},
    task::Poll,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{Component, time::SystemClock};
use ebbtide_timeout::{Clock, Elapsed, Runners, SendRunner, Timer};
use loom::{
    future::block_on,
    model::Builder,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

fn model(preemptions: usize, threads: impl Fn() + Send + Sync + 'static) {
    let executions = std::sync::Arc::new(Count::new(0));
    let counted = executions.clone();
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        counted.fetch_add(1, CountOrdering::Relaxed);
        threads();
    });
    println!("{} executions", executions.load(CountOrdering::Relaxed));
}

/// Every time has come.
#[derive(Clone, Copy)]
struct Now;

impl Clock for Now {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

impl Timer for Now {
    type Sleep = Ready<()>;

    fn sleep_until(&self, _: Instant) -> Ready<()> {
        ready(())
    }
}

fn runners() -> (Runners<Now>, SendRunner) {
    let mut driver = None;
    let runners = Runners::spawned(Now, |spawned| driver = Some(spawned));
    (runners, driver.unwrap())
}

/// Ends at its second poll, and counts its drop.
fn late(dropped: &Arc<AtomicUsize>) -> impl Future<Output = ()> + Send + 'static {
    struct Canary(Arc<AtomicUsize>);
    impl Drop for Canary {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (canary, mut polls) = (Canary(dropped.clone()), 0);
    poll_fn(move |cx| {
        let _held = &canary;
        polls += 1;
        cx.waker().wake_by_ref();
        if polls == 1 { Poll::Pending } else { Poll::Ready(()) }
    })
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn what_is_late_is_driven_to_its_end_and_those_who_wait_see_it() {
    model(3, || {
        let ((runners, driver), dropped) = (runners(), Arc::new(AtomicUsize::new(0)));
        let drives = thread::spawn(move || block_on(driver));
        assert_eq!(block_on(runners.timeout(MINUTE, late(&dropped))), Err(Elapsed));
        block_on(runners.wait_idle());
        assert_eq!(dropped.load(Ordering::Relaxed), 1, "who sees them idle sees what they held gone");
        assert_eq!(runners.balance().late, 1);
        runners.close();
        drives.join().unwrap();
    });
}

#[test]
fn the_driver_ends_when_the_last_who_could_detach_goes() {
    model(3, || {
        let ((runners, driver), dropped) = (runners(), Arc::new(AtomicUsize::new(0)));
        let drives = thread::spawn(move || block_on(driver));
        assert_eq!(block_on(runners.timeout(MINUTE, late(&dropped))), Err(Elapsed));
        let tracker = runners.tracker().clone();
        drop(runners);
        drives.join().unwrap();
        assert_eq!((tracker.balance().late, dropped.load(Ordering::Relaxed)), (1, 1));
    });
}

#[test]
fn what_is_late_while_the_driver_is_dropped_is_dropped_and_booked_once() {
    model(3, || {
        let ((runners, driver), dropped) = (runners(), Arc::new(AtomicUsize::new(0)));
        let drops = thread::spawn(move || drop(driver));
        assert_eq!(block_on(runners.timeout(MINUTE, late(&dropped))), Err(Elapsed));
        block_on(runners.wait_idle());
        assert_eq!(dropped.load(Ordering::Relaxed), 1, "who sees them idle sees what they held gone");
        drops.join().unwrap();
        let balance = runners.balance();
        assert_eq!((balance.accepted, balance.cancelled), (1, 1));
    });
}
