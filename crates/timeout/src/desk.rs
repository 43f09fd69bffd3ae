//! What late runners, their driver and those who ask about them have in common.
//!
//! The board is what any thread may see: who is late, and the books. The runners themselves may have to stay on
//! one thread: those that have not been taken by the driver yet lie on the desk, beside the board and under its
//! lock.

use std::{
    fmt, mem,
    sync::Arc,
    task::Waker,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Outcome, Tally,
    blame::{Activity, Origin, Straggler, Stragglers},
    contain,
    wait::{Bell, Watch},
};
use slab::Slab;

use crate::sync::{Mutex, MutexGuard, lock};

/// What those who bring runners and the driver share. `R` is a late runner, boxed.
pub(crate) struct Desk<R> {
    pub(crate) board: Arc<Board>,
    /// Handed over, and not taken by the driver yet. Locked after the board.
    arrived: Mutex<Vec<Arrived<R>>>,
}

/// What any thread may see of late runners.
pub(crate) struct Board {
    state: Mutex<State>,
    /// Rung when there is no late runner any more, if somebody has announced that he waits for that.
    settled: Bell,
}

pub(crate) struct State {
    pub(crate) tally: Tally,
    /// All that are there, arrived or driven.
    records: Slab<Record>,
    lateness: Lateness,
    driver: Driving,
    is_waited_for: bool,
    /// No more come: every handle and every call that could detach is gone.
    callers_have_gone: bool,
}

/// A late runner on its way to the driver, with the number of its record.
pub(crate) struct Arrived<R> {
    pub(crate) runner: R,
    pub(crate) number: usize,
}

struct Record {
    origin: Origin,
    /// Since when it is late.
    since: Instant,
}

/// What the driver does.
enum Driving {
    /// It is being polled, or about to be.
    Busy,
    /// It has left a waker.
    Asleep(Waker),
    /// It has ended, or its executor has dropped it.
    Gone,
}

/// How late the runners were that came to their end, from their deadline on. Those that were dropped with their
/// driver did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lateness {
    /// How many have ended.
    pub ended: u64,
    /// All of them together.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Lateness {
    fn count(&mut self, late: Duration) {
        self.ended += 1;
        self.total = self.total.saturating_add(late);
        self.longest = self.longest.max(late);
    }
}

impl<R> Desk<R> {
    pub(crate) fn new() -> Self {
        let state = State {
            tally: Tally::new(),
            records: Slab::new(),
            lateness: Lateness::default(),
            driver: Driving::Busy,
            is_waited_for: false,
            callers_have_gone: false,
        };
        let board = Arc::new(Board { state: Mutex::new(state), settled: Bell::new() });
        Self { board, arrived: Mutex::new(Vec::new()) }
    }

    /// Takes over a runner whose time has come. It is never refused; but if the driver has gone, it is dropped.
    pub(crate) fn hand_over(&self, runner: R, origin: Origin, since: Instant) {
        let mut state = self.board.lock();
        state.tally.take_in(1);
        if let Driving::Gone = state.driver {
            state.tally.settle(Outcome::Cancelled);
            drop(state);
            return drop(contain(|| drop(runner)));
        }
        let number = state.records.insert(Record { origin, since });
        lock(&self.arrived).push(Arrived { runner, number });
        let waker = state.wake_driver();
        drop(state);
        wake(waker);
    }

    /// What the driver has to take, and whether it is to end because there is nothing left to drive. `waker` is
    /// called when more comes.
    pub(crate) fn look(&self, waker: Waker, has_runners: bool) -> Look<R> {
        let mut state = self.board.lock();
        let arrived = mem::take(&mut *lock(&self.arrived));
        let no_more = state.tally.is_closed() || state.callers_have_gone;
        let ends = arrived.is_empty() && !has_runners && no_more;
        let next = if ends { Driving::Gone } else { Driving::Asleep(waker) };
        let before = mem::replace(&mut state.driver, next);
        drop(state);
        // It may hold a waker, which is foreign code.
        drop(before);
        Look { arrived, ends }
    }

    /// The driver is dropped. Gives what had arrived.
    pub(crate) fn driver_goes(&self) -> Vec<Arrived<R>> {
        let mut state = self.board.lock();
        let before = mem::replace(&mut state.driver, Driving::Gone);
        let arrived = mem::take(&mut *lock(&self.arrived));
        drop(state);
        drop(before);
        arrived
    }
}

/// What the driver finds.
pub(crate) struct Look<R> {
    pub(crate) arrived: Vec<Arrived<R>>,
    pub(crate) ends: bool,
}

impl Board {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A runner has ended, at `now`.
    pub(crate) fn settle(&self, number: usize, outcome: Outcome, now: Instant) {
        let mut state = self.lock();
        if let Some(record) = state.records.try_remove(number) {
            if outcome != Outcome::Cancelled {
                state.lateness.count(now.saturating_duration_since(record.since));
            }
            state.tally.settle(outcome);
        }
        let ring = state.tally.in_flight() == 0 && mem::take(&mut state.is_waited_for);
        drop(state);
        if ring {
            self.settled.ring();
        }
    }

    /// Lets the driver end when there is nothing left to drive.
    pub(crate) fn close(&self) {
        self.change(|state| {
            state.tally.close();
        });
    }

    /// Nobody is left who could detach anything.
    pub(crate) fn callers_go(&self) {
        self.change(|state| state.callers_have_gone = true);
    }

    /// Gives up on the runners that are there.
    pub(crate) fn abandon(&self) {
        self.change(|state| {
            state.tally.abandon();
        });
    }

    /// Has the driver, and those who wait, look again after a change.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let ring = mem::take(&mut state.is_waited_for);
        let waker = state.wake_driver();
        drop(state);
        wake(waker);
        if ring {
            self.settled.ring();
        }
    }

    pub(crate) fn lateness(&self) -> Lateness {
        self.lock().lateness
    }

    pub(crate) fn stragglers(&self, now: Instant) -> Stragglers {
        let state = self.lock();
        let straggler = |(_, record): (usize, &Record)| {
            let age = now.saturating_duration_since(record.since);
            Straggler::new(record.origin.clone(), Activity::Parked, age)
        };
        state.records.iter().map(straggler).collect()
    }
}

impl State {
    /// Whether a late runner did not come to its end: it was given up on, or dropped with the driver.
    pub(crate) fn has_lost_any(&self) -> bool {
        self.tally.is_abandoned() || self.tally.balance().cancelled > 0
    }

    /// The waker of a driver that sleeps.
    fn wake_driver(&mut self) -> Option<Waker> {
        match mem::replace(&mut self.driver, Driving::Busy) {
            Driving::Asleep(waker) => Some(waker),
            other => {
                self.driver = other;
                None
            }
        }
    }
}

/// With no lock held: it is foreign code.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        drop(contain(|| waker.wake()));
    }
}

/// What [`Tracker::wait_idle`](crate::Tracker::wait_idle) waits for.
pub struct Idle {
    pub(crate) board: Arc<Board>,
    /// Only those count that were not given up on.
    pub(crate) drained: bool,
}

impl Watch for Idle {
    type Seen = ();

    fn look(&self) -> Option<()> {
        let state = self.board.lock();
        let left = if self.drained { state.tally.in_flight() } else { state.tally.outstanding() };
        (left == 0).then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.board.settled
    }

    fn announce(&self) {
        self.board.lock().is_waited_for = true;
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle").finish_non_exhaustive()
    }
}
