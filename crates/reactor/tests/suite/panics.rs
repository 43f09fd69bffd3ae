use std::{
    future::{Future, pending},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use ebbtide_reactor::{EventLoop, Runtime, yield_now};
use futures_lite::future::block_on;

/// A loop that counts the panics its hook is told of.
fn watched() -> (EventLoop, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let hook = move |report: &ebbtide_reactor::PanicReport<'_>| {
        heard.lock().unwrap().push(report.to_string());
    };
    let events = EventLoop::builder().name("watched").panic_hook(hook).event_loop();
    events.start().unwrap();
    (events, told)
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in drop, on purpose");
    }
}

fn is_alive(events: &EventLoop) -> bool {
    block_on(events.spawn(async { true }).unwrap()).unwrap()
}

#[test]
fn e7_a_panic_in_a_post_is_told_and_the_loop_goes_on() {
    let (events, told) = watched();
    events.post(|| panic!("in a post, on purpose")).unwrap();
    assert!(is_alive(&events));
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("work of loop \"watched\" submitted at "), "{}", told[0]);
    assert!(told[0].ends_with("panicked: in a post, on purpose"), "{}", told[0]);
    assert_eq!(events.balance().to_string(), "accepted 2, completed 1, failed 1");
}

#[test]
fn e7_a_panic_in_a_poll_arrives_at_the_handle() {
    let (events, told) = watched();
    let task = events.spawn(async {
        yield_now().await;
        panic!("in a poll, on purpose");
    });
    let error = block_on(task.unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: in a poll, on purpose");
    let panic = error.try_into_panic().unwrap();
    assert_eq!(*panic.downcast_ref::<&str>().unwrap(), "in a poll, on purpose");
    assert!(is_alive(&events));
    assert!(told.lock().unwrap().is_empty(), "the handle has it");
}

#[test]
fn e7_a_panic_of_a_detached_task_is_told() {
    let (events, told) = watched();
    events.spawn(async { panic!("detached, on purpose") }).unwrap().detach();
    assert!(is_alive(&events));
    events.stop();
    assert_eq!(told.lock().unwrap().len(), 1);
}

#[test]
fn e7_a_panic_in_the_drop_of_a_future_is_told_and_loses_nothing() {
    let (events, told) = watched();
    /// Dropped after it has given its output.
    struct Ends(PanicsInDrop);
    impl Future for Ends {
        type Output = u32;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
            let _ = &self.0;
            Poll::Ready(5)
        }
    }
    assert_eq!(block_on(events.spawn(Ends(PanicsInDrop)).unwrap()).unwrap(), 5);
    let cancelled = events.spawn(async {
        let _panics = PanicsInDrop;
        pending::<()>().await;
    });
    let cancelled = cancelled.unwrap();
    assert!(is_alive(&events));
    cancelled.cancel();
    assert!(block_on(cancelled).unwrap_err().is_cancelled());
    assert!(is_alive(&events));
    events.stop();
    assert_eq!(told.lock().unwrap().len(), 2);
    assert_eq!(events.balance().check(), Ok(()));
}

#[test]
fn e7_a_panic_in_the_drop_of_an_unclaimed_output_is_told() {
    let (events, told) = watched();
    events.spawn(async { PanicsInDrop }).unwrap().detach();
    assert!(is_alive(&events));
    // Dropped by the handle, when it is there already.
    let task = events.spawn(async { PanicsInDrop }).unwrap();
    while !task.is_finished() {
        std::thread::yield_now();
    }
    drop(task);
    events.stop();
    assert_eq!(told.lock().unwrap().len(), 2);
}

#[test]
fn e7_a_panic_in_the_drop_of_a_task_at_the_stop_keeps_no_other_from_being_dropped() {
    let (events, told) = watched();
    let dropped = Arc::new(AtomicUsize::new(0));
    for index in 0..10 {
        struct Counts(Arc<AtomicUsize>, bool);
        impl Drop for Counts {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
                assert!(!self.1, "in drop, on purpose");
            }
        }
        let counts = Counts(dropped.clone(), index % 2 == 0);
        events
            .spawn(async move {
                let _counts = counts;
                pending::<()>().await;
            })
            .unwrap()
            .detach();
    }
    events.stop();
    assert_eq!(dropped.load(Ordering::SeqCst), 10);
    assert_eq!(told.lock().unwrap().len(), 5);
    assert_eq!(events.balance().to_string(), "accepted 10, cancelled 10");
    assert_eq!(events.shutdown_stats().snapshot().panics, 5);
}

#[test]
fn a_panic_in_the_main_future_reaches_the_caller_and_the_runtime_goes_on() {
    let mut runtime = Runtime::new();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async { panic!("in main, on purpose") })
    }));
    assert!(caught.is_err());
    assert_eq!(runtime.block_on(async { 1 }), 1);
}

#[test]
fn e10_a_runtime_that_is_dropped_by_a_panic_drops_its_tasks_and_runs_nothing() {
    let canary = Arc::new(());
    let inside = canary.clone();
    let mut stats = None;
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let runtime = Runtime::new();
        stats = Some(runtime.shutdown_stats());
        runtime.handle().post(|| unreachable!("abandoned")).unwrap();
        runtime
            .spawn(async move {
                let _inside = inside;
                pending::<()>().await;
            })
            .unwrap()
            .detach();
        panic!("the owner panics, on purpose");
    }));
    assert!(caught.is_err());
    assert_eq!(Arc::strong_count(&canary), 1);
    assert_eq!(stats.unwrap().snapshot().to_string(), "accepted 2, cancelled 1, abandoned 1");
}

/// What panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in the drop of a payload, on purpose");
    }
}

#[test]
fn e7_a_hook_that_panics_with_something_that_panics_does_not_end_the_loop() {
    let events = EventLoop::builder().panic_hook(|_| std::panic::panic_any(Bomb)).event_loop();
    events.start().unwrap();
    events.post(|| panic!("in a post, on purpose")).unwrap();
    events.post(|| std::panic::panic_any(Bomb)).unwrap();
    assert!(is_alive(&events));
    events.stop();
}

/// A waker whose drop panics.
struct BadWaker;

impl Wake for BadWaker {
    fn wake(self: Arc<Self>) {}
}

impl Drop for BadWaker {
    fn drop(&mut self) {
        panic!("in the drop of a waker, on purpose");
    }
}

#[test]
fn e7_a_waker_that_panics_when_it_is_dropped_does_not_end_the_loop() {
    for drop_before_the_stop in [true, false] {
        let (events, _told) = watched();
        let armed = events
            .spawn(async {
                let mut sleep = Box::pin(ebbtide_reactor::sleep(std::time::Duration::from_secs(3600)));
                let waker = Waker::from(Arc::new(BadWaker));
                assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                Some(sleep)
            })
            .unwrap();
        let armed = block_on(armed).unwrap();
        if drop_before_the_stop {
            drop(armed);
            assert!(is_alive(&events));
            events.stop();
        } else {
            events.stop();
            drop(armed);
        }
        assert!(events.shutdown_stats().snapshot().panics > 0);
    }
}

#[test]
fn e7_a_panic_that_its_handle_gets_is_counted_too() {
    let (events, _told) = watched();
    assert!(block_on(events.spawn(async { panic!("in a poll, on purpose") }).unwrap()).is_err());
    events.stop();
    assert_eq!(events.shutdown_stats().snapshot().panics, 1);
}
