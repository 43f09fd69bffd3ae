//! What the pool knows of a job: neither its closure nor its result.

use std::{
    cell::RefCell,
    fmt, mem,
    ops::Range,
    panic::Location,
    sync::{Arc, atomic::AtomicU64},
    task::Waker,
};

use ebbtide_lifecycle::{Outcome, blame::Origin, contain};

use crate::sync::thread_local;

/// Called before each job, on its thread.
pub(crate) type Hook = Box<dyn Fn() + Send + Sync>;

/// Not one of the model's atomics: a lock orders it.
pub(crate) type Number = AtomicU64;

/// One job, or several that were brought together. Each of its parts is run once, discarded, or was withdrawn.
pub(crate) trait Work: Send + Sync {
    fn tag(&self) -> &Tag;

    /// Whether nobody waits for its result any more.
    fn waiter_has_gone(&self) -> bool;

    /// A hint that there is nothing left to be run.
    fn is_over(&self) -> bool;

    /// Its place in a line with a limit, or before that. Read and written under the pool's lock.
    fn number(&self) -> &Number;

    /// Runs those of `parts` that have not begun, stores their results and wakes whoever waits. Says of each how it
    /// ended, also of those that had been withdrawn; but not of those that their waiter has run himself.
    fn run(&self, parts: Range<usize>, before_each: Option<&Hook>, ended: &mut Vec<Outcome>);

    /// Runs the last part below `below` that has not begun on the thread of its waiter, says how it ended, and puts
    /// its place into `below`. Gives false if there is none.
    fn run_by_waiter(&self, below: &mut usize, before_each: Option<&Hook>, ended: &mut Vec<Outcome>) -> bool;

    /// Takes `parts` out of the pool, not run: that is the `outcome` of those that have not begun. Says of each
    /// how it ended for the pool, as `run` does.
    fn take_out(&self, parts: Range<usize>, outcome: Outcome, ended: &mut Vec<Outcome>);

    /// Sees to it that `parts`, which were not accepted, are not run. They are then [discarded](Work::discard).
    fn refuse(&self, parts: Range<usize>);

    /// How many of `parts` have not begun.
    fn unstarted(&self, parts: Range<usize>) -> usize;

    /// Drops those of `parts` that have not begun, and tells whoever waits.
    fn discard(&self, parts: Range<usize>, why: Lost);
}

/// Why a job will never be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The pool closed while it waited for room.
    Closed,
    /// The pool stopped, or whoever got it back did not run it.
    Discarded,
}

/// What is known of a job from outside.
#[derive(Clone)]
pub(crate) struct Tag {
    pub(crate) site: &'static Location<'static>,
    pub(crate) name: Option<Arc<str>>,
}

impl Tag {
    pub(crate) fn origin(&self) -> Origin {
        let origin = Origin::from(self.site);
        match &self.name {
            Some(name) => origin.named(name.clone()),
            None => origin,
        }
    }
}

/// How far a closure has come.
pub(crate) enum Stage<F> {
    /// In the pool.
    Unstarted(F),
    /// Not in the pool any more, which has booked it.
    TakenOut(F),
    /// Never in the pool, and never to be run: about to be discarded.
    Refused(F),
    /// Its waiter has gone before it began.
    Withdrawn,
    /// Its waiter runs it, or has, and sees to the books.
    RunByWaiter,
    /// A thread of the pool runs it, or has; or it was discarded.
    Begun,
}

impl<F> Stage<F> {
    /// Takes the closure, if it has not begun.
    pub(crate) fn begin(&mut self, next: Self) -> Option<F> {
        if !self.is_unstarted() {
            return None;
        }
        match mem::replace(self, next) {
            Self::Unstarted(f) | Self::TakenOut(f) => Some(f),
            Self::Refused(_) | Self::Withdrawn | Self::RunByWaiter | Self::Begun => None,
        }
    }

    /// Sees to it that it is not run.
    pub(crate) fn refuse(&mut self) {
        *self = match mem::replace(self, Self::Begun) {
            Self::Unstarted(f) | Self::TakenOut(f) => Self::Refused(f),
            other => other,
        };
    }

    /// Takes the closure to drop it, if it has not begun.
    pub(crate) fn discard(&mut self) -> Option<F> {
        self.refuse();
        match mem::replace(self, Self::Begun) {
            Self::Refused(f) => Some(f),
            other => {
                *self = other;
                None
            }
        }
    }

    pub(crate) fn is_unstarted(&self) -> bool {
        matches!(self, Self::Unstarted(_) | Self::TakenOut(_))
    }

    /// Whether it is in the pool, and its end still to be booked.
    pub(crate) fn is_in_the_pool(&self) -> bool {
        matches!(self, Self::Unstarted(_))
    }

    /// Takes it out of the pool. What is to be booked for that is `outcome`, if it has not begun.
    pub(crate) fn take_out(&mut self, outcome: Outcome) -> Option<Outcome> {
        match mem::replace(self, Self::Begun) {
            Self::Unstarted(f) => {
                *self = Self::TakenOut(f);
                Some(outcome)
            }
            other => {
                *self = other;
                self.outcome_of_unrun()
            }
        }
    }

    /// What is to be booked by whoever finds it in the queue, and finds that it is not to be run.
    pub(crate) fn outcome_of_unrun(&self) -> Option<Outcome> {
        matches!(self, Self::Withdrawn).then_some(Outcome::Cancelled)
    }
}

/// Wakes whoever waits. With no lock held: it is foreign code. And outside of any job: what it brings does not come
/// from inside.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        // In the destructor of another thread-local there may be nothing left to ask.
        let running = RUNNING.try_with(RefCell::take).ok().flatten();
        drop(contain(|| waker.wake()));
        if running.is_some() {
            drop(now_runs(running));
        }
    }
}

thread_local! {
    /// What this thread runs.
    static RUNNING: RefCell<Option<Arc<dyn Work>>> = RefCell::default();
}

/// Whether whoever waited for the result of the job that calls this has gone, so that it may as well end: its
/// future was dropped, or its deadline has passed. Never so outside of a job.
///
/// Always so in a job that was [detached](crate::Offload::detach), or whose future was dropped with
/// [`OnDrop::Run`](crate::OnDrop::Run): one that is to run to its end all the same must not ask. Never so in one that
/// was [spawned](crate::Lane::spawn).
#[must_use]
pub fn waiter_has_gone() -> bool {
    let ask = |work: &Option<Arc<dyn Work>>| work.as_ref().is_some_and(|work| work.waiter_has_gone());
    // In the destructor of another thread-local there may be nothing left to ask.
    RUNNING.try_with(|running| running.try_borrow().is_ok_and(|work| ask(&work))).unwrap_or(false)
}

/// Whether this is in the middle of a job.
pub(crate) fn is_in_a_job() -> bool {
    RUNNING.try_with(|running| running.try_borrow().is_ok_and(|work| work.is_some())).unwrap_or(false)
}

/// Says what this thread runs from now on, which [`waiter_has_gone`] then asks. Gives what it ran before.
pub(crate) fn now_runs(work: Option<Arc<dyn Work>>) -> Option<Arc<dyn Work>> {
    RUNNING.with(|running| running.replace(work))
}

/// Runs `act` as part of `work`. It lets no panic out.
pub(crate) fn as_part_of<T>(work: Arc<dyn Work>, act: impl FnOnce() -> T) -> T {
    let before = now_runs(Some(work));
    let done = act();
    drop(now_runs(before));
    done
}

impl fmt::Debug for dyn Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Work({})", self.tag().origin())
    }
}
