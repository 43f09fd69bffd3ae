//! Who is registered, and how far each has come: all under one lock, which no foreign code runs under.

use std::{
    collections::VecDeque,
    mem,
    panic::Location,
    sync::Arc,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{Reason, blame::Stragglers, time::Deadline};

use crate::{
    budget::Budget,
    priority::Priority,
    report::{CallbackReport, Ending, IntakeReport},
    stage::Stage,
    subject::Subject,
    witness::{ANSWER_MAX, Testimony},
};

/// How long before its deadline a component is asked who is in flight there.
const LAST_LOOK: Duration = Duration::from_millis(50);

/// The state of a coordinator.
pub(crate) struct Desk {
    pub(crate) stage: Stage,
    /// Why, and since when. There from [`Stage::Triggered`] on.
    pub(crate) call: Option<(Reason, Instant)>,
    /// There from [`Stage::Draining`] on.
    pub(crate) budget: Option<Budget>,
    pub(crate) callbacks: VecDeque<Callback>,
    pub(crate) called: Vec<CallbackReport>,
    pub(crate) intake: Option<IntakeReport>,
    /// In the order in which they were registered.
    pub(crate) entries: Vec<Entry>,
    /// That of the last phase that was begun.
    phase: Option<Priority>,
    pub(crate) warnings: Vec<String>,
    issued: u64,
}

pub(crate) struct Callback {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) act: Box<dyn FnOnce() + Send>,
}

/// Something that is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(u64);

/// A component.
pub(crate) struct Entry {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) priority: Priority,
    pub(crate) cap: Option<Duration>,
    pub(crate) site: &'static Location<'static>,
    /// There until it has stopped: dropping it is part of that.
    pub(crate) subject: Option<Arc<dyn Subject>>,
    /// It was asked, and did not answer in time.
    pub(crate) is_mute: bool,
    pub(crate) progress: Progress,
}

/// How much time the components of a phase have.
#[derive(Clone, Copy)]
struct Term {
    deadline: Deadline,
    grace: Duration,
}

/// How far a component has come.
///
/// ```text
/// Waiting ──its phase begins, or has passed──► Stopping ──its stop returns──► Ended
///    └── unregistered: the entry goes
/// ```
pub(crate) enum Progress {
    Waiting,
    Stopping {
        since: Instant,
        /// Until when it is waited for.
        patience: Instant,
        /// Shortly before its deadline, at which it drops or hands back what is left: whoever is to be named has to be
        /// asked for by then.
        last_look: Instant,
        /// What was seen at that time.
        seen: Option<Stragglers>,
    },
    Ended {
        took: Duration,
        ending: Ending,
        testimony: Testimony,
    },
}

/// What has to be done to stop one component.
pub(crate) struct Order {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) since: Instant,
    pub(crate) deadline: Deadline,
    pub(crate) reason: Reason,
}

impl Desk {
    pub(crate) fn new(warnings: Vec<String>) -> Self {
        Self {
            stage: Stage::Running,
            call: None,
            budget: None,
            callbacks: VecDeque::new(),
            called: Vec::new(),
            intake: None,
            entries: Vec::new(),
            phase: None,
            warnings,
            issued: 0,
        }
    }

    pub(crate) fn issue(&mut self) -> Id {
        self.issued += 1;
        Id(self.issued)
    }

    /// How many phases there are to come.
    pub(crate) fn phases_to_come(&self) -> usize {
        let mut priorities: Vec<_> = self.waiting().map(|entry| entry.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        priorities.len()
    }

    fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| matches!(entry.progress, Progress::Waiting))
    }

    /// Begins the next phase: the orders for all of the highest priority that is left. None if nobody is left.
    pub(crate) fn begin_phase(&mut self, now: Instant) -> Option<(Priority, Vec<Order>)> {
        let priority = self.waiting().map(|entry| entry.priority).max()?;
        self.phase = Some(priority);
        let after = self.phases_to_come() - 1;
        let (term, reason) = self.terms(now, after);
        let of_phase =
            |entry: &&mut Entry| entry.priority == priority && matches!(entry.progress, Progress::Waiting);
        let begin = |entry: &mut Entry| entry.begin(now, term, &reason);
        Some((priority, self.entries.iter_mut().filter(of_phase).map(begin).collect()))
    }

    /// Begins to stop a component whose phase has passed when it was registered. Nothing, if that is still to come.
    pub(crate) fn begin_late(&mut self, id: Id, now: Instant) -> Option<Order> {
        let phase = self.phase.filter(|_| self.stage == Stage::Stopping)?;
        let after = self.phases_to_come();
        let (term, reason) = self.terms(now, after);
        let entry = self.entries.iter_mut().find(|entry| entry.id == id)?;
        (entry.priority > phase).then(|| entry.begin(now, term, &reason))
    }

    fn terms(&mut self, now: Instant, stages_after: usize) -> (Term, Reason) {
        let (reason, _) = self.call.as_ref().expect("phases come after the trigger");
        let budget = self.budget.as_mut().expect("phases come after the drain");
        let deadline = budget.deadline(now, stages_after);
        (Term { deadline, grace: budget.grace(now) }, reason.clone())
    }

    /// Until when somebody is still waited for, of those with this priority or, if none is given, of all.
    pub(crate) fn waited_for(&self, of: Option<Priority>, now: Instant) -> Option<Instant> {
        let of = |entry: &&Entry| of.is_none_or(|priority| entry.priority == priority);
        self.entries.iter().filter(of).filter_map(Entry::patience).filter(|patience| *patience > now).max()
    }

    /// Takes a component out of its entry, for the caller to drop without the lock.
    pub(crate) fn release(&mut self, id: Id) -> Option<Arc<dyn Subject>> {
        self.entries.iter_mut().find(|entry| entry.id == id)?.subject.take()
    }

    /// Who has to be asked by `now` who is in flight there, for the last time.
    pub(crate) fn to_ask(&self, now: Instant) -> Vec<(Id, Arc<dyn Subject>)> {
        let due = |entry: &&Entry| entry.last_look().is_some_and(|at| at <= now);
        let due = self.entries.iter().filter(due);
        due.filter_map(|entry| Some((entry.id, entry.subject.clone()?))).collect()
    }

    /// When the next of them has to be.
    pub(crate) fn next_to_ask(&self) -> Option<Instant> {
        self.entries.iter().filter_map(Entry::last_look).min()
    }

    /// What somebody answered, or that he did not.
    pub(crate) fn note(&mut self, id: Id, answer: Option<Stragglers>) {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) else { return };
        match (&mut entry.progress, answer) {
            (Progress::Stopping { seen, .. }, Some(stragglers)) => *seen = Some(stragglers),
            (_, Some(_)) => {}
            (_, None) => entry.is_mute = true,
        }
    }

    /// How long somebody who is asked is waited for.
    pub(crate) fn patience_for_answers(&self, now: Instant) -> Duration {
        self.budget.map_or(ANSWER_MAX, |budget| budget.grace(now))
    }

    pub(crate) fn end(&mut self, id: Id, took: Duration, ending: Ending, mut testimony: Testimony) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            // What it gave up on at its deadline is gone; what was seen before is who that was.
            if let Progress::Stopping { seen: Some(seen), .. } = &mut entry.progress
                && ending == Ending::Overdue
                && testimony.stragglers.is_empty()
            {
                testimony.stragglers = mem::take(seen);
            }
            entry.progress = Progress::Ended { took, ending, testimony };
        }
    }

    /// Takes out a component that is not being stopped yet, for the caller to drop without the lock.
    pub(crate) fn unregister(&mut self, id: Id) -> Option<Entry> {
        let found = self.entries.iter().position(|entry| entry.id == id)?;
        matches!(self.entries[found].progress, Progress::Waiting).then(|| self.entries.remove(found))
    }
}

impl Entry {
    fn begin(&mut self, now: Instant, Term { deadline, grace }: Term, reason: &Reason) -> Order {
        let deadline = deadline.effective(now, self.cap);
        let at = deadline.instant().expect("a budget has an end").max(now);
        let last_look = at.checked_sub(LAST_LOOK.min(grace)).unwrap_or(now);
        self.progress = Progress::Stopping { since: now, patience: at + grace, last_look, seen: None };
        Order {
            id: self.id,
            name: self.name.clone(),
            subject: self.subject.clone().expect("there until it has stopped"),
            since: now,
            deadline,
            reason: reason.clone(),
        }
    }

    /// When it has to be asked who is in flight there, until it has been.
    fn last_look(&self) -> Option<Instant> {
        match self.progress {
            Progress::Stopping { last_look, seen: None, .. } if self.can_be_asked() => Some(last_look),
            _ => None,
        }
    }

    /// Whether there is somebody to ask, who has not once left an asker waiting.
    pub(crate) const fn can_be_asked(&self) -> bool {
        self.subject.is_some() && !self.is_mute
    }

    fn patience(&self) -> Option<Instant> {
        match self.progress {
            Progress::Stopping { patience, .. } => Some(patience),
            Progress::Waiting | Progress::Ended { .. } => None,
        }
    }
}
