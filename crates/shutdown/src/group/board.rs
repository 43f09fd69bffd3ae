//! Where each member is, under one lock. Nothing in here calls foreign code: what has to be called or dropped is given
//! to the caller, who has let go of the lock by then.

use std::{
    io,
    panic::Location,
    sync::Arc,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Balance, Entry, Ledger, Outcome, Reason, Runnable,
    blame::{Activity, Origin, Straggler, Stragglers},
    time::Deadline,
};

use super::outcomes::{Ending, Fate, Outcomes};

/// How long after a member's deadline its end is still waited for: one that cuts its work off at the deadline returns a
/// moment later.
const GRACE: Duration = Duration::from_millis(100);

/// How long the calls of `shutdown` are waited for when all members have ended. They return at once, unless they panic,
/// and to print a backtrace may take its time.
const TELLING_MAX: Duration = Duration::from_secs(1);

/// Why a member is not started whose job nobody ran.
pub(super) const DROPPED: &str = "its job was dropped without being run";

/// The members, and the order to stop.
pub(super) struct Board {
    members: Vec<Slot>,
    /// Set by the first order; a later one may bring its deadline forward.
    stop: Option<Stop>,
    /// Counts what has changed, for those who wait.
    revision: u64,
    /// How many calls of `shutdown` go on.
    telling: usize,
    /// When the last member ended.
    quiet_since: Option<Instant>,
    /// Whether somebody got into `run`.
    claimed: bool,
    /// Set when the run has ended.
    outcomes: Option<Outcomes>,
    ledger: Ledger,
}

struct Stop {
    deadline: Deadline,
    since: Instant,
    reason: Reason,
}

/// One member.
pub(super) struct Slot {
    origin: Origin,
    name: Arc<str>,
    cap: Option<Duration>,
    place: Place,
    /// There until it has ended, or never will begin.
    runnable: Option<Arc<dyn Runnable>>,
    /// By when it has to have ended: never, until it is told to.
    due: Deadline,
    /// Whether it ran when it was due. In the ledger it is abandoned from then on, also if it ends after all.
    given_up: bool,
    shutdown_panic: Option<Arc<str>>,
}

/// Where a member is. A stop takes all who have not begun to their end.
///
/// ```text
///  Waiting ──hand──► Handing ──handed──► Queued ──begin──► Running ──end──► Ended
///                       │ │ └───────────begin───────────────►┘                ▲
///                       │ └──unbegun──► Dropped ──handed: not started────────►│
///                       └────────────────────────handed: refused─────────────►│
/// ```
enum Place {
    Waiting,
    /// Its job is with the spawner, which has not returned yet.
    Handing,
    /// The spawner has dropped its job, and has yet to say why.
    Dropped,
    /// Its job is where the spawner put it.
    Queued,
    Running {
        since: Instant,
        thread: Option<Arc<str>>,
    },
    Ended {
        ending: Ending,
        ran: Duration,
        late: Option<Duration>,
    },
}

/// What an order to stop makes necessary.
pub(super) struct Orders {
    /// Why the group stops: the first one's reason.
    pub(super) reason: Reason,
    /// Whose `shutdown` has to be called.
    pub(super) tell: Vec<Order>,
    /// Members that will never run.
    pub(super) unneeded: Vec<Arc<dyn Runnable>>,
}

/// Which member to tell, and by when it has to have ended.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) member: usize,
    pub(super) name: Arc<str>,
    pub(super) runnable: Arc<dyn Runnable>,
    pub(super) due: Deadline,
    pub(super) reason: Reason,
}

impl Slot {
    pub(super) fn new(origin: Origin, cap: Option<Duration>, runnable: Arc<dyn Runnable>) -> Self {
        Self {
            name: origin.name().unwrap_or_default().into(),
            origin,
            cap,
            place: Place::Waiting,
            runnable: Some(runnable),
            due: Deadline::never(),
            given_up: false,
            shutdown_panic: None,
        }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn site(&self) -> &'static Location<'static> {
        self.origin.site()
    }

    fn is_running(&self) -> bool {
        matches!(self.place, Place::Running { .. })
    }

    fn has_ended(&self) -> bool {
        matches!(self.place, Place::Ended { .. })
    }

    fn end_unrun(&mut self, ending: Ending) {
        self.place = Place::Ended { ending, ran: Duration::ZERO, late: None };
    }

    fn fate(&self, now: Instant, told: Option<Instant>) -> Fate {
        let (ending, ran, late) = match &self.place {
            Place::Ended { ending, ran, late } => (ending.clone(), *ran, *late),
            Place::Running { since, .. } => {
                let told_for = told.map_or(Duration::ZERO, |told| now.saturating_duration_since(told));
                (Ending::LeftBehind { told_for }, now.saturating_duration_since(*since), None)
            }
            Place::Waiting | Place::Handing | Place::Dropped | Place::Queued => {
                (Ending::NeverRan, Duration::ZERO, None)
            }
        };
        let (name, site) = (self.name.clone(), self.site());
        Fate { name, site, ending, ran, late, shutdown_panic: self.shutdown_panic.clone() }
    }
}

impl Board {
    pub(super) fn new(members: Vec<Slot>) -> Self {
        Self {
            members,
            stop: None,
            revision: 0,
            telling: 0,
            quiet_since: None,
            claimed: false,
            outcomes: None,
            ledger: Ledger::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Something has changed.
    pub(super) fn touch(&mut self) {
        self.revision += 1;
    }

    pub(super) fn name(&self, member: usize) -> Arc<str> {
        self.members[member].name.clone()
    }

    /// Whether somebody has wanted the group to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Gives whether this was the first.
    pub(super) fn claim(&mut self) -> bool {
        !std::mem::replace(&mut self.claimed, true)
    }

    /// Gives whether the member's job is to be made and given to the spawner: not after a stop.
    pub(super) fn hand(&mut self, member: usize) -> bool {
        let place = &mut self.members[member].place;
        let waits = matches!(place, Place::Waiting);
        if waits {
            *place = Place::Handing;
        }
        waits
    }

    /// The spawner has returned. Gives the member, to be dropped, if it is not started.
    pub(super) fn handed(&mut self, member: usize, result: io::Result<()>) -> Option<Arc<dyn Runnable>> {
        match (&self.members[member].place, result) {
            (Place::Handing, Ok(())) => self.members[member].place = Place::Queued,
            (Place::Handing | Place::Dropped, Err(error)) => return self.not_started(member, error),
            (Place::Dropped, Ok(())) => return self.not_started(member, io::Error::other(DROPPED)),
            // It has begun, or a stop came meanwhile: what the spawner says of it changes nothing.
            (_, Ok(()) | Err(_)) => {}
        }
        None
    }

    /// The member's job is dropped without having been run. Gives the same as [`handed`](Board::handed).
    pub(super) fn unbegun(&mut self, member: usize) -> Option<Arc<dyn Runnable>> {
        match self.members[member].place {
            Place::Handing => self.members[member].place = Place::Dropped,
            Place::Queued => return self.not_started(member, io::Error::other(DROPPED)),
            _ => {}
        }
        None
    }

    fn not_started(&mut self, member: usize, error: io::Error) -> Option<Arc<dyn Runnable>> {
        let slot = &mut self.members[member];
        slot.end_unrun(Ending::NotStarted(Arc::new(error)));
        self.ledger.count(Entry::Refused);
        slot.runnable.take()
    }

    /// The member begins to run, on the thread of that name. Gives it, unless a stop came first.
    pub(super) fn begin(
        &mut self,
        member: usize,
        now: Instant,
        thread: Option<Arc<str>>,
    ) -> Option<Arc<dyn Runnable>> {
        let slot = &mut self.members[member];
        if !matches!(slot.place, Place::Handing | Place::Queued) {
            return None;
        }
        slot.place = Place::Running { since: now, thread };
        self.ledger.count(Entry::Accepted);
        slot.runnable.clone()
    }

    /// Takes the member out, so that it can be dropped before its end is told. Nobody is told to stop it any more.
    pub(super) fn release(&mut self, member: usize) -> Option<Arc<dyn Runnable>> {
        self.members[member].runnable.take()
    }

    /// The member's run has ended: badly, if it says how.
    pub(super) fn end(&mut self, member: usize, now: Instant, bad: Option<Ending>) {
        // Whether it is late is a matter of time, and not of who has looked first.
        self.give_up(now);
        let told = self.stop.is_some();
        let slot = &mut self.members[member];
        let Place::Running { since, .. } = slot.place else { return };
        let (ending, outcome) = match bad {
            Some(ending) => (ending, Outcome::Failed),
            None if told => (Ending::Stopped, Outcome::Completed),
            None => (Ending::Finished, Outcome::Completed),
        };
        let late = slot.due.instant().filter(|_| slot.given_up);
        let late = late.map(|due| now.saturating_duration_since(due));
        slot.place = Place::Ended { ending, ran: now.saturating_duration_since(since), late };
        if slot.given_up {
            self.ledger.count(Entry::ReturnedAfter);
        } else {
            self.ledger.settle(outcome);
        }
        self.quiet_since = Some(now);
    }

    /// Somebody wants the group to stop. The first one's reason counts; a later one who has less time brings the
    /// deadline forward, and everybody is told again.
    pub(super) fn order(&mut self, now: Instant, deadline: Deadline, reason: &Reason) -> Orders {
        let hurry = self.stop.as_ref().is_none_or(|stop| deadline < stop.deadline);
        let stop = self.stop.get_or_insert_with(|| Stop { deadline, since: now, reason: reason.clone() });
        let mut orders = Orders { reason: stop.reason.clone(), tell: Vec::new(), unneeded: Vec::new() };
        if !hurry {
            return orders;
        }
        stop.deadline = deadline;
        for (member, slot) in self.members.iter_mut().enumerate() {
            if slot.is_running() {
                slot.due = deadline.effective(stop.since, slot.cap);
                orders.tell.extend(slot.runnable.clone().map(|runnable| Order {
                    member,
                    name: slot.name.clone(),
                    runnable,
                    due: slot.due,
                    reason: stop.reason.clone(),
                }));
            } else if !slot.has_ended() {
                slot.end_unrun(Ending::NeverRan);
                orders.unneeded.extend(slot.runnable.take());
                self.ledger.count(Entry::Refused);
            }
        }
        self.telling += orders.tell.len();
        orders
    }

    /// A call of `shutdown` has returned, or panicked.
    pub(super) fn told(&mut self, member: usize, panicked: Option<Arc<str>>) {
        self.telling -= 1;
        self.members[member].shutdown_panic = self.members[member].shutdown_panic.take().or(panicked);
    }

    /// Gives up on those who still run although they are due.
    pub(super) fn give_up(&mut self, now: Instant) {
        for slot in self.members.iter_mut().filter(|slot| slot.is_running() && !slot.given_up) {
            if slot.due.is_expired(now) {
                slot.given_up = true;
                self.ledger.count(Entry::Abandoned);
            }
        }
    }

    /// Whether any member ran when it was due.
    pub(super) fn has_given_up(&self) -> bool {
        self.members.iter().any(|slot| slot.given_up)
    }

    /// Whether no member runs, or ever will.
    pub(super) fn all_ended(&self) -> bool {
        self.members.iter().all(Slot::has_ended)
    }

    /// How many members run that were not given up on.
    pub(super) fn in_flight(&self) -> usize {
        self.members.iter().filter(|slot| slot.is_running() && !slot.given_up).count()
    }

    /// When the next of those who run is due.
    pub(super) fn next_due(&self) -> Deadline {
        let running = self.members.iter().filter(|slot| slot.is_running() && !slot.given_up);
        running.map(|slot| slot.due).min().unwrap_or(Deadline::never())
    }

    /// Until when the run has to wait for a change. Nothing once it is over: all members have ended, or were given up
    /// on, the grace included.
    pub(super) fn run_waits(&self, now: Instant) -> Option<Deadline> {
        let wait = |slot: &Slot| match slot.place {
            Place::Ended { .. } => None,
            Place::Running { .. } if slot.given_up => Some(after(slot.due, GRACE)),
            _ => Some(slot.due),
        };
        let members = self.members.iter().filter_map(wait);
        // Whoever tells one that is left behind is left behind with it.
        let tellers = self.telling_until().filter(|_| self.all_ended());
        members.chain(tellers).filter(|until| !until.is_expired(now)).min()
    }

    /// Until when the calls of `shutdown` that go on are waited for.
    fn telling_until(&self) -> Option<Deadline> {
        let quiet = self.quiet_since.filter(|_| self.telling > 0)?;
        let stop = self.stop.as_ref()?;
        Some(after(Deadline::at(quiet), TELLING_MAX).min(after(stop.deadline, GRACE)))
    }

    /// Closes the books of the run.
    pub(super) fn conclude(&mut self, now: Instant) -> Outcomes {
        let outcomes = self.outcomes(now);
        self.outcomes = Some(outcomes.clone());
        outcomes
    }

    /// What became of the members: when the run ended, or at this moment if there was none.
    pub(super) fn outcomes(&self, now: Instant) -> Outcomes {
        let fates = || {
            let told = self.stop.as_ref().map(|stop| stop.since);
            let fates = self.members.iter().map(|slot| slot.fate(now, told));
            Outcomes::new(fates, self.stop.as_ref().map(|stop| stop.reason.clone()))
        };
        self.outcomes.clone().unwrap_or_else(fates)
    }

    pub(super) fn balance(&self) -> Balance {
        self.ledger.balance(self.in_flight() as u64)
    }

    pub(super) fn stragglers(&self, now: Instant) -> Stragglers {
        let straggler = |slot: &Slot| {
            let Place::Running { since, thread } = &slot.place else { return None };
            let age = now.saturating_duration_since(*since);
            let straggler = Straggler::new(slot.origin.clone(), Activity::Running, age);
            Some(match thread {
                Some(thread) => straggler.on(thread.clone()),
                None => straggler,
            })
        };
        self.members.iter().filter_map(straggler).collect()
    }
}

fn after(from: Deadline, duration: Duration) -> Deadline {
    from.instant().map_or(from, |at| Deadline::never().effective(at, Some(duration)))
}
