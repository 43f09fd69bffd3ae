//! One job: its closure, its result and who waits for it, behind one lock.

use std::{
    ops::Range,
    task::{Context, Poll, Waker},
};

use ebbtide_lifecycle::{Outcome, Panicked, Refusal, contain};

use crate::{
    error::OffloadError,
    sync::{AtomicBool, Mutex, MutexGuard, Ordering, lock},
    work::{Hook, Lost, Number, Stage, Tag, Work, wake},
};

/// What becomes of a job that has not begun when its waiter goes. One that has begun runs to its end in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrop {
    /// It is not run.
    #[default]
    Withdraw,
    /// It is run all the same, and its result discarded. So it is from the moment it is accepted: one that waits for
    /// room in a lane with a limit is dropped if the pool closes meanwhile, or
    /// [handed back](crate::Pool::close_and_hand_back). Whoever has to know sees the drop of something that it holds.
    Run,
}

/// The waiter's side of a job, whatever its closure is.
pub(crate) trait Awaited<T>: Work {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, OffloadError>>;

    /// Whether the result is there.
    fn is_ready(&self) -> bool;

    /// The waiter goes. Gives whether it has withdrawn the job.
    fn leave(&self, on_drop: OnDrop) -> bool;
}

pub(crate) struct Job<F, T> {
    tag: Tag,
    /// Nobody has ever waited for it, and nobody will: its result is dropped.
    is_unawaited: bool,
    /// Set under the lock, read by the job itself without it.
    waiter_gone: AtomicBool,
    /// There is a result, or was, or will never be. Set under the lock; a hint to those who do not hold it.
    ended: AtomicBool,
    /// See [`Work::number`].
    number: Number,
    desk: Mutex<Desk<F, T>>,
}

struct Desk<F, T> {
    stage: Stage<F>,
    /// There once it has ended, until it is taken.
    result: Option<Result<T, OffloadError>>,
    waker: Option<Waker>,
}

impl<F, T> Job<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    pub(crate) fn new(tag: Tag, f: F) -> Self {
        let desk = Desk { stage: Stage::Unstarted(f), result: None, waker: None };
        let (waiter_gone, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let number = Number::new(0);
        Self { tag, is_unawaited: false, waiter_gone, ended, number, desk: Mutex::new(desk) }
    }

    /// A job that never had a waiter, so that none has gone: it is not late.
    pub(crate) fn unawaited(tag: Tag, f: F) -> Self {
        Self { is_unawaited: true, ..Self::new(tag, f) }
    }

    /// The closure of a job that was not accepted.
    pub(crate) fn take_closure(&self) -> Option<F> {
        let mut desk = lock(&self.desk);
        desk.stage.begin(Stage::Begun)
    }

    /// Runs `f`, which was taken out, stores the result and wakes whoever waits.
    fn finish(&self, f: F, before_each: Option<&Hook>) -> Outcome {
        let result = call(f, before_each);
        let failed = result.is_err();
        if self.is_unawaited {
            drop(contain(|| drop(result)));
            return if failed { Outcome::Failed } else { Outcome::Completed };
        }
        let desk = lock(&self.desk);
        if self.waiter_has_gone() {
            drop(desk);
            drop(contain(|| drop(result)));
            return if failed { Outcome::Failed } else { Outcome::Late };
        }
        self.tell(desk, result.map_err(OffloadError::Panicked));
        if failed { Outcome::Failed } else { Outcome::Completed }
    }
}

impl<F, T> Job<F, T> {
    /// Stores the result and wakes whoever waits.
    fn tell(&self, mut desk: MutexGuard<'_, Desk<F, T>>, result: Result<T, OffloadError>) {
        desk.result = Some(result);
        self.ended.store(true, Ordering::Relaxed);
        let waker = desk.waker.take();
        drop(desk);
        wake(waker);
    }

    fn take_result(&self) -> Option<Result<T, OffloadError>> {
        // Before it has ended there is nothing to lock for.
        if self.ended.load(Ordering::Relaxed) { lock(&self.desk).result.take() } else { None }
    }
}

/// Calls a job, and the hook before it.
pub(crate) fn call<T>(f: impl FnOnce() -> T, before_each: Option<&Hook>) -> Result<T, Panicked> {
    if let Some(hook) = before_each
        && let Err(panic) = contain(hook)
    {
        drop(contain(|| drop(f)));
        return Err(panic);
    }
    contain(f)
}

impl<F, T> Work for Job<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn tag(&self) -> &Tag {
        &self.tag
    }

    fn waiter_has_gone(&self) -> bool {
        self.waiter_gone.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn number(&self) -> &Number {
        &self.number
    }

    fn run(&self, _: Range<usize>, before_each: Option<&Hook>, ended: &mut Vec<Outcome>) {
        let mut desk = lock(&self.desk);
        let Some(f) = desk.stage.begin(Stage::Begun) else {
            return ended.extend(desk.stage.outcome_of_unrun());
        };
        drop(desk);
        ended.push(self.finish(f, before_each));
    }

    fn run_by_waiter(&self, _: &mut usize, before_each: Option<&Hook>, ended: &mut Vec<Outcome>) -> bool {
        let mut desk = lock(&self.desk);
        let counts = desk.stage.is_in_the_pool();
        let Some(f) = desk.stage.begin(Stage::RunByWaiter) else { return false };
        drop(desk);
        let outcome = self.finish(f, before_each);
        ended.extend(counts.then_some(outcome));
        true
    }

    fn take_out(&self, _: Range<usize>, outcome: Outcome, ended: &mut Vec<Outcome>) {
        ended.extend(lock(&self.desk).stage.take_out(outcome));
    }

    fn refuse(&self, _: Range<usize>) {
        lock(&self.desk).stage.refuse();
    }

    fn unstarted(&self, _: Range<usize>) -> usize {
        usize::from(lock(&self.desk).stage.is_unstarted())
    }

    fn discard(&self, _: Range<usize>, why: Lost) {
        let mut desk = lock(&self.desk);
        let Some(f) = desk.stage.discard() else { return };
        drop(desk);
        // Before its waiter is told: by then nothing of it is left.
        drop(contain(|| drop(f)));
        self.tell(lock(&self.desk), Err(why.into()));
    }
}

impl From<Lost> for OffloadError {
    fn from(why: Lost) -> Self {
        match why {
            Lost::Closed => Self::Refused(Refusal::Closed),
            Lost::Discarded => Self::Discarded,
        }
    }
}

impl<F, T> Awaited<T> for Job<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, OffloadError>> {
        if let Some(result) = self.take_result() {
            return Poll::Ready(result);
        }
        // A waker is foreign code, its clone and its drop too: no lock is held meanwhile.
        let waker = cx.waker().clone();
        let mut desk = lock(&self.desk);
        if let Some(result) = desk.result.take() {
            drop(desk);
            return Poll::Ready(result);
        }
        let before = desk.waker.replace(waker);
        drop(desk);
        drop(before);
        Poll::Pending
    }

    fn is_ready(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn leave(&self, on_drop: OnDrop) -> bool {
        let mut desk = lock(&self.desk);
        self.waiter_gone.store(true, Ordering::Relaxed);
        let f = match on_drop {
            OnDrop::Withdraw => desk.stage.begin(Stage::Withdrawn),
            OnDrop::Run => None,
        };
        let withdrawn = f.is_some();
        if withdrawn {
            self.ended.store(true, Ordering::Relaxed);
        }
        let (result, waker) = (desk.result.take(), desk.waker.take());
        drop(desk);
        // Each by itself: two panics at once would end the process.
        drop(contain(|| drop(f)));
        drop(contain(|| drop(result)));
        drop(contain(|| drop(waker)));
        withdrawn
    }
}
