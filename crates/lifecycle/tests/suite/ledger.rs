use std::thread;

use ebbtide_lifecycle::{Balance, Entry, Ledger, Outcome};

#[test]
fn a_ledger_outlives_who_counts_in_it() {
    let ledger = Ledger::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let book = ledger.book();
                book.add(Entry::Accepted, 3);
                book.settle(Outcome::Late);
                ledger.settle(Outcome::HandedBack);
            });
        }
    });
    assert_eq!(ledger.balance(2).to_string(), "accepted 6, completed 2, handed back 2, in flight 2, late 2");
}

#[test]
fn an_open_book_is_summed_up_too() {
    let ledger = Ledger::new();
    let book = ledger.book();
    book.count(Entry::Accepted);
    assert_eq!(ledger.balance(1).check(), Ok(()));
}

#[test]
fn work_without_an_outcome_is_found_out() {
    let ledger = Ledger::new();
    ledger.add(Entry::Accepted, 2);
    ledger.settle(Outcome::Completed);
    let unbalanced = ledger.balance(0).check().unwrap_err();
    assert_eq!(unbalanced.to_string(), "1 accepted without an outcome: accepted 2, completed 1");
}

#[test]
fn work_counted_twice_is_found_out() {
    let ledger = Ledger::new();
    ledger.count(Entry::Accepted);
    ledger.settle(Outcome::Completed);
    let unbalanced = ledger.balance(1).check().unwrap_err();
    assert_eq!(unbalanced.to_string(), "1 outcomes too many: accepted 1, completed 1, in flight 1");
}

#[test]
fn what_stands_outside_the_sum_does_not_move_it() {
    let ledger = Ledger::new();
    for entry in [Entry::Refused, Entry::Late, Entry::ReturnedAfter] {
        ledger.count(entry);
    }
    assert!(ledger.balance(0).is_balanced());
}

#[test]
fn balances_of_components_add_up() {
    let of = |first: u64| {
        let mut balance = Balance::default();
        for (field, number) in fields(&mut balance).into_iter().zip(first..) {
            *field = number;
        }
        balance
    };
    let mut sum: Balance = [of(1), of(20), Balance::default()].into_iter().sum();
    assert_eq!(fields(&mut sum).map(|field| *field), [21, 23, 25, 27, 29, 31, 33, 35, 37, 39]);
}

fn fields(balance: &mut Balance) -> [&mut u64; 10] {
    [
        &mut balance.accepted,
        &mut balance.completed,
        &mut balance.failed,
        &mut balance.handed_back,
        &mut balance.cancelled,
        &mut balance.abandoned,
        &mut balance.in_flight,
        &mut balance.refused,
        &mut balance.late,
        &mut balance.returned_after,
    ]
}

#[test]
fn a_balance_holds_if_each_that_was_accepted_stands_once_on_the_other_side() {
    for inside in 1..=6 {
        let mut balance = Balance::default();
        *fields(&mut balance)[inside] = 1;
        assert!(!balance.is_balanced(), "{balance} was not accepted");
        balance.accepted = 1;
        assert!(balance.is_balanced(), "{balance}");
    }
    for outside in 7..10 {
        let mut balance = Balance::default();
        *fields(&mut balance)[outside] = 1;
        assert!(balance.is_balanced(), "{balance}");
    }
}
