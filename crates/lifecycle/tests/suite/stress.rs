//! Real threads in a storm: what the models prove for two, shown for many.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use ebbtide_lifecycle::{Gate, Ledger, Outcome, Terms};

#[test]
fn what_a_closed_gate_let_in_is_all_there_is() {
    for round in 0..200 {
        let ledger = Ledger::new();
        let gate = Gate::with(Terms { ledger: Some(ledger.clone()), ..Terms::default() });
        let (ran, entered) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for entrant in 0..3 {
                let (gate, ran, entered) = (&gate, &ran, &entered);
                scope.spawn(move || {
                    loop {
                        if (round + entrant) % 2 == 0 {
                            let Ok(permit) = gate.enter() else { break };
                            ran.fetch_add(1, Ordering::Relaxed);
                            permit.settle(Outcome::Completed);
                        } else {
                            let Ok(permit) = gate.enter_owned() else { break };
                            ran.fetch_add(1, Ordering::Relaxed);
                            permit.settle(Outcome::Completed);
                        }
                        entered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while entered.load(Ordering::Relaxed) < 50 {
                thread::yield_now();
            }
            gate.close();
            gate.idle().wait();
            let done = ran.load(Ordering::Relaxed);
            let balance = ledger.balance(gate.in_flight() as u64);
            assert_eq!(balance.check(), Ok(()));
            assert_eq!(balance.completed, done, "nothing runs once the closed gate is idle");
        });
        assert_eq!(ledger.balance(0).refused, 3);
    }
}

#[test]
fn permits_and_handles_may_go_in_any_order_on_any_thread() {
    for _ in 0..2_000 {
        let gate = Gate::new();
        let permits = [gate.enter_owned().unwrap(), gate.enter_owned().unwrap()];
        let idle = gate.idle();
        thread::scope(|scope| {
            for permit in permits {
                scope.spawn(move || drop(permit));
            }
            scope.spawn(move || drop(gate));
            scope.spawn(move || idle.wait());
        });
    }
}

#[test]
fn abandonment_in_a_storm_balances() {
    for _ in 0..200 {
        let ledger = Ledger::new();
        let gate = Gate::with(Terms { ledger: Some(ledger.clone()), ..Terms::default() });
        let abandoned = thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Ok(permit) = gate.enter_owned() {
                        permit.settle(Outcome::Completed);
                    }
                });
            }
            thread::yield_now();
            gate.abandon()
        });
        let balance = ledger.balance(gate.in_flight() as u64);
        assert_eq!(balance.check(), Ok(()));
        assert_eq!(balance.abandoned, abandoned as u64);
        assert_eq!(balance.returned_after, abandoned as u64);
    }
}
