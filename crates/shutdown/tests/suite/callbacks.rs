//! Callbacks: in order, once, isolated, also when they come late.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use ebbtide_shutdown::{Ending, Feed, Reason, Signals};

use crate::{Fixture, SECOND, reason};

#[test]
fn s1_callbacks_run_in_the_order_of_registration_once() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (say, said) = mpsc::channel();
    for n in 0..10 {
        let say = say.clone();
        coordinator.on_trigger("same name", move || say.send(n).unwrap());
    }
    drop(say);
    coordinator.trigger(reason());
    coordinator.trigger(reason());
    let _report = fixture.stop(&coordinator);
    assert_eq!(said.iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
}

#[test]
fn s1_callbacks_do_not_run_where_the_trigger_is_fired() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (say, said) = mpsc::channel();
    coordinator.on_trigger("where", move || say.send(std::thread::current().id()).unwrap());
    coordinator.trigger(reason());
    assert_ne!(said.recv().unwrap(), std::thread::current().id());
    let _report = fixture.stop(&coordinator);
}

#[test]
fn s1_a_callback_that_panics_keeps_no_other_from_running() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (say, said) = mpsc::channel();
    coordinator.on_trigger("bad", || panic!("oh no"));
    coordinator.on_trigger("good", move || say.send(()).unwrap());
    let report = fixture.stop(&coordinator);
    said.recv().unwrap();
    assert_eq!(report.callbacks()[0].ending, Ending::Panicked("oh no".into()));
    assert_eq!(report.callbacks()[1].ending, Ending::Clean);
    assert_eq!(report.exit_code(), 70, "a callback that panicked is a failure");
}

#[test]
fn s1_a_callback_that_is_registered_after_the_trigger_runs_at_once_and_outside_of_any_lock() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    coordinator.trigger(reason());
    let ran = Arc::new(AtomicUsize::new(0));
    let (inner, count) = (coordinator.clone(), ran.clone());
    coordinator.on_trigger("late", move || {
        let _stage = inner.stage();
        let count = count.clone();
        inner.on_trigger("later", move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    let _report = fixture.stop(&coordinator);
}

#[test]
fn a_callback_may_register_callbacks() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let (say, said) = mpsc::channel();
    let inner = coordinator.clone();
    coordinator.on_trigger("outer", move || {
        inner.on_trigger("inner", move || say.send(()).unwrap());
    });
    let _report = fixture.stop(&coordinator);
    said.recv().unwrap();
}

#[test]
fn a_callback_that_hangs_is_left_behind_and_named() {
    let fixture = Fixture::new();
    let feed = Feed::new();
    let coordinator = fixture.builder().signals(Signals::from_feed(&feed)).start().unwrap();
    let (release, released) = crate::gate();
    let clock = fixture.clock.clone();
    // Blocking in a thread holds virtual time, so it is moved by hand.
    coordinator.on_trigger("hangs", move || {
        clock.advance(2 * SECOND);
        let _ = released.recv();
    });
    let (say, said) = mpsc::channel();
    coordinator.on_trigger("good", move || say.send(()).unwrap());
    feed.send(15);
    said.recv().unwrap();
    drop(release);
    let report = fixture.clock.block_on(coordinator.stopped());
    assert_eq!(report.callbacks()[0].ending, Ending::Hung);
    assert_eq!(report.reason(), &Reason::Signal(15));
    assert_eq!(report.exit_code(), 75);
}

#[test]
fn a_callback_that_is_taken_out_never_runs() {
    let fixture = Fixture::new();
    let coordinator = fixture.coordinator();
    let id = coordinator.on_trigger("out", || panic!("it was taken out"));
    assert!(coordinator.remove_callback(id));
    assert!(!coordinator.remove_callback(id));
    assert!(fixture.stop(&coordinator).is_clean());
}
