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

use ebbtide_lifecycle::{
    Outcome, contain,
    time::{Clock, Deadline, SystemClock},
    wait::{Elapsed, block_on, block_on_by},
};

use crate::{
    error::OffloadError,
    hub::{Home, Hub},
    job::{OnDrop, call},
    sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock},
    work::{Hook, Lost, Number, Stage, Tag, Work, wake},
    worker,
};

/// The result of one of the jobs, with its place in the batch.
pub type Finished<T> = (usize, Result<T, OffloadError>);

/// The results of jobs that were brought together, on their way: `.await` it for all of them, in the order of
/// the jobs; or take them [as they come](Batch::next).
///
/// Dropping it withdraws those that have not begun, as an [`Offload`](crate::Offload) does; on a thread of
/// their own pool they are run by whoever awaits them, too.
#[must_use = "dropping it withdraws the jobs; `detach` lets them run"]
pub struct Batch<T> {
    parts: Arc<dyn Parts<T>>,
    home: Home,
    /// How many jobs there are.
    len: usize,
    /// Those whose results have not been given to the caller.
    left: Left,
    on_drop: OnDrop,
    /// The lane that it holds room in, if that has a limit.
    bounded: Option<Arc<Hub>>,
}

/// Which results are left.
enum Left {
    All,
    /// Those at these places.
    Some(Vec<usize>),
}

impl<T> Batch<T> {
    pub(crate) fn new(parts: Arc<dyn Parts<T>>, len: usize, home: Home, bounded: Option<Arc<Hub>>) -> Self {
        Self { parts, home, len, left: Left::All, on_drop: OnDrop::default(), bounded }
    }

    /// How many results have not been taken yet.
    #[must_use]
    pub fn left(&self) -> usize {
        match &self.left {
            Left::All => self.len,
            Left::Some(places) => places.len(),
        }
    }

    /// Says what becomes of jobs that have not begun when this is dropped.
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// Lets the jobs run with nobody waiting for their results. They count as late. Those that still wait for room
    /// when the pool closes are dropped: see [`OnDrop::Run`].
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

    /// Blocks the calling thread until all jobs have ended or `deadline` has passed, in the system's time. Then the
    /// jobs go on, and no result is lost: wait again, take [what has come](Batch::next), or drop it.
    ///
    /// # Errors
    /// [`Elapsed`] if they had not all ended.
    pub fn wait_by(&mut self, deadline: Deadline) -> Result<Vec<Result<T, OffloadError>>, Elapsed> {
        let may_begin = || !deadline.is_expired(SystemClock.now());
        block_on_by(poll_fn(|cx| self.poll_all(cx, may_begin)), deadline)
    }

    /// So many results at least, of those that are left.
    fn poll_some(&mut self, wanted: usize, cx: &mut Context<'_>) -> Poll<Option<Vec<Finished<T>>>> {
        if self.left() == 0 {
            return Poll::Ready(None);
        }
        if self.poll_ended(wanted, cx, || true).is_pending() {
            return Poll::Pending;
        }
        let mut finished = Vec::with_capacity(wanted);
        let mut places = match mem::replace(&mut self.left, Left::All) {
            Left::All => (0..self.len).collect(),
            Left::Some(places) => places,
        };
        places.retain(|place| match self.parts.take_result(*place) {
            Some(result) => {
                finished.push((*place, result));
                false
            }
            None => true,
        });
        self.left = Left::Some(places);
        Poll::Ready(Some(finished))
    }

    /// Ready once so many have ended, of those that are left. On a thread of their own pool as many are run right
    /// here, one after the other, while `may_begin` says so.
    fn poll_ended(&self, wanted: usize, cx: &mut Context<'_>, may_begin: impl Fn() -> bool) -> Poll<()> {
        let wanted = self.len - self.left() + wanted;
        if worker::is_at(self.home) {
            let work: Arc<dyn Work> = self.parts.clone();
            worker::run_by_waiter(self.home, &work, || !self.parts.have_ended(wanted) && may_begin());
        }
        self.parts.poll_ended(wanted, cx)
    }

    /// All results that are left, in the order of the jobs.
    fn poll_all(
        &mut self,
        cx: &mut Context<'_>,
        may_begin: impl Fn() -> bool,
    ) -> Poll<Vec<Result<T, OffloadError>>> {
        if self.left() > 0 && self.poll_ended(self.left(), cx, may_begin).is_pending() {
            return Poll::Pending;
        }
        let take = |place| self.parts.take_result(place).expect("it has ended, and was not taken");
        let results = match &self.left {
            Left::All => (0..self.len).map(take).collect(),
            Left::Some(places) => places.iter().copied().map(take).collect(),
        };
        self.left = Left::Some(Vec::new());
        Poll::Ready(results)
    }
}

impl<T> Unpin for Batch<T> {}

impl<T> Future for Batch<T> {
    /// Those that [`next`](Batch::next) has not given, in the order of the jobs.
    type Output = Vec<Result<T, OffloadError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_all(cx, || true)
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        // Once all results have been taken there is nothing to leave.
        if self.left() > 0
            && self.parts.leave(self.on_drop)
            && let Some(hub) = &self.bounded
        {
            let work: Arc<dyn Work> = self.parts.clone();
            hub.make_room(self.home.which, &work);
        }
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("left", &self.left()).finish_non_exhaustive()
    }
}

/// The waiter's side of a batch, whatever its closures are.
pub(crate) trait Parts<T>: Work {
    /// Whether so many have ended, of all.
    fn have_ended(&self, wanted: usize) -> bool;

    /// Ready once so many have ended, of all.
    fn poll_ended(&self, wanted: usize, cx: &mut Context<'_>) -> Poll<()>;

    /// The result of one that has ended.
    fn take_result(&self, place: usize) -> Option<Result<T, OffloadError>>;

    /// The waiter goes. Gives whether it has withdrawn any of the jobs.
    fn leave(&self, on_drop: OnDrop) -> bool;
}

/// The jobs, each with its result behind a lock of its own, because threads run them side by side; and who
/// waits for them. No two locks are held at a time.
pub(crate) struct Jobs<F, T> {
    tag: Tag,
    /// Set before the locks of all parts are taken, and read under one of them; by the jobs without.
    waiter_gone: AtomicBool,
    /// See [`Work::number`].
    number: Number,
    parts: Box<[Mutex<Part<F, T>>]>,
    /// How many have ended, times `ENDED`, plus how many the waiter waits for. One word, so that either who
    /// ends one sees that the waiter waits for it, or the waiter sees that it has ended.
    count: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

struct Part<F, T> {
    stage: Stage<F>,
    /// There once it has ended, until it is taken.
    result: Option<Result<T, OffloadError>>,
}

/// One that has ended, in the count.
const ENDED: u64 = 1 << 32;

impl<F, T> Jobs<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    /// # Panics
    /// With 2^32 jobs or more: their count has 32 bits.
    pub(crate) fn new(tag: Tag, jobs: Vec<F>) -> Self {
        assert!(u32::try_from(jobs.len()).is_ok(), "a batch has fewer than 2^32 jobs");
        let part = |job| Mutex::new(Part { stage: Stage::Unstarted(job), result: None });
        Self {
            tag,
            waiter_gone: AtomicBool::new(false),
            number: Default::default(),
            parts: jobs.into_iter().map(part).collect(),
            count: AtomicU64::new(0),
            waker: Mutex::new(None),
        }
    }

    /// The closures of jobs that were not accepted.
    pub(crate) fn take_closures(&self) -> Vec<F> {
        self.parts.iter().filter_map(|part| lock(part).stage.begin(Stage::Begun)).collect()
    }

    /// Runs a closure that was taken out, stores its result and wakes whoever waits.
    fn finish(&self, place: usize, f: F, before_each: Option<&Hook>) -> Outcome {
        let result = call(f, before_each);
        let failed = result.is_err();
        let mut part = lock(&self.parts[place]);
        if self.waiter_has_gone() {
            drop(part);
            drop(contain(|| drop(result)));
            return if failed { Outcome::Failed } else { Outcome::Late };
        }
        part.result = Some(result.map_err(OffloadError::Panicked));
        drop(part);
        self.tell();
        if failed { Outcome::Failed } else { Outcome::Completed }
    }

    /// Counts one that has ended, and wakes the waiter if it is the last that he waits for.
    fn tell(&self) {
        // Release: the result. Acquire: the waiter's waker.
        let before = self.count.fetch_add(ENDED, Ordering::AcqRel);
        if before / ENDED + 1 == before % ENDED {
            let waker = lock(&self.waker).take();
            wake(waker);
        }
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

    fn is_over(&self) -> bool {
        // It would have to be known of each part.
        false
    }

    fn number(&self) -> &Number {
        &self.number
    }

    fn run(&self, parts: Range<usize>, before_each: Option<&Hook>, ended: &mut Vec<Outcome>) {
        for place in parts {
            let mut part = lock(&self.parts[place]);
            let begun = part.stage.begin(Stage::Begun);
            let unrun = part.stage.outcome_of_unrun();
            drop(part);
            match begun {
                Some(f) => ended.push(self.finish(place, f, before_each)),
                None => ended.extend(unrun),
            }
        }
    }

    fn run_by_waiter(&self, below: &mut usize, before_each: Option<&Hook>, ended: &mut Vec<Outcome>) -> bool {
        // From the end: the pool takes them from the beginning.
        for place in (0..self.parts.len().min(*below)).rev() {
            let mut part = lock(&self.parts[place]);
            let counts = part.stage.is_in_the_pool();
            let Some(f) = part.stage.begin(Stage::RunByWaiter) else { continue };
            drop(part);
            *below = place;
            let outcome = self.finish(place, f, before_each);
            ended.extend(counts.then_some(outcome));
            return true;
        }
        false
    }

    fn take_out(&self, parts: Range<usize>, outcome: Outcome, ended: &mut Vec<Outcome>) {
        ended.extend(self.parts[parts].iter().filter_map(|part| lock(part).stage.take_out(outcome)));
    }

    fn refuse(&self, parts: Range<usize>) {
        self.parts[parts].iter().for_each(|part| lock(part).stage.refuse());
    }

    fn unstarted(&self, parts: Range<usize>) -> usize {
        self.parts[parts].iter().filter(|part| lock(part).stage.is_unstarted()).count()
    }

    fn discard(&self, parts: Range<usize>, why: Lost) {
        for part in &self.parts[parts] {
            let f = lock(part).stage.discard();
            if f.is_some() {
                // Before its waiter is told: by then nothing of it is left.
                drop(contain(|| drop(f)));
                lock(part).result = Some(Err(why.into()));
                self.tell();
            }
        }
    }
}

impl<F, T> Parts<T> for Jobs<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn have_ended(&self, wanted: usize) -> bool {
        // Acquire: their results.
        self.count.load(Ordering::Acquire) / ENDED >= wanted as u64
    }

    fn poll_ended(&self, wanted: usize, cx: &mut Context<'_>) -> Poll<()> {
        if self.have_ended(wanted) {
            return Poll::Ready(());
        }
        let wanted = wanted as u64;
        // A waker is foreign code, its clone and its drop too: no lock is held meanwhile.
        let waker = cx.waker().clone();
        let before = lock(&self.waker).replace(waker);
        drop(before);
        // Release: the waker. Acquire: the results of those that have ended.
        let mut count = self.count.load(Ordering::Relaxed);
        while let Err(now) = self.count.compare_exchange_weak(
            count,
            count / ENDED * ENDED + wanted,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            count = now;
        }
        if count / ENDED < wanted {
            return Poll::Pending;
        }
        // Nobody would take it out any more.
        let unneeded = lock(&self.waker).take();
        drop(unneeded);
        Poll::Ready(())
    }

    fn take_result(&self, place: usize) -> Option<Result<T, OffloadError>> {
        lock(&self.parts[place]).result.take()
    }

    fn leave(&self, on_drop: OnDrop) -> bool {
        self.waiter_gone.store(true, Ordering::Relaxed);
        let waker = lock(&self.waker).take();
        drop(contain(|| drop(waker)));
        let mut has_withdrawn = false;
        for part in &self.parts {
            let mut part = lock(part);
            let f = match on_drop {
                OnDrop::Withdraw => part.stage.begin(Stage::Withdrawn),
                OnDrop::Run => None,
            };
            let result = part.result.take();
            drop(part);
            has_withdrawn |= f.is_some();
            // Each by itself: two panics at once would end the process.
            drop(contain(|| drop(f)));
            drop(contain(|| drop(result)));
        }
        has_withdrawn
    }
}
