//! Models of the pool, explored by loom: jobs that are brought, dropped and awaited, against threads that run
//! them, sleep and end, against a close.
//!
//! Run by `cargo xtask ci loom`; the mutants that they must catch are listed in `ARCHITECTURE.md`.

#![cfg(loom)]

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicUsize as Count, Ordering as CountOrdering},
    task::{Context, Wake, Waker},
};

use ebbtide_lifecycle::Component;
use ebbtide_offload::Pool;
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

fn pool() -> Pool {
    Pool::builder().cpu_threads(1).start().unwrap()
}

#[test]
fn what_is_accepted_has_run_when_a_closed_pool_is_idle_and_what_is_refused_never_runs() {
    model(3, || {
        let (pool, ran) = (pool(), Arc::new(AtomicUsize::new(0)));
        let brings = thread::spawn({
            let (pool, ran) = (pool.clone(), ran.clone());
            move || match pool.try_offload(move || ran.fetch_add(1, Ordering::Relaxed)) {
                Ok(job) => {
                    job.detach();
                    1
                }
                Err(_) => 0,
            }
        });
        pool.close();
        block_on(pool.wait_idle());
        let seen = ran.load(Ordering::Relaxed);
        let accepted = brings.join().unwrap();
        assert_eq!(seen, accepted, "what was accepted has run, and nothing else");
        assert!(pool.balance().is_balanced());
    });
}

#[test]
fn a_result_is_stored_before_its_waiter_is_woken() {
    model(3, || {
        let pool = pool();
        let job = pool.offload(|| 7);
        assert_eq!(block_on(job).unwrap(), 7);
        assert_eq!(block_on(pool.offload(|| 8)).unwrap(), 8, "also when the thread goes to sleep meanwhile");
    });
}

#[test]
fn of_two_threads_one_sees_each_job_whoever_rests() {
    model(2, || {
        let pool = Pool::builder().cpu_threads(2).start().unwrap();
        let first = pool.offload(|| 7);
        assert_eq!(block_on(pool.offload(|| 8)).unwrap(), 8);
        assert_eq!(block_on(first).unwrap(), 7);
    });
}

#[test]
fn whoever_waits_for_a_batch_is_woken_by_the_last_that_he_waits_for() {
    model(2, || {
        let pool = pool();
        let mut batch = pool.offload_all((0..2).map(|n| move || n));
        let mut seen = Vec::new();
        while let Some(finished) = block_on(batch.next()) {
            seen.extend(finished.into_iter().map(|(place, _)| place));
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1]);
        assert_eq!(block_on(pool.offload_all([|| 1, || 2])).len(), 2);
    });
}

/// A waker that wakes nobody, and whose clones can be counted.
struct Counted;

impl Wake for Counted {
    fn wake(self: std::sync::Arc<Self>) {}
}

#[test]
fn a_batch_that_has_ended_keeps_no_waker() {
    model(2, || {
        let (pool, counted) = (pool(), std::sync::Arc::new(Counted));
        let waker = Waker::from(counted.clone());
        let mut batch = pool.offload_all([|| 1]);
        if Pin::new(&mut batch).poll(&mut Context::from_waker(&waker)).is_ready() {
            assert_eq!(
                std::sync::Arc::strong_count(&counted),
                2,
                "ours, and the one that it was polled with"
            );
        }
    });
}

#[test]
fn a_job_whose_waiter_goes_is_run_or_withdrawn_and_booked_once() {
    model(3, || {
        let (pool, ran) = (pool(), Arc::new(AtomicUsize::new(0)));
        let counted = ran.clone();
        let job = pool.offload(move || counted.fetch_add(1, Ordering::Relaxed));
        drop(job);
        block_on(pool.wait_idle());
        let balance = pool.balance();
        assert!(balance.is_balanced());
        assert_eq!(balance.completed as usize, ran.load(Ordering::Relaxed));
        assert_eq!(balance.completed + balance.cancelled, 1);
    });
}

#[test]
fn a_job_that_is_handed_back_is_not_run_by_the_pool() {
    model(3, || {
        let (pool, ran) = (pool(), Arc::new(AtomicUsize::new(0)));
        let counted = ran.clone();
        let job = pool.offload(move || counted.fetch_add(1, Ordering::Relaxed));
        let unstarted = pool.close_and_hand_back();
        let handed_back = unstarted.len();
        for job in unstarted {
            job.run();
        }
        assert_eq!(block_on(job).unwrap(), 0);
        assert_eq!(ran.load(Ordering::Relaxed), 1, "it has run once, here or there");
        block_on(pool.wait_idle());
        let balance = pool.balance();
        assert_eq!((balance.handed_back as usize, balance.is_balanced()), (handed_back, true));
    });
}
