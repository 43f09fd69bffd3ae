//! The pool as a component.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Reason, Stopped, Stopping,
    conformance::{self, Finish, Specimen},
    time::{Clock, Deadline, SystemClock, VirtualClock},
};
use ebbtide_offload::{OffloadError, Pool};
use futures_lite::future::{block_on, poll_once};

use super::{Busy, busy, pool};

struct Bench {
    pool: Pool,
    clock: Option<VirtualClock>,
}

impl Specimen for Bench {
    type Component = Pool;

    fn component(&self) -> &Pool {
        &self.pool
    }

    fn submit(&self) -> Option<Finish> {
        let (release, held) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        let job = self.pool.blocking().try_offload(move || {
            begun.send(()).unwrap();
            let _ = held.recv();
        });
        job.ok()?.detach();
        begins.recv().unwrap();
        let pool = self.pool.clone();
        Some(Box::new(move || {
            drop(release);
            pool.wait_idle().wait();
        }))
    }

    fn soon(&self) -> Deadline {
        match &self.clock {
            Some(clock) => Deadline::after(clock, Duration::from_millis(5)),
            None => Deadline::after(SystemClock, Duration::from_millis(5)),
        }
    }

    fn drive(&self, stopping: Stopping) -> Stopped {
        match (&self.clock, stopping) {
            // Jobs in flight hold the time, so it is moved by hand.
            (Some(clock), Stopping::Future(stop)) => thread::scope(|scope| {
                let stops = scope.spawn(|| clock.block_on(stop));
                while !stops.is_finished() {
                    clock.advance(Duration::from_millis(1));
                    thread::yield_now();
                }
                stops.join().unwrap()
            }),
            (_, stopping) => stopping.wait(),
        }
    }
}

#[test]
fn a_pool_conforms() {
    conformance::component(|| Bench { pool: pool(1), clock: None });
}

#[test]
fn a_pool_in_virtual_time_conforms() {
    conformance::component(|| {
        let clock = VirtualClock::new();
        let pool = Pool::builder().cpu_threads(1).clock(&clock).start().unwrap();
        Bench { pool, clock: Some(clock) }
    });
}

#[test]
fn a_stop_does_not_wait_for_the_thread_whose_thread_local_holds_the_last_handle() {
    thread_local! {
        static KEPT: RefCell<Option<Pool>> = const { RefCell::new(None) };
    }
    let pool = pool(1);
    let inside = pool.clone();
    pool.offload(move || KEPT.set(Some(inside))).wait().unwrap();
    let stopping = pool.stop(Deadline::never(), &Reason::requested("test"));
    drop(pool);
    assert_eq!(stopping.wait(), Stopped::Clean);
}

#[test]
fn at_the_deadline_of_a_stop_waiters_of_unstarted_jobs_are_told_and_what_runs_is_named() {
    let pool = pool(1);
    let hold = busy(&pool);
    let unstarted = pool.offload(|| ());
    let soon = Deadline::after(SystemClock, Duration::from_millis(5));
    assert_eq!(pool.stop(soon, &Reason::requested("test")).wait(), Stopped::Overdue);
    assert!(matches!(unstarted.wait(), Err(OffloadError::Discarded)));
    let balance = pool.balance();
    balance.check().unwrap();
    assert_eq!((balance.abandoned, balance.cancelled), (1, 1));
    assert!(pool.stragglers().to_string().contains("\"busy\""));
    drop(hold);
    pool.wait_idle().wait();
    assert_eq!((pool.balance().returned_after, pool.stragglers().len()), (1, 0));
}

#[test]
fn a_pool_in_virtual_time_stops_in_virtual_time() {
    let clock = VirtualClock::new();
    let pool = Arc::new(Pool::builder().cpu_threads(1).clock(&clock).start().unwrap());
    let job = pool.offload(|| 1);
    let stopping = pool.stop(Deadline::after(&clock, Duration::from_secs(3600)), &Reason::requested("test"));
    let Stopping::Future(stop) = stopping else { panic!("it takes no thread") };
    assert_eq!(clock.block_on(stop), Stopped::Clean);
    assert_eq!(job.wait().unwrap(), 1);
}

/// Blocks its drop until it is told to go on; says that it was dropped.
struct Slow {
    dropped: Sender<()>,
    goes_on: Receiver<()>,
    /// What it lets go of first.
    holds: Option<Busy>,
}

impl Drop for Slow {
    fn drop(&mut self) {
        drop(self.holds.take());
        self.dropped.send(()).unwrap();
        let _ = self.goes_on.recv();
    }
}

fn past() -> Deadline {
    Deadline::at(SystemClock.now())
}

#[test]
fn o2_a_pool_is_not_idle_before_all_waiters_of_discarded_jobs_have_been_told() {
    let pool = pool(1);
    let (dropped, is_dropped) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let slow = Slow { dropped, goes_on, holds: Some(busy(&pool)) };
    let first = pool.offload(move || drop(slow));
    let second = pool.offload(|| 2);
    let stopping = pool.stop(past(), &Reason::requested("test"));
    let stops = thread::spawn(move || stopping.wait());
    is_dropped.recv().unwrap();
    // The stop is in the middle of discarding, and what ran has ended.
    assert!(block_on(poll_once(pool.wait_idle())).is_none());
    drop(go_on);
    assert_eq!(stops.join().unwrap(), Stopped::Overdue);
    pool.wait_idle().wait();
    assert!(first.is_finished() && second.is_finished());
    assert!(matches!(second.wait(), Err(OffloadError::Discarded)));
}

#[test]
fn o2_a_pool_is_not_idle_before_all_waiters_of_refused_jobs_have_been_told() {
    let pool = Pool::builder().cpu_threads(1).cpu_queue(1).start().unwrap();
    let hold = busy(&pool);
    let line = pool.offload(|| ());
    let (dropped, is_dropped) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let slow = Slow { dropped, goes_on, holds: None };
    let (first, second) = (pool.offload(move || drop(slow)), pool.offload(|| ()));
    let closes = thread::spawn({
        let pool = pool.clone();
        move || pool.close()
    });
    is_dropped.recv().unwrap();
    drop(hold);
    line.wait().unwrap();
    assert!(block_on(poll_once(pool.wait_idle())).is_none());
    drop(go_on);
    pool.wait_idle().wait();
    assert!(first.is_finished() && second.is_finished());
    assert!(closes.join().unwrap());
}

#[test]
fn a_stop_that_discards_accepted_jobs_is_overdue() {
    for _ in 0..50 {
        let pool = pool(1);
        let job = pool.offload(|| 1);
        let stopped = pool.stop(past(), &Reason::requested("test")).wait();
        let was_run = job.wait().is_ok();
        assert_eq!(pool.balance().cancelled == 0, was_run);
        assert!(was_run || stopped == Stopped::Overdue);
    }
}

#[test]
fn a_job_that_was_discarded_is_not_run_by_its_waiter() {
    let pool = pool(1);
    let (dropped, is_dropped) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let inside = pool.clone();
    let outer = pool.offload(move || {
        let slow = Slow { dropped, goes_on, holds: None };
        let _first = inside.offload(move || drop(slow));
        let second = inside.offload(|| 2);
        begun.send(()).unwrap();
        is_dropped.recv().unwrap();
        // By now it is booked as cancelled, and not told yet.
        drop(go_on);
        second.wait()
    });
    begins.recv().unwrap();
    let _ = pool.stop(past(), &Reason::requested("test")).wait();
    assert!(matches!(outer.wait(), Ok(Err(OffloadError::Discarded))));
    pool.wait_idle().wait();
    pool.balance().check().unwrap();
}

#[test]
fn a_stop_keeps_to_its_deadline_when_a_discarded_job_holds_the_last_handle() {
    let pool = pool(1);
    let hold = busy(&pool);
    let inside = pool.clone();
    pool.offload(move || drop(inside)).detach();
    let stopping = pool.stop(past(), &Reason::requested("test"));
    drop(pool);
    assert_eq!(stopping.wait(), Stopped::Overdue);
    drop(hold);
}

#[test]
fn every_stop_waits_until_the_threads_have_ended() {
    thread_local! {
        static SLOW: RefCell<Option<Slow>> = const { RefCell::new(None) };
    }
    let pool = pool(1);
    let (dropped, is_dropped) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    pool.offload(move || SLOW.set(Some(Slow { dropped, goes_on, holds: None }))).wait().unwrap();
    let stops: Vec<_> = (0..2)
        .map(|_| {
            let stopping = pool.stop(Deadline::never(), &Reason::requested("test"));
            thread::spawn(move || stopping.wait())
        })
        .collect();
    is_dropped.recv().unwrap();
    for _ in 0..1000 {
        thread::yield_now();
    }
    assert!(stops.iter().all(|stop| !stop.is_finished()));
    drop(go_on);
    for stop in stops {
        assert_eq!(stop.join().unwrap(), Stopped::Clean);
    }
}
