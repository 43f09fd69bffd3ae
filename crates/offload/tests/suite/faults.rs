//! What goes wrong on purpose.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use ebbtide_lifecycle::time::{Clock, VirtualClock};
use ebbtide_offload::{OffloadError, StartError};

use super::*;

#[test]
fn a_job_fails_with_what_the_hook_panics_with_and_is_not_run() {
    let jobs = AtomicUsize::new(0);
    let builder = Pool::builder().cpu_threads(1).job_faults(move || {
        assert!(jobs.fetch_add(1, SeqCst) != 1, "the second");
    });
    let pool = builder.start().unwrap();
    assert_eq!(pool.offload(|| 1).wait().unwrap(), 1);
    let failed = pool.offload(|| unreachable!("it is not run")).wait();
    assert!(matches!(failed, Err(OffloadError::Panicked(_))));
    assert_eq!(pool.offload(|| 3).wait().unwrap(), 3);
    assert_eq!(settled(&pool).to_string(), "accepted 3, completed 2, failed 1");
}

#[test]
fn a_job_before_which_the_clock_is_moved_has_taken_that_long() {
    let clock = VirtualClock::new();
    let moved = clock.clone();
    let builder = Pool::builder().cpu_threads(1).clock(&clock);
    let pool = builder.job_faults(move || moved.advance(Duration::from_secs(7))).start().unwrap();
    let start = clock.now();
    pool.offload(|| ()).wait().unwrap();
    assert_eq!(clock.now() - start, Duration::from_secs(7));
}

#[test]
fn the_hook_of_the_pool_is_called_too() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (first, second) = (calls.clone(), calls.clone());
    let builder = Pool::builder().cpu_threads(1).before_each(move || {
        first.fetch_add(1, SeqCst);
    });
    let builder = builder.job_faults(move || {
        second.fetch_add(10, SeqCst);
    });
    let pool = builder.start().unwrap();
    pool.offload(|| ()).wait().unwrap();
    assert_eq!(calls.load(SeqCst), 11);
}

#[test]
fn o4_a_thread_that_is_refused_is_an_error_at_the_start_and_none_later() {
    let error = Pool::builder().thread_faults(|| true).start().unwrap_err();
    assert!(matches!(error, StartError::Thread(_)), "{error}");
    // One of each lane is given, and no more.
    let asked = AtomicUsize::new(0);
    let builder = Pool::builder().cpu_threads(1).thread_faults(move || asked.fetch_add(1, SeqCst) >= 2);
    let pool = builder.start().unwrap();
    let line = Arc::new(Barrier::new(2));
    let theirs = line.clone();
    let mut jobs = vec![pool.blocking().offload(move || {
        theirs.wait();
    })];
    jobs.extend((0..4).map(|_| pool.blocking().offload(|| ())));
    line.wait();
    for job in jobs {
        job.wait().unwrap();
    }
    assert!(pool.stats().threads_missed > 0);
    assert_eq!(settled(&pool).completed, 5);
}
