//! A gate with books and blame: what a service puts in front of its requests.

use std::{fmt, sync::Arc};

use crate::{
    balance::Balance,
    blame::{Activity, Origin, Roster, Seat, Stragglers},
    component::{Component, Stopped, Stopping},
    gate::{Gate, OwnedPermit, Terms},
    ledger::{Ledger, Outcome},
    refusal::Refusal,
    time::{Clock, Deadline, Timer},
    trigger::Reason,
};

/// Admits requests, keeps a ledger of them and knows who they are; stops by refusing more and waiting for those
/// inside. A clone is another handle to the same intake.
///
/// ```
/// use std::time::Duration;
/// use ebbtide_lifecycle::{
///     Component, Intake, Outcome, Reason, Stopped,
///     time::{Deadline, SystemClock, ThreadTimer},
/// };
///
/// let intake = Intake::new(ThreadTimer::start()?);
/// let request = intake.admit()?;
/// // … answer it …
/// request.settle(Outcome::Completed);
///
/// // `stop` is that of the trait `Component`.
/// let deadline = Deadline::after(SystemClock, Duration::from_secs(30));
/// let stopped = intake.stop(deadline, &Reason::requested("example")).wait();
/// assert_eq!(stopped, Stopped::Clean, "{}", intake.stragglers());
/// assert_eq!(intake.balance().completed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Use a plain [`Gate`] where nobody will ask who is inside.
pub struct Intake<T> {
    desk: Arc<Desk<T>>,
}

struct Desk<T> {
    gate: Gate,
    ledger: Ledger,
    roster: Roster,
    timer: T,
}

impl<T: Clock> Intake<T> {
    /// An open intake without a limit, on `timer`'s time.
    pub fn new(timer: T) -> Self {
        Self::with_limit(timer, Gate::LIMIT_MAX)
    }

    /// An open intake that refuses more than `limit` at a time, on `timer`'s time.
    pub fn with_limit(timer: T, limit: usize) -> Self {
        let ledger = Ledger::new();
        let gate = Gate::with(Terms { limit: Some(limit), ledger: Some(ledger.clone()), ..Terms::default() });
        let roster = Roster::new(timer.now());
        Self { desk: Arc::new(Desk { gate, ledger, roster, timer }) }
    }

    /// Admits work that is known by the caller's location.
    ///
    /// # Errors
    /// Refuses once the intake is closed, and while it is full: the work must then not be done.
    #[track_caller]
    pub fn admit(&self) -> Result<Admission<T>, Refusal> {
        self.admit_as(&Origin::here())
    }

    /// Admits work that is known by `origin`.
    ///
    /// # Errors
    /// As [`admit`](Intake::admit).
    pub fn admit_as(&self, origin: &Origin) -> Result<Admission<T>, Refusal> {
        self.desk.gate.enter_owned().map(|permit| Admission::new(&self.desk, permit, origin))
    }

    /// The gate: to close it, to open it again, to wait until it is idle.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.desk.gate
    }

    /// The counters, which outlive the intake.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.desk.ledger
    }

    /// The sums of its ledger, with what is in flight by its gate.
    #[must_use]
    pub fn balance(&self) -> Balance {
        self.desk.ledger.balance(self.desk.gate.in_flight() as u64)
    }

    /// Who is in flight.
    #[must_use]
    pub fn stragglers(&self) -> Stragglers {
        let named = self.desk.roster.stragglers(self.desk.timer.now());
        // Who has just come in may not have sat down yet.
        let untracked = self.desk.gate.outstanding().saturating_sub(named.len());
        named.and_untracked(untracked)
    }
}

impl<T> Clone for Intake<T> {
    fn clone(&self) -> Self {
        Self { desk: self.desk.clone() }
    }
}

/// A stop blocks a thread, in the system's time; in virtual time it is a future, on the intake's own timer.
impl<T> Component for Intake<T>
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    fn stop(&self, deadline: Deadline, _reason: &Reason) -> Stopping {
        let gate = self.desk.gate.clone();
        gate.seal();
        // Also ends when another stop, with an earlier deadline, abandons what is left.
        let drained = gate.drained();
        let end = move |in_time: bool| {
            if !in_time {
                gate.abandon();
            }
            if gate.is_abandoned() { Stopped::Overdue } else { Stopped::Clean }
        };
        if self.desk.timer.is_virtual() {
            let drained = drained.by(self.desk.timer.clone(), deadline);
            return Stopping::future(async move { end(drained.await.is_ok()) });
        }
        // The deadline holds also when whoever has the timer is stuck, or gone.
        Stopping::blocking(move || end(drained.wait_by(deadline).is_ok()))
    }

    fn balance(&self) -> Balance {
        Self::balance(self)
    }

    fn stragglers(&self) -> Stragglers {
        Self::stragglers(self)
    }
}

impl<T> fmt::Debug for Intake<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("gate", &self.desk.gate).finish_non_exhaustive()
    }
}

/// Work that an [`Intake`] has admitted. Dropping it, on a panic too, counts as [`Outcome::Failed`], so say how
/// the work ended with [`settle`](Admission::settle).
#[must_use = "the work is in flight only while its admission is kept"]
pub struct Admission<T> {
    /// There until it is settled or dropped.
    place: Option<(OwnedPermit, Seat)>,
    desk: Arc<Desk<T>>,
}

impl<T: Clock> Admission<T> {
    fn new(desk: &Arc<Desk<T>>, permit: OwnedPermit, origin: &Origin) -> Self {
        let since = desk.roster.moment(desk.timer.now());
        let seat = desk.roster.take(origin, Activity::Running, since);
        Self { place: Some((permit, seat)), desk: desk.clone() }
    }

    /// Admits work that this work brings, known by `origin`: also while the intake stops, because what is in
    /// flight may need it in order to end.
    ///
    /// # Errors
    /// Refuses once the deadline of a stop has passed, and while the intake is full.
    pub fn fork(&self, origin: &Origin) -> Result<Self, Refusal> {
        let (permit, _) = self.place.as_ref().expect("there until it is settled");
        permit.fork().map(|permit| Self::new(&self.desk, permit, origin))
    }
}

impl<T> Admission<T> {
    /// Ends it, and says how the work ended.
    pub fn settle(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some((permit, seat)) = self.place.take() {
            // The seat first: an idle intake has no stragglers.
            self.desk.roster.leave(seat);
            permit.settle(outcome);
        }
    }
}

impl<T> Drop for Admission<T> {
    fn drop(&mut self) {
        self.end(Outcome::Failed);
    }
}

impl<T> fmt::Debug for Admission<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}
