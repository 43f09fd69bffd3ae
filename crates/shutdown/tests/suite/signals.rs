//! Signals from a feed: what the first, the second and the third do.

use std::{future::Future, pin::pin, sync::mpsc, task::Context};

use ebbtide_shutdown::{Coordinator, Feed, Priority, Reason, Signals, StartError};

use crate::{Fixture, gate, hanging_waker};

#[test]
fn s2_the_first_signal_stops_gracefully_and_is_the_reason() {
    let fixture = Fixture::new();
    let feed = Feed::new();
    let coordinator = fixture.builder().signals(Signals::from_feed(&feed)).start().unwrap();
    feed.send(15);
    let report = fixture.clock.block_on(coordinator.stopped());
    assert_eq!(report.reason(), &Reason::Signal(15));
    assert_eq!(report.exit_code(), 0, "{report}");
    assert_eq!(coordinator.token().reason(), Some(&Reason::Signal(15)));
}

#[test]
fn s2_the_second_signal_shows_who_is_stuck_and_ends_the_process_and_the_third_just_ends_it() {
    let feed = Feed::new();
    let (exit, exits) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let coordinator = Coordinator::builder()
        .signals(Signals::from_feed(&feed))
        .exit(move |code| exit.send(code).unwrap())
        .observer(move |event| tell.send(event.to_string()).unwrap())
        .start()
        .unwrap();
    let (release, released) = gate();
    let (begun, begins) = gate();
    let hang = move |_: _, _: &_| {
        begun.send(()).unwrap();
        let _ = released.recv();
        Ok(())
    };
    coordinator.on_stop("stuck in there", Priority(0), hang).unwrap().keep();
    feed.send(2);
    begins.recv().unwrap();
    assert!(exits.try_recv().is_err());
    feed.send(15);
    assert_eq!(exits.recv().unwrap(), 76);
    let forced = told.iter().find(|text| text.starts_with("the process ends")).unwrap();
    assert!(forced.contains("forced by a second signal (SIGINT)"), "{forced}");
    assert!(forced.contains("stuck in there: has not returned for"), "{forced}");
    feed.send(15);
    assert_eq!(exits.recv().unwrap(), 77);
    drop(release);
    assert!(coordinator.run().is_clean(), "the process has not ended, and so the stop goes on");
}

/// The only test that installs one in this process.
#[test]
fn s1_installing_twice_gives_the_same() {
    assert!(Coordinator::installed().is_none());
    let feed = Feed::new();
    let install =
        || Coordinator::builder().observer(|_| ()).signals(Signals::from_feed(&feed)).install().unwrap();
    let (first, second) = (install(), install());
    let found = Coordinator::installed().unwrap();
    assert!(first.trigger(Reason::requested("once")));
    assert!(!second.trigger(Reason::requested("twice")));
    assert_eq!(found.run().reason(), &Reason::requested("once"));
}

#[test]
fn s3_the_first_reason_wins() {
    let fixture = Fixture::new();
    let feed = Feed::new();
    let coordinator = fixture.builder().signals(Signals::from_feed(&feed)).start().unwrap();
    assert!(coordinator.trigger(Reason::input_closed("queue")));
    assert!(!coordinator.trigger(Reason::requested("again")));
    feed.send(15);
    let report = fixture.clock.block_on(coordinator.stopped());
    assert_eq!(report.reason(), &Reason::input_closed("queue"));
}

#[test]
fn a_signal_that_cannot_be_handled_is_refused() {
    let refused = Coordinator::builder().signals(Signals::of([9])).start().unwrap_err();
    assert!(matches!(refused, StartError::Signal(_)));
    assert_eq!(refused.to_string(), "signal 9 cannot be handled by a program: leave it out of the set");
    let refused = Coordinator::builder().signals(Signals::of([4711])).start().unwrap_err();
    assert!(refused.to_string().starts_with("cannot listen to signal 4711: "), "{refused}");
}

#[test]
fn a_waker_that_hangs_keeps_the_second_signal_from_nothing() {
    let feed = Feed::new();
    let (exit, exits) = mpsc::channel();
    let builder = Coordinator::builder().signals(Signals::from_feed(&feed)).observer(|_| ());
    let coordinator = builder.exit(move |code| exit.send(code).unwrap()).start().unwrap();
    let (waker, begins, release) = hanging_waker();
    let token = coordinator.token();
    let mut waits = pin!(token.triggered());
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    feed.send(15);
    begins.recv().unwrap();
    feed.send(15);
    assert_eq!(exits.recv().unwrap(), 76);
    drop(release);
    let _report = coordinator.run();
}
