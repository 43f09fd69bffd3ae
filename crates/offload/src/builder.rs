//! The few choices that a pool has.

use std::{num::NonZero, sync::Arc, thread, time::Duration};

use ebbtide_lifecycle::time::{Tempo, VirtualClock};

use crate::{crew::Kind, error::StartError, faults::Faults, hub::Hub, pool::Pool, work::Hook};

/// How many threads the blocking lane may have, unless told otherwise. More than that many threads that wait
/// hurt more than they help.
const BLOCKING_THREADS: usize = 512;

/// How long a thread of the blocking lane stays with nothing to do, unless told otherwise.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Makes a [`Pool`].
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    name: Arc<str>,
    cpu_threads: usize,
    cpu_queue: Option<usize>,
    blocking_threads: usize,
    blocking_queue: Option<usize>,
    keep_alive: Duration,
    before_each: Option<Hook>,
    time: Tempo,
    faults: Faults,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            name: "offload".into(),
            cpu_threads: thread::available_parallelism().map_or(1, NonZero::get),
            cpu_queue: None,
            blocking_threads: BLOCKING_THREADS,
            blocking_queue: None,
            keep_alive: KEEP_ALIVE,
            before_each: None,
            time: Tempo::Real,
            faults: Faults::default(),
        }
    }

    /// What its threads are called, with `-cpu-0` or `-blocking-0` behind it; `offload` unless told otherwise.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// How many threads the CPU lane has; as many as the machine runs at a time, unless told otherwise.
    pub fn cpu_threads(mut self, threads: usize) -> Self {
        self.cpu_threads = threads;
        self
    }

    /// How many jobs may wait in line for a thread of the CPU lane; any number unless told otherwise.
    pub fn cpu_queue(mut self, jobs: usize) -> Self {
        self.cpu_queue = Some(jobs);
        self
    }

    /// How many threads the blocking lane may have; 512 unless told otherwise. It has one always.
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.blocking_threads = threads;
        self
    }

    /// How many jobs may wait in line for a thread of the blocking lane; any number unless told otherwise.
    pub fn blocking_queue(mut self, jobs: usize) -> Self {
        self.blocking_queue = Some(jobs);
        self
    }

    /// How long a thread of the blocking lane stays with nothing to do; 10 seconds unless told otherwise.
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Called before each job, on its thread: to clear what an earlier job has left in thread-locals, say. If
    /// it panics, the job is not run, and fails with that panic.
    ///
    /// A job that another one waits for on a thread of the pool is run in the middle of that one, and the hook before
    /// it, too: what the outer job keeps in thread-locals across such a wait is cleared with the rest.
    pub fn before_each(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.before_each = Some(Box::new(hook));
        self
    }

    /// The pool lives in virtual time, which stands still while a job is in flight; for tests.
    pub fn clock(mut self, clock: &VirtualClock) -> Self {
        self.time = Tempo::Virtual(clock.clone());
        self
    }

    /// Called before each job, on its thread and after the hook of [`before_each`](Builder::before_each); for tests.
    /// If it panics, the job is not run, and fails with that panic; if it moves a virtual clock, the job has taken
    /// that long.
    #[cfg(feature = "testing")]
    pub fn job_faults(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.faults.job = Some(Box::new(hook));
        self
    }

    /// Says of each thread that is to be started whether there is none to be had, as a system does that has run out of
    /// them; for tests. Called under the pool's lock: it must not touch the pool.
    #[cfg(feature = "testing")]
    pub fn thread_faults(mut self, is_refused: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.faults.thread = Some(Box::new(is_refused));
        self
    }

    /// Starts the threads of the CPU lane, and the first of the blocking lane.
    ///
    /// # Errors
    /// If a lane was to have no thread, or room for no job; if the name cannot be a thread's; and if the system
    /// has no thread to give.
    pub fn start(mut self) -> Result<Pool, StartError> {
        for (what, number) in [
            ("the number of threads of the CPU lane", Some(self.cpu_threads)),
            ("the number of threads of the blocking lane", Some(self.blocking_threads)),
            ("the length of the CPU lane's queue", self.cpu_queue),
            ("the length of the blocking lane's queue", self.blocking_queue),
        ] {
            if number == Some(0) {
                return Err(StartError::Zero { what });
            }
        }
        if self.name.contains('\0') {
            return Err(StartError::Name);
        }
        let cpu = (self.cpu_queue, Kind::Fixed(self.cpu_threads));
        let elastic = Kind::Elastic { max: self.blocking_threads, keep_alive: self.keep_alive };
        let lanes = [cpu, (self.blocking_queue, elastic)];
        let before_each = self.faults.after(self.before_each);
        Pool::start(Arc::new(Hub::new(self.name, lanes, before_each, self.time, self.faults)))
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).finish_non_exhaustive()
    }
}
