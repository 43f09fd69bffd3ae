//! Jobs that wait for jobs of their own pool.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread,
};

use ebbtide_lifecycle::{
    Component, Reason, Stopped,
    time::{Clock, Deadline, SystemClock},
};
use ebbtide_offload::{Offload, OffloadError, Pool};
use futures_lite::future::block_on;

use super::{busy, pool, settled};

#[test]
fn a_job_may_wait_for_another_on_a_pool_of_one_thread() {
    let pool = pool(1);
    let inside = pool.clone();
    let job = pool.offload(move || {
        let blocking = inside.offload(|| 1).wait().unwrap();
        let awaited = block_on(inside.offload(|| 2)).unwrap();
        let batch: Vec<_> = inside.offload_all((3..5).map(|n| move || n)).wait();
        blocking + awaited + batch.into_iter().map(Result::unwrap).sum::<i32>()
    });
    assert_eq!(job.wait().unwrap(), 10);
    assert_eq!(settled(&pool).completed, 5);
}

#[test]
fn jobs_may_be_nested_deeply() {
    fn nest(pool: &Pool, depth: usize) -> usize {
        let inside = pool.clone();
        let below = move || if depth == 0 { 0 } else { 1 + nest(&inside, depth - 1) };
        pool.offload(below).wait().unwrap()
    }
    let pool = pool(2);
    assert_eq!(nest(&pool, 50), 50);
    assert_eq!(settled(&pool).completed, 51);
}

#[test]
fn a_job_that_waits_for_room_may_be_waited_for_on_its_own_pool() {
    let pool = Pool::builder().cpu_threads(1).cpu_queue(1).start().unwrap();
    let hold = busy(&pool);
    let inside = pool.clone();
    let outer = pool.offload(move || {
        let jobs: Vec<_> = (0..5).map(|n| inside.offload(move || n)).collect();
        jobs.into_iter().rev().map(|job| job.wait().unwrap()).sum::<i32>()
    });
    let waits = pool.offload(|| 7);
    drop(hold);
    assert_eq!((outer.wait().unwrap(), waits.wait().unwrap()), (10, 7));
    let balance = settled(&pool);
    assert_eq!((balance.accepted, balance.completed), (8, 8));
}

#[test]
fn a_nested_job_that_panics_fails_alone() {
    let pool = pool(1);
    let inside = pool.clone();
    let job = pool.offload(move || inside.offload(|| panic!("inside")).wait().is_err());
    assert!(job.wait().unwrap());
    let balance = settled(&pool);
    assert_eq!((balance.completed, balance.failed), (1, 1));
}

#[test]
fn a_nested_job_that_another_thread_runs_is_waited_for() {
    let pool = pool(2);
    let (begun, begins) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let inside = pool.clone();
    let outer = pool.offload(move || {
        let inner = inside.offload(move || {
            begun.send(()).unwrap();
            let _ = held.recv();
            9
        });
        begins.recv().unwrap();
        drop(release);
        inner.wait().unwrap()
    });
    assert_eq!(outer.wait().unwrap(), 9);
    settled(&pool);
    assert_eq!(pool.balance().completed, 2);
}

#[test]
fn jobs_of_both_lanes_may_wait_for_each_other_on_one_thread_each() {
    let pool = Pool::builder().cpu_threads(1).blocking_threads(1).start().unwrap();
    let inside = pool.clone();
    let job = pool.offload(move || {
        let inner = inside.clone();
        inside.blocking().offload(move || inner.offload(|| 1).wait().unwrap()).wait().unwrap()
    });
    assert_eq!(job.wait().unwrap(), 1);
    assert_eq!(settled(&pool).completed, 3);
}

#[test]
fn a_job_that_its_waiter_runs_is_named_and_leaves_nothing_in_line() {
    let pool = Pool::builder().cpu_threads(1).cpu_queue(2).start().unwrap();
    let inside = pool.clone();
    let job = pool.cpu().named("outer").offload(move || {
        for _ in 0..10 {
            let inner = inside.clone();
            let named = move || inner.stragglers().to_string();
            let named = inside.cpu().named("inner").try_offload(named).unwrap().wait().unwrap();
            assert!(named.contains("outer") && named.contains("inner"), "{named}");
        }
        inside.stats().cpu.queued
    });
    assert_eq!(job.wait().unwrap(), 0);
    assert_eq!(settled(&pool).completed, 11);
}

#[test]
fn what_waits_for_room_is_run_before_the_pool_ends() {
    let pool = Pool::builder().cpu_threads(1).blocking_threads(1).blocking_queue(1).start().unwrap();
    let (release, held) = mpsc::channel::<()>();
    let (done, is_done) = mpsc::channel();
    let inside = pool.clone();
    pool.blocking()
        .offload(move || {
            let _ = held.recv();
            let jobs: Vec<_> = (0..2).map(|n| inside.blocking().offload(move || n)).collect();
            let (inner, done) = (inside.clone(), done.clone());
            // Behind those two, for which there is room for one: it waits, and brings more to the other lane.
            inside
                .blocking()
                .offload(move || done.send(inner.offload(|| 5).wait().unwrap()).unwrap())
                .detach();
            jobs.into_iter().for_each(Offload::detach);
        })
        .detach();
    pool.close();
    drop(release);
    assert_eq!(is_done.recv().unwrap(), 5);
    assert_eq!(settled(&pool).late, 5 - 1);
}

#[test]
fn what_an_accepted_job_has_brought_and_waits_for_room_survives_a_close() {
    let pool = Pool::builder().cpu_threads(1).cpu_queue(1).start().unwrap();
    let hold = busy(&pool);
    let queued = pool.offload(|| ());
    let inside = pool.clone();
    let brings = pool.blocking().offload(move || inside.offload(|| 5));
    let job = brings.wait().unwrap();
    assert_eq!(pool.stats().cpu.waiting, 1);
    pool.close();
    assert_eq!(pool.stats().cpu.waiting, 1);
    drop(hold);
    queued.wait().unwrap();
    assert_eq!(job.wait().unwrap(), 5);
    settled(&pool);
}

/// A job that waits for a batch of 20 on a pool of one thread, which runs one of them until what is given is
/// dropped. Gives how many of them were discarded, and how many have begun.
fn waits_for_a_batch() -> (Pool, Offload<usize>, Sender<()>, Arc<AtomicUsize>) {
    let (pool, begun) = (pool(1), Arc::new(AtomicUsize::new(0)));
    let (release, held) = mpsc::channel::<()>();
    let (held, inside, counted) = (Arc::new(Mutex::new(held)), pool.clone(), begun.clone());
    let outer = pool.offload(move || {
        let job = |_| {
            let (held, begun) = (held.clone(), counted.clone());
            move || {
                begun.fetch_add(1, Ordering::SeqCst);
                let _ = held.lock().unwrap().recv();
            }
        };
        let results = inside.offload_all((0..20).map(job)).wait();
        results.iter().filter(|result| matches!(result, Err(OffloadError::Discarded))).count()
    });
    while begun.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    (pool, outer, release, begun)
}

#[test]
fn of_a_batch_that_its_waiter_runs_none_begins_after_a_stop_has_come_to_its_deadline() {
    let (pool, outer, release, begun) = waits_for_a_batch();
    assert_eq!(pool.stragglers().len(), 21);
    let past = Deadline::at(SystemClock.now());
    assert_eq!(pool.stop(past, &Reason::requested("test")).wait(), Stopped::Overdue);
    let balance = pool.balance();
    assert_eq!((balance.abandoned, balance.cancelled, pool.stragglers().len()), (2, 19, 2));
    drop(release);
    assert_eq!((outer.wait().unwrap(), begun.load(Ordering::SeqCst)), (19, 1));
    settled(&pool);
}

#[test]
fn o5_of_a_batch_that_its_waiter_runs_the_rest_is_handed_back() {
    let (pool, outer, release, _) = waits_for_a_batch();
    let unstarted = pool.close_and_hand_back();
    assert_eq!(unstarted.iter().map(|unstarted| unstarted.jobs()).sum::<usize>(), 19);
    drop((unstarted, release));
    assert_eq!(outer.wait().unwrap(), 19);
    assert_eq!(settled(&pool).handed_back, 19);
}

#[test]
fn whoever_wants_the_next_result_of_a_batch_in_a_job_runs_no_more_than_that() {
    let pool = pool(1);
    let inside = pool.clone();
    let outer = pool.offload(move || {
        let mut batch = inside.offload_all((0..20).map(|n| move || n));
        let first = block_on(batch.next()).unwrap().len();
        (first, inside.balance().completed, inside.stats().cpu.queued, batch.wait().len())
    });
    assert_eq!(outer.wait().unwrap(), (1, 1, 19, 19));
    assert_eq!(settled(&pool).completed, 21);
}

#[test]
fn a_batch_that_waits_for_room_and_is_run_by_its_waiter_lets_in_who_is_behind_it() {
    let pool = Pool::builder().cpu_threads(1).cpu_queue(4).start().unwrap();
    let inside = pool.clone();
    let outer = pool.offload(move || {
        let _line: Vec<_> = (0..3).map(|_| inside.offload(|| ())).collect();
        let batch = inside.offload_all([|| (), || ()]);
        let behind = inside.offload(|| ());
        let before = inside.stats().cpu.waiting;
        assert_eq!(batch.wait().len(), 2);
        behind.detach();
        (before, inside.stats().cpu.waiting, inside.stats().cpu.queued)
    });
    assert_eq!(outer.wait().unwrap(), (3, 0, 4));
    settled(&pool);
}
