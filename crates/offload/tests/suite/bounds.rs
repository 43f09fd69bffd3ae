//! Lanes with a limit.

use ebbtide_lifecycle::{Refusal, wait::block_on};
use ebbtide_offload::{OffloadError, Pool};

use super::{busy, settled};

fn pool_with_room_for(jobs: usize) -> Pool {
    Pool::builder().cpu_threads(1).cpu_queue(jobs).start().unwrap()
}

#[test]
fn o4_a_full_lane_refuses_and_hands_the_job_back() {
    let pool = pool_with_room_for(1);
    let hold = busy(&pool);
    let queued = pool.try_offload(|| 1).unwrap();
    let refused = pool.try_offload(|| 2).unwrap_err();
    assert_eq!(refused.why, Refusal::Full);
    assert_eq!((refused.work)(), 2);
    drop(hold);
    assert_eq!(queued.wait().unwrap(), 1);
    let balance = settled(&pool);
    assert_eq!((balance.accepted, balance.refused), (2, 1));
}

#[test]
fn o4_a_job_waits_for_room_behind_those_that_came_before_it() {
    let pool = pool_with_room_for(1);
    let hold = busy(&pool);
    let (sender, receiver) = std::sync::mpsc::channel();
    let jobs: Vec<_> = (0..5)
        .map(|n| {
            let sender = sender.clone();
            pool.offload(move || sender.send(n).unwrap())
        })
        .collect();
    assert_eq!((pool.in_flight(), pool.stats().cpu.waiting), (2, 4));
    assert_eq!(pool.try_offload(|| ()).unwrap_err().why, Refusal::Full);
    drop((hold, sender));
    assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for job in jobs {
        block_on(job).unwrap();
    }
    assert_eq!(settled(&pool).accepted, 6);
}

#[test]
fn a_job_that_is_dropped_while_it_waits_for_room_is_not_run() {
    let pool = pool_with_room_for(1);
    let hold = busy(&pool);
    let queued = pool.offload(|| 1);
    drop(pool.offload(|| unreachable!("withdrawn")));
    let behind = pool.offload(|| 3);
    drop(hold);
    assert_eq!((queued.wait().unwrap(), behind.wait().unwrap()), (1, 3));
    settled(&pool);
}

#[test]
fn a_job_that_waits_for_room_is_refused_when_the_pool_closes() {
    let pool = pool_with_room_for(1);
    let hold = busy(&pool);
    let queued = pool.offload(|| 1);
    let waits = pool.offload(|| 2);
    pool.close();
    assert!(matches!(waits.wait(), Err(OffloadError::Refused(Refusal::Closed))));
    drop(hold);
    assert_eq!(queued.wait().unwrap(), 1);
    let balance = settled(&pool);
    assert_eq!((balance.accepted, balance.completed, balance.refused), (2, 2, 1));
}

#[test]
fn jobs_that_are_withdrawn_make_room() {
    let pool = pool_with_room_for(4);
    let hold = busy(&pool);
    for _ in 0..4 {
        drop(pool.offload(|| unreachable!("withdrawn")));
    }
    assert_eq!((pool.in_flight(), pool.stats().cpu.queued), (1, 0));
    // A batch that waits for room and is dropped lets those behind it go first.
    let queued = pool.offload(|| 1);
    let batch = pool.offload_all((0..5).map(|n| move || n));
    let behind = pool.offload(|| 2);
    assert_eq!(pool.stats().cpu.waiting, 6);
    drop(batch);
    assert_eq!((pool.stats().cpu.waiting, pool.stats().cpu.queued), (0, 2));
    drop(hold);
    assert_eq!((queued.wait().unwrap(), behind.wait().unwrap()), (1, 2));
    assert_eq!(settled(&pool).cancelled, 4);
}

#[test]
fn more_jobs_than_the_lane_ever_has_room_for_are_refused_or_wait_for_an_empty_line() {
    let pool = pool_with_room_for(4);
    let hold = busy(&pool);
    let refused = pool.cpu().try_offload_all((0..5).map(|n| move || n)).unwrap_err();
    assert_eq!((refused.why, refused.work.len()), (Refusal::Full, 5));
    let batch = pool.offload_all((0..5).map(|n| move || n));
    assert_eq!(pool.stats().cpu.queued, 5);
    drop(hold);
    assert_eq!(batch.wait().len(), 5);
}

#[test]
fn withdrawn_in_any_order_jobs_leave_those_between_them_alone() {
    let pool = pool_with_room_for(200);
    let hold = busy(&pool);
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut jobs: Vec<_> = (0..400)
        .map(|n| {
            let sender = sender.clone();
            Some(pool.offload(move || sender.send(n).unwrap()))
        })
        .collect();
    // Of those in line and of those that wait for room: from the middle, the end and the beginning.
    for n in (150..250).chain(300..400).chain(0..100) {
        jobs[n] = None;
    }
    assert_eq!((pool.stats().cpu.queued, pool.stats().cpu.waiting), (100, 0));
    drop((hold, sender));
    assert!(receiver.into_iter().eq((100..150).chain(250..300)));
    assert_eq!(settled(&pool).completed, 101);
}
