//! Where members run, and what happens where there is no thread for them.

use std::{
    io,
    sync::{Arc, Mutex, mpsc},
    thread,
};

use ebbtide_lifecycle::{Component, Reason, Stopped, time::Deadline};
use ebbtide_shutdown::group::{Ending, Group, Job, Policy, StartError};

use super::{Worker, endings, far, reason, wait_for_stop};

/// A stack that no system has room for: there is no thread to be had.
const STACK_TOO_LARGE: usize = 1 << 60;

/// A spawner that sends the jobs there.
pub(super) fn to(jobs: mpsc::Sender<Job>) -> impl Fn(Job) -> io::Result<()> + Send + Sync {
    move |job| jobs.send(job).map_err(|_| io::Error::other("nobody runs jobs"))
}

#[test]
fn each_member_has_a_thread_of_its_own_with_its_name() {
    let (names, seen) = mpsc::channel();
    let worker = || {
        let names = Mutex::new(names.clone());
        Worker::new(move |_| {
            names.lock().unwrap().send(thread::current().name().map(str::to_owned)).unwrap();
            Ok(())
        })
    };
    let group = Group::builder().member("orders", worker()).member("ma\0ils", worker()).build().unwrap();
    assert!(group.run().unwrap().is_clean());
    let mut seen = [seen.recv().unwrap().unwrap(), seen.recv().unwrap().unwrap()];
    seen.sort();
    assert_eq!(seen, ["ma ils", "orders"]);
}

#[test]
fn members_run_where_the_spawner_puts_them() {
    let (jobs, pool) = mpsc::channel::<Job>();
    let pool = thread::Builder::new().name("pool".into()).spawn(move || pool.iter().for_each(|job| job()));
    let script = |_| {
        assert_eq!(thread::current().name(), Some("pool"));
        Ok(())
    };
    let group = Group::builder()
        .member("a", Worker::new(script))
        .member("b", Worker::new(script))
        .spawn_with(to(jobs))
        .build()
        .unwrap();
    assert_eq!(endings(&group.run().unwrap()), ["finished", "finished"]);
    drop(group);
    pool.unwrap().join().unwrap();
}

/// A group whose second job meets `refuse`; the others get threads.
fn refusing(policy: Policy, refuse: impl Fn(Job) -> io::Result<()> + Send + Sync + 'static) -> Group {
    let handed = Mutex::new(0);
    let spawn = move |job: Job| {
        let mut handed = handed.lock().unwrap();
        *handed += 1;
        if *handed == 2 {
            drop(handed);
            return refuse(job);
        }
        thread::spawn(job);
        Ok(())
    };
    let short = Worker::new(|_| Ok(()));
    let first = if policy == Policy::StopSiblings { Worker::idle() } else { short };
    let builder = Group::builder().member("first", first).member("second", Worker::idle());
    builder.policy(policy).spawn_with(spawn).build().unwrap()
}

#[test]
fn s6_a_member_that_cannot_be_started_stops_its_siblings() {
    type Refuse = fn(Job) -> io::Result<()>;
    let ways: [(Refuse, &str); 3] = [
        (|_| Err(io::Error::other("the pool is full")), "the pool is full"),
        (|_| Ok(()), "its job was dropped without being run"),
        (|_| panic!("no pool"), "it panicked: no pool"),
    ];
    for (refuse, why) in ways {
        let group = refusing(Policy::StopSiblings, refuse);
        let outcomes = group.run().unwrap();
        assert!(!outcomes.is_clean());
        // The first may not have begun by then.
        assert!(matches!(endings(&outcomes)[..], ["stopped" | "never ran", "not started"]), "{outcomes}");
        let Ending::NotStarted(error) = &outcomes.get("second").unwrap().ending else { unreachable!() };
        assert_eq!(error.to_string(), why);
        assert_eq!(outcomes.reason(), Some(&Reason::failed("second", &why)));
        assert_eq!(
            endings(&refusing(Policy::LeaveSiblings, refuse).run().unwrap()),
            ["finished", "not started"]
        );
    }
}

#[test]
fn a_job_that_is_dropped_later_is_a_member_that_was_not_started() {
    let (keep, kept) = mpsc::channel();
    let group = refusing(Policy::StopSiblings, to(keep));
    group.start().unwrap();
    while group.stragglers().is_empty() {
        thread::yield_now();
    }
    drop(kept.recv().unwrap());
    assert_eq!(endings(&group.ended().wait()), ["stopped", "not started"]);
    assert_eq!(group.balance().to_string(), "accepted 1, completed 1, refused 1");
}

#[test]
fn a_job_that_still_waits_for_a_thread_at_the_stop_never_runs() {
    let (keep, kept) = mpsc::channel();
    let worker = Worker::idle();
    let builder = Group::builder().member("queued", worker.clone());
    let group = builder.spawn_with(to(keep)).build().unwrap();
    group.start().unwrap();
    let job = kept.recv().unwrap();
    assert_eq!(group.shutdown(Deadline::never(), &reason()), Stopped::Clean);
    assert_eq!(endings(&group.outcomes().unwrap()), ["never ran"]);
    job();
    assert_eq!(endings(&group.outcomes().unwrap()), ["never ran"]);
    assert_eq!(worker.life.state(), ebbtide_lifecycle::State::Idle);
    assert_eq!(Arc::strong_count(&worker), 1);
}

#[test]
fn where_the_system_has_no_threads_nothing_hangs() {
    let builder = Group::builder().member("a", Worker::idle()).member("b", Worker::idle());
    let group = builder.stack_size(STACK_TOO_LARGE).build().unwrap();
    let outcomes = group.run().unwrap();
    assert_eq!(endings(&outcomes), ["not started", "never ran"], "{outcomes}");

    let group = Group::builder().member("a", Worker::idle()).stack_size(STACK_TOO_LARGE).build().unwrap();
    assert!(matches!(group.start(), Err(StartError::Thread(_))));
    assert_eq!(endings(&group.ended().wait()), ["never ran"]);
    assert!(group.run().is_err());
}

/// Members get threads, but nobody who tells them to stop does.
fn without_tellers(workers: [Arc<Worker>; 2]) -> Group {
    let [a, b] = workers;
    let spawn = |job| {
        thread::spawn(job);
        Ok(())
    };
    let builder = Group::builder().member("a", a).member("b", b).stack_size(STACK_TOO_LARGE);
    builder.spawn_with(spawn).build().unwrap()
}

#[test]
fn where_there_are_no_threads_to_tell_them_members_are_told_in_turn() {
    let (workers, told): (Vec<_>, Vec<_>) = (0..2).map(|_| Worker::watched(wait_for_stop)).unzip();
    let group = without_tellers([workers[0].clone(), workers[1].clone()]);
    let run = super::run(&group);
    workers.iter().for_each(|worker| worker.is_up());
    let deadline = far();
    assert_eq!(group.stop(deadline, &reason()).wait(), Stopped::Clean);
    assert!(told.iter().all(|told| told.recv().unwrap().0 == deadline), "with what is left of the time");
    assert!(run.join().unwrap().unwrap().is_clean());
}

#[test]
fn a_member_without_threads_to_tell_its_siblings_does_so_itself_and_does_not_wait() {
    let own = Arc::new(std::sync::OnceLock::<Group>::new());
    let (sibling, told) = Worker::watched(wait_for_stop);
    let quitter = Worker::new({
        let own = own.clone();
        move |stop| {
            let _ = super::wait_for(&own).shutdown(Deadline::never(), &reason());
            wait_for_stop(stop)
        }
    });
    let group = without_tellers([quitter, sibling.clone()]);
    let run = super::run(&group);
    sibling.is_up();
    own.set(group).unwrap();
    assert_ne!(told.recv().unwrap().0, Deadline::never(), "there is no time to wait");
    assert!(run.join().unwrap().unwrap().is_clean());
}
