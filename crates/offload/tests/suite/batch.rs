//! Jobs that are brought together.

use std::{
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Reason, Refusal, Stopped,
    time::{Clock, Deadline, SystemClock},
};
use ebbtide_offload::{Batch, OffloadError, Pool};
use futures_lite::future::block_on;

use super::{busy, pool, settled};

#[test]
fn results_of_a_batch_come_in_the_order_of_its_jobs() {
    let pool = pool(3);
    let results = block_on(pool.offload_all((0..1000).map(|n| move || n * 2)));
    assert!(results.into_iter().map(Result::unwrap).eq((0..1000).map(|n| n * 2)));
    assert_eq!(settled(&pool).completed, 1000);
}

#[test]
fn results_of_a_batch_can_be_taken_as_they_come() {
    let pool = pool(2);
    let mut batch = pool.offload_all((0..100).map(|n| move || n));
    let mut seen = block_on(async {
        let mut seen = Vec::new();
        while let Some(finished) = batch.next().await {
            assert!(!finished.is_empty());
            seen.extend(finished.into_iter().map(|(place, result)| (place, result.unwrap())));
        }
        seen
    });
    seen.sort_unstable();
    assert!(seen.into_iter().eq((0..100).map(|n| (n, n))));
    assert_eq!(batch.left(), 0);
    assert!(batch.wait().is_empty(), "all have been taken");
}

#[test]
fn one_job_of_a_batch_that_panics_fails_alone() {
    let pool = pool(1);
    let results = pool.offload_all((0..3).map(|n| move || assert_ne!(n, 1, "not one"))).wait();
    assert!(results[0].is_ok() && results[2].is_ok());
    assert!(matches!(&results[1], Err(OffloadError::Panicked(panic)) if panic.message().contains("not one")));
    assert_eq!(settled(&pool).failed, 1);
}

#[test]
fn all_threads_work_on_a_batch() {
    let pool = pool(3);
    let meeting = Arc::new(Barrier::new(3));
    let meet = |_| {
        let meeting = meeting.clone();
        move || meeting.wait().is_leader()
    };
    let leaders = pool.offload_all((0..3).map(meet)).wait();
    assert_eq!(leaders.into_iter().filter(|leads| *leads.as_ref().unwrap()).count(), 1);
}

#[test]
fn an_empty_batch_is_there_at_once() {
    let pool = pool(1);
    assert!(pool.offload_all(Vec::<fn()>::new()).wait().is_empty());
    assert_eq!(settled(&pool).accepted, 0);
}

#[test]
fn o3_a_batch_that_is_dropped_withdraws_what_has_not_begun() {
    let pool = pool(1);
    let hold = busy(&pool);
    drop(pool.offload_all((0..10).map(|_| || unreachable!("withdrawn"))));
    pool.offload_all((0..10).map(|n| move || n)).detach();
    drop(hold);
    let balance = settled(&pool);
    assert_eq!((balance.accepted, balance.cancelled, balance.late), (21, 10, 10));
}

#[test]
fn a_refused_batch_comes_back_or_tells_each_waiter() {
    let pool = pool(1);
    pool.close();
    let refused = pool.cpu().try_offload_all([|| 1, || 2]).unwrap_err();
    assert_eq!(refused.why, Refusal::Closed);
    assert_eq!(refused.work.into_iter().map(|job| job()).collect::<Vec<_>>(), [1, 2]);
    let results = pool.offload_all([|| 1, || 2]).wait();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| matches!(result, Err(OffloadError::Refused(Refusal::Closed)))));
    assert_eq!(settled(&pool).refused, 4);
}

#[test]
fn a_batch_that_is_larger_than_the_queue_runs_when_that_is_empty() {
    let pool = Pool::builder().cpu_threads(1).cpu_queue(2).start().unwrap();
    let hold = busy(&pool);
    let before = pool.offload(|| ());
    let batch = pool.offload_all((0..10).map(|n| move || n));
    assert_eq!(pool.stats().cpu.waiting, 10);
    drop(hold);
    before.wait().unwrap();
    assert_eq!(batch.wait().len(), 10);
    assert_eq!(settled(&pool).completed, 12);
}

/// A batch of which the first job has begun, on a pool of one thread, and goes on until what is given is dropped.
fn half_begun() -> (Pool, Batch<()>, Sender<()>, Arc<AtomicUsize>) {
    let (pool, begun) = (pool(1), Arc::new(AtomicUsize::new(0)));
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let job = |_| {
        let (held, begun) = (held.clone(), begun.clone());
        move || {
            begun.fetch_add(1, Ordering::SeqCst);
            let _ = held.lock().unwrap().recv();
        }
    };
    let batch = pool.offload_all((0..32).map(job));
    while begun.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    (pool, batch, release, begun)
}

#[test]
fn o5_of_a_batch_all_that_have_not_begun_are_handed_back() {
    let (pool, batch, release, begun) = half_begun();
    assert_eq!(pool.stragglers().len(), 32);
    let unstarted = pool.close_and_hand_back();
    assert_eq!(unstarted.iter().map(|unstarted| unstarted.jobs()).sum::<usize>(), 31);
    drop((unstarted, release));
    assert_eq!(batch.wait().into_iter().filter(Result::is_ok).count(), 1);
    assert_eq!((begun.load(Ordering::SeqCst), settled(&pool).handed_back), (1, 31));
}

#[test]
fn o3_of_a_batch_none_begins_after_it_was_dropped() {
    let (pool, batch, release, begun) = half_begun();
    drop((batch, release));
    let balance = settled(&pool);
    assert_eq!((begun.load(Ordering::SeqCst), balance.late, balance.cancelled), (1, 1, 31));
}

#[test]
fn of_a_batch_none_begins_after_a_stop_has_come_to_its_deadline() {
    let (pool, batch, release, begun) = half_begun();
    let past = Deadline::at(SystemClock.now());
    assert_eq!(pool.stop(past, &Reason::requested("test")).wait(), Stopped::Overdue);
    drop(release);
    assert_eq!(batch.wait().len(), 32);
    let balance = settled(&pool);
    assert_eq!((begun.load(Ordering::SeqCst), balance.abandoned, balance.cancelled), (1, 1, 31));
}

#[test]
fn a_result_is_given_while_the_next_job_runs() {
    let pool = pool(1);
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let mut batch = pool.offload_all((0..8).map(|n| {
        let held = held.clone();
        move || n == 1 && held.lock().unwrap().recv().is_err()
    }));
    let first = block_on(batch.next()).unwrap();
    assert!(matches!(first[..], [(0, Ok(false))]), "{first:?}");
    drop(release);
    assert_eq!(batch.wait().len(), 7);
}

#[test]
fn a_job_may_wait_for_the_next_one_of_its_batch_while_a_thread_is_idle() {
    let pool = pool(2);
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = Arc::new(Mutex::new(receiver));
    let results = pool.offload_all((0..32).map(|n| {
        let (sender, receiver) = (sender.clone(), receiver.clone());
        move || match n {
            0 => receiver.lock().unwrap().recv().is_ok(),
            1 => sender.send(()).is_ok(),
            _ => true,
        }
    }));
    assert!(results.wait().into_iter().all(Result::unwrap));
}

#[test]
fn each_blocking_job_of_a_batch_has_a_thread_of_its_own() {
    let pool = pool(1);
    let meeting = Arc::new(Barrier::new(8));
    let meet = |_| {
        let meeting = meeting.clone();
        move || meeting.wait().is_leader()
    };
    assert_eq!(pool.blocking().offload_all((0..8).map(meet)).wait().len(), 8);
    assert_eq!(pool.stats().blocking.threads, 8);
}

#[test]
fn a_batch_is_waited_for_until_a_deadline_and_loses_no_result() {
    let (pool, mut batch, release, _) = half_begun();
    let soon = Deadline::after(SystemClock, Duration::from_millis(2));
    batch.wait_by(soon).unwrap_err();
    drop(release);
    assert_eq!(batch.wait_by(Deadline::never()).unwrap().len(), 32);
    assert_eq!(settled(&pool).completed, 32);
}
