//! Timeouts that let what is too late go on.

use std::{
    cell::Cell,
    future::{pending, poll_fn, ready},
    pin::pin,
    rc::Rc,
    sync::{Arc, mpsc},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{Component, Trigger, blame::Origin, time::VirtualClock};
use ebbtide_reactor::{Handle, Local, Runtime, sleep, sleep_until, spawn, yield_now};
use ebbtide_timeout::{Clock, Deadline, Elapsed, LocalRunners, Runners, timeout};

use super::{Armed, Bomb, Calls, Canaries, Counted, MINUTE, bomb};

/// A loop in virtual time, with runners.
fn runtime() -> (Runtime, Runners<Handle>) {
    let runtime = Runtime::builder().clock(&VirtualClock::new()).runtime();
    let runners = Runners::new(&runtime.handle(), runtime.handle()).unwrap();
    (runtime, runners)
}

#[test]
fn what_ends_in_time_is_given_and_nobody_is_late() {
    let (mut runtime, runners) = runtime();
    runtime.block_on(async {
        assert_eq!(runners.timeout(MINUTE, ready(1)).await, Ok(1));
        assert_eq!(runners.timeout(2 * MINUTE, async { sleep(MINUTE).await }).await, Ok(()));
        assert_eq!(runners.timeout_at(Deadline::never(), ready(2)).await, Ok(2));
    });
    assert_eq!(runners.balance().accepted, 0);
}

#[test]
fn t2_what_is_too_late_goes_on_and_counts_as_late_with_its_age() {
    let (mut runtime, runners) = runtime();
    runtime.block_on(async {
        let (sender, receiver) = mpsc::channel();
        let late = runners.timeout(MINUTE, async move {
            sleep(3 * MINUTE).await;
            sender.send(()).unwrap();
        });
        assert_eq!(late.await, Err(Elapsed));
        assert_eq!((runners.in_flight(), receiver.try_recv()), (1, Err(mpsc::TryRecvError::Empty)));
        runners.wait_idle().await;
        receiver.try_recv().unwrap();
    });
    let (balance, lateness) = (runners.balance(), runners.lateness());
    balance.check().unwrap();
    assert_eq!((balance.completed, balance.late, balance.in_flight), (1, 1, 0));
    assert_eq!((lateness.ended, lateness.longest, lateness.total), (1, 2 * MINUTE, 2 * MINUTE));
}

#[test]
fn t5_after_a_late_end_everything_it_held_has_been_dropped() {
    let (mut runtime, runners) = runtime();
    let canaries = Canaries::default();
    runtime.block_on(async {
        for _ in 0..10 {
            let (held, given) = (canaries.hatch(), canaries.hatch());
            let late = runners.timeout(MINUTE, async move {
                let _held = held;
                sleep(2 * MINUTE).await;
                given
            });
            assert!(late.await.is_err());
        }
        assert!(canaries.alive() > 0, "the last is still running");
        runners.wait_idle().await;
        assert_eq!(canaries.alive(), 0);
    });
}

#[test]
fn late_runners_are_named_with_their_age() {
    let (mut runtime, runners) = runtime();
    runtime.block_on(async {
        let late = runners.timeout(MINUTE, async { sleep(5 * MINUTE).await }).named("slow query");
        assert!(late.await.is_err());
        sleep(MINUTE).await;
        let report = runners.stragglers().to_string();
        assert!(report.contains("\"slow query\" at ") && report.contains("detach.rs"), "{report}");
        assert!(report.contains("60"), "a minute late: {report}");
        runners.wait_idle().await;
        assert!(runners.stragglers().is_empty());
    });
}

#[test]
fn lateness_counts_from_the_deadline_also_when_it_is_seen_later() {
    let clock = VirtualClock::new();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    let runners = Runners::new(&runtime.handle(), runtime.handle()).unwrap();
    runtime.block_on(async {
        let (start, deadline) = (clock.now(), Deadline::after(&clock, MINUTE));
        let slow = || sleep_until(start + 10 * MINUTE);
        let mut within = pin!(runners.timeout(MINUTE, slow()));
        let mut by = pin!(runners.timeout_at(deadline, slow()));
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(within.as_mut().poll(cx).is_pending() && by.as_mut().poll(cx).is_pending());
        // Whoever waits is busy elsewhere until long after the deadline.
        clock.advance(5 * MINUTE);
        assert_eq!((within.await, by.await), (Err(Elapsed), Err(Elapsed)));
        assert!(runners.stragglers().iter().all(|straggler| straggler.age == 4 * MINUTE));
        runners.wait_idle().await;
    });
    assert_eq!((runners.lateness().longest, runners.lateness().total), (9 * MINUTE, 18 * MINUTE));
}

#[test]
fn a_future_that_panics_in_its_drop_has_ended_or_lost_all_the_same() {
    let (mut runtime, runners) = runtime();
    runtime.block_on(async {
        assert_eq!(runners.timeout(Duration::ZERO, bomb()).await, Err(Elapsed));
        assert_eq!(runners.timeout(MINUTE, Armed::ready(7)).await, Ok(7));
    });
    assert_eq!(runners.balance().accepted, 0);
}

#[test]
fn late_runners_that_follow_each_other_let_others_go_first() {
    let (mut runtime, runners) = runtime();
    runtime.block_on(async {
        // Each brings the next one when it ends.
        fn chain(runners: &Runners<Handle>) {
            let next = runners.clone();
            runners.adopt(
                Box::pin(async move {
                    if !next.is_closed() {
                        chain(&next);
                    }
                }),
                Origin::here(),
            );
        }
        chain(&runners);
        yield_now().await;
        yield_now().await;
        runners.close();
        runners.wait_idle().await;
    });
    assert!(runners.balance().is_balanced());
}

#[test]
fn t1_a_deadline_that_has_passed_starts_nothing_and_nothing_is_late() {
    let (mut runtime, runners) = runtime();
    runtime.block_on(async {
        let unpolled = || poll_fn(|_| -> Poll<()> { unreachable!("it had no time") });
        assert_eq!(runners.timeout(Duration::ZERO, unpolled()).await, Err(Elapsed));
        let now = Deadline::at(ebbtide_reactor::now());
        assert_eq!(runners.timeout_at(now, unpolled()).await, Err(Elapsed));
    });
    assert_eq!(runners.balance().accepted, 0);
}

#[test]
fn t3_detaching_is_not_refused_while_the_loop_drains() {
    let (mut runtime, runners) = runtime();
    let tracker = runners.tracker().clone();
    let handle = runtime.handle();
    runtime.block_on(async move {
        spawn(async move {
            assert_eq!(runners.timeout(MINUTE, async { sleep(3 * MINUTE).await }).await, Err(Elapsed));
        })
        .unwrap()
        .detach();
        yield_now().await;
    });
    // Intake is closed, and the timeout comes while the loop drains.
    runtime.shutdown_quiesce(10 * MINUTE).unwrap();
    assert!(handle.post(|| ()).is_err());
    let balance = tracker.balance();
    assert_eq!((balance.accepted, balance.late), (1, 1));
}

#[test]
fn t3_what_is_detached_after_the_driver_has_gone_is_dropped_and_counted() {
    let clock = VirtualClock::new();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    let runners = Runners::new(&runtime.handle(), clock.clone()).unwrap();
    let canaries = Canaries::default();
    let canary = canaries.hatch();
    let held = async move {
        let _canary = canary;
        pending::<()>().await;
    };
    let orphan = runners.timeout(MINUTE, held);
    runtime.block_on(async {
        assert!(runners.timeout(MINUTE, pending::<()>()).await.is_err());
    });
    drop(runtime);
    assert_eq!(runners.balance().cancelled, 1, "dropped with the loop");
    assert_eq!(clock.block_on(orphan), Err(Elapsed));
    assert_eq!((runners.balance().cancelled, canaries.alive()), (2, 0));
    runners.balance().check().unwrap();
    assert_eq!(runners.lateness().ended, 0);
}

#[test]
fn a_timeout_that_is_dropped_takes_its_future_with_it() {
    let (mut runtime, runners) = runtime();
    let canaries = Canaries::default();
    let canary = canaries.hatch();
    runtime.block_on(async {
        let late = runners.timeout(2 * MINUTE, async move {
            let _canary = canary;
            pending::<()>().await;
        });
        assert!(timeout(Local, MINUTE, late).await.is_err());
        assert_eq!(canaries.alive(), 0);
    });
    assert_eq!(runners.balance().accepted, 0);
}

#[test]
fn a_late_runner_that_panics_has_failed_and_the_others_go_on() {
    let (mut runtime, runners) = runtime();
    runtime.block_on(async {
        let panics = runners.timeout(MINUTE, async {
            sleep(2 * MINUTE).await;
            panic!("late, and bad");
        });
        assert!(panics.await.is_err());
        let bomb = runners.timeout(MINUTE, async {
            sleep(2 * MINUTE).await;
            Bomb
        });
        assert!(bomb.await.is_err());
        assert!(runners.timeout(MINUTE, async { sleep(2 * MINUTE).await }).await.is_err());
        runners.wait_idle().await;
    });
    let balance = runners.balance();
    balance.check().unwrap();
    assert_eq!((balance.failed, balance.late), (2, 1), "a panic in the drop of an output is a failure, too");
}

#[test]
fn runners_may_hold_what_stays_on_its_thread() {
    let mut runtime = Runtime::builder().clock(&VirtualClock::new()).runtime();
    let seen = Rc::new(Cell::new(0));
    let counted = seen.clone();
    let tracker = runtime.block_on(async {
        let runners = LocalRunners::new_local(&Local, Local).unwrap();
        let late = runners.timeout(MINUTE, async move {
            sleep(2 * MINUTE).await;
            counted.set(counted.get() + 1);
        });
        assert!(late.await.is_err());
        runners.wait_idle().await;
        runners.tracker().clone()
    });
    assert_eq!(seen.get(), 1);
    thread::spawn(move || assert_eq!(tracker.ledger().balance(0).late, 1)).join().unwrap();
}

#[test]
fn the_driver_ends_when_nobody_is_left_who_could_detach_anything() {
    let (mut runtime, runners) = runtime();
    let waits = runners.timeout(MINUTE, async { sleep(2 * MINUTE).await });
    drop(runners);
    runtime.block_on(async {
        spawn(waits).unwrap().detach();
        yield_now().await;
    });
    // Else the driver would still be there.
    runtime.shutdown_quiesce(10 * MINUTE).unwrap();
}

#[test]
fn closed_runners_end_their_driver_when_they_are_idle() {
    let (mut runtime, runners) = runtime();
    runners.close();
    runtime.shutdown_quiesce(MINUTE).unwrap();
    assert_eq!(runners.in_flight(), 0);
}

#[test]
fn no_waker_of_the_waiter_stays_with_a_late_runner() {
    let clock = VirtualClock::new();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    let runners = Runners::new(&runtime.handle(), clock.clone()).unwrap();
    let (trigger, counted) = (Trigger::new(), Arc::new(Counted));
    let waker = Waker::from(counted.clone());
    let mut late = pin!(runners.timeout(MINUTE, trigger.token().triggered()));
    assert!(late.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    clock.advance(MINUTE);
    assert!(late.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    runtime.block_on(yield_now());
    assert_eq!(Arc::strong_count(&counted), 2, "the driver has put its own in place");
    trigger.fire(ebbtide_lifecycle::Reason::requested("test"));
    runtime.block_on(runners.wait_idle());
}

#[test]
fn who_waits_for_late_runners_is_woken_by_the_last_of_them_and_not_before() {
    let clock = VirtualClock::new();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    let runners = Runners::new(&runtime.handle(), clock.clone()).unwrap();
    let triggers = [Trigger::new(), Trigger::new()];
    for trigger in &triggers {
        let mut late = pin!(runners.timeout(MINUTE, trigger.token().triggered()));
        assert!(late.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        clock.advance(MINUTE);
        assert!(late.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    let (calls, mut idle) = (Arc::new(Calls::default()), pin!(runners.wait_idle()));
    let waker = Waker::from(calls.clone());
    assert!(idle.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    for (trigger, left) in triggers.iter().zip([1, 0]) {
        trigger.fire(ebbtide_lifecycle::Reason::requested("test"));
        runtime.block_on(async {
            while runners.in_flight() > left {
                yield_now().await;
            }
        });
        assert_eq!(calls.count(), 1 - left, "{left} left");
    }
    assert!(idle.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

#[test]
fn detaching_costs_one_allocation_more_than_cancelling() {
    const TIMES: u64 = 100;
    async fn work() {
        yield_now().await;
        yield_now().await;
    }
    let (mut runtime, runners) = runtime();
    let mut cancelling = || {
        runtime.block_on(async {
            for _ in 0..TIMES {
                timeout(Local, MINUTE, work()).await.unwrap();
            }
        });
    };
    // Once for what is allocated the first time.
    cancelling();
    let cancelling = allocation_counter::measure(cancelling).count_total;
    let detaching = allocation_counter::measure(|| {
        runtime.block_on(async {
            for _ in 0..TIMES {
                runners.timeout(MINUTE, work()).await.unwrap();
            }
        });
    });
    assert_eq!(detaching.count_total, cancelling + TIMES);
}
