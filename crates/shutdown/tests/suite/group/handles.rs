//! Handles: what dropping the last one does, and what may be called from where.

use std::{
    sync::{Arc, OnceLock, Weak, mpsc},
    thread,
};

use ebbtide_lifecycle::{
    Component, Reason, RunError, Runnable, Stopped, Trigger, time::Deadline, wait::block_on,
};
use ebbtide_shutdown::group::Group;

use super::{MINUTE, Worker, endings, far, reason, release, wait_for, wait_for_stop};

#[test]
fn s6_dropping_the_last_handle_stops_the_group_and_waits() {
    let (worker, told) = Worker::watched(wait_for_stop);
    let group = Group::builder().member("loop", worker.clone()).budget(MINUTE).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    let ended = group.ended();
    drop(group.clone());
    assert!(worker.is_running(), "there is another handle");
    drop(group);
    assert!(!worker.is_running());
    assert_eq!(told.recv().unwrap().1.to_string(), "requested: the last handle of the group was dropped");
    assert_eq!(endings(&ended.wait()), ["stopped"]);
}

#[test]
fn the_last_handle_waits_no_longer_than_the_budget() {
    let latch = Trigger::new();
    let worker = Worker::stuck(&latch);
    let builder = Group::builder().member("stuck", worker.clone());
    let group = builder.budget(std::time::Duration::from_millis(5)).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    let ended = group.ended();
    drop(group);
    assert!(worker.is_running());
    assert_eq!(endings(&ended.wait()), ["left behind"]);
    release(&latch);
}

#[test]
fn the_last_handle_dropped_by_a_member_stops_the_group_and_does_not_wait() {
    let (handle, take) = mpsc::channel::<Group>();
    let take = std::sync::Mutex::new(take);
    let worker = Worker::new(move |stop| {
        drop(take.lock().unwrap().recv().unwrap());
        wait_for_stop(stop)
    });
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    group.start().unwrap();
    let ended = group.ended();
    handle.send(group).unwrap();
    assert_eq!(endings(&ended.wait()), ["stopped"]);
}

#[test]
fn a_group_that_never_ran_is_dropped_with_its_members() {
    let worker = Worker::idle();
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    let (ended, token) = (group.ended(), group.token());
    drop(group);
    assert_eq!(Arc::strong_count(&worker), 1);
    assert_eq!(
        (endings(&ended.wait()), token.is_triggered()),
        (vec!["never ran"], true),
        "nobody waits in vain"
    );
}

#[test]
fn members_have_been_dropped_when_the_run_has_ended() {
    for _ in 0..20 {
        let worker = Worker::idle();
        let group = Group::builder().member("loop", worker.clone()).build().unwrap();
        group.start().unwrap();
        worker.is_up();
        group.shutdown(far(), &reason());
        assert_eq!(Arc::strong_count(&worker), 1);
    }
}

#[test]
fn the_end_can_be_awaited() {
    let group = Group::builder().member("short", Worker::new(|_| Ok(()))).build().unwrap();
    group.start().unwrap();
    assert_eq!(endings(&block_on(group.ended())), ["finished"]);
    let group = Group::builder().member("loop", Worker::idle()).build().unwrap();
    let waiter = thread::spawn({
        let ended = group.ended();
        move || ended.wait()
    });
    group.shutdown(far(), &reason());
    assert_eq!(endings(&waiter.join().unwrap()), ["never ran"], "also if there will be no run");
}

/// Asks its group about everything, wherever it is called: that hangs if the group holds a lock meanwhile.
struct Nosy {
    worker: Arc<Worker>,
    group: Arc<OnceLock<Weak<Group>>>,
}

impl Nosy {
    fn ask(&self) {
        let Some(group) = wait_for(&self.group).upgrade() else { return };
        let _ = (group.outcomes(), group.balance(), group.stragglers(), group.state());
        let _ = group.shutdown(Deadline::never(), &reason());
    }
}

impl Runnable for Nosy {
    fn run(&self) -> Result<(), RunError> {
        self.ask();
        self.worker.run()
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        self.ask();
        self.worker.shutdown(deadline, reason)
    }

    fn is_running(&self) -> bool {
        self.worker.is_running()
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        self.ask();
    }
}

#[test]
fn a_member_may_ask_its_group_anything_from_wherever_it_is_called() {
    let own = Arc::new(OnceLock::new());
    let nosy = || Nosy { worker: Worker::idle(), group: own.clone() };
    let group = Group::builder().member("a", nosy()).member("b", nosy()).build().unwrap();
    let group = Arc::new(group);
    own.set(Arc::downgrade(&group)).unwrap();
    assert!(Group::run(&group).unwrap().is_clean());
}
