use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Waker},
    thread,
};

use ebbtide_lifecycle::{Gate, Ledger, Outcome, Refusal, Terms};

use crate::Wakes;

fn accounted() -> (Gate, Ledger) {
    let ledger = Ledger::new();
    (Gate::with(Terms { ledger: Some(ledger.clone()), ..Terms::default() }), ledger)
}

#[test]
fn l2_a_closed_gate_lets_nothing_in() {
    let gate = Gate::new();
    let inside = gate.enter_owned().unwrap();
    assert!(gate.close());
    assert!(!gate.close(), "it was closed already");
    assert_eq!(gate.enter().unwrap_err(), Refusal::Closed);
    assert_eq!(gate.enter_owned().unwrap_err(), Refusal::Closed);
    assert_eq!(gate.in_flight(), 1, "closing leaves alone what is inside");
    drop(inside);
    assert!(gate.is_idle());
}

#[test]
fn l2_a_gate_can_be_opened_again() {
    let gate = Gate::new();
    gate.close();
    assert!(gate.open());
    assert!(gate.open(), "opening an open gate leaves it open");
    assert!(gate.enter().is_ok());
}

#[test]
fn l3_a_permit_is_returned_by_a_panic() {
    let (gate, ledger) = accounted();
    for owned in [true, false] {
        let work = AssertUnwindSafe(|| {
            let _owned = owned.then(|| gate.enter_owned().unwrap());
            let _borrowed = (!owned).then(|| gate.enter().unwrap());
            assert_eq!(gate.in_flight(), 1);
            panic!("the work fails");
        });
        assert!(catch_unwind(work).is_err());
        assert!(gate.is_idle());
    }
    let balance = ledger.balance(0);
    assert_eq!((balance.accepted, balance.failed), (2, 2));
}

#[test]
fn l3_the_last_permit_back_wakes_all_who_wait() {
    let gate = Gate::new();
    let permits: Vec<_> = (0..3).map(|_| gate.enter_owned().unwrap()).collect();
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let idle = gate.idle();
            thread::spawn(move || idle.wait())
        })
        .collect();
    for permit in permits {
        thread::spawn(move || drop(permit));
    }
    for waiter in waiters {
        waiter.join().unwrap();
    }
}

#[test]
fn a_gate_is_full_at_its_limit_and_has_room_again_below_it() {
    let ledger = Ledger::new();
    let gate = Gate::with(Terms { limit: Some(2), ledger: Some(ledger.clone()), ..Terms::default() });
    let first = gate.enter().unwrap();
    let second = gate.enter_owned().unwrap();
    assert_eq!(gate.enter().unwrap_err(), Refusal::Full);
    assert_eq!(gate.enter_owned().unwrap_err(), Refusal::Full);
    assert_eq!(gate.in_flight(), 2);
    first.settle(Outcome::Completed);
    let third = gate.enter().unwrap();
    second.settle(Outcome::Completed);
    third.settle(Outcome::Completed);
    let balance = gate.balance().unwrap();
    assert_eq!(balance.to_string(), "accepted 3, completed 3, refused 2");
}

#[test]
fn a_gate_of_limit_zero_refuses_all() {
    let gate = Gate::with(Terms { limit: Some(0), ..Terms::default() });
    assert_eq!(gate.enter().unwrap_err(), Refusal::Full);
}

#[test]
fn a_limit_beyond_what_can_be_counted_is_that_of_the_count() {
    let gate = Gate::with(Terms { limit: Some(usize::MAX), ..Terms::default() });
    assert!(gate.enter().is_ok());
    assert!(gate.is_idle());
}

#[test]
fn settled_permits_are_counted_by_their_outcome() {
    let (gate, ledger) = accounted();
    for outcome in
        [Outcome::Completed, Outcome::Late, Outcome::Failed, Outcome::HandedBack, Outcome::Cancelled]
    {
        gate.enter().unwrap().settle(outcome);
        gate.enter_owned().unwrap().settle(outcome);
    }
    drop(gate);
    let balance = ledger.balance(0);
    assert_eq!(balance.check(), Ok(()));
    assert_eq!(balance.to_string(), "accepted 10, completed 4, failed 2, handed back 2, cancelled 2, late 2");
}

#[test]
fn an_abandoned_permit_that_comes_back_counts_only_as_returned_after() {
    let (gate, ledger) = accounted();
    let owned = gate.enter_owned().unwrap();
    let borrowed = gate.enter().unwrap();
    assert_eq!(gate.abandon(), 2);
    assert_eq!(gate.abandon(), 0, "they were given up on once");
    assert!(gate.is_closed());
    assert_eq!((gate.in_flight(), gate.outstanding()), (0, 2));
    assert_eq!(ledger.balance(0).check(), Ok(()));

    owned.settle(Outcome::Late);
    borrowed.settle(Outcome::Completed);
    assert!(gate.is_idle());
    let balance = gate.balance().unwrap();
    assert_eq!(balance.check(), Ok(()));
    assert_eq!(balance.to_string(), "accepted 2, abandoned 2, returned after 2");
}

#[test]
fn a_sealed_gate_stays_closed() {
    for seal in [|gate: &Gate| assert!(gate.seal()), |gate: &Gate| assert_eq!(gate.abandon(), 0)] {
        let gate = Gate::new();
        seal(&gate);
        assert!(!gate.open());
        assert!(!gate.is_abandoned(), "nothing was given up on");
        assert_eq!(gate.enter().unwrap_err(), Refusal::Closed);
    }
}

#[test]
fn l2_a_start_cannot_open_what_a_stop_has_sealed() {
    let gate = Gate::with(Terms { closed: true, ..Terms::default() });
    assert_eq!(gate.enter().unwrap_err(), Refusal::Closed, "it is closed at first");
    gate.seal();
    assert!(!gate.open());
    assert_eq!(gate.enter().unwrap_err(), Refusal::Closed);
}

#[test]
fn l2_work_that_is_inside_may_bring_more_through_a_closed_gate() {
    let (gate, ledger) = accounted();
    let parent = gate.enter_owned().unwrap();
    gate.seal();
    let child = parent.fork().unwrap();
    parent.settle(Outcome::Completed);
    assert_eq!(gate.in_flight(), 1);
    child.settle(Outcome::Completed);

    let (gate, _ledger) = accounted();
    let stuck = gate.enter_owned().unwrap();
    gate.abandon();
    assert_eq!(stuck.fork().unwrap_err(), Refusal::Closed, "not once it was given up on");
    assert_eq!(ledger.balance(0).to_string(), "accepted 2, completed 2");

    let gate = Gate::with(Terms { limit: Some(1), ..Terms::default() });
    assert_eq!(gate.enter_owned().unwrap().fork().unwrap_err(), Refusal::Full);
}

#[test]
fn an_abandoned_gate_is_drained_but_not_idle() {
    let gate = Gate::new();
    let stuck = gate.enter_owned().unwrap();
    let drained = gate.drained();
    let waiter = thread::spawn(move || drained.wait());
    assert_eq!(gate.abandon(), 1);
    waiter.join().unwrap();
    assert!(gate.is_abandoned() && !gate.is_idle());
    drop(stuck);
    gate.idle().wait();
}

#[test]
fn a_permit_keeps_working_when_every_handle_is_gone() {
    let (gate, ledger) = accounted();
    let permit = gate.enter_owned().unwrap();
    drop(gate);
    permit.settle(Outcome::Completed);
    assert_eq!(ledger.balance(0).to_string(), "accepted 1, completed 1");
}

#[test]
fn drained_means_closed_and_empty() {
    let gate = Gate::new();
    let permit = gate.enter_owned().unwrap();
    let drained = gate.drained();
    let waiter = thread::spawn(move || drained.wait());
    drop(permit);
    assert!(gate.is_idle());
    gate.close();
    waiter.join().unwrap();
}

#[test]
fn a_gate_shows_what_it_holds() {
    let gate = Gate::new();
    let _permit = gate.enter().unwrap();
    assert_eq!(format!("{gate:?}"), "Gate { closed: false, in_flight: 1, outstanding: 1 }");
}

#[test]
fn a_full_gate_refuses_a_fork_also_after_its_last_handle_has_gone() {
    let gate = Gate::with(Terms { limit: Some(1), ..Terms::default() });
    let inside = gate.enter_owned().unwrap();
    assert_eq!(inside.fork().unwrap_err(), Refusal::Full);
    drop(gate);
    assert_eq!(inside.fork().unwrap_err(), Refusal::Full);
}

#[test]
fn who_waits_for_a_gate_is_woken_by_the_last_to_leave_and_not_before() {
    let gate = Gate::new();
    let inside = [gate.enter().unwrap(), gate.enter().unwrap()];
    let (wakes, mut idle) = (Wakes::new(), pin!(gate.idle()));
    let waker = Waker::from(wakes.clone());
    assert!(idle.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    for (permit, expected) in inside.into_iter().zip([0, 1]) {
        permit.settle(Outcome::Completed);
        assert_eq!(wakes.count(), expected);
    }
    assert!(idle.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

#[test]
fn who_waits_for_a_gate_to_drain_is_woken_when_what_is_inside_is_given_up_on() {
    for gate in [Gate::new(), accounted().0] {
        let _inside = gate.enter_owned().unwrap();
        let (wakes, mut drained) = (Wakes::new(), pin!(gate.drained()));
        let waker = Waker::from(wakes.clone());
        assert!(drained.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((gate.abandon(), wakes.count()), (1, 1));
        assert!(drained.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }
}
