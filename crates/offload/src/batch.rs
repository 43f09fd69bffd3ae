//! Jobs that were brought together: one entry in the queue, one waiter, results that come back many at a time.

use std::{
    fmt,
    future::{Future, poll_fn},
    mem,
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use ebbtide_lifecycle::{Outcome, contain, wait::block_on};

use crate::{
    error::OffloadError,
    hub::Home,
    job::{OnDrop, call},
    sync::{AtomicBool, Mutex, Ordering, lock},
    work::{Hook, Lost, Stage, Tag, Work, wake},
    worker,
};

/// The result of one of the jobs, with its place in the batch.
pub type Finished<T> = (usize, Result<T, OffloadError>);

/// The results of jobs that were brought together, on their way: `.await` it for all of them, in the order of
/// the jobs; or take them [as they come](Batch::next).
///
/// Dropping it withdraws those that have not begun, as an [`Offload`](crate::Offload) does; on a thread of
/// their own lane they are run by whoever awaits them, too.
#[must_use = "dropping it withdraws the jobs; `detach` lets them run"]
pub struct Batch<T> {
    parts: Option<(Arc<dyn Parts<T>>, Home)>,
    /// How many jobs there were.
    len: usize,
    /// How many results have not been given to the caller.
    left: usize,
    on_drop: OnDrop,
}

impl<T> Batch<T> {
    pub(crate) fn new(parts: Arc<dyn Parts<T>>, len: usize, home: Home) -> Self {
        Self { parts: Some((parts, home)), len, left: len, on_drop: OnDrop::default() }
    }

    /// How many results have not been taken yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Says what becomes of jobs that have not begun when this is dropped.
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// Lets the jobs run with nobody waiting for their results. They count as late.
    pub fn detach(self) {
        drop(self.on_drop(OnDrop::Run));
    }

    /// The results that have come since the last call, at least one, each with its place in the batch; none
    /// once all have been taken.
    ///
    /// # Cancel safety
    /// Dropping the future loses no result.
    pub async fn next(&mut self) -> Option<Vec<Finished<T>>> {
        poll_fn(|cx| self.poll_some(1, cx)).await
    }

    /// Blocks the calling thread until all jobs have ended; see [`Offload::wait`](crate::Offload::wait).
    #[must_use]
    pub fn wait(self) -> Vec<Result<T, OffloadError>> {
        block_on(self)
    }

    /// So many results at least, of those that are left.
    fn poll_some(&mut self, wanted: usize, cx: &mut Context<'_>) -> Poll<Option<Vec<Finished<T>>>> {
        let Some((parts, home)) = self.parts.as_ref().filter(|_| self.left > 0) else {
            return Poll::Ready(None);
        };
        worker::run_by_waiter(*home, || parts.clone());
        parts.poll(wanted, cx).map(|finished| {
            self.left -= finished.len();
            Some(finished)
        })
    }
}

impl<T> Unpin for Batch<T> {}

impl<T> Future for Batch<T> {
    /// Those that [`next`](Batch::next) has not given, in the order of the jobs.
    type Output = Vec<Result<T, OffloadError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wanted = self.left;
        self.poll_some(wanted, cx).map(|finished| {
            let mut places: Vec<_> = (0..self.len).map(|_| None).collect();
            for (place, result) in finished.into_iter().flatten() {
                places[place] = Some(result);
            }
            places.into_iter().flatten().collect()
        })
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        if let Some((parts, _)) = &self.parts {
            parts.leave(self.on_drop);
        }
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("left", &self.left).finish_non_exhaustive()
    }
}

/// The waiter's side of a batch, whatever its closures are.
pub(crate) trait Parts<T>: Work {
    /// The results that are there, once so many are.
    fn poll(&self, wanted: usize, cx: &mut Context<'_>) -> Poll<Vec<Finished<T>>>;

    /// The waiter goes.
    fn leave(&self, on_drop: OnDrop);
}

/// The jobs, their results and who waits for them, behind one lock, which is taken twice for each share of them.
pub(crate) struct Jobs<F, T> {
    tag: Tag,
    /// Set under the lock, read by the jobs without it.
    waiter_gone: AtomicBool,
    desk: Mutex<Desk<F, T>>,
}

struct Desk<F, T> {
    stages: Vec<Stage<F>>,
    finished: Vec<Finished<T>>,
    /// How many results the waiter wants at a time.
    wanted: usize,
    waker: Option<Waker>,
}

impl<F, T> Jobs<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    pub(crate) fn new(tag: Tag, jobs: Vec<F>) -> Self {
        let finished = Vec::with_capacity(jobs.len());
        let stages = jobs.into_iter().map(Stage::Unstarted).collect();
        let desk = Desk { stages, finished, wanted: 1, waker: None };
        Self { tag, waiter_gone: AtomicBool::new(false), desk: Mutex::new(desk) }
    }

    /// The closures of jobs that were not accepted.
    pub(crate) fn take_closures(&self) -> Vec<F> {
        let mut desk = lock(&self.desk);
        desk.stages.iter_mut().filter_map(|stage| stage.begin(Stage::Begun)).collect()
    }

    /// Runs closures that were taken out, each with its place, stores the results and wakes whoever waits.
    fn finish(&self, begun: Vec<(usize, F)>, before_each: Option<&Hook>, ended: &mut Vec<Outcome>) {
        let mut finished = Vec::with_capacity(begun.len());
        for (place, f) in begun {
            finished.push((place, call(f, before_each).map_err(OffloadError::Panicked)));
        }
        let mut desk = lock(&self.desk);
        let late = self.waiter_has_gone();
        ended.extend(finished.iter().map(|(_, result)| match result {
            Err(_) => Outcome::Failed,
            Ok(_) if late => Outcome::Late,
            Ok(_) => Outcome::Completed,
        }));
        if late {
            drop(desk);
            drop(contain(|| drop(finished)));
            return;
        }
        desk.finished.append(&mut finished);
        let waker = desk.take_waker();
        drop(desk);
        wake(waker);
    }
}

impl<F, T> Desk<F, T> {
    /// Whom to wake, if there are as many results as he wants.
    fn take_waker(&mut self) -> Option<Waker> {
        if self.finished.len() >= self.wanted { self.waker.take() } else { None }
    }
}

impl<F, T> Work for Jobs<F, T>
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

    fn run(&self, parts: Range<usize>, before_each: Option<&Hook>, ended: &mut Vec<Outcome>) {
        let mut begun = Vec::with_capacity(parts.len());
        let mut desk = lock(&self.desk);
        for place in parts {
            let stage = &mut desk.stages[place];
            match stage.begin(Stage::Begun) {
                Some(f) => begun.push((place, f)),
                None => ended.extend(stage.outcome_of_unrun()),
            }
        }
        drop(desk);
        self.finish(begun, before_each, ended);
    }

    fn run_by_waiter(&self, before_each: Option<&Hook>, ended: &mut Vec<Outcome>) {
        // From the end: the pool takes them from the beginning.
        let places = lock(&self.desk).stages.len();
        for place in (0..places).rev() {
            let mut desk = lock(&self.desk);
            let counts = desk.stages[place].is_in_the_pool();
            let Some(f) = desk.stages[place].begin(Stage::RunByWaiter) else { continue };
            drop(desk);
            let booked = ended.len();
            self.finish(vec![(place, f)], before_each, ended);
            ended.truncate(booked + usize::from(counts));
        }
    }

    fn take_out(&self, parts: Range<usize>, outcome: Outcome, ended: &mut Vec<Outcome>) {
        let mut desk = lock(&self.desk);
        ended.extend(desk.stages[parts].iter_mut().filter_map(|stage| stage.take_out(outcome)));
    }

    fn refuse(&self, parts: Range<usize>) {
        lock(&self.desk).stages[parts].iter_mut().for_each(Stage::refuse);
    }

    fn unstarted(&self, parts: Range<usize>) -> usize {
        lock(&self.desk).stages[parts].iter().filter(|stage| stage.is_unstarted()).count()
    }

    fn discard(&self, parts: Range<usize>, why: Lost) {
        let mut desk = lock(&self.desk);
        let mut discarded = Vec::new();
        for place in parts {
            if let Some(f) = desk.stages[place].discard() {
                discarded.push(f);
                desk.finished.push((place, Err(why.into())));
            }
        }
        let waker = desk.take_waker();
        drop(desk);
        for f in discarded {
            drop(contain(|| drop(f)));
        }
        wake(waker);
    }
}

impl<F, T> Parts<T> for Jobs<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn poll(&self, wanted: usize, cx: &mut Context<'_>) -> Poll<Vec<Finished<T>>> {
        // A waker is foreign code, its clone and its drop too: no lock is held meanwhile.
        let waker = cx.waker().clone();
        let mut desk = lock(&self.desk);
        if desk.finished.len() >= wanted {
            let finished = mem::take(&mut desk.finished);
            drop(desk);
            return Poll::Ready(finished);
        }
        desk.wanted = wanted;
        let before = desk.waker.replace(waker);
        drop(desk);
        drop(before);
        Poll::Pending
    }

    fn leave(&self, on_drop: OnDrop) {
        let mut desk = lock(&self.desk);
        self.waiter_gone.store(true, Ordering::Relaxed);
        let withdraw = |stage: &mut Stage<F>| stage.begin(Stage::Withdrawn);
        let withdrawn: Vec<_> = match on_drop {
            OnDrop::Withdraw => desk.stages.iter_mut().filter_map(withdraw).collect(),
            OnDrop::Run => Vec::new(),
        };
        let left = (mem::take(&mut desk.finished), desk.waker.take());
        drop(desk);
        for f in withdrawn {
            drop(contain(|| drop(f)));
        }
        drop(contain(|| drop(left)));
    }
}
