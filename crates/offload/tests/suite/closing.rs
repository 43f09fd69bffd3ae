//! Closing, waiting for the end, and dropping.

use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        mpsc::{self, Sender},
    },
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Refusal,
    time::{Clock, Deadline, SystemClock, VirtualClock},
};
use ebbtide_offload::{Offload, OffloadError, Pool, Unstarted, waiter_has_gone};
use futures_lite::future::{block_on, poll_once};

use super::{Canary, busy, pool, settled};

#[test]
fn o2_wait_idle_returns_when_nothing_is_in_flight_and_not_before() {
    let pool = pool(2);
    pool.wait_idle().wait();
    let hold = busy(&pool);
    let mut idle = pool.wait_idle();
    assert!(block_on(poll_once(&mut idle)).is_none());
    let soon = Deadline::after(SystemClock, Duration::from_millis(2));
    pool.wait_idle().wait_by(soon).unwrap_err();
    let job = pool.blocking().offload(|| 5);
    drop(hold);
    block_on(idle);
    assert!(job.is_finished(), "its result was stored before");
    assert_eq!(pool.in_flight(), 0);
}

#[test]
fn a_closed_pool_runs_what_it_has_accepted_and_refuses_the_rest() {
    let pool = pool(1);
    let hold = busy(&pool);
    let accepted = pool.offload(|| 1);
    assert!(pool.close() && !pool.close() && pool.is_closed());
    let refused = pool.try_offload(|| 2).unwrap_err();
    assert_eq!((refused.why, (refused.work)()), (Refusal::Closed, 2));
    assert!(matches!(pool.offload(|| 3).wait(), Err(OffloadError::Refused(Refusal::Closed))));
    drop(hold);
    assert_eq!(accepted.wait().unwrap(), 1);
    let balance = settled(&pool);
    assert_eq!((balance.completed, balance.refused), (2, 2));
}

#[test]
fn o5_jobs_that_have_not_begun_are_handed_back_as_values() {
    let pool = pool(1);
    let hold = busy(&pool);
    let (run, dropped, gone) = (pool.offload(|| 1), pool.offload(|| 2), pool.offload(|| 3));
    let batch = pool.cpu().named("batch").offload_all([|| 4, || 5]);
    drop(gone);
    let mut unstarted = pool.close_and_hand_back();
    assert_eq!(unstarted.iter().map(|job| job.jobs()).collect::<Vec<_>>(), [1, 1, 2]);
    let last = unstarted.pop().unwrap();
    assert_eq!(last.origin().name(), Some("batch"));
    drop(unstarted.pop());
    assert!(!run.is_finished());
    unstarted.pop().unwrap().run();
    last.run();
    assert_eq!(run.wait().unwrap(), 1);
    assert!(matches!(dropped.wait(), Err(OffloadError::Discarded)));
    assert_eq!(batch.wait().into_iter().map(Result::unwrap).collect::<Vec<_>>(), [4, 5]);
    drop(hold);
    let balance = settled(&pool);
    assert_eq!((balance.completed, balance.handed_back, balance.cancelled), (1, 4, 1));
}

#[test]
fn a_job_that_was_handed_back_may_be_run_by_a_job_that_waits_for_it() {
    let pool = pool(1);
    let (inside, (begun, begins), (closed, closes)) = (pool.clone(), mpsc::channel(), mpsc::channel());
    let outer = pool.offload(move || {
        let inner = inside.offload(|| 1);
        begun.send(()).unwrap();
        closes.recv().unwrap();
        inner.wait().unwrap()
    });
    begins.recv().unwrap();
    let unstarted = pool.close_and_hand_back();
    closed.send(()).unwrap();
    let balance = settled(&pool);
    assert_eq!((balance.completed, balance.handed_back), (1, 1));
    assert_eq!((outer.wait().unwrap(), unstarted[0].jobs()), (1, 0));
}

#[test]
fn a_pool_that_is_dropped_runs_what_it_has_accepted_and_ends_its_threads() {
    let (sender, receiver) = mpsc::channel();
    let pool = pool(2);
    let ledger = pool.ledger();
    for n in 0..100 {
        let sender = sender.clone();
        pool.offload(move || sender.send(n).unwrap()).detach();
    }
    drop((pool, sender));
    assert_eq!(receiver.try_iter().count(), 100, "all have run when the drop returns");
    ledger.balance(0).check().unwrap();
}

#[test]
fn a_pool_may_be_dropped_on_its_own_thread() {
    let pool = pool(1);
    let (sender, receiver) = mpsc::channel();
    let (hold, last) = (busy(&pool), pool.clone());
    pool.offload(move || {
        drop(last);
        sender.send(()).unwrap();
    })
    .detach();
    let ledger = pool.ledger();
    thread::spawn(move || drop(pool)).join().unwrap();
    drop(hold);
    receiver.recv().unwrap();
    while !ledger.balance(0).is_balanced() {
        thread::yield_now();
    }
}

#[test]
fn work_inside_may_bring_more_while_the_pool_closes() {
    let pool = pool(1);
    let (hold, inside) = (busy(&pool), pool.clone());
    let job = pool.offload(move || inside.offload(|| 7).wait().unwrap());
    pool.close();
    drop(hold);
    assert_eq!(job.wait().unwrap(), 7);
    assert_eq!(settled(&pool).completed, 3);
}

#[test]
fn who_is_still_there_is_named_with_place_and_thread() {
    let pool = Pool::builder().name("rank").cpu_threads(1).start().unwrap();
    let hold = busy(&pool);
    let queued = pool.cpu().named("behind").offload(|| ());
    let report = pool.stragglers().to_string();
    assert!(report.contains("\"busy\" at ") && report.contains("rank-cpu-0"), "{report}");
    assert!(report.contains("\"behind\" at ") && report.contains("closing.rs"), "{report}");
    drop(hold);
    queued.wait().unwrap();
    pool.wait_idle().wait();
    assert_eq!(pool.stragglers().len(), 0);
}

/// Brings a job when it is woken.
struct Brings {
    pool: Pool,
    brought: Sender<Offload<i32>>,
}

impl Wake for Brings {
    fn wake(self: Arc<Self>) {
        assert!(!waiter_has_gone());
        self.brought.send(self.pool.offload(|| 7)).unwrap();
    }
}

#[test]
fn a_waker_on_a_thread_of_a_closed_pool_is_not_inside() {
    let pool = pool(1);
    let (release, held) = mpsc::channel::<()>();
    let mut job = pool.offload(move || held.recv().is_err());
    let mut idle = pool.wait_idle();
    let (brought, is_brought) = mpsc::channel();
    let waker = Waker::from(Arc::new(Brings { pool: pool.clone(), brought }));
    let cx = &mut Context::from_waker(&waker);
    assert!(Pin::new(&mut idle).poll(cx).is_pending() && Pin::new(&mut job).poll(cx).is_pending());
    pool.close();
    drop(release);
    for _ in ["by the job", "by the pool"] {
        let brought = is_brought.recv().unwrap();
        assert!(matches!(brought.wait(), Err(OffloadError::Refused(Refusal::Closed))));
    }
}

#[test]
fn the_last_handle_may_be_in_a_thread_local_of_a_thread_of_the_pool() {
    thread_local! {
        static KEPT: RefCell<Option<(Pool, Canary)>> = const { RefCell::new(None) };
    }
    let pool = pool(1);
    let (inside, (canary, dropped)) = (pool.clone(), Canary::new());
    pool.offload(move || KEPT.set(Some((inside, canary)))).wait().unwrap();
    pool.close();
    drop(pool);
    dropped.recv().unwrap();
}

#[test]
fn a_job_is_queued_for_as_long_as_it_has_had_to_wait_at_most() {
    let clock = VirtualClock::new();
    let pool = Pool::builder().cpu_threads(1).clock(&clock).start().unwrap();
    let hold = busy(&pool);
    clock.advance(Duration::from_secs(3600));
    let fresh = pool.cpu().named("fresh").offload(|| ());
    let ages: Vec<_> = pool.stragglers().iter().map(|straggler| straggler.age).collect();
    assert_eq!(ages, [Duration::from_secs(3600), Duration::ZERO]);
    drop(hold);
    fresh.wait().unwrap();
}

#[test]
fn a_job_that_no_thread_has_seen_is_as_old_as_it_is() {
    let pool = pool(1);
    let hold = busy(&pool);
    let later = SystemClock.now() + Duration::from_millis(1);
    while SystemClock.now() < later {
        thread::yield_now();
    }
    let brought = SystemClock.now();
    let fresh = pool.cpu().named("fresh").offload(|| ());
    let age = || pool.stragglers().iter().map(|straggler| straggler.age).min().unwrap();
    let seen = age();
    assert!(seen <= SystemClock.now() - brought, "it is not as old as what runs");
    assert!(age() >= seen, "a look makes it no younger");
    drop(hold);
    fresh.wait().unwrap();
}

#[test]
fn o5_jobs_are_handed_back_the_oldest_first() {
    let pool = pool(1);
    let hold = busy(&pool);
    let (release, held) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let gate = pool.offload(move || {
        begun.send(()).unwrap();
        let _ = held.recv();
    });
    let (sender, receiver) = mpsc::channel();
    let job = |n| {
        let sender = sender.clone();
        pool.offload(move || sender.send(n).unwrap())
    };
    let jobs: Vec<_> = (0..40).map(job).collect();
    // The thread takes several with the next one, and begins none of them.
    drop(hold);
    begins.recv().unwrap();
    pool.close_and_hand_back().into_iter().for_each(Unstarted::run);
    assert!(receiver.try_iter().eq(0..40));
    drop((release, jobs));
    gate.wait().unwrap();
}

#[test]
fn o5_jobs_that_wait_for_room_are_handed_back_too() {
    let pool = Pool::builder().cpu_threads(1).cpu_queue(1).start().unwrap();
    let hold = busy(&pool);
    let jobs: Vec<_> = (0..3).map(|n| pool.offload(move || n)).collect();
    assert_eq!(pool.stats().cpu.waiting, 2);
    let unstarted = pool.close_and_hand_back();
    assert_eq!(unstarted.len(), 3);
    unstarted.into_iter().for_each(Unstarted::run);
    assert!(jobs.into_iter().map(|job| job.wait().unwrap()).eq(0..3));
    drop(hold);
    let balance = settled(&pool);
    assert_eq!((balance.accepted, balance.handed_back, balance.refused), (4, 3, 0));
}
