use std::{future::pending, net::TcpListener, thread, time::Duration};

use ebbtide_lifecycle::time::{Clock, Deadline, VirtualClock};
use ebbtide_reactor::{Async, EventLoop, Runtime, sleep, spawn};
use futures_lite::future::block_on;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn e10_a_shutdown_handle_ends_block_on_from_another_thread() {
    let mut runtime = Runtime::new();
    let shutdown = runtime.shutdown_handle();
    assert!(!shutdown.is_shutdown());
    let stopper = thread::spawn({
        let shutdown = shutdown.clone();
        move || shutdown.trigger()
    });
    let waits = runtime.spawn(shutdown.signal()).unwrap();
    runtime.block_on(async {
        shutdown.signal().await;
        waits.await.unwrap();
    });
    stopper.join().unwrap();
    assert!(shutdown.is_shutdown());
    assert_eq!(shutdown.as_trigger().reason().unwrap().to_string(), "requested: shutdown handle");
}

#[test]
fn e10_quiesce_drives_tasks_and_timers_until_none_is_left() {
    let clock = VirtualClock::new();
    let start = clock.now();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    runtime
        .spawn(async {
            sleep(3 * SECOND).await;
            spawn(sleep(2 * SECOND)).unwrap().detach();
        })
        .unwrap()
        .detach();
    let handle = runtime.handle();
    handle.post(|| {}).unwrap();
    runtime.shutdown_quiesce(60 * SECOND).unwrap();
    assert_eq!(clock.now(), start + 5 * SECOND, "it ends with the last task");
    assert!(runtime.spawn(async {}).is_err(), "the intake is closed");
    assert!(handle.post(|| {}).is_err(), "the intake is closed");
    let stats = runtime.shutdown_stats();
    drop(runtime);
    assert_eq!(stats.snapshot().to_string(), "accepted 3, completed 3, refused 2");
}

/// It would not sleep, and virtual time would stand still for good.
#[test]
fn e10_a_wake_up_of_a_future_that_has_ended_keeps_no_quiesce_awake() {
    let clock = VirtualClock::new();
    let start = clock.now();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    runtime.spawn(sleep(SECOND)).unwrap().detach();
    runtime.block_on(std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        std::task::Poll::Ready(())
    }));
    runtime.shutdown_quiesce(10 * SECOND).unwrap();
    assert_eq!(clock.now() - start, SECOND);
}

#[test]
fn e10_quiesce_gives_up_in_time_names_who_is_left_and_can_be_called_again() {
    let clock = VirtualClock::new();
    let start = clock.now();
    let mut runtime = Runtime::builder().name("main").clock(&clock).runtime();
    let (stuck, line) = (runtime.spawn(pending::<()>()).unwrap(), line!());
    runtime.spawn(sleep(90 * SECOND)).unwrap().detach();
    let late = runtime.shutdown_quiesce(60 * SECOND).unwrap_err();
    assert_eq!(clock.now(), start + 60 * SECOND);
    assert_eq!((late.tasks, late.timers, late.undrained), (2, 1, false));
    assert!(late.stragglers.iter().any(|straggler| straggler.origin.site().line() == line));
    let text = late.to_string();
    assert!(text.starts_with("not quiet in time: 2 tasks, 1 timers; 2 in flight\n"), "{text}");
    assert!(text.contains("parked for 60.0s on main"), "{text}");

    let late = runtime.shutdown_quiesce(60 * SECOND).unwrap_err();
    assert_eq!((late.tasks, late.timers), (1, 0));
    stuck.cancel();
    runtime.shutdown_quiesce(60 * SECOND).unwrap();
    assert!(block_on(stuck).unwrap_err().is_cancelled());
    assert_eq!(clock.now(), start + 120 * SECOND);
}

#[test]
fn e10_held_handles_hold_nothing_up() {
    let mut runtime = Runtime::new();
    let held: Vec<_> = (0..10).map(|number| runtime.spawn(async move { number }).unwrap()).collect();
    runtime.shutdown_quiesce(SECOND).unwrap();
    drop(runtime);
    for (number, task) in held.into_iter().enumerate() {
        assert_eq!(block_on(task).unwrap(), number);
    }
}

#[test]
fn e10_dropping_an_undriven_runtime_cancels_and_counts_and_runs_what_was_posted() {
    let runtime = Runtime::new();
    let stats = runtime.shutdown_stats();
    let task = runtime.spawn(pending::<()>()).unwrap();
    let (sent, received) = std::sync::mpsc::channel();
    runtime.handle().post(move || sent.send(1).unwrap()).unwrap();
    let from_outside = thread::scope(|scope| {
        let handle = runtime.handle();
        scope.spawn(move || handle.spawn(pending::<()>()).unwrap()).join().unwrap()
    });
    drop(runtime);
    assert_eq!(received.recv().unwrap(), 1);
    for task in [task, from_outside] {
        assert!(block_on(task).unwrap_err().is_cancelled());
    }
    let stats = stats.snapshot();
    assert_eq!(stats.to_string(), "accepted 3, completed 1, cancelled 2");
    assert_eq!((stats.aborted_unwinds, stats.leaked_tasks, stats.unbalanced_shutdowns), (0, 0, 0));
}

/// Waits for a connection that does not come.
async fn listen() {
    let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
    drop(listener.accept().await);
}

#[test]
fn e10_quiesce_gives_up_in_virtual_time_though_io_is_waited_for() {
    let clock = VirtualClock::new();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    runtime.spawn(listen()).unwrap().detach();
    assert_eq!(runtime.shutdown_quiesce(SECOND).unwrap_err().tasks, 1);
}

#[test]
fn e6_a_stop_ends_at_its_deadline_in_virtual_time_though_io_is_waited_for() {
    let clock = VirtualClock::new();
    let events = EventLoop::builder().clock(&clock).event_loop();
    events.start().unwrap();
    events.spawn(listen()).unwrap().detach();
    assert!(!events.stop_by(Deadline::at(clock.now() + SECOND)));
}
