//! Models of the gate, explored by loom: every interleaving of the threads, and every value that the orderings let
//! a load see, up to a bound of preemptions: [`PREEMPTIONS`] with two threads, one less with three.
//!
//! Run by `cargo xtask ci loom`. `cargo xtask ci mutants` breaks the gate in the ways listed in
//! `ARCHITECTURE.md` and expects one of these models to fail for each.

#![cfg(loom)]

use std::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Waker},
};

use ebbtide_lifecycle::{Gate, Ledger, Lifecycle, Outcome, State, Step, Terms};
use loom::{cell::UnsafeCell, future::block_on, model::Builder, sync::Arc, thread};

/// Bugs of such a kind need two preemptions at most in the literature; three leaves a margin.
const PREEMPTIONS: usize = 3;

fn model(threads: impl Fn() + Send + Sync + 'static) {
    model_up_to(PREEMPTIONS, threads);
}

/// Three threads with one preemption more would take half a minute, against three seconds.
fn model_of_three(threads: impl Fn() + Send + Sync + 'static) {
    model_up_to(PREEMPTIONS - 1, threads);
}

fn model_up_to(preemptions: usize, threads: impl Fn() + Send + Sync + 'static) {
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        threads();
    });
    println!("{} executions", executions.load(Ordering::Relaxed));
}

/// Something that is written under a permit, and read when the gate is idle: loom fails the model if the two are
/// not ordered.
#[derive(Clone)]
struct Work(Arc<UnsafeCell<usize>>);

impl Work {
    fn new() -> Self {
        Self(Arc::new(UnsafeCell::new(0)))
    }

    fn run(&self) {
        // SAFETY: loom checks that nobody else accesses the cell meanwhile.
        self.0.with_mut(|done| unsafe { *done += 1 });
    }

    fn done(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|done| unsafe { *done })
    }
}

#[test]
fn enter_against_close_against_wait() {
    model(|| {
        let (gate, work) = (Gate::new(), Work::new());
        let entrant = thread::spawn({
            let (gate, work) = (gate.clone(), work.clone());
            move || {
                let permit = gate.enter();
                if permit.is_ok() {
                    work.run();
                }
                permit.is_ok()
            }
        });
        gate.close();
        block_on(gate.drained());
        let done = work.done();
        assert_eq!(usize::from(entrant.join().unwrap()), done, "nothing runs after the gate is drained");
        assert!(gate.is_idle());
    });
}

#[test]
fn owned_enter_against_close_against_wait() {
    model(|| {
        let (gate, work) = (Gate::new(), Work::new());
        let entrant = thread::spawn({
            let (gate, work) = (gate.clone(), work.clone());
            move || {
                let permit = gate.enter_owned();
                drop(gate);
                if permit.is_ok() {
                    work.run();
                }
                permit.is_ok()
            }
        });
        gate.close();
        block_on(gate.drained());
        let done = work.done();
        assert_eq!(usize::from(entrant.join().unwrap()), done, "nothing runs after the gate is drained");
    });
}

#[test]
fn two_permits_return_and_the_waiter_sees_both() {
    model_of_three(|| {
        let gate = Gate::new();
        let works = [Work::new(), Work::new()];
        for work in &works {
            let (permit, work) = (gate.enter_owned().unwrap(), work.clone());
            thread::spawn(move || {
                work.run();
                drop(permit);
            });
        }
        block_on(gate.idle());
        assert_eq!(works.map(|work| work.done()), [1, 1]);
    });
}

#[test]
fn borrowed_permits_return_and_the_waiter_sees_both() {
    model_of_three(|| {
        let gate = Gate::new();
        let works = [Work::new(), Work::new()];
        let threads = works.clone().map(|work| {
            let gate = gate.clone();
            thread::spawn(move || {
                let permit = gate.enter().unwrap();
                work.run();
                permit.settle(Outcome::Completed);
            })
        });
        // The gate is open: it may be idle before they have entered, between them and after.
        block_on(gate.idle());
        for thread in threads {
            thread.join().unwrap();
        }
        block_on(gate.idle());
        assert_eq!(works.map(|work| work.done()), [1, 1]);
    });
}

#[test]
fn a_waiter_that_missed_an_idle_moment_sees_the_next() {
    model_of_three(|| {
        let gate = Gate::new();
        let permit = gate.enter().unwrap();
        let mut idle = gate.idle();
        assert!(pin!(&mut idle).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let waiter = thread::spawn(move || block_on(idle));
        let next = thread::spawn({
            let gate = gate.clone();
            move || drop(gate.enter())
        });
        drop(permit);
        next.join().unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn of_two_closers_one_closes() {
    model(|| {
        let gate = Gate::new();
        let permit = gate.enter_owned().unwrap();
        let other = thread::spawn({
            let gate = gate.clone();
            move || {
                let closed = gate.close();
                assert!(gate.enter().is_err(), "whoever has closed the gate sees it closed");
                block_on(gate.drained());
                closed
            }
        });
        let closed = gate.close();
        drop(permit);
        assert!(closed != other.join().unwrap(), "one of them closed it");
    });
}

#[test]
fn every_waiter_is_woken() {
    model(|| {
        let gate = Gate::new();
        let permit = gate.enter_owned().unwrap();
        // The first waiter waits already; the second comes while the permit goes.
        let mut first = pin!(gate.idle());
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let second = thread::spawn({
            let gate = gate.clone();
            move || block_on(gate.idle())
        });
        drop(permit);
        block_on(first);
        second.join().unwrap();
    });
}

#[test]
fn a_waiter_for_drained_is_woken_by_the_close_of_an_empty_gate() {
    model(|| {
        let gate = Gate::new();
        let closer = thread::spawn({
            let gate = gate.clone();
            move || {
                drop(gate.enter());
                gate.close();
            }
        });
        block_on(gate.drained());
        closer.join().unwrap();
    });
}

#[test]
fn the_last_permit_may_outlive_the_last_handle() {
    model(|| {
        let gate = Gate::new();
        let permit = gate.enter_owned().unwrap();
        let leaver = thread::spawn(move || drop(permit));
        // Whoever comes last frees the gate, also when the other is about to ring. The core has a canary in it,
        // which tells loom when it is used and when it is freed.
        block_on(gate.idle());
        drop(gate);
        leaver.join().unwrap();
    });
}

#[test]
fn abandoned_or_settled_but_never_both() {
    model(|| {
        let ledger = Ledger::new();
        let gate = Gate::with(Terms { ledger: Some(ledger.clone()), ..Terms::default() });
        let owned = gate.enter_owned().unwrap();
        let leaver = thread::spawn({
            let gate = gate.clone();
            move || {
                let borrowed = gate.enter();
                owned.settle(Outcome::Late);
                if let Ok(permit) = borrowed {
                    permit.settle(Outcome::Completed);
                }
            }
        });
        let abandoned = gate.abandon();
        leaver.join().unwrap();
        let balance = ledger.balance(gate.in_flight() as u64);
        assert_eq!(balance.check(), Ok(()));
        assert_eq!(balance.abandoned, abandoned as u64);
        assert_eq!(balance.abandoned, balance.returned_after);
        assert!(!gate.open() && gate.is_idle());
    });
}

/// Both sides look at the books as soon as they see the gate idle.
fn books_are_complete(settle: fn(&Gate)) {
    model(move || {
        let gate = accounted();
        let check = |gate: &Gate| {
            block_on(gate.idle());
            assert_eq!(gate.balance().unwrap().check(), Ok(()));
        };
        let leaver = thread::spawn({
            let gate = gate.clone();
            move || {
                settle(&gate);
                check(&gate);
            }
        });
        gate.abandon();
        check(&gate);
        leaver.join().unwrap();
        assert!(gate.is_idle());
    });
}

#[test]
fn the_books_of_an_idle_gate_are_complete_with_owned_permits() {
    books_are_complete(|gate| {
        if let Ok(permit) = gate.enter_owned() {
            permit.settle(Outcome::Completed);
        }
    });
}

#[test]
fn the_books_of_an_idle_gate_are_complete_with_borrowed_permits() {
    books_are_complete(|gate| {
        if let Ok(permit) = gate.enter() {
            permit.settle(Outcome::Completed);
        }
    });
}

fn accounted() -> Gate {
    Gate::with(Terms { ledger: Some(Ledger::new()), ..Terms::default() })
}

#[test]
fn the_books_balance_when_abandon_returns_while_somebody_settles() {
    model(|| {
        let gate = accounted();
        let permit = gate.enter_owned().unwrap();
        let other = thread::spawn(move || permit.settle(Outcome::Completed));
        gate.abandon();
        assert_eq!(gate.balance().unwrap().check(), Ok(()));
        other.join().unwrap();
    });
}

#[test]
fn the_books_balance_when_abandon_returns_while_somebody_enters() {
    model(|| {
        let gate = accounted();
        let other = thread::spawn({
            let gate = gate.clone();
            move || gate.enter_owned().ok()
        });
        gate.abandon();
        assert_eq!(gate.balance().unwrap().check(), Ok(()));
        drop(other.join().unwrap());
    });
}

#[test]
fn the_books_balance_for_all_who_see_an_abandoned_gate_drained() {
    model(|| {
        let gate = accounted();
        let _stuck = gate.enter_owned().unwrap();
        let other = thread::spawn({
            let gate = gate.clone();
            move || {
                gate.abandon();
            }
        });
        block_on(gate.drained());
        assert_eq!(gate.balance().unwrap().check(), Ok(()));
        other.join().unwrap();
    });
}

#[test]
fn whoever_abandons_sees_that_work_was_abandoned() {
    model(|| {
        let gate = Gate::new();
        let _stuck = gate.enter_owned().unwrap();
        let other = thread::spawn({
            let gate = gate.clone();
            move || {
                let given_up = gate.abandon();
                assert!(gate.is_abandoned());
                given_up
            }
        });
        block_on(gate.drained());
        assert!(gate.is_abandoned());
        assert_eq!(gate.abandon() + other.join().unwrap(), 1, "it was given up on once");
    });
}

#[test]
fn a_start_cannot_open_the_gate_behind_a_stop() {
    model(|| {
        let life = Lifecycle::new();
        let gate = Gate::with(Terms { closed: true, ..Terms::default() });
        life.step(Step::Start).unwrap();
        let starter = thread::spawn({
            let (life, gate) = (life.clone(), gate.clone());
            move || gate.open() && life.step(Step::Ready).is_ok()
        });
        gate.seal();
        life.step(Step::Stop).unwrap();
        starter.join().unwrap();
        assert!(gate.enter().is_err());
    });
}

#[test]
fn what_is_set_up_before_opening_is_seen_by_whoever_enters() {
    model(|| {
        let (gate, work) = (Gate::new(), Work::new());
        gate.close();
        let entrant = thread::spawn({
            let (gate, work) = (gate.clone(), work.clone());
            move || {
                if gate.enter().is_ok() {
                    assert_eq!(work.done(), 1);
                }
            }
        });
        work.run();
        gate.open();
        entrant.join().unwrap();
    });
}

#[test]
fn a_stop_during_the_start_is_seen_by_both() {
    model(|| {
        let life = Lifecycle::new();
        life.step(Step::Start).unwrap();
        let starter = thread::spawn({
            let life = life.clone();
            move || match life.step(Step::Ready) {
                Ok(_) => block_on(life.reached(State::Stopping)),
                Err(illegal) => illegal.state,
            }
        });
        assert_eq!(life.step(Step::Stop), Ok(State::Stopping));
        assert_eq!(starter.join().unwrap(), State::Stopping);
        life.step(Step::End).unwrap();
        assert_eq!(block_on(life.reached(State::Running)), State::Stopped);
    });
}
