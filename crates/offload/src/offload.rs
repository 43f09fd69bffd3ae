//! The waiter's end of a job.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ebbtide_lifecycle::{
    time::{Alarm, Clock, Deadline, SystemClock, Timer},
    wait::{block_on, block_on_by},
};
use pin_project_lite::pin_project;

use crate::{
    error::OffloadError,
    hub::{Home, Hub},
    job::{Awaited, OnDrop},
    work::Work,
    worker,
};

/// The result of a job that is on its way: `.await` it, or block the thread with [`wait`](Offload::wait).
///
/// Awaited on a thread of the job's own pool, the job is run right there, inside the poll, unless it has begun: so a
/// job that waits for another one of its own pool does not wait for itself, not even with one thread. What that
/// means for joining and racing it is said [there](crate#waiting-for-a-job-within-a-job).
///
/// # Cancel safety
/// Dropping it withdraws a job that has not begun; one that has begun runs to its end, and its result is
/// discarded. See [`on_drop`](Offload::on_drop) and [`detach`](Offload::detach) to have it run all the same.
#[must_use = "dropping it withdraws the job; `detach` lets it run"]
pub struct Offload<T> {
    ticket: Ticket<T>,
    on_drop: OnDrop,
    /// The lane that it holds room in, if that has a limit.
    bounded: Option<Arc<Hub>>,
}

enum Ticket<T> {
    /// Brought to a pool.
    Job { job: Arc<dyn Awaited<T>>, home: Home },
    /// It never was, for this reason.
    Lost(Option<OffloadError>),
    /// The result has been taken.
    Taken,
}

impl<T> Offload<T> {
    pub(crate) fn new(job: Arc<dyn Awaited<T>>, home: Home, bounded: Option<Arc<Hub>>) -> Self {
        Self { ticket: Ticket::Job { job, home }, on_drop: OnDrop::default(), bounded }
    }

    pub(crate) fn lost(why: OffloadError) -> Self {
        Self { ticket: Ticket::Lost(Some(why)), on_drop: OnDrop::default(), bounded: None }
    }

    /// Says what becomes of a job that has not begun when this is dropped.
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// Lets the job run with nobody waiting for its result. It counts as late.
    ///
    /// One that still waits for room when the pool closes was not accepted, and is dropped; see
    /// [`OnDrop::Run`].
    pub fn detach(self) {
        drop(self.on_drop(OnDrop::Run));
    }

    /// Whether the result is there, or it is certain that there will be none.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.ticket {
            Ticket::Job { job, .. } => job.is_ready(),
            Ticket::Lost(_) | Ticket::Taken => true,
        }
    }
}

impl<T> Offload<T> {
    /// Blocks the calling thread until the job has ended.
    ///
    /// # Errors
    /// As awaiting it.
    pub fn wait(self) -> Result<T, OffloadError> {
        block_on(self)
    }

    /// Blocks the calling thread until the job has ended or `deadline` has passed, in the system's time. Then
    /// it is as if this had been dropped.
    ///
    /// On a thread of the job's own pool the job is run right here, unless it has begun: then the deadline is looked
    /// at only before that, and not kept if the job takes longer.
    ///
    /// # Errors
    /// As awaiting it, and [`OffloadError::Elapsed`].
    pub fn wait_by(self, deadline: Deadline) -> Result<T, OffloadError> {
        let mut offload = self;
        let may_begin = || !deadline.is_expired(SystemClock.now());
        let waits = poll_fn(|cx| offload.poll_if(cx, may_begin));
        block_on_by(waits, deadline).unwrap_or(Err(OffloadError::Elapsed))
    }
}

impl<T> Unpin for Offload<T> {}

impl<T> Offload<T> {
    /// Polls it. On a thread of its own pool it is run right here, if it has not begun and `may_begin` says so.
    fn poll_if(
        &mut self,
        cx: &mut Context<'_>,
        may_begin: impl Fn() -> bool,
    ) -> Poll<Result<T, OffloadError>> {
        let result = match &mut self.ticket {
            Ticket::Job { job, home } => {
                if worker::is_at(*home) && !job.is_ready() {
                    let work: Arc<dyn Work> = job.clone();
                    worker::run_by_waiter(*home, &work, || !job.is_ready() && may_begin());
                }
                match job.poll(cx) {
                    Poll::Ready(result) => result,
                    Poll::Pending => return Poll::Pending,
                }
            }
            Ticket::Lost(why) => Err(why.take().expect("polled after its end")),
            Ticket::Taken => panic!("polled after its end"),
        };
        self.ticket = Ticket::Taken;
        Poll::Ready(result)
    }
}

impl<T> Future for Offload<T> {
    type Output = Result<T, OffloadError>;

    /// # Panics
    /// When it is polled after it has given its result.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_if(cx, || true)
    }
}

impl<T> Drop for Offload<T> {
    fn drop(&mut self) {
        if let Ticket::Job { job, home } = &self.ticket
            && job.leave(self.on_drop)
            && let Some(hub) = &self.bounded
        {
            let work: Arc<dyn Work> = job.clone();
            hub.make_room(home.which, &work);
        }
    }
}

impl<T> fmt::Debug for Offload<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offload").field("finished", &self.is_finished()).finish_non_exhaustive()
    }
}

pin_project! {
    /// A job under a deadline; made by [`Lane::offload_with_timeout`](crate::Lane::offload_with_timeout).
    ///
    /// Whichever comes first wins: the result, or the deadline; both at the same look, the result. A job that
    /// loses is dropped as an [`Offload`] is: withdrawn if it has not begun; otherwise it goes on, late.
    #[must_use = "dropping it withdraws the job"]
    pub struct OffloadWithTimeout<T, Tm: Timer> {
        job: Option<Offload<T>>,
        #[pin]
        alarm: Alarm<Tm>,
    }
}

impl<T, Tm: Timer> OffloadWithTimeout<T, Tm> {
    /// A job that was brought in time; or none, if the deadline had passed.
    pub(crate) fn new(job: Option<Offload<T>>, alarm: Alarm<Tm>) -> Self {
        Self { job, alarm }
    }

    /// Says what becomes of a job that has not begun when the deadline comes, or this is dropped.
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.job = self.job.map(|job| job.on_drop(on_drop));
        self
    }

    /// Blocks the calling thread until the job has ended or its deadline has come. The timer has to go on meanwhile:
    /// it must not be that of a loop which this thread drives.
    ///
    /// # Errors
    /// As awaiting it.
    pub fn wait(self) -> Result<T, OffloadError> {
        block_on(self)
    }
}

impl<T, Tm: Timer> Future for OffloadWithTimeout<T, Tm> {
    type Output = Result<T, OffloadError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(job) = this.job else { return Poll::Ready(Err(OffloadError::Elapsed)) };
        if let Poll::Ready(result) = job.poll_if(cx, || !this.alarm.is_due()) {
            return Poll::Ready(result);
        }
        this.alarm.poll(cx).map(|()| {
            *this.job = None;
            Err(OffloadError::Elapsed)
        })
    }
}

impl<T, Tm: Timer> fmt::Debug for OffloadWithTimeout<T, Tm> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OffloadWithTimeout").field("job", &self.job).field("alarm", &self.alarm).finish()
    }
}
