//! Gates against tokio-util's `TaskTracker`, tokens against its `CancellationToken`, and what books and blame add.

use std::hint::black_box;

use ebbtide_lifecycle::{
    Entry, Gate, Intake, Ledger, Outcome, Terms, Trigger,
    blame::{Activity, Origin, Roster},
    time::{Clock, SystemClock, VirtualClock},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    areas::Part,
    contest::{Contestant, Table, contest, time, time_two},
};

/// Half a millisecond a round: less than a time slice.
const OPERATIONS: usize = 50_000;

/// As many permits as the contract speaks of.
const MILLION: usize = 1_000_000;

pub(crate) const PARTS: [Part; 3] = [
    Part::new("permits", || vec![permits_of_one_thread(), permits_of_two_threads()]),
    Part::new("drain", || vec![a_million_permits()]),
    Part::new("blame", || vec![blame(), tokens()]),
];

fn accounted_gate() -> Gate {
    Gate::with(Terms { ledger: Some(Ledger::new()), ..Terms::default() })
}

fn take_token(tracker: &TaskTracker) {
    let token = tracker.token();
    black_box(&token);
}

fn take_borrowed(gate: &Gate) {
    let permit = gate.enter().expect("open");
    black_box(&permit);
}

fn take_owned(gate: &Gate) {
    let permit = gate.enter_owned().expect("open");
    black_box(&permit);
}

fn take_accounted(gate: &Gate) {
    let permit = gate.enter_owned().expect("open");
    black_box(&permit);
    permit.settle(Outcome::Completed);
}

fn permits_of_one_thread() -> Table {
    let tracker = TaskTracker::new();
    let (gate, accounted) = (Gate::new(), accounted_gate());
    contest(
        "take and return a permit, 1 thread",
        OPERATIONS,
        Contestant::new("TaskTracker token", |n| time(n, || take_token(&tracker))),
        [
            Contestant::new("borrowed permit", |n| time(n, || take_borrowed(&gate))).target(0.6),
            Contestant::new("owned permit", |n| time(n, || take_owned(&gate))).target(1.0),
            Contestant::new("owned permit with a ledger", |n| time(n, || take_accounted(&accounted))).ours(),
        ],
    )
}

fn permits_of_two_threads() -> Table {
    let tracker = TaskTracker::new();
    let (gate, accounted) = (Gate::new(), accounted_gate());
    contest(
        "take and return a permit, 2 threads",
        OPERATIONS,
        Contestant::new("TaskTracker token", |n| time_two(n, || take_token(&tracker))),
        [
            Contestant::new("borrowed permit", |n| time_two(n, || take_borrowed(&gate))).target(0.6),
            Contestant::new("owned permit", |n| time_two(n, || take_owned(&gate))).target(1.0),
            Contestant::new("owned permit with a ledger", |n| time_two(n, || take_accounted(&accounted)))
                .ours(),
        ],
    )
}

/// Returning a million permits that are out, alone, against closing before it and waiting for idle after it.
fn a_million_permits() -> Table {
    contest(
        "return a million permits, each",
        MILLION,
        Contestant::new("returns alone", |n| {
            let gate = Gate::new();
            let mut permits: Vec<_> = (0..n).map(|_| gate.enter_owned()).collect();
            time(1, || permits.clear())
        })
        .ours(),
        [
            Contestant::new("with a wait for idle", |n| {
                let gate = Gate::new();
                let mut permits: Vec<_> = (0..n).map(|_| gate.enter_owned()).collect();
                time(1, || {
                    gate.close();
                    permits.clear();
                    gate.idle().wait();
                })
            })
            .target(1.05),
            Contestant::new("TaskTracker: close, drop the tokens", |n| {
                let tracker = TaskTracker::new();
                let mut tokens: Vec<_> = (0..n).map(|_| tracker.token()).collect();
                time(1, || {
                    tracker.close();
                    tokens.clear();
                })
            }),
        ],
    )
}

/// What a record of who is in flight adds to a permit.
fn blame() -> Table {
    let gate = accounted_gate();
    let now = SystemClock.now();
    let roster = Roster::new(now);
    let since = roster.moment(now);
    let mut seat = roster.reserve();
    let site = Origin::here();
    let intake = Intake::new(VirtualClock::new());
    let ledger = Ledger::new();
    let book = ledger.book();
    contest(
        "blame and books",
        OPERATIONS,
        Contestant::new("owned permit with a ledger", |n| time(n, || take_accounted(&gate))).ours(),
        [
            Contestant::new("seat: take and leave", |n| {
                time(n, || {
                    let seat = roster.take(&Origin::here(), Activity::Running, black_box(since));
                    roster.leave(black_box(seat));
                })
            })
            .ours(),
            Contestant::new("seat: show what runs now", |n| {
                time(n, || roster.show_site(&mut seat, site.site(), Activity::Running, black_box(since)))
            })
            .ours(),
            Contestant::new("intake: permit, ledger and seat", |n| {
                time(n, || black_box(intake.admit()).expect("open").settle(Outcome::Completed))
            })
            .ours(),
            Contestant::new("ledger: count, any thread", |n| time(n, || ledger.count(Entry::Refused))).ours(),
            Contestant::new("book: count, its owner", |n| time(n, || book.count(black_box(Entry::Accepted))))
                .ours(),
        ],
    )
}

fn tokens() -> Table {
    let cancellation = CancellationToken::new();
    let token = Trigger::new().token();
    contest(
        "look at a token",
        OPERATIONS,
        Contestant::new("CancellationToken::is_cancelled", |n| {
            time(n, || {
                black_box(cancellation.is_cancelled());
            })
        }),
        [Contestant::new("Token::is_triggered", |n| {
            time(n, || {
                black_box(token.is_triggered());
            })
        })
        .ours()],
    )
}
