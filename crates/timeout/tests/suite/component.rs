//! Late runners as a component.

use std::{future::pending, sync::mpsc, time::Duration};

use ebbtide_lifecycle::{
    Component, Reason, Stopped, Stopping, Trigger,
    conformance::{self, Finish, Specimen},
    time::{Deadline, SystemClock, VirtualClock},
};
use ebbtide_reactor::{EventLoop, Handle, Runtime};
use ebbtide_timeout::{Runners, TokioTimer, Tracker};

use super::MINUTE;

struct Bench {
    events: EventLoop,
    runners: Runners<Handle>,
}

impl Bench {
    fn new() -> Self {
        let events = EventLoop::new();
        events.start().unwrap();
        let runners = Runners::new(&events.handle(), events.handle()).unwrap();
        Self { events, runners }
    }
}

impl Specimen for Bench {
    type Component = Tracker<Handle>;

    fn component(&self) -> &Tracker<Handle> {
        self.runners.tracker()
    }

    fn submit(&self) -> Option<Finish> {
        // Detaching is never refused: a component that stops asks its callers to stay away.
        if self.runners.tracker().is_closed() {
            return None;
        }
        let (release, held) = latch();
        let (late, is_late) = mpsc::channel();
        let runners = self.runners.clone();
        let task = self.events.handle().spawn(async move {
            runners.timeout(Duration::from_micros(1), held).await.unwrap_err();
            late.send(()).unwrap();
        });
        task.unwrap().detach();
        is_late.recv().unwrap();
        let tracker = self.runners.tracker().clone();
        Some(Box::new(move || {
            release();
            tracker.wait_idle().wait();
        }))
    }

    fn soon(&self) -> Deadline {
        Deadline::after(SystemClock, Duration::from_millis(5))
    }
}

/// Something that is released, and a future that waits for that.
fn latch() -> (impl FnOnce() + Send + 'static, impl Future<Output = ()> + Send + 'static) {
    let trigger = Trigger::new();
    let token = trigger.token();
    let release = move || assert!(trigger.fire(Reason::requested("test")));
    (release, async move { drop(token.triggered().await) })
}

#[test]
fn late_runners_conform() {
    conformance::component(Bench::new);
}

fn soon() -> Deadline {
    Deadline::after(SystemClock, Duration::from_millis(5))
}

fn reason() -> Reason {
    Reason::requested("test")
}

#[test]
fn a_stop_keeps_its_deadline_while_the_loop_is_stuck() {
    let bench = Bench::new();
    let finish = bench.submit().unwrap();
    let (stuck, is_stuck) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let blocks = move || {
        stuck.send(()).unwrap();
        let _ = held.recv();
    };
    assert!(bench.events.handle().post(blocks).is_ok());
    is_stuck.recv().unwrap();
    let tracker = bench.runners.tracker();
    assert_eq!(tracker.stop(soon(), &reason()).wait(), Stopped::Overdue);
    assert_eq!(tracker.balance().abandoned, 1);
    drop(release);
    finish();
}

#[test]
fn a_stop_keeps_its_deadline_on_a_thread_without_the_runtime_of_its_timer() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let runners = tokio.block_on(async {
        let runners = Runners::spawned(TokioTimer, |driver| drop(tokio::spawn(driver)));
        runners.timeout(Duration::from_micros(1), pending::<()>()).await.unwrap_err();
        runners
    });
    assert_eq!(runners.tracker().stop(soon(), &reason()).wait(), Stopped::Overdue);
}

#[test]
fn in_virtual_time_a_stop_is_a_future_that_keeps_its_deadline() {
    let clock = VirtualClock::new();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    let runners = Runners::new(&runtime.handle(), runtime.handle()).unwrap();
    let stopped = runtime.block_on(async {
        runners.timeout(MINUTE, pending::<()>()).await.unwrap_err();
        match runners.tracker().stop(Deadline::after(&clock, MINUTE), &reason()) {
            Stopping::Future(stop) => stop.await,
            Stopping::Blocking(_) => unreachable!("the loop could not turn meanwhile"),
        }
    });
    assert_eq!(stopped, Stopped::Overdue);
}

#[test]
fn a_stop_says_that_late_runners_were_dropped_with_their_driver() {
    let mut runtime = Runtime::builder().clock(&VirtualClock::new()).runtime();
    let runners = Runners::new(&runtime.handle(), runtime.handle()).unwrap();
    runtime.block_on(async { runners.timeout(MINUTE, pending::<()>()).await.unwrap_err() });
    let stopping = runners.tracker().stop(Deadline::never(), &reason());
    drop(runtime);
    assert_eq!(stopping.wait(), Stopped::Overdue);
    assert_eq!(runners.balance().cancelled, 1);
}
