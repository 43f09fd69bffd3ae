//! Foreign code that panics.

use std::{
    error::Error,
    io,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
};

use ebbtide_offload::{OffloadError, Pool, StartError};

use super::{Bomb, busy, pool, settled};

#[test]
fn o1_a_panic_is_an_error_and_the_thread_lives_on() {
    let pool = pool(1);
    let error = pool.offload(|| panic!("at noon")).wait().unwrap_err();
    assert!(matches!(&error, OffloadError::Panicked(panic) if panic.message() == "at noon"), "{error:?}");
    assert_eq!(error.to_string(), "the job panicked: at noon");
    assert_eq!(pool.offload(|| 1).wait().unwrap(), 1);
    let balance = settled(&pool);
    assert_eq!((balance.failed, balance.completed), (1, 1));
}

#[test]
fn o1_a_panic_may_be_resumed_by_whoever_awaits_it() {
    let pool = pool(1);
    let job = pool.offload(|| panic_any(42_u8));
    let panic =
        catch_unwind(AssertUnwindSafe(|| job.wait().unwrap_or_else(OffloadError::resume))).unwrap_err();
    assert_eq!(panic.downcast_ref::<u8>(), Some(&42));
}

#[test]
fn a_job_that_panics_in_its_drop_does_no_harm() {
    let pool = pool(1);
    let hold = busy(&pool);
    let bomb = Bomb;
    drop(pool.offload(move || drop(bomb)));
    let bomb = Bomb;
    let late = pool.offload(move || bomb);
    let detached = late.on_drop(ebbtide_offload::OnDrop::Run);
    drop(detached);
    pool.offload_all([Bomb, Bomb].map(|bomb| move || bomb)).detach();
    let handed_back = pool.offload(|| ());
    drop(hold);
    handed_back.wait().unwrap();
    let balance = settled(&pool);
    assert_eq!((balance.cancelled, balance.late), (1, 3));
}

#[test]
fn what_a_job_panics_with_may_panic_in_its_drop() {
    let pool = pool(1);
    let error = pool.offload(|| panic_any(Bomb)).wait().unwrap_err();
    drop(error);
    pool.offload(|| panic_any(Bomb)).detach();
    assert_eq!(settled(&pool).failed, 2);
}

#[test]
fn a_hook_that_panics_fails_its_job() {
    let pool = Pool::builder().cpu_threads(1).before_each(|| panic!("no hook")).start().unwrap();
    let error = pool.offload(|| ()).wait().unwrap_err();
    assert!(error.to_string().contains("no hook"), "{error}");
    assert_eq!(settled(&pool).failed, 1);
}

#[test]
fn each_result_of_a_batch_may_panic_in_its_drop() {
    let pool = pool(1);
    let hold = busy(&pool);
    pool.offload_all((0..16).map(|_| || Bomb)).detach();
    let unclaimed = pool.offload_all((0..4).map(|_| || Bomb));
    drop(hold);
    pool.wait_idle().wait();
    drop(unclaimed);
    assert_eq!(settled(&pool).late, 16);
}

#[test]
fn a_hook_may_panic_before_a_job_that_panics_in_its_drop() {
    let pool = Pool::builder().cpu_threads(1).before_each(|| panic!("no hook")).start().unwrap();
    let bomb = Bomb;
    let error = pool.offload(move || drop(bomb)).wait().unwrap_err();
    assert!(error.to_string().contains("no hook"), "{error}");
}

#[test]
fn an_error_says_everything_once() {
    fn chain(error: &dyn Error) -> String {
        error.source().map_or(error.to_string(), |source| format!("{error}: {}", chain(source)))
    }
    let pool = pool(1);
    let panicked = pool.offload(|| panic!("boom")).wait().unwrap_err();
    assert_eq!(chain(&panicked), "the job panicked: boom");
    pool.close();
    let refused = pool.offload(|| ()).wait().unwrap_err();
    assert_eq!(chain(&refused), "the pool refused the job: closed to new work");
    let thread = StartError::Thread(io::Error::other("no more"));
    assert_eq!(chain(&thread), "a thread of the pool could not be started: no more");
}
