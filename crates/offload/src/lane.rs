//! Where jobs are brought.

use std::{fmt, panic::Location, sync::Arc};

use ebbtide_lifecycle::{
    Refused,
    time::{Alarm, Deadline, Timer},
};

use crate::{
    batch::{Batch, Jobs},
    error::OffloadError,
    hub::{Brought, Hub, Which},
    job::Job,
    offload::{Offload, OffloadWithTimeout},
    work::{Lost, Tag, Work},
};

/// One of the two lanes of a [`Pool`](crate::Pool), and what its jobs are to be called.
#[derive(Clone)]
#[must_use = "a lane does nothing until a job is brought"]
pub struct Lane<'p> {
    hub: &'p Arc<Hub>,
    which: Which,
    name: Option<Arc<str>>,
}

impl<'p> Lane<'p> {
    pub(crate) fn new(hub: &'p Arc<Hub>, which: Which) -> Self {
        Self { hub, which, name: None }
    }

    /// The same lane, for jobs with a name: reports say it beside the place where the job was brought.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Brings a job, which begins as soon as a thread is free, whether it is awaited or not.
    ///
    /// If the lane has a limit and is full, the job waits for room, behind those that came before it. On a
    /// closed pool it is dropped, and awaiting gives [`OffloadError::Refused`]; use
    /// [`try_offload`](Lane::try_offload) to have it back.
    #[track_caller]
    pub fn offload<F, T>(&self, f: F) -> Offload<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let job = Arc::new(Job::new(self.tag(Location::caller()), f));
        match self.bring(job.clone(), 1, true) {
            Brought::Accepted | Brought::Waits => {
                Offload::new(job, self.hub.home(self.which), self.hub_if_bounded())
            }
            Brought::Refused(why) => {
                job.discard(0..1, Lost::Closed);
                Offload::lost(OffloadError::Refused(why))
            }
        }
    }

    /// Brings a job, unless the pool is closed or the lane is full.
    ///
    /// # Errors
    /// Hands `f` back: it has not run, and will not.
    #[track_caller]
    pub fn try_offload<F, T>(&self, f: F) -> Result<Offload<T>, Refused<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let job = Arc::new(Job::new(self.tag(Location::caller()), f));
        match self.bring(job.clone(), 1, false) {
            Brought::Accepted | Brought::Waits => {
                Ok(Offload::new(job, self.hub.home(self.which), self.hub_if_bounded()))
            }
            Brought::Refused(why) => {
                let work = job.take_closure().expect("a refused job has not begun");
                Err(Refused { why, work })
            }
        }
    }

    /// Brings a job that nobody waits for: it gives nothing, and counts as completed when it has run.
    ///
    /// If the lane has a limit and is full, the job waits for room. If the pool closes meanwhile, or stops before the
    /// job has begun, `f` is dropped: whoever has to know sees that in the drop of something that it holds.
    ///
    /// # Errors
    /// Hands `f` back once the pool is closed: it has not run, and will not.
    #[track_caller]
    pub fn spawn<F>(&self, f: F) -> Result<(), Refused<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let job = Arc::new(Job::unawaited(self.tag(Location::caller()), f));
        match self.bring(job.clone(), 1, true) {
            Brought::Accepted | Brought::Waits => Ok(()),
            Brought::Refused(why) => {
                let work = job.take_closure().expect("a refused job has not begun");
                Err(Refused { why, work })
            }
        }
    }

    /// Brings several jobs at once: one step for the queue, one thread woken, which wakes the next, and one
    /// waiter, who is woken when there are as many results as he waits for.
    ///
    /// If the lane has a limit, they wait until there is room for all of them; or, if they are more than that,
    /// until the line is empty. On a closed pool they are dropped, and each result is
    /// [`OffloadError::Refused`].
    ///
    /// # Panics
    /// With 2^32 jobs or more.
    #[track_caller]
    pub fn offload_all<F, T>(&self, jobs: impl IntoIterator<Item = F>) -> Batch<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let jobs: Vec<F> = jobs.into_iter().collect();
        let len = jobs.len();
        let jobs = Arc::new(Jobs::new(self.tag(Location::caller()), jobs));
        if len > 0
            && let Brought::Refused(_) = self.bring(jobs.clone(), len, true)
        {
            jobs.discard(0..len, Lost::Closed);
        }
        Batch::new(jobs, len, self.hub.home(self.which), self.hub_if_bounded())
    }

    /// Brings several jobs at once, unless the pool is closed or there is no room for all of them: more than the
    /// lane's limit are always refused, also when the line is empty.
    ///
    /// # Errors
    /// Hands all of them back: none has run, and none will.
    ///
    /// # Panics
    /// With 2^32 jobs or more.
    #[track_caller]
    pub fn try_offload_all<F, T>(
        &self,
        jobs: impl IntoIterator<Item = F>,
    ) -> Result<Batch<T>, Refused<Vec<F>>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let jobs: Vec<F> = jobs.into_iter().collect();
        let len = jobs.len();
        let jobs = Arc::new(Jobs::new(self.tag(Location::caller()), jobs));
        if len > 0
            && let Brought::Refused(why) = self.bring(jobs.clone(), len, false)
        {
            return Err(Refused { why, work: jobs.take_closures() });
        }
        Ok(Batch::new(jobs, len, self.hub.home(self.which), self.hub_if_bounded()))
    }

    /// Brings a job that is given up on at `deadline`: then awaiting it gives [`OffloadError::Elapsed`]. If it
    /// has begun by then, it runs to its end, and its result is discarded and counted as late; if not, it is
    /// withdrawn. At a deadline that has passed it is not brought at all.
    ///
    /// Awaited in a job of the same pool it is run [right there](crate#waiting-for-a-job-within-a-job), unless it has
    /// begun: then the deadline is looked at only before that.
    #[track_caller]
    pub fn offload_with_timeout<F, T, Tm>(
        &self,
        timer: Tm,
        deadline: Deadline,
        f: F,
    ) -> OffloadWithTimeout<T, Tm>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
        Tm: Timer,
    {
        let alarm = Alarm::by(timer, deadline);
        let job = if alarm.is_due() { None } else { Some(self.offload(f)) };
        OffloadWithTimeout::new(job, alarm)
    }

    fn tag(&self, site: &'static Location<'static>) -> Tag {
        Tag { site, name: self.name.clone() }
    }

    /// What a job needs to give its room back, if it holds any that others wait for.
    fn hub_if_bounded(&self) -> Option<Arc<Hub>> {
        self.hub.is_bounded(self.which).then(|| self.hub.clone())
    }

    fn bring(&self, work: Arc<dyn Work>, parts: usize, may_wait: bool) -> Brought {
        self.hub.bring(self.which, work, 0..parts, may_wait)
    }
}

impl fmt::Debug for Lane<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref();
        f.debug_struct("Lane").field("which", &self.which).field("name", &name).finish_non_exhaustive()
    }
}
