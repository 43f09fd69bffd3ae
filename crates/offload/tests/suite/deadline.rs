//! Jobs under a deadline.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, mpsc},
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::time::{Clock, Deadline, SystemClock, ThreadTimer, Timer, VirtualClock};
use ebbtide_offload::{OffloadError, OnDrop, Pool};
use futures_lite::future::block_on;

use super::{busy, pool, settled};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_job_that_ends_in_time_gives_its_result() {
    let (pool, clock) = (pool(1), VirtualClock::new());
    let deadline = Deadline::after(&clock, MINUTE);
    assert_eq!(block_on(pool.offload_with_timeout(&clock, deadline, || 1)).unwrap(), 1);
    assert_eq!(block_on(pool.offload_with_timeout(&clock, Deadline::never(), || 2)).unwrap(), 2);
}

#[test]
fn t1_at_a_deadline_that_has_passed_the_job_is_not_brought() {
    let (pool, clock) = (pool(1), VirtualClock::new());
    let at_once = Deadline::at(clock.now());
    let job = pool.offload_with_timeout(&clock, at_once, || unreachable!("it had no time"));
    assert!(matches!(block_on(job), Err(OffloadError::Elapsed)));
    assert_eq!(settled(&pool).accepted, 0);
}

#[test]
fn t2_a_job_that_is_too_late_goes_on_and_its_result_is_discarded() {
    let (pool, clock) = (pool(1), VirtualClock::new());
    let (release, held) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let (canary, dropped) = super::Canary::new();
    let job = pool.offload_with_timeout(&clock, Deadline::after(&clock, MINUTE), move || {
        begun.send(()).unwrap();
        let _ = held.recv();
        canary
    });
    begins.recv().unwrap();
    assert!(matches!(clock.block_on(job), Err(OffloadError::Elapsed)));
    assert_eq!(pool.in_flight(), 1);
    drop(release);
    let balance = settled(&pool);
    assert_eq!((balance.completed, balance.late), (1, 1));
    dropped.try_recv().expect("t5: what it gave has been dropped");
}

#[test]
fn a_job_that_has_not_begun_at_its_deadline_is_withdrawn_or_run_by_choice() {
    let (pool, clock) = (pool(1), VirtualClock::new());
    let hold = busy(&pool);
    let deadline = Deadline::after(&clock, MINUTE);
    let withdrawn = pool.offload_with_timeout(&clock, deadline, || unreachable!("withdrawn"));
    let kept = pool.offload_with_timeout(&clock, deadline, || 1).on_drop(OnDrop::Run);
    clock.block_on(async {
        withdrawn.await.unwrap_err();
        kept.await.unwrap_err();
    });
    drop(hold);
    let balance = settled(&pool);
    assert_eq!((balance.cancelled, balance.late), (1, 1));
}

#[test]
fn a_duration_that_leads_beyond_all_time_never_ends() {
    let (pool, clock) = (pool(1), VirtualClock::new());
    let deadline = Deadline::after(&clock, Duration::MAX);
    assert_eq!(block_on(pool.offload_with_timeout(&clock, deadline, || 1)).unwrap(), 1);
}

#[test]
fn a_real_deadline_ends_a_real_wait() {
    let (pool, timer) = (pool(1), ThreadTimer::start().unwrap());
    let hold = busy(&pool);
    let deadline = Deadline::after(&timer, Duration::from_millis(5));
    assert!(matches!(
        block_on(pool.offload_with_timeout(&timer, deadline, || 1)),
        Err(OffloadError::Elapsed)
    ));
    drop(hold);
}

#[test]
fn virtual_time_stands_still_while_a_job_is_in_flight() {
    let clock = VirtualClock::new();
    let pool = Pool::builder().cpu_threads(1).clock(&clock).start().unwrap();
    let (start, deadline) = (clock.now(), Deadline::after(&clock, MINUTE));
    let other = clock.clone();
    let job = pool.offload_with_timeout(&clock, deadline, move || {
        // In real time, while in virtual time there would be nothing else to do but to reach the deadline.
        for _ in 0..1000 {
            thread::yield_now();
        }
        other.now()
    });
    assert_eq!(clock.block_on(job).unwrap(), start);
}

#[test]
fn t1_a_job_does_not_begin_after_its_deadline_on_the_thread_of_its_waiter_either() {
    let pool = pool(1);
    let inside = pool.clone();
    let job = pool.offload(move || {
        let clock = VirtualClock::new();
        let late = Deadline::after(&clock, MINUTE);
        let late = inside.offload_with_timeout(&clock, late, || unreachable!("too late"));
        clock.advance(2 * MINUTE);
        let past = Deadline::at(SystemClock.now());
        let waited = inside.offload(|| unreachable!("too late")).wait_by(past);
        (block_on(late).is_err(), waited.is_err())
    });
    assert_eq!(job.wait().unwrap(), (true, true));
    assert_eq!(settled(&pool).cancelled, 2);
}

#[test]
fn virtual_time_stands_still_until_those_who_wait_for_an_idle_pool_have_been_woken() {
    struct Yields;
    impl Wake for Yields {
        fn wake(self: Arc<Self>) {
            (0..1000).for_each(|_| thread::yield_now());
        }
    }
    let clock = VirtualClock::new();
    let pool = Pool::builder().cpu_threads(1).clock(&clock).start().unwrap();
    let (start, hold) = (clock.now(), busy(&pool));
    let (mut other, waker) = (pool.wait_idle(), Waker::from(Arc::new(Yields)));
    assert!(Pin::new(&mut other).poll(&mut Context::from_waker(&waker)).is_pending());
    let releases = thread::spawn(move || drop(hold));
    let hour = clock.sleep_until(start + 60 * MINUTE);
    clock.block_on(futures_lite::future::or(async { pool.wait_idle().await }, hour));
    assert_eq!(clock.now(), start);
    releases.join().unwrap();
}

#[test]
fn a_job_under_a_deadline_may_be_waited_for_by_a_thread() {
    let (pool, timer) = (pool(1), ThreadTimer::start().unwrap());
    let in_time = pool.offload_with_timeout(&timer, Deadline::never(), || 7);
    assert_eq!(in_time.wait().unwrap(), 7);
    let hold = busy(&pool);
    let soon = Deadline::after(&timer, Duration::from_millis(2));
    let late = pool.offload_with_timeout(&timer, soon, || 8).wait();
    assert!(matches!(late, Err(OffloadError::Elapsed)));
    drop(hold);
    assert_eq!(settled(&pool).cancelled, 1);
}
