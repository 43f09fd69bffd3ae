//! How a group stops.

use std::{
    sync::{
        Arc, Barrier, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Reason, RunError, Runnable, State, Stopped, Trigger,
    time::{Clock, Deadline, SystemClock, Timer, VirtualClock},
};
use ebbtide_shutdown::group::{Ending, Group};

use super::{MINUTE, Worker, endings, far, reason, release, run, soon, wait_for, wait_for_stop};

#[test]
fn s6_all_are_told_before_any_has_ended() {
    let all_told = Arc::new(Barrier::new(3));
    let worker = || {
        let all_told = all_told.clone();
        Worker::new(move |stop| {
            wait_for_stop(stop)?;
            all_told.wait();
            Ok(())
        })
    };
    let workers = [worker(), worker(), worker()];
    let members = workers.iter().enumerate();
    let builder =
        members.fold(Group::builder(), |builder, (n, worker)| builder.member(n.to_string(), worker.clone()));
    let group = builder.build().unwrap();
    group.start().unwrap();
    workers.iter().for_each(|worker| worker.is_up());
    // Told one after the other, the first would wait for the others until the deadline.
    assert_eq!(group.shutdown(far(), &reason()), Stopped::Clean);
}

#[test]
fn s6_all_share_one_deadline_and_those_left_behind_are_named() {
    let (clock, latch) = (VirtualClock::new(), Trigger::new());
    let workers = [Worker::stuck(&latch), Worker::stuck(&latch), Worker::stuck(&latch)];
    let members = workers.iter().enumerate();
    let builder = members.fold(Group::builder().clock(&clock), |builder, (n, worker)| {
        builder.member(format!("stuck {n}"), worker.clone())
    });
    let group = builder.build().unwrap();
    let run = run(&group);
    workers.iter().for_each(|worker| worker.is_up());
    let start = clock.now();
    assert_eq!(group.shutdown(Deadline::after(&clock, MINUTE), &reason()), Stopped::Overdue);
    let outcomes = run.join().unwrap().unwrap();
    assert_eq!(clock.now() - start, MINUTE + Duration::from_millis(100), "a deadline and a grace");
    assert_eq!((endings(&outcomes), outcomes.is_clean()), (vec!["left behind"; 3], false));
    let told_for = clock.now() - start;
    assert!(outcomes.iter().all(
        |fate| matches!(fate.ending, Ending::LeftBehind { told_for: for_long } if for_long == told_for)
    ));
    assert!(
        outcomes.to_string().contains("\n  stuck 2: left behind, still running 60.1s after"),
        "{outcomes}"
    );
    assert_eq!((group.stragglers().len(), group.balance().abandoned), (3, 3));
    release(&latch);
    while !group.stragglers().is_empty() {
        thread::yield_now();
    }
    assert_eq!(group.balance().to_string(), "accepted 3, abandoned 3, returned after 3");
    assert_eq!(endings(&group.outcomes().unwrap()), ["left behind"; 3], "the run was over by then");
}

#[test]
fn s6_a_shutdown_before_the_run_sticks() {
    let (worker, told) = Worker::watched(wait_for_stop);
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    assert_eq!(group.shutdown(Deadline::never(), &reason()), Stopped::Clean);
    assert_eq!(group.state(), State::Stopped);
    let outcomes = group.run().unwrap();
    assert_eq!((endings(&outcomes), outcomes.is_clean()), (vec!["never ran"], true));
    assert_eq!(outcomes.reason(), Some(&reason()));
    assert_eq!(worker.life.state(), State::Idle, "nobody ran it");
    assert!(told.try_recv().is_err(), "nobody told it");
    assert!(group.run().is_err(), "a run happens once, also one that runs nobody");
    assert_eq!(group.balance().to_string(), "accepted 0, refused 1");
}

#[test]
fn s6_every_shutdown_caller_waits() {
    let (latch, released) = (Trigger::new(), Arc::new(AtomicBool::new(false)));
    let worker = Worker::stuck(&latch);
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    let called = Arc::new(Barrier::new(4));
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let (group, released, called) = (group.clone(), released.clone(), called.clone());
            thread::spawn(move || {
                called.wait();
                let stopped = group.shutdown(far(), &reason());
                (stopped, released.load(Ordering::SeqCst), group.is_running())
            })
        })
        .collect();
    called.wait();
    group.token().triggered().wait();
    for _ in 0..1000 {
        thread::yield_now();
    }
    released.store(true, Ordering::SeqCst);
    release(&latch);
    for caller in callers {
        assert_eq!(caller.join().unwrap(), (Stopped::Clean, true, false));
    }
}

#[test]
fn s6_a_cap_bounds_its_member_within_the_one_deadline() {
    let (clock, latch) = (VirtualClock::new(), Trigger::new());
    let (capped, capped_told) = Worker::watched(super::until(&latch));
    let (other, other_told) = Worker::watched(wait_for_stop);
    let (lax, lax_told) = Worker::watched(wait_for_stop);
    let group = Group::builder()
        .capped_member("capped", MINUTE, capped.clone())
        .member("other", other.clone())
        .capped_member("lax", 60 * MINUTE, lax.clone())
        .clock(&clock)
        .build()
        .unwrap();
    let run = run(&group);
    [&capped, &other, &lax].iter().for_each(|worker| worker.is_up());
    let (start, hold) = (clock.now(), clock.hold());
    let shutdown = thread::spawn({
        let (group, clock) = (group.clone(), clock.clone());
        move || group.shutdown(Deadline::after(&clock, 10 * MINUTE), &reason())
    });
    assert_eq!(capped_told.recv().unwrap().0, Deadline::at(start + MINUTE));
    assert_eq!(other_told.recv().unwrap().0, Deadline::at(start + 10 * MINUTE));
    assert_eq!(lax_told.recv().unwrap().0, Deadline::at(start + 10 * MINUTE), "a cap gives no more time");
    while group.stragglers().len() > 1 {
        thread::yield_now();
    }
    drop(hold);
    assert_eq!(shutdown.join().unwrap(), Stopped::Overdue);
    assert_eq!(endings(&run.join().unwrap().unwrap()), ["left behind", "stopped", "stopped"]);
    assert!(clock.now() - start < 2 * MINUTE, "nobody waits for who was given up on");
    release(&latch);
}

#[test]
fn a_cap_counts_from_the_first_call_also_when_a_later_one_brings_the_deadline_forward() {
    let (clock, latch) = (VirtualClock::new(), Trigger::new());
    let (capped, told) = Worker::watched(super::until(&latch));
    let builder = Group::builder().capped_member("capped", MINUTE, capped.clone());
    let group = builder.clock(&clock).build().unwrap();
    group.start().unwrap();
    capped.is_up();
    let (start, _hold) = (clock.now(), clock.hold());
    let patient = group.stop(Deadline::never(), &reason());
    assert_eq!(told.recv().unwrap().0, Deadline::at(start + MINUTE));
    clock.advance(MINUTE / 2);
    let hasty = group.stop(Deadline::at(start + 10 * MINUTE), &reason());
    assert_eq!(told.recv().unwrap().0, Deadline::at(start + MINUTE), "half of its minute is gone");
    release(&latch);
    for stopping in [patient, hasty] {
        assert_eq!(stopping.wait(), Stopped::Clean);
    }
}

#[test]
fn a_member_that_was_given_up_on_takes_no_time_from_the_others() {
    let (clock, stuck, slow) = (VirtualClock::new(), Trigger::new(), Trigger::new());
    let workers = [Worker::stuck(&stuck), Worker::stuck(&slow)];
    let group = Group::builder()
        .capped_member("stuck", MINUTE, workers[0].clone())
        .member("slow", workers[1].clone())
        .clock(&clock)
        .build()
        .unwrap();
    group.start().unwrap();
    workers.iter().for_each(|worker| worker.is_up());
    let deadline = Deadline::after(&clock, 10 * MINUTE);
    let timer = thread::spawn({
        let (clock, group, hold) = (clock.clone(), group.clone(), clock.hold());
        move || {
            clock.block_on(async {
                group.token().triggered().wait();
                drop(hold);
                clock.sleep_until(clock.now() + 5 * MINUTE).await;
                release(&slow);
                while group.stragglers().len() > 1 {
                    thread::yield_now();
                }
            });
        }
    });
    assert_eq!(group.shutdown(deadline, &reason()), Stopped::Overdue);
    timer.join().unwrap();
    assert_eq!(endings(&group.ended().wait()), ["left behind", "stopped"]);
    assert_eq!(group.balance().to_string(), "accepted 2, completed 1, abandoned 1");
    release(&stuck);
}

#[test]
fn a_later_call_with_less_time_brings_the_deadline_forward_for_all() {
    let latch = Trigger::new();
    let (worker, told) = Worker::watched(super::until(&latch));
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    let run = run(&group);
    worker.is_up();
    let patient = thread::spawn({
        let group = group.clone();
        move || group.shutdown(Deadline::never(), &reason())
    });
    assert_eq!(told.recv().unwrap(), (Deadline::never(), reason()));
    let deadline = soon();
    assert_eq!(group.shutdown(deadline, &Reason::Signal(2)), Stopped::Overdue);
    assert_eq!(told.recv().unwrap(), (deadline, reason()), "the first reason counts");
    assert_eq!(patient.join().unwrap(), Stopped::Overdue, "it waits no longer than the group does");
    let outcomes = run.join().unwrap().unwrap();
    assert_eq!((endings(&outcomes), outcomes.reason()), (vec!["left behind"], Some(&reason())));
    assert_eq!(group.shutdown(far(), &reason()), Stopped::Overdue, "also when asked later");
    release(&latch);
}

#[test]
fn a_later_call_with_more_time_changes_nothing() {
    let latch = Trigger::new();
    let (worker, told) = Worker::watched(super::until(&latch));
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    let deadline = far();
    let stops = [group.stop(deadline, &reason()), group.stop(Deadline::never(), &Reason::Signal(2))];
    release(&latch);
    assert!(stops.into_iter().all(|stopping| stopping.wait() == Stopped::Clean));
    // The run has ended, and so has whoever told it.
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [(deadline, reason())]);
    assert_eq!(group.outcomes().unwrap().reason(), Some(&reason()));
}

#[test]
fn who_ends_within_the_grace_is_late_and_not_left_behind() {
    let (clock, latch) = (VirtualClock::new(), Trigger::new());
    let worker = Worker::stuck(&latch);
    let group = Group::builder().member("tardy", worker.clone()).clock(&clock).build().unwrap();
    let run = run(&group);
    worker.is_up();
    let (late, deadline, hold) = (Duration::from_millis(50), clock.now() + MINUTE, clock.hold());
    let timer = thread::spawn({
        let (clock, group) = (clock.clone(), group.clone());
        move || {
            clock.block_on(async {
                group.token().triggered().wait();
                drop(hold);
                clock.sleep_until(deadline + late).await;
                // Time stands still until this thread waits again.
                release(&latch);
                while !group.stragglers().is_empty() {
                    thread::yield_now();
                }
            });
        }
    });
    let shutdown = thread::spawn({
        let group = group.clone();
        move || group.shutdown(Deadline::at(deadline), &reason())
    });
    assert_eq!(shutdown.join().unwrap(), Stopped::Overdue);
    timer.join().unwrap();
    let outcomes = run.join().unwrap().unwrap();
    assert_eq!((endings(&outcomes), outcomes.is_clean()), (vec!["stopped"], false));
    assert_eq!(outcomes.get("tardy").unwrap().late, Some(late));
    assert_eq!(group.balance().to_string(), "accepted 1, abandoned 1, returned after 1");
}

#[test]
fn a_member_that_shuts_its_group_down_does_not_wait_for_itself() {
    let (own, stopped) = (Arc::new(OnceLock::<Group>::new()), mpsc::sync_channel(1));
    let (report, is_stopped) = stopped;
    let quitter = Worker::new({
        let own = own.clone();
        move |stop| {
            report.send(wait_for(&own).shutdown(Deadline::never(), &reason())).unwrap();
            wait_for_stop(stop)
        }
    });
    let (sibling, told) = Worker::watched(wait_for_stop);
    let group =
        Group::builder().member("quitter", quitter).member("sibling", sibling.clone()).build().unwrap();
    group.start().unwrap();
    sibling.is_up();
    own.set(group.clone()).unwrap();
    assert_eq!(is_stopped.recv().unwrap(), Stopped::Overdue, "it cannot know");
    assert_eq!(told.recv().unwrap().1, reason());
    assert_eq!(endings(&group.ended().wait()), ["stopped", "stopped"]);
}

#[test]
fn a_member_of_a_nested_group_that_shuts_the_outer_one_down_does_not_wait_for_itself() {
    let own = Arc::new(OnceLock::<Group>::new());
    let quitter = Worker::new({
        let own = own.clone();
        move |stop| {
            assert_eq!(wait_for(&own).shutdown(Deadline::never(), &reason()), Stopped::Overdue);
            wait_for_stop(stop)
        }
    });
    let inner = Group::builder().member("quitter", quitter).build().unwrap();
    let group = Group::builder().member("inner", inner).build().unwrap();
    own.set(group.clone()).unwrap();
    assert_eq!(endings(&group.run().unwrap()), ["stopped"]);
}

#[test]
fn the_token_fires_with_the_reason_of_the_stop_and_also_at_an_end_without_one() {
    let worker = Worker::idle();
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    assert!(!group.token().is_triggered());
    group.shutdown(far(), &Reason::Signal(15));
    assert_eq!(group.token().reason(), Some(&Reason::Signal(15)));

    let group = Group::builder().member("short", Worker::new(|_| Ok(()))).build().unwrap();
    assert_eq!(group.run().unwrap().reason(), None);
    assert!(group.token().is_triggered());
}

/// Its `shutdown` does not return before the latch is fired, although its run has ended.
struct Sticky {
    worker: Arc<Worker>,
    latch: Trigger,
}

impl Runnable for Sticky {
    fn run(&self) -> Result<(), RunError> {
        self.worker.run()
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        let stopped = self.worker.shutdown(deadline, reason);
        self.latch.token().triggered().wait();
        stopped
    }

    fn is_running(&self) -> bool {
        self.worker.is_running()
    }
}

#[test]
fn a_members_shutdown_that_does_not_return_holds_up_nobody() {
    let (second, half) = (Duration::from_secs(1), Duration::from_millis(500));
    for (time, waited) in [(MINUTE, second), (half, half + Duration::from_millis(100))] {
        let (clock, latch, worker) = (VirtualClock::new(), Trigger::new(), Worker::idle());
        let sticky = Sticky { worker: worker.clone(), latch: latch.clone() };
        let group = Group::builder().member("sticky", sticky).clock(&clock).build().unwrap();
        group.start().unwrap();
        worker.is_up();
        let (start, hold) = (clock.now(), clock.hold());
        let shutdown = thread::spawn({
            let group = group.clone();
            move || group.shutdown(Deadline::at(start + time), &reason())
        });
        while !group.stragglers().is_empty() {
            thread::yield_now();
        }
        drop(hold);
        assert_eq!(shutdown.join().unwrap(), Stopped::Clean, "all members have ended");
        assert!(group.ended().wait().is_clean());
        assert_eq!(clock.now() - start, waited);
        release(&latch);
    }
}

#[test]
fn a_deadline_that_has_passed_gives_up_at_once() {
    let latch = Trigger::new();
    let worker = Worker::stuck(&latch);
    let group = Group::builder().member("stuck", worker.clone()).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    assert_eq!(group.shutdown(Deadline::at(SystemClock.now()), &reason()), Stopped::Overdue);
    release(&latch);
}
