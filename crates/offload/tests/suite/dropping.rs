//! Waiters that go.

use std::sync::mpsc;

use ebbtide_lifecycle::Component;
use ebbtide_offload::{OnDrop, waiter_has_gone};

use super::{Canary, busy, pool, settled};

#[test]
fn o3_a_job_that_has_not_begun_is_withdrawn_with_its_future() {
    let pool = pool(1);
    let hold = busy(&pool);
    let (canary, dropped) = Canary::new();
    let job = pool.offload(move || unreachable!("withdrawn, with {:p}", &canary));
    drop(job);
    dropped.try_recv().expect("what it had captured is dropped at once");
    drop(hold);
    let balance = settled(&pool);
    assert_eq!((balance.accepted, balance.cancelled, balance.completed), (2, 1, 1));
}

#[test]
fn o3_a_job_that_has_begun_runs_to_its_end_and_counts_as_late() {
    let pool = pool(1);
    let (release, held) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let (canary, dropped) = Canary::new();
    let job = pool.offload(move || {
        begun.send(()).unwrap();
        let _ = held.recv();
        canary
    });
    begins.recv().unwrap();
    drop(job);
    assert_eq!(pool.in_flight(), 1);
    drop(release);
    let balance = settled(&pool);
    assert_eq!((balance.completed, balance.late), (1, 1));
    dropped.try_recv().expect("its result is dropped");
}

#[test]
fn o3_a_job_may_be_run_without_a_waiter() {
    let pool = pool(1);
    let hold = busy(&pool);
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    pool.offload(move || sender.send(1).unwrap()).detach();
    drop(pool.offload(move || other.send(2).unwrap()).on_drop(OnDrop::Run));
    drop(hold);
    assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(settled(&pool).late, 2);
}

#[test]
fn a_job_can_ask_whether_its_waiter_has_gone() {
    assert!(!waiter_has_gone(), "there is no job here");
    let pool = pool(1);
    let (begun, begins) = mpsc::channel();
    let (told, tells) = mpsc::channel();
    let job = pool.offload(move || {
        begun.send(waiter_has_gone()).unwrap();
        while !waiter_has_gone() {
            std::thread::yield_now();
        }
        told.send(()).unwrap();
    });
    assert!(!begins.recv().unwrap());
    drop(job);
    tells.recv().unwrap();
    assert!(!pool.offload(waiter_has_gone).wait().unwrap(), "the next job has a waiter");
    assert_eq!(settled(&pool).late, 1);
}

#[test]
fn a_withdrawn_job_is_no_straggler() {
    let pool = pool(1);
    let hold = busy(&pool);
    drop(pool.cpu().named("gone").offload(|| ()));
    let stragglers = pool.stragglers().to_string();
    assert!(stragglers.contains("busy") && !stragglers.contains("gone"), "{stragglers}");
    drop(hold);
}
