//! Loops inside loops, and owners in odd places.

use std::{
    cell::RefCell,
    future::pending,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

use ebbtide_lifecycle::{State, time::Deadline};
use ebbtide_reactor::{Async, EventLoop, Runtime, sleep, sleep_until, spawn};
use futures_lite::future::{block_on, poll_fn};

use crate::{Log, count, occupy, running};

#[test]
fn e4_a_loop_may_be_stopped_by_a_runtime_inside_its_own_callback() {
    let events = Arc::new(running());
    let own = events.clone();
    events.post(move || Runtime::new().block_on(async move { own.stop() })).unwrap();
    events.stop();
    assert_eq!(events.state(), State::Stopped);
}

#[test]
fn e4_a_runtime_that_is_dropped_on_a_loop_may_own_that_loop() {
    let events = running();
    let (handle, (done, is_done)) = (events.handle(), mpsc::channel());
    handle
        .post(move || {
            let runtime = Runtime::new();
            let owner = async move {
                let _events = events;
                pending::<()>().await;
            };
            runtime.spawn(owner).unwrap().detach();
            drop(runtime);
            done.send(()).unwrap();
        })
        .unwrap();
    is_done.recv().unwrap();
}

#[test]
fn e4_the_owner_may_be_kept_in_a_thread_local_of_its_own_loop() {
    thread_local! {
        static KEPT: RefCell<Option<EventLoop>> = const { RefCell::new(None) };
    }
    let events = running();
    let (handle, shutdown) = (events.handle(), events.shutdown_handle());
    handle
        .post(move || {
            let own = events.handle();
            KEPT.set(Some(events));
            KEPT.with_borrow(|kept| kept.as_ref().unwrap().stop());
            drop(own);
        })
        .unwrap();
    shutdown.signal().wait();
}

#[test]
fn e5_work_of_a_loop_is_inside_also_below_another_one() {
    let events = Arc::new(running());
    let (own, (told, tell)) = (events.clone(), mpsc::channel());
    events
        .post(move || {
            own.stop();
            let inside = Runtime::new().block_on(async { own.spawn(async {}).is_ok() });
            told.send((inside, own.balance().in_flight)).unwrap();
        })
        .unwrap();
    assert_eq!(tell.recv().unwrap(), (true, 1));
    events.stop();
}

#[test]
fn e2_what_a_thread_posted_before_it_turned_the_loop_runs_first() {
    let mut runtime = Runtime::new();
    let (log, handle) = (Log::default(), runtime.handle());
    let noted = log.clone();
    handle.post(move || noted.note(1)).unwrap();
    let noted = log.clone();
    runtime.block_on(async {
        handle.post(move || noted.note(2)).unwrap();
        ebbtide_reactor::yield_now().await;
        ebbtide_reactor::yield_now().await;
    });
    assert_eq!(log.read(), [1, 2]);
}

#[test]
fn e6_a_task_that_somebody_cancelled_before_the_stop_is_not_held_against_it() {
    let events = running();
    let task = events.spawn(pending::<()>()).unwrap();
    task.cancel();
    assert!(block_on(task).is_err());
    assert!(events.stop_by(Deadline::never()));
}

#[test]
fn e6_a_forced_stop_runs_nothing_more_of_what_is_queued() {
    let events = Arc::new(running());
    let ran = Arc::new(AtomicU32::new(0));
    let release = occupy(&events);
    let own = events.clone();
    events.post(move || own.abort()).unwrap();
    for _ in 0..200 {
        let counted = ran.clone();
        events.post(move || count(&counted)).unwrap();
    }
    drop(release);
    events.stop();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(events.balance().to_string(), "accepted 202, completed 2, abandoned 200");
}

#[test]
fn e10_a_wake_up_of_a_main_future_that_has_ended_holds_nothing_up() {
    let mut runtime = Runtime::new();
    runtime.block_on(poll_fn(|cx| {
        cx.waker().wake_by_ref();
        std::task::Poll::Ready(())
    }));
    runtime.shutdown_quiesce(Duration::from_secs(60)).unwrap();
}

#[test]
fn e10_the_stats_are_up_to_date_when_the_runtime_is_quiet() {
    let mut runtime = Runtime::new();
    let tasks: Vec<_> = (0..3).map(|_| runtime.spawn(async {}).unwrap()).collect();
    let stats = runtime.shutdown_stats();
    runtime.shutdown_quiesce(Duration::from_secs(60)).unwrap();
    assert_eq!(stats.snapshot().to_string(), "accepted 3, completed 3");
    assert_eq!(runtime.balance(), stats.snapshot().balance);
    drop(tasks);
}

#[test]
fn e10_quiesce_triggers_the_shutdown_that_tasks_wait_for() {
    let mut runtime = Runtime::new();
    let waits = runtime.spawn(runtime.shutdown_handle().signal()).unwrap();
    runtime.shutdown_quiesce(Duration::from_secs(60)).unwrap();
    assert!(block_on(waits).is_ok());
}

#[test]
fn the_main_future_is_dropped_inside_its_loop() {
    struct Spawns(Arc<AtomicU32>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            if spawn(async {}).is_ok() {
                count(&self.0);
            }
        }
    }
    let accepted = Arc::new(AtomicU32::new(0));
    let spawns = Spawns(accepted.clone());
    let mut ends = Some(());
    let mut runtime = Runtime::new();
    runtime.block_on(poll_fn(move |_| {
        let _spawns = &spawns;
        ends.take().map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    }));
    assert_eq!(accepted.load(Ordering::SeqCst), 1);
}

#[test]
fn a_name_that_no_thread_can_have_is_mended() {
    let events = EventLoop::builder().name("a\0b").event_loop();
    events.start().unwrap();
    assert_eq!(events.name(), "ab");
}

#[test]
fn a_sleep_of_the_loop_below_is_kept_by_the_one_above() {
    let moment = Duration::from_millis(5);
    let mut outer = Runtime::new();
    let handle = outer.handle();
    outer.block_on(async {
        // Their arguments are made on the outer loop.
        Runtime::new().block_on(sleep(moment));
        Runtime::new().block_on(sleep_until(ebbtide_reactor::now() + moment));
        Runtime::new().block_on(handle.sleep(moment));
        let mut begun = Box::pin(sleep(moment));
        assert!(futures_lite::future::poll_once(&mut begun).await.is_none());
        Runtime::new().block_on(begun);
    });
}

#[test]
fn io_of_the_loop_below_is_an_error_above_it() {
    Runtime::new().block_on(async {
        let (one, _other) = Async::<UnixStream>::pair().unwrap();
        let error = Runtime::new().block_on(one.readable()).unwrap_err();
        assert!(error.to_string().contains("stands still"), "{error}");
        // Where it does not stand still it can be waited for again.
        assert!(futures_lite::future::poll_once(one.readable()).await.is_none());
    });
}
