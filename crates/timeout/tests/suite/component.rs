//! Late runners as a component.

use std::{sync::mpsc, time::Duration};

use ebbtide_lifecycle::{
    Reason, Trigger,
    conformance::{self, Finish, Specimen},
    time::{Deadline, SystemClock},
};
use ebbtide_reactor::{EventLoop, Handle};
use ebbtide_timeout::{Runners, Tracker};

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
