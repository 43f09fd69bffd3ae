//! Contestants take turns in short rounds, so that what disturbs the machine disturbs all of them. A ratio is
//! taken within each round, and the median of those is what is shown.

use std::{
    hint,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::time::{Clock, SystemClock};

use crate::table::Role;
pub(crate) use crate::table::Table;

/// Odd, so that the median is one of them.
const ROUNDS: usize = 201;

/// Rounds that are not counted: caches, branch predictors and the first growth of tables.
const WARM_UP: usize = 3;

/// One who is measured.
pub(crate) struct Contestant<'a> {
    name: &'static str,
    /// How low its ratio to the peer should be; none for one that is only shown.
    target: Option<f64>,
    /// Whether it is one of ours though its name does not say so.
    ours: bool,
    /// Runs so many operations, and gives what one of them cost.
    run: Box<dyn FnMut(usize) -> f64 + 'a>,
}

impl<'a> Contestant<'a> {
    /// One whose `run` does so many operations, and gives the time that they took.
    pub(crate) fn new(name: &'static str, mut run: impl FnMut(usize) -> Duration + 'a) -> Self {
        let run = move |operations| run(operations).as_nanos() as f64 / operations as f64;
        Self { name, target: None, ours: false, run: Box::new(run) }
    }

    /// One whose `run` gives the value of a round.
    pub(crate) fn value(name: &'static str, mut run: impl FnMut() -> f64 + 'a) -> Self {
        Self { name, target: None, ours: false, run: Box::new(move |_| run()) }
    }

    /// One of ours that has neither the name nor a target.
    pub(crate) fn ours(mut self) -> Self {
        self.ours = true;
        self
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    pub(crate) fn target(mut self, ratio: f64) -> Self {
        self.target = Some(ratio);
        self
    }
}

/// Lets all run `operations` in turn. `peer` is the one to be compared with.
pub(crate) fn contest<'a>(
    title: &'static str,
    operations: usize,
    peer: Contestant<'a>,
    others: impl IntoIterator<Item = Contestant<'a>>,
) -> Table {
    run_rounds(title, "ns", operations, ROUNDS, [peer].into_iter().chain(others))
}

/// The same for contestants that give values, so many times.
pub(crate) fn measure<'a>(
    title: &'static str,
    unit: &'static str,
    rounds: usize,
    peer: Contestant<'a>,
    others: impl IntoIterator<Item = Contestant<'a>>,
) -> Table {
    run_rounds(title, unit, 0, rounds, [peer].into_iter().chain(others))
}

fn run_rounds<'a>(
    title: &'static str,
    unit: &'static str,
    operations: usize,
    count: usize,
    contestants: impl Iterator<Item = Contestant<'a>>,
) -> Table {
    eprintln!("{title} …");
    let mut contestants: Vec<_> = contestants.collect();
    let warm_up = WARM_UP.min(count / 5);
    let mut rounds = vec![Vec::with_capacity(count); contestants.len()];
    for round in 0..warm_up + count {
        // Each comes first, and after each other, as often as the others do.
        for turn in 0..contestants.len() {
            let nth = (round + turn) % contestants.len();
            let value = (contestants[nth].run)(operations);
            if round >= warm_up {
                rounds[nth].push(value);
            }
        }
    }
    let rows = contestants.iter().zip(rounds);
    rows.fold(Table::new(title, unit), |table, (contestant, rounds)| {
        let Contestant { name, target, ours, .. } = contestant;
        let role = if *ours { Role::Ours } else { Role::of(name, *target) };
        table.row_of(role, name, rounds, *target)
    })
}

/// How long `operations` of `act` take on this thread.
pub(crate) fn time(operations: usize, mut act: impl FnMut()) -> Duration {
    let start = SystemClock.now();
    for _ in 0..operations {
        act();
    }
    SystemClock.now() - start
}

/// What `act` takes for each of the `operations` that it does, in nanoseconds.
pub(crate) fn each(operations: usize, act: impl FnOnce()) -> f64 {
    let start = SystemClock.now();
    act();
    (SystemClock.now() - start).as_nanos() as f64 / operations as f64
}

/// How long each of two threads takes for `operations` of `act` while the other does the same, on average.
pub(crate) fn time_two(operations: usize, act: impl Fn() + Sync) -> Duration {
    let ready = AtomicUsize::new(0);
    let run = || {
        // They start together: a thread takes longer to wake than a short round takes to run.
        ready.fetch_add(1, Ordering::SeqCst);
        while ready.load(Ordering::SeqCst) < 2 {
            hint::spin_loop();
        }
        time(operations, &act)
    };
    thread::scope(|scope| {
        let other = scope.spawn(run);
        (run() + other.join().expect("an operation does not panic")) / 2
    })
}
