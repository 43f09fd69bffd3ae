//! The pool as a component.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Reason, Stopped, Stopping,
    conformance::{self, Finish, Specimen},
    time::{Deadline, SystemClock, VirtualClock},
};
use ebbtide_offload::{OffloadError, Pool};

use super::{busy, pool};

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
            (Some(clock), Stopping::Future(stop)) => clock.block_on(stop),
            (_, stopping) => stopping.wait(),
        }
    }
}

#[test]
fn a_pool_conforms() {
    conformance::component(|| Bench { pool: pool(1), clock: None });
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
