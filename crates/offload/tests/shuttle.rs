//! A model of the pool with more threads than loom can go through: shuttle tries schedules at random, and by PCT, which
//! looks for bugs that need few preemptions.
//!
//! Run by `cargo xtask prove --only shuttle`.

#![cfg(shuttle)]

use std::{
    env,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use ebbtide_lifecycle::Component;
use ebbtide_offload::Pool;
use shuttle::{
    Config, Runner,
    future::block_on,
    scheduler::{PctScheduler, RandomScheduler},
    sync::{
        Arc as Shared,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

/// Bugs of such a kind need two preemptions at most in the literature; one more leaves a margin.
const DEPTH: usize = 3;

fn model(threads: fn()) {
    let schedules =
        env::var("SCHEDULES").map_or(2_000, |given| given.parse().expect("a number of schedules"));
    let random = Runner::new(RandomScheduler::new(schedules), Config::new()).run(threads);
    println!("{random} random schedules");
    let pct = Runner::new(PctScheduler::new(DEPTH, schedules), Config::new()).run(threads);
    println!("{pct} PCT schedules");
}

/// A waker that must not be called any more once the pool has been idle.
struct Watched {
    over: Shared<AtomicBool>,
    inner: Waker,
}

impl Wake for Watched {
    fn wake(self: Arc<Self>) {
        assert!(!self.over.load(Ordering::SeqCst), "an idle pool has woken somebody");
        self.inner.wake_by_ref();
    }
}

/// Polls `future` with wakers that know when it is over.
async fn watched<F: Future>(over: Shared<AtomicBool>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| -> Poll<F::Output> {
        let waker = Watched { over: over.clone(), inner: cx.waker().clone() };
        future.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::new(waker))))
    })
    .await
}

#[test]
fn an_idle_pool_touches_nothing_any_more() {
    model(|| {
        let pool = Pool::builder().cpu_threads(2).start().unwrap();
        let (over, ran) = (Shared::new(AtomicBool::new(false)), Shared::new(AtomicU64::new(0)));
        let bringers = [0; 2].map(|_| {
            let (pool, over, ran) = (pool.clone(), over.clone(), ran.clone());
            thread::spawn(move || {
                let mut accepted = 0;
                for _ in 0..2 {
                    let (done, is_over) = (ran.clone(), over.clone());
                    let job = pool.try_offload(move || {
                        assert!(!is_over.load(Ordering::SeqCst), "an idle pool runs a job");
                        done.fetch_add(1, Ordering::SeqCst)
                    });
                    if let Ok(job) = job {
                        accepted += 1;
                        block_on(watched(over.clone(), job)).unwrap();
                    }
                }
                accepted
            })
        });
        pool.close();
        block_on(pool.wait_idle());
        over.store(true, Ordering::SeqCst);
        let seen = ran.load(Ordering::SeqCst);
        let accepted: u64 = bringers.map(|bringer| bringer.join().unwrap()).iter().sum();
        assert_eq!(seen, accepted, "all that was accepted has run");
        assert!(pool.balance().is_balanced());
    });
}
