//! Both crates on other executors, with their own timers.

use std::{future::pending, thread, time::Duration};

use async_executor::Executor;
use ebbtide_lifecycle::Component;
use ebbtide_offload::{OffloadError, Pool};
use ebbtide_timeout::{AsyncIoTimer, Deadline, Elapsed, Runners, Timer, TokioTimer, timeout, timeout_at};
use futures_lite::future::block_on;

use super::{Canaries, MINUTE};

const MOMENT: Duration = Duration::from_millis(5);

/// What users do, on whatever executor.
async fn works_with<T>(timer: T, runners: Runners<T>)
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    // In time, and too late.
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    assert_eq!(timeout(&timer, MINUTE, pool.offload(|| 1)).await.unwrap().unwrap(), 1);
    assert_eq!(timeout(&timer, MOMENT, pending::<()>()).await, Err(Elapsed));
    assert_eq!(timeout_at(&timer, Deadline::at(timer.now()), pending::<()>()).await, Err(Elapsed));

    // CPU work that is too late goes on, and is drained.
    let slow = pool.offload_with_timeout(timer.clone(), Deadline::after(&timer, MOMENT), || {
        while !ebbtide_offload::waiter_has_gone() {
            thread::yield_now();
        }
    });
    assert!(matches!(slow.await, Err(OffloadError::Elapsed)));
    pool.wait_idle().await;
    assert_eq!(pool.balance().late, 1);

    // So does a future.
    let canaries = Canaries::default();
    let (canary, sleeps) = (canaries.hatch(), timer.clone());
    let late = runners.timeout(MOMENT, async move {
        sleeps.sleep_until(sleeps.now() + 2 * MOMENT).await;
        canary
    });
    assert!(late.await.is_err());
    runners.wait_idle().await;
    assert_eq!((runners.balance().late, canaries.alive()), (1, 0));
    runners.close();
}

#[test]
fn on_tokio_with_several_threads() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    tokio.block_on(async {
        let runners = Runners::spawned(TokioTimer, |driver| drop(tokio::spawn(driver)));
        tokio::spawn(works_with(TokioTimer, runners)).await.unwrap();
    });
}

#[test]
fn on_smol() {
    let smol = Executor::new();
    let runners = Runners::spawned(AsyncIoTimer, |driver| smol.spawn(driver).detach());
    block_on(smol.run(works_with(AsyncIoTimer, runners)));
}

#[test]
fn tokio_time_that_is_paused_is_kept_to() {
    let tokio =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    tokio.block_on(async {
        let start = tokio::time::Instant::now();
        assert_eq!(timeout(TokioTimer, 60 * MINUTE, pending::<()>()).await, Err(Elapsed));
        assert!(start.elapsed() >= 60 * MINUTE);
    });
}
