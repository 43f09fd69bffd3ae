//! What a group is to others: a runnable, and a component.

use std::sync::OnceLock;

use ebbtide_lifecycle::{
    Component, Reason, Runnable, State, Stopped, Stopping, Trigger,
    conformance::{self, Finish, Specimen},
    time::{Deadline, VirtualClock},
};
use ebbtide_shutdown::group::{Ending, Group, Policy, Unclean};

use super::{MINUTE, Worker, endings, far, reason, release, soon, until};

#[test]
fn a_group_conforms_as_a_runnable() {
    let group = || Group::builder().member("a", Worker::idle()).member("b", Worker::idle()).build().unwrap();
    conformance::runnable(group);
    conformance::runnable(|| Group::builder().member("inner", group()).build().unwrap());
}

/// A group of one: the work that it accepts is to run that one.
struct Bench {
    group: Group,
    latch: Trigger,
    submitted: OnceLock<()>,
}

impl Bench {
    fn new() -> Self {
        let latch = Trigger::new();
        let group = Group::builder().member("stuck", Worker::stuck(&latch)).build().unwrap();
        Self { group, latch, submitted: OnceLock::new() }
    }
}

impl Specimen for Bench {
    type Component = Group;

    fn component(&self) -> &Group {
        &self.group
    }

    fn submit(&self) -> Option<Finish> {
        self.submitted.set(()).unwrap();
        self.group.start().unwrap();
        while self.group.stragglers().is_empty() {
            if self.group.state() == State::Stopped {
                return None;
            }
            std::thread::yield_now();
        }
        let (group, latch) = (self.group.clone(), self.latch.clone());
        Some(Box::new(move || {
            release(&latch);
            while !group.stragglers().is_empty() {
                std::thread::yield_now();
            }
        }))
    }

    fn soon(&self) -> Deadline {
        soon()
    }
}

#[test]
fn a_group_conforms_as_a_component() {
    conformance::component(Bench::new);
}

#[test]
fn in_virtual_time_a_stop_is_a_future_that_keeps_its_deadline() {
    let (clock, latch) = (VirtualClock::new(), Trigger::new());
    let worker = Worker::stuck(&latch);
    let group = Group::builder().member("stuck", worker.clone()).clock(&clock).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    let Stopping::Future(stop) = group.stop(Deadline::after(&clock, MINUTE), &reason()) else {
        panic!("it would block the thread that moves the time")
    };
    assert_eq!(clock.block_on(stop), Stopped::Overdue);
    assert_eq!(group.balance().to_string(), "accepted 1, abandoned 1");
    release(&latch);
}

#[test]
fn stragglers_are_the_members_that_run_with_the_place_where_they_were_added() {
    let latch = Trigger::new();
    let worker = Worker::stuck(&latch);
    let done = Worker::new(|_| Ok(()));
    let group = Group::builder().member("done", done).member("stuck", worker).build().unwrap();
    group.start().unwrap();
    while group.balance().to_string() != "accepted 2, completed 1, in flight 1" {
        std::thread::yield_now();
    }
    let stragglers = group.stragglers().to_string();
    assert!(stragglers.contains("\"stuck\" at ") && stragglers.contains("conforms.rs"), "{stragglers}");
    assert!(stragglers.contains("running for") && stragglers.contains(" on stuck"), "{stragglers}");
    release(&latch);
    assert!(group.ended().wait().is_clean());
    assert!(group.stragglers().is_empty());
}

#[test]
fn groups_nest_and_a_failure_inside_is_a_failure_of_the_inner_group() {
    let (latch, sibling, outer_sibling) = (Trigger::new(), Worker::idle(), Worker::idle());
    let failing = {
        let wait = until(&latch);
        Worker::new(move |stop| wait(stop).and(Err("out of stock".into())))
    };
    let inner =
        Group::builder().member("failing", failing).member("sibling", sibling.clone()).build().unwrap();
    let group =
        Group::builder().member("inner", inner).member("other", outer_sibling.clone()).build().unwrap();
    group.start().unwrap();
    sibling.is_up();
    outer_sibling.is_up();
    release(&latch);
    let outcomes = group.ended().wait();
    assert_eq!(endings(&outcomes), ["failed", "stopped"]);
    let Ending::Failed { error, .. } = &outcomes.get("inner").unwrap().ending else { unreachable!() };
    let unclean = error.downcast_ref::<Unclean>().unwrap();
    assert_eq!(endings(&unclean.outcomes), ["failed", "stopped"]);
    assert!(unclean.to_string().contains("out of stock"), "{unclean}");
    let Some(Reason::Failed { component, error }) = outcomes.reason() else { unreachable!() };
    assert!(&**component == "inner" && error.contains("out of stock"));
}

#[test]
fn a_run_as_a_runnable_is_an_error_if_a_member_was_left_behind() {
    let latch = Trigger::new();
    let worker = Worker::stuck(&latch);
    let group = Group::builder().member("stuck", worker.clone()).build().unwrap();
    let run = std::thread::spawn({
        let group = group.clone();
        move || Runnable::run(&group)
    });
    worker.is_up();
    assert_eq!(group.shutdown(soon(), &reason()), Stopped::Overdue);
    let error = run.join().unwrap().unwrap_err().to_string();
    assert!(error.starts_with("stuck: left behind"), "{error}");
    release(&latch);
}

#[test]
fn a_nested_group_is_stopped_with_the_outer_one() {
    let workers = [Worker::idle(), Worker::idle()];
    let inner = workers.iter().enumerate().fold(Group::builder(), |builder, (number, worker)| {
        builder.member(number.to_string(), worker.clone()).policy(Policy::LeaveSiblings)
    });
    let group = Group::builder().member("inner", inner.build().unwrap()).build().unwrap();
    group.start().unwrap();
    workers.iter().for_each(|worker| worker.is_up());
    assert_eq!(group.shutdown(far(), &reason()), Stopped::Clean);
    assert!(workers.iter().all(|worker| !worker.is_running()));
}
