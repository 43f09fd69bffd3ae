//! The lane for blocking work.

use std::{
    sync::{Arc, Barrier, mpsc},
    thread,
    time::Duration,
};

use ebbtide_offload::Pool;

use super::settled;

#[test]
fn each_blocking_job_has_a_thread_of_its_own_up_to_the_limit() {
    let pool = Pool::builder().cpu_threads(1).blocking_threads(8).start().unwrap();
    let meeting = Arc::new(Barrier::new(8));
    let jobs: Vec<_> = (0..8)
        .map(|_| {
            let meeting = meeting.clone();
            pool.blocking().offload(move || meeting.wait().is_leader())
        })
        .collect();
    let leaders = jobs.into_iter().map(|job| job.wait().unwrap()).filter(|leads| *leads);
    assert_eq!(leaders.count(), 1);
    assert_eq!(pool.stats().blocking.threads, 8);
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let jobs: Vec<_> = (0..20)
        .map(|_| {
            let held = held.clone();
            pool.blocking().offload(move || {
                let _ = held.lock().unwrap().recv();
            })
        })
        .collect();
    assert_eq!(pool.stats().blocking.threads, 8);
    drop(release);
    for job in jobs {
        job.wait().unwrap();
    }
    assert_eq!(settled(&pool).completed, 28);
}

#[test]
fn threads_leave_when_they_have_had_nothing_to_do_and_one_stays() {
    let pool = Pool::builder().cpu_threads(1).keep_alive(Duration::from_millis(5)).start().unwrap();
    let meeting = Arc::new(Barrier::new(4));
    let meet = |_| {
        let meeting = meeting.clone();
        pool.blocking().offload(move || meeting.wait().is_leader())
    };
    for job in (0..4).map(meet).collect::<Vec<_>>() {
        job.wait().unwrap();
    }
    while pool.stats().blocking.threads > 1 {
        thread::yield_now();
    }
    assert_eq!(pool.blocking().offload(|| 1).wait().unwrap(), 1);
    assert_eq!(settled(&pool).completed, 5);
}

#[test]
fn blocking_work_does_not_hold_up_cpu_work() {
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let (release, held) = mpsc::channel::<()>();
    let blocked = pool.blocking().offload(move || {
        let _ = held.recv();
    });
    assert_eq!(pool.offload(|| 1).wait().unwrap(), 1);
    drop(release);
    blocked.wait().unwrap();
}
