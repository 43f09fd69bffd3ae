use ebbtide_lifecycle::{
    Entry, Gate, Intake, Ledger, Outcome, Terms, Trigger,
    blame::{Activity, Origin, Roster},
    time::{Clock, SystemClock, VirtualClock},
};

fn allocates_nothing(what: &str, mut act: impl FnMut()) {
    // Whatever is made once, such as the first row of a roster, is made here.
    act();
    let allocations = allocation_counter::measure(|| {
        for _ in 0..100 {
            act();
        }
    });
    assert_eq!(allocations.count_total, 0, "{what} allocates");
}

#[test]
fn the_hot_paths_allocate_nothing() {
    let gate = Gate::new();
    allocates_nothing("a borrowed permit", || drop(gate.enter()));
    allocates_nothing("an owned permit", || drop(gate.enter_owned()));

    let ledger = Ledger::new();
    let accounted = Gate::with(Terms { ledger: Some(ledger.clone()), ..Terms::default() });
    allocates_nothing("a settled permit", || accounted.enter().unwrap().settle(Outcome::Completed));
    let book = ledger.book();
    allocates_nothing("a count", || book.count(Entry::Accepted));

    let token = Trigger::new().token();
    allocates_nothing("a look at a token", || assert!(!token.is_triggered()));

    let now = SystemClock.now();
    let roster = Roster::new(now);
    allocates_nothing("a seat", || {
        let seat = roster.take(&Origin::here(), Activity::Running, roster.moment(now));
        roster.leave(seat);
    });
    let intake = Intake::new(VirtualClock::new());
    allocates_nothing("an admission", || intake.admit().unwrap().settle(Outcome::Completed));
}

#[test]
fn a_book_that_is_closed_leaves_its_counts_and_no_memory() {
    let ledger = Ledger::new();
    let open_and_close = || ledger.book().count(Entry::Accepted);
    // The list of books is made with the first.
    open_and_close();
    let allocations = allocation_counter::measure(|| (0..100).for_each(|_| open_and_close()));
    assert_eq!(allocations.bytes_current, 0);
    assert_eq!(ledger.balance(0).accepted, 101);
}
