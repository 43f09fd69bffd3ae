//! What is known of late runners.

use std::{fmt, sync::Arc};

use ebbtide_lifecycle::{
    Balance, Component, Ledger, Reason, Stopped, Stopping,
    blame::Stragglers,
    time::{Deadline, Timer},
    wait::Wait,
};

use crate::desk::{Board, Idle, Lateness};

/// Counts and names the late runners of a [`Runners`](crate::Runners), from any thread. A clone is another
/// handle to the same runners; it does not keep their driver from ending.
#[derive(Clone)]
pub struct Tracker<T> {
    board: Arc<Board>,
    timer: T,
}

impl<T> Tracker<T> {
    pub(crate) fn new(board: Arc<Board>, timer: T) -> Self {
        Self { board, timer }
    }

    pub(crate) fn timer(&self) -> &T {
        &self.timer
    }

    /// How many late runners there are that were not given up on.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.board.lock().tally.in_flight() as usize
    }

    /// Waits until there is no late runner: `.await` it, or block another thread than that of the driver with
    /// `wait` or `wait_by`.
    pub fn wait_idle(&self) -> Wait<Idle> {
        Wait::new(Idle { board: self.board.clone(), drained: false })
    }

    /// Lets the driver end when there is no late runner. Detaching is still not refused; but once the driver
    /// has ended, what is detached is dropped, and counted as cancelled.
    pub fn close(&self) {
        self.board.close();
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.board.lock().tally.is_closed()
    }

    /// How late those were that have ended.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        self.board.lateness()
    }

    /// The counters, which outlive the runners. What was accepted is what was late.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.board.lock().tally.ledger().clone()
    }
}

/// A stop waits for the late runners, and gives up on those that are there at its deadline; they go on for as
/// long as the executor of their driver does. If that has dropped any, every stop says that it was overdue.
///
/// It blocks a thread, not that of the driver, in the system's time: so it keeps its deadline also when the loop of
/// the late runners is stuck, and on a thread where their timer has no runtime. In virtual time it is a future.
impl<T> Component for Tracker<T>
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    fn stop(&self, deadline: Deadline, _: &Reason) -> Stopping {
        let board = self.board.clone();
        board.close();
        let drained = Wait::new(Idle { board: board.clone(), drained: true });
        let end = move |in_time: bool| {
            if !in_time {
                board.abandon();
            }
            if board.lock().has_lost_any() { Stopped::Overdue } else { Stopped::Clean }
        };
        if self.timer.is_virtual() {
            let drained = drained.by(self.timer.clone(), deadline);
            return Stopping::future(async move { end(drained.await.is_ok()) });
        }
        Stopping::blocking(move || end(drained.wait_by(deadline).is_ok()))
    }

    fn balance(&self) -> Balance {
        self.board.lock().tally.balance()
    }

    fn stragglers(&self) -> Stragglers {
        self.board.stragglers(self.timer.now())
    }
}

impl<T> fmt::Debug for Tracker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}
