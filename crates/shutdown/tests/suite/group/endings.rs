//! How members end, and what that does to their siblings.

use std::{
    io,
    panic::{panic_any, resume_unwind},
    sync::{Arc, mpsc},
};

use ebbtide_lifecycle::{
    Component, Illegal, Reason, RunError, Runnable, State, Step, Stopped, Trigger, time::Deadline,
};
use ebbtide_shutdown::group::{Ending, Group, Policy, StartError};

use super::{Worker, endings, far, reason, release, run, soon, threads::to, until, wait_for_stop};

#[test]
fn members_that_end_by_themselves_end_the_run() {
    let group = Group::builder()
        .member("a", Worker::new(|_| Ok(())))
        .member("b", Worker::new(|_| Ok(())))
        .build()
        .unwrap();
    let outcomes = group.run().unwrap();
    assert_eq!((endings(&outcomes), outcomes.is_clean()), (vec!["finished", "finished"], true));
    assert_eq!(group.balance().to_string(), "accepted 2, completed 2");
    assert!(!group.is_running());
    assert_eq!(group.shutdown(Deadline::never(), &reason()), Stopped::Clean);
}

#[test]
fn a_group_of_nobody_ends_at_once() {
    let group = Group::builder().build().unwrap();
    assert_eq!(group.run().unwrap().iter().len(), 0);
}

/// A group of one that ends as `script` does once `latch` is fired, and one that waits to be told.
fn with_sibling(
    policy: Policy,
    latch: &Trigger,
    script: impl Fn() -> Result<(), RunError> + Send + Sync + 'static,
) -> (Group, Arc<Worker>, super::Told) {
    let wait = until(latch);
    let bad = Worker::new(move |stop| wait(stop).and_then(|()| script()));
    let (sibling, told) = Worker::watched(wait_for_stop);
    let builder = Group::builder().member("bad", bad.clone()).member("sibling", sibling.clone());
    let group = builder.policy(policy).build().unwrap();
    group.start().unwrap();
    bad.is_up();
    sibling.is_up();
    (group, sibling, told)
}

#[test]
fn s6_a_member_that_fails_stops_its_siblings() {
    let latch = Trigger::new();
    let (group, _, told) =
        with_sibling(Policy::default(), &latch, || Err(io::Error::other("no disk").into()));
    release(&latch);
    let outcomes = group.ended().wait();
    assert_eq!((endings(&outcomes), outcomes.is_clean()), (vec!["failed", "stopped"], false));
    let Ending::Failed { text, error } = &outcomes.get("bad").unwrap().ending else { unreachable!() };
    assert!(&**text == "no disk" && error.is::<io::Error>());
    let reason = Reason::failed("bad", &"no disk");
    assert_eq!(outcomes.reason(), Some(&reason));
    let (deadline, told) = told.recv().unwrap();
    assert!(deadline < Deadline::never(), "it has the group's budget");
    assert_eq!((told, group.token().reason()), (reason.clone(), Some(&reason)));
    assert_eq!(group.balance().to_string(), "accepted 2, completed 1, failed 1");
}

#[test]
fn s6_a_member_that_panics_stops_its_siblings() {
    let latch = Trigger::new();
    let (group, _, told) = with_sibling(Policy::StopSiblings, &latch, || panic!("out of ink"));
    release(&latch);
    let outcomes = group.ended().wait();
    assert_eq!(endings(&outcomes), ["panicked", "stopped"]);
    assert!(
        matches!(&outcomes.get("bad").unwrap().ending, Ending::Panicked(message) if &**message == "out of ink")
    );
    assert_eq!(told.recv().unwrap().1, Reason::failed("bad", &"it panicked: out of ink"));
}

#[test]
fn s6_siblings_are_left_alone_if_that_is_the_policy() {
    let latch = Trigger::new();
    let (group, sibling, told) = with_sibling(Policy::LeaveSiblings, &latch, || Err("no disk".into()));
    release(&latch);
    while group.balance().failed == 0 {
        std::thread::yield_now();
    }
    assert!(sibling.is_running() && !group.token().is_triggered() && told.try_recv().is_err());
    assert_eq!(group.shutdown(far(), &reason()), Stopped::Clean);
    assert_eq!(endings(&group.outcomes().unwrap()), ["failed", "stopped"]);
}

#[test]
fn a_failure_during_a_stop_does_not_change_its_deadline() {
    let (latch, sibling_latch) = (Trigger::new(), Trigger::new());
    let wait = until(&latch);
    let bad = Worker::new(move |stop| wait(stop).and(Err("no disk".into())));
    let (sibling, told) = Worker::watched(until(&sibling_latch));
    let group =
        Group::builder().member("bad", bad.clone()).member("sibling", sibling.clone()).build().unwrap();
    group.start().unwrap();
    bad.is_up();
    sibling.is_up();
    let stopping = std::thread::spawn({
        let group = group.clone();
        move || group.shutdown(Deadline::never(), &reason())
    });
    assert_eq!(told.recv().unwrap().0, Deadline::never());
    release(&latch);
    while group.balance().failed == 0 {
        std::thread::yield_now();
    }
    release(&sibling_latch);
    assert_eq!(stopping.join().unwrap(), Stopped::Clean);
    let outcomes = group.ended().wait();
    assert_eq!((endings(&outcomes), outcomes.reason()), (vec!["failed", "stopped"], Some(&reason())));
    assert!(told.try_recv().is_err(), "it is told once");
}

#[test]
fn s6_each_member_has_a_line_that_says_how_it_ended() {
    let latch = Trigger::new();
    let stuck = Worker::stuck(&latch);
    let group = Group::builder()
        .member("short", Worker::new(|_| Ok(())))
        .member("bad", Worker::new(|_| Err("no disk".into())))
        .member("worse", Worker::new(|_| panic_any(7)))
        .member("stuck", stuck.clone())
        .policy(Policy::LeaveSiblings)
        .build()
        .unwrap();
    group.start().unwrap();
    stuck.is_up();
    while group.balance().in_flight > 1 || group.balance().accepted < 4 {
        std::thread::yield_now();
    }
    group.shutdown(soon(), &Reason::Signal(15));
    let text = group.ended().wait().to_string();
    let lines: Vec<_> = text.lines().collect();
    let begins = [
        "the group was stopped: SIGTERM",
        "  short: finished by itself after ",
        "  bad: failed after ",
        "  worse: panicked after ",
        "  stuck: left behind, still running ",
    ];
    assert_eq!(lines.len(), begins.len(), "{text}");
    assert!(lines.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{text}");
    assert!(lines[2].ends_with(": no disk") && lines[3].ends_with(": no message"), "{text}");
    assert!(lines[4].contains("endings.rs"), "{text}");
    release(&latch);
}

#[test]
fn a_second_run_is_refused_while_the_first_goes_on_and_after_it() {
    let worker = Worker::idle();
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    let first = run(&group);
    worker.is_up();
    assert!(matches!(group.run(), Err(Illegal { step: Step::Start, .. })));
    assert!(matches!(group.start(), Err(StartError::Illegal(_))));
    assert!(group.is_running());
    group.shutdown(far(), &reason());
    assert!(first.join().unwrap().is_ok());
    let refused = group.run().unwrap_err();
    assert_eq!(refused, Illegal { step: Step::Start, state: State::Stopped });
}

#[test]
fn two_members_of_one_name_are_refused_with_both_places() {
    let builder = Group::builder().member("twin", Worker::idle()).member("other", Worker::idle());
    let duplicate = builder.member("twin", Worker::idle()).build().unwrap_err();
    assert_eq!((&*duplicate.name, duplicate.again.line() - duplicate.first.line()), ("twin", 1));
    let text = duplicate.to_string();
    assert!(text.contains("two members are called \"twin\"") && text.contains("endings.rs"), "{text}");
}

/// Panics where it is told to.
struct Bomb {
    worker: Arc<Worker>,
    in_shutdown: bool,
    in_drop: bool,
}

impl Runnable for Bomb {
    fn run(&self) -> Result<(), RunError> {
        self.worker.run()
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        let stopped = self.worker.shutdown(deadline, reason);
        if self.in_shutdown {
            // Prints nothing: a backtrace takes longer than a group waits for a call that should have returned.
            resume_unwind(Box::new("tripped"));
        }
        stopped
    }

    fn is_running(&self) -> bool {
        self.worker.is_running()
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.in_drop, "boom");
    }
}

#[test]
fn a_panic_in_a_members_shutdown_is_contained_and_reported() {
    let worker = Worker::idle();
    let bomb = Bomb { worker: worker.clone(), in_shutdown: true, in_drop: false };
    let sibling = Worker::idle();
    let group = Group::builder().member("bomb", bomb).member("sibling", sibling.clone()).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    sibling.is_up();
    assert_eq!(group.shutdown(far(), &reason()), Stopped::Clean);
    let outcomes = group.ended().wait();
    assert_eq!((endings(&outcomes), outcomes.is_clean()), (vec!["stopped", "stopped"], false));
    assert_eq!(outcomes.get("bomb").unwrap().shutdown_panic.as_deref(), Some("tripped"));
    assert!(outcomes.to_string().contains("; its shutdown panicked: tripped"));
}

#[test]
fn a_panic_in_the_drop_of_a_member_is_a_panic_of_that_member() {
    let (latch, sibling) = (Trigger::new(), Worker::idle());
    let bomb = Bomb { worker: Worker::stuck(&latch), in_shutdown: false, in_drop: true };
    let group = Group::builder().member("bomb", bomb).member("sibling", sibling.clone()).build().unwrap();
    group.start().unwrap();
    sibling.is_up();
    release(&latch);
    assert_eq!(endings(&group.ended().wait()), ["panicked", "stopped"]);
}

#[test]
fn a_panic_in_the_drop_of_a_member_that_never_ran_reaches_nobody() {
    let bomb = Bomb { worker: Worker::idle(), in_shutdown: false, in_drop: true };
    let group = Group::builder().member("bomb", bomb).build().unwrap();
    assert_eq!(group.shutdown(Deadline::never(), &reason()), Stopped::Clean);
    assert_eq!(endings(&group.run().unwrap()), ["never ran"]);
}

#[test]
fn a_panic_in_the_drop_of_a_member_that_was_not_started_reaches_nobody() {
    let bomb = || Bomb { worker: Worker::idle(), in_shutdown: false, in_drop: true };
    let group = Group::builder().member("bomb", bomb()).member("sibling", Worker::idle());
    let group = group.spawn_with(|_| Err(io::Error::other("the pool is full"))).build().unwrap();
    assert_eq!(endings(&group.run().unwrap()), ["not started", "never ran"]);

    let (keep, kept) = mpsc::channel();
    let group = Group::builder().member("bomb", bomb()).spawn_with(to(keep)).build().unwrap();
    group.start().unwrap();
    drop(kept.recv().unwrap());
    assert_eq!(endings(&group.ended().wait()), ["not started"]);
}
