//! Jobs that come back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Component,
    time::{Deadline, SystemClock},
};
use ebbtide_offload::{OffloadError, Pool};
use futures_lite::future::block_on;

use super::{busy, pool, settled};

#[test]
fn o1_a_job_runs_on_the_pool_and_whoever_awaits_it_gets_its_result() {
    let pool = Pool::builder().name("ranks").cpu_threads(1).start().unwrap();
    let name = block_on(pool.offload(|| thread::current().name().map(String::from))).unwrap();
    assert_eq!(name.as_deref(), Some("ranks-cpu-0"));
    let name = pool.blocking().offload(|| thread::current().name().map(String::from)).wait().unwrap();
    assert_eq!(name.as_deref(), Some("ranks-blocking-0"));
    assert_eq!(settled(&pool).completed, 2);
}

#[test]
fn o1_a_job_runs_whether_it_is_awaited_or_not() {
    let (sender, receiver) = mpsc::channel();
    let pool = pool(1);
    let _offload = pool.offload(move || sender.send(7).unwrap());
    assert_eq!(receiver.recv().unwrap(), 7);
}

#[test]
fn jobs_of_one_thread_begin_in_the_order_in_which_they_came() {
    let pool = pool(1);
    let (sender, receiver) = mpsc::channel();
    let hold = busy(&pool);
    let jobs: Vec<_> = (0..200)
        .map(|n| {
            let sender = sender.clone();
            pool.offload(move || sender.send(n).unwrap())
        })
        .collect();
    drop(hold);
    for job in jobs {
        job.wait().unwrap();
    }
    drop(sender);
    assert_eq!(receiver.into_iter().collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
}

#[test]
fn what_is_brought_while_all_threads_are_busy_counts_at_once() {
    let pool = pool(2);
    let hold = [busy(&pool), busy(&pool)];
    let mut jobs: Vec<_> = (0..3).map(|n| pool.offload(move || n)).collect();
    for _ in 0..2 {
        assert_eq!((pool.in_flight(), pool.stats().cpu.queued, pool.stragglers().len()), (5, 3, 5));
        assert_eq!((pool.balance().accepted, pool.balance().is_balanced()), (5, true));
    }
    jobs.extend((3..5).map(|n| pool.offload(move || n)));
    assert_eq!((pool.in_flight(), pool.stats().cpu.queued, pool.stragglers().len()), (7, 5, 7));
    assert!(pool.wait_idle().wait_by(Deadline::after(SystemClock, Duration::ZERO)).is_err());
    drop(hold);
    let results = jobs.into_iter().map(|job| job.wait().unwrap());
    assert!(results.eq(0..5));
    assert_eq!(settled(&pool).completed, 7);
}

#[test]
fn no_job_is_lost_between_those_who_bring_it_and_threads_that_rest() {
    let pool = pool(2);
    thread::scope(|scope| {
        for few in 1..4 {
            let pool = &pool;
            scope.spawn(move || {
                for _ in 0..300 {
                    let jobs: Vec<_> = (0..few).map(|n| pool.offload(move || n)).collect();
                    assert!(jobs.into_iter().map(|job| job.wait().unwrap()).eq(0..few));
                }
            });
        }
    });
    assert_eq!(settled(&pool).completed, 300 * (1 + 2 + 3));
}

#[test]
fn a_job_that_takes_long_holds_up_none_that_were_taken_with_it() {
    let pool = pool(2);
    let (hold, other) = (busy(&pool), busy(&pool));
    let (release, held) = mpsc::channel::<()>();
    // Many are queued, so that the thread that takes the first takes others with it.
    let long = pool.offload(move || {
        let _ = held.recv();
    });
    let quick: Vec<_> = (0..500).map(|n| pool.offload(move || n)).collect();
    drop((hold, other));
    for (n, job) in quick.into_iter().enumerate() {
        assert_eq!(job.wait().unwrap(), n);
    }
    drop(release);
    long.wait().unwrap();
    settled(&pool);
}

#[test]
fn o5_a_hook_is_called_before_each_job_on_its_thread() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let hook = move || {
        assert!(thread::current().name().unwrap().starts_with("offload-"));
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let pool = Pool::builder().cpu_threads(1).before_each(hook).start().unwrap();
    let seen = {
        let calls = calls.clone();
        pool.offload(move || calls.load(Ordering::Relaxed)).wait().unwrap()
    };
    assert_eq!(seen, 1);
    assert_eq!(pool.offload_all((0..5).map(|n| move || n)).wait().len(), 5);
    pool.blocking().offload(|| ()).wait().unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 7);
}

#[test]
fn l4_a_result_is_waited_for_with_a_deadline_too() {
    let pool = pool(1);
    let hold = busy(&pool);
    let soon = Deadline::after(SystemClock, Duration::from_millis(5));
    assert!(matches!(pool.offload(|| 1).wait_by(soon), Err(OffloadError::Elapsed)));
    drop(hold);
    assert_eq!(pool.offload(|| 1).wait_by(Deadline::never()).unwrap(), 1);
    assert_eq!(settled(&pool).cancelled, 1);
}

#[test]
fn whoever_moves_to_another_task_is_woken_there() {
    let pool = pool(1);
    let hold = busy(&pool);
    let mut job = pool.offload(|| 3);
    assert!(block_on(futures_lite::future::poll_once(&mut job)).is_none());
    let waits = thread::spawn(move || block_on(job).unwrap());
    drop(hold);
    assert_eq!(waits.join().unwrap(), 3);
}

#[test]
fn a_job_that_nobody_waits_for_counts_as_completed_and_comes_back_from_a_closed_pool() {
    let pool = pool(1);
    let (tell, told) = mpsc::channel();
    let teller = tell.clone();
    pool.cpu().spawn(move || teller.send(1).unwrap()).ok().unwrap();
    assert_eq!(told.recv(), Ok(1));
    pool.close();
    let refused = pool.cpu().spawn(move || tell.send(2).unwrap()).unwrap_err();
    (refused.work)();
    assert_eq!(told.recv(), Ok(2));
    pool.wait_idle().wait();
    assert_eq!(pool.balance().to_string(), "accepted 1, completed 1, refused 1");
}
