use std::{future::pending, time::Duration};

use ebbtide_lifecycle::{
    Component, Reason, Stopped, Stopping, Trigger,
    conformance::{self, Finish, Specimen},
    time::{Deadline, SystemClock, VirtualClock},
};
use ebbtide_reactor::EventLoop;

use crate::{occupy, running};

struct Loop(EventLoop);

impl Specimen for Loop {
    type Component = EventLoop;

    fn component(&self) -> &EventLoop {
        &self.0
    }

    fn submit(&self) -> Option<Finish> {
        let trigger = Trigger::new();
        let token = trigger.token();
        self.0.spawn(async move { token.triggered().await }).ok()?.detach();
        Some(Box::new(move || assert!(trigger.fire(Reason::requested("finish")))))
    }

    fn soon(&self) -> Deadline {
        Deadline::after(SystemClock, Duration::from_millis(20))
    }
}

#[test]
fn a_loop_conforms() {
    conformance::component(|| Loop(running()));
}

/// A loop that takes part in virtual time, with those who stop it.
struct VirtualLoop {
    inner: Loop,
    clock: VirtualClock,
}

impl Specimen for VirtualLoop {
    type Component = EventLoop;

    fn component(&self) -> &EventLoop {
        self.inner.component()
    }

    fn submit(&self) -> Option<Finish> {
        self.inner.submit()
    }

    fn soon(&self) -> Deadline {
        Deadline::after(&self.clock, Duration::from_secs(20))
    }

    fn drive(&self, stopping: Stopping) -> Stopped {
        match stopping {
            Stopping::Future(stop) => self.clock.block_on(stop),
            Stopping::Blocking(_) => panic!("it would hold up the time that it waits for"),
        }
    }
}

#[test]
fn a_loop_conforms_in_virtual_time() {
    conformance::component(|| {
        let clock = VirtualClock::new();
        let events = EventLoop::builder().clock(&clock).panic_hook(|_| {}).event_loop();
        events.start().unwrap();
        VirtualLoop { inner: Loop(events), clock }
    });
}

#[test]
fn a_loop_that_hangs_is_named_by_what_it_runs() {
    let events = running();
    events.spawn(pending::<()>()).unwrap().detach();
    let release = occupy(&events);
    let stopping =
        Component::stop(&events, Deadline::after(SystemClock, Duration::ZERO), &Reason::Signal(15));
    assert_eq!(stopping.wait(), Stopped::Overdue);
    let report = Component::stragglers(&events).to_string();
    assert!(report.contains("tests/suite/main.rs"), "{report}");
    assert!(report.contains("running for"), "{report}");
    assert!(report.contains("on test"), "{report}");
    drop(release);
    events.stop();
    assert!(Component::stragglers(&events).is_empty());
}

#[test]
fn whoever_asks_on_the_loop_itself_is_answered() {
    let events = std::sync::Arc::new(running());
    let own = events.clone();
    let (told, tell) = std::sync::mpsc::channel();
    events.spawn(pending::<()>()).unwrap().detach();
    events.post(move || told.send((own.stragglers().len(), own.balance().in_flight)).unwrap()).unwrap();
    assert_eq!(tell.recv().unwrap(), (1, 1));
}
