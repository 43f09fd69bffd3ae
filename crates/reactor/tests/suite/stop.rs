use std::{
    future::pending,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    State,
    time::{Deadline, SystemClock},
};
use ebbtide_reactor::{EventLoop, JoinError, StartError, sleep, spawn, yield_now};
use futures_lite::future::block_on;

use crate::{Log, elsewhere, occupy, running};

#[test]
fn e3_every_stop_returns_only_when_the_thread_has_ended() {
    /// Dropped by the very end of the loop's thread.
    struct Last(Arc<AtomicBool>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    thread_local! {
        static LAST: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
    }

    for _ in 0..50 {
        let events = running();
        let ended = Arc::new(AtomicBool::new(false));
        let last = Last(ended.clone());
        events.post(move || LAST.set(Some(last))).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    events.stop();
                    assert!(ended.load(Ordering::SeqCst), "a stop returned before the thread had ended");
                });
            }
        });
        events.stop();
    }
}

/// The origin's second caller returned while callbacks still ran.
#[test]
fn e3_a_second_stop_waits_for_the_callback_that_runs() {
    let events = running();
    let release = occupy(&events);
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let stops = [0, 1].map(|_| {
            scope.spawn(|| {
                events.stop();
                assert!(!running.load(Ordering::SeqCst));
            })
        });
        while events.state() < State::Stopping {
            thread::yield_now();
        }
        for _ in 0..100 {
            thread::yield_now();
        }
        running.store(false, Ordering::SeqCst);
        drop(release);
        for stop in stops {
            stop.join().unwrap();
        }
    });
}

#[test]
fn e4_a_stop_in_a_callback_returns_and_the_loop_ends() {
    let events = Arc::new(running());
    let (stopped, has_stopped) = mpsc::channel();
    let own = events.clone();
    events
        .post(move || {
            own.stop();
            own.stop();
            stopped.send(own.state()).unwrap();
        })
        .unwrap();
    assert_eq!(has_stopped.recv().unwrap(), State::Stopping);
    events.stop();
    assert_eq!(events.state(), State::Stopped);
}

#[test]
fn e4_the_owner_may_be_dropped_on_the_loop_itself() {
    let events = running();
    let handle = events.handle();
    let (done, is_done) = mpsc::channel();
    handle
        .post(move || {
            drop(events);
            done.send(()).unwrap();
        })
        .unwrap();
    is_done.recv().unwrap();
    while handle.post(|| {}).is_ok() {
        thread::yield_now();
    }
}

#[test]
fn e4_dropping_the_owner_stops_and_waits() {
    let events = running();
    let log = Log::default();
    let noted = log.clone();
    events.post(move || noted.note(1)).unwrap();
    drop(events);
    assert_eq!(log.read(), [1]);
}

#[test]
fn e5_work_inside_may_spawn_until_its_tasks_are_dropped_and_offload_completions_come_in() {
    let events = running();
    let (finish, finished) = async_channel();
    let children = Arc::new(AtomicU32::new(0));
    let counted = children.clone();
    let handle = events.handle();
    let parent = events
        .spawn(async move {
            // A wake-up from another thread comes in while outsiders are kept out.
            finished.await;
            let (ambient, by_handle) = (counted.clone(), counted);
            let child = spawn(async move { ambient.fetch_add(1, Ordering::SeqCst) }).unwrap();
            child.await.unwrap();
            let child = handle.spawn(async move { by_handle.fetch_add(1, Ordering::SeqCst) });
            child.unwrap().await.unwrap();
        })
        .unwrap();
    thread::scope(|scope| {
        let stop = scope.spawn(|| events.stop_by(Deadline::never()));
        while events.state() < State::Stopping {
            thread::yield_now();
        }
        assert!(events.spawn(async {}).is_err(), "outsiders are kept out");
        assert!(events.post(|| {}).is_err(), "outsiders are kept out");
        finish();
        assert!(stop.join().unwrap(), "all tasks came to their end");
    });
    assert_eq!(children.load(Ordering::SeqCst), 2);
    block_on(parent).unwrap();
    assert_eq!(events.balance().to_string(), "accepted 3, completed 3, refused 2");
}

/// A future that ends when the function is called.
fn async_channel() -> (impl FnOnce() + Send, impl Future<Output = ()> + Send) {
    let trigger = ebbtide_lifecycle::Trigger::new();
    let token = trigger.token();
    let fire = move || {
        trigger.fire(ebbtide_lifecycle::Reason::requested("test"));
    };
    (fire, async move {
        token.triggered().await;
    })
}

/// The origin's suspended sleepers left their waiters hanging.
#[test]
fn e6_a_stop_drops_every_task_and_whoever_awaits_one_gets_an_error() {
    let events = running();
    let parked = events.spawn(pending::<()>()).unwrap();
    let asleep = events.spawn(sleep(Duration::from_secs(3600))).unwrap();
    let canary = Arc::new(());
    let inside = canary.clone();
    let detached = events.spawn(async move {
        let _inside = inside;
        pending::<()>().await;
    });
    detached.unwrap().detach();
    events.stop();
    for task in [parked, asleep] {
        assert!(matches!(block_on(task), Err(JoinError::Cancelled)));
    }
    assert_eq!(Arc::strong_count(&canary), 1, "the future was dropped");
    assert_eq!(events.balance().to_string(), "accepted 3, cancelled 3");
}

#[test]
fn e6_tasks_are_dropped_on_the_thread_of_the_loop() {
    struct Dropped(mpsc::Sender<thread::ThreadId>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).unwrap();
        }
    }
    let events = running();
    let (dropped, was_dropped) = mpsc::channel();
    let (here, is_here) = mpsc::channel();
    events.post(move || here.send(thread::current().id()).unwrap()).unwrap();
    let future = Dropped(dropped);
    events
        .spawn(async move {
            let _future = future;
            pending::<()>().await;
        })
        .unwrap()
        .detach();
    events.stop();
    assert_eq!(was_dropped.recv().unwrap(), is_here.recv().unwrap());
}

#[test]
fn e6_a_task_that_wakes_itself_does_not_hold_up_a_stop() {
    let events = running();
    events
        .spawn(async {
            loop {
                yield_now().await;
            }
        })
        .unwrap()
        .detach();
    events.stop();
    assert_eq!(events.balance().to_string(), "accepted 1, cancelled 1");
}

#[test]
fn e6_a_stop_with_a_deadline_lets_tasks_end_until_then() {
    let events = running();
    let quick = events.spawn(sleep(Duration::from_millis(5))).unwrap();
    let stuck = events.spawn(pending::<()>()).unwrap();
    assert!(!events.stop_by(Deadline::after(SystemClock, Duration::from_millis(50))));
    assert!(block_on(quick).is_ok());
    assert!(block_on(stuck).unwrap_err().is_cancelled());
    assert_eq!(events.balance().to_string(), "accepted 2, completed 1, cancelled 1");
}

#[test]
fn e6_a_later_stop_may_bring_the_deadline_forward() {
    let events = running();
    let stuck = events.spawn(pending::<()>()).unwrap();
    thread::scope(|scope| {
        let patient = scope.spawn(|| events.stop_by(Deadline::never()));
        while events.state() < State::Stopping {
            thread::yield_now();
        }
        events.stop();
        assert!(!patient.join().unwrap());
    });
    assert!(block_on(stuck).is_err());
}

#[test]
fn e6_only_a_forced_stop_abandons_posts() {
    let events = running();
    let release = occupy(&events);
    let canary = Arc::new(());
    for _ in 0..3 {
        let inside = canary.clone();
        events
            .post(move || {
                let _inside = inside;
                unreachable!("abandoned");
            })
            .unwrap();
    }
    thread::scope(|scope| {
        let abort = scope.spawn(|| events.abort());
        while events.state() < State::Stopping {
            thread::yield_now();
        }
        drop(release);
        abort.join().unwrap();
    });
    assert_eq!(Arc::strong_count(&canary), 1, "what was abandoned is dropped");
    assert_eq!(events.balance().to_string(), "accepted 4, completed 1, abandoned 3");
}

#[test]
fn l1_a_second_start_is_refused_and_so_is_one_after_a_stop() {
    let events = running();
    let refused = events.start().unwrap_err();
    assert!(matches!(refused, StartError::Illegal(_)));
    assert_eq!(refused.to_string(), "cannot start while running: it was started before");
    assert!(events.post(|| {}).is_ok(), "it runs all the same");

    let events = EventLoop::new();
    events.stop();
    assert_eq!(events.state(), State::Stopped);
    assert!(events.start().is_err());
}

#[test]
fn l1_a_stop_during_the_start_leaves_nothing_running() {
    for _ in 0..200 {
        let events = EventLoop::builder().event_loop();
        let line = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                line.wait();
                // It started and was stopped, or it was stopped first: both are fine, hanging is not.
                let _ = events.start();
            });
            line.wait();
            events.stop();
            assert!(events.post(|| unreachable!("refused")).is_err());
        });
        events.stop();
        assert_eq!(events.state(), State::Stopped);
    }
}

#[test]
fn a_loop_may_be_stopped_and_dropped_by_another_loop() {
    let outer = running();
    let inner = running();
    let stopped = outer.spawn(async move { inner.stop() }).unwrap();
    block_on(stopped).unwrap();
    elsewhere(move || drop(outer));
}
