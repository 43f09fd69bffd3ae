//! What goes wrong on purpose: jobs that panic or take long, and threads that the system does not give.

use std::{
    fmt,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use ebbtide_offload::Builder;

use crate::{case::Case, draws::Draws};

/// What draws are made for.
const JOBS: u64 = 10;
const THREADS: u64 = 11;
const START: u64 = 12;

/// Which faults there may be, and how often. Each is drawn for each job and each thread from the seed of the case.
///
/// ```
/// use std::time::Duration;
/// use ebbtide_testkit::Faults;
///
/// let faults = Faults::none().job_panics(10).slow_jobs(5, Duration::from_secs(1)).refused_threads(3);
/// assert_eq!(faults.to_string(), "1 of 10 jobs panics, 1 of 5 takes up to 1s, 1 of 3 threads is refused");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    panics: u32,
    slow: u32,
    slow_up_to: Duration,
    refused: u32,
    not_started: u32,
}

impl Faults {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    pub(crate) fn is_none(&self) -> bool {
        *self == Self::none()
    }

    /// One job of the pool in so many panics instead of being run.
    #[must_use]
    pub fn job_panics(mut self, one_in: u32) -> Self {
        self.panics = one_in;
        self
    }

    /// One job of the pool in so many takes up to this long, in virtual time.
    #[must_use]
    pub fn slow_jobs(mut self, one_in: u32, up_to: Duration) -> Self {
        (self.slow, self.slow_up_to) = (one_in, up_to);
        self
    }

    /// One thread in so many by which the pool would grow is not given. It starts with those that it needs.
    #[must_use]
    pub fn refused_threads(mut self, one_in: u32) -> Self {
        self.refused = one_in;
        self
    }

    /// In one case in so many the pool gets no thread at all, and the program is not started: its exit code must be 71.
    #[must_use]
    pub fn refused_starts(mut self, one_in: u32) -> Self {
        self.not_started = one_in;
        self
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = Vec::new();
        let mut say = |one_in: u32, what: String| {
            if one_in != 0 {
                said.push(what);
            }
        };
        say(self.panics, format!("1 of {} jobs panics", self.panics));
        say(self.slow, format!("1 of {} takes up to {:?}", self.slow, self.slow_up_to));
        say(self.refused, format!("1 of {} threads is refused", self.refused));
        say(self.not_started, format!("1 of {} pools is not started", self.not_started));
        f.write_str(&if said.is_empty() { "nothing goes wrong".to_owned() } else { said.join(", ") })
    }
}

/// The faults of one case.
#[derive(Debug)]
pub(crate) struct Mischief {
    case: Arc<Case>,
    faults: Faults,
    jobs: AtomicU64,
    threads: AtomicU64,
    /// Set by the first job: from then on a thread more is growth, and before that it is the start.
    has_begun: AtomicBool,
    /// The pool was not given the threads that it needs in order to start.
    has_refused_the_start: AtomicBool,
}

impl Mischief {
    pub(crate) fn new(case: &Arc<Case>, faults: Faults) -> Arc<Self> {
        Arc::new(Self {
            case: case.clone(),
            faults,
            jobs: AtomicU64::new(0),
            threads: AtomicU64::new(0),
            has_begun: AtomicBool::new(false),
            has_refused_the_start: AtomicBool::new(false),
        })
    }

    /// The same pool, with these faults.
    pub(crate) fn wire(self: &Arc<Self>, pool: Builder) -> Builder {
        let (jobs, threads) = (self.clone(), self.clone());
        pool.job_faults(move || jobs.job()).thread_faults(move || threads.thread())
    }

    /// The draws of the `nth` of a kind.
    fn draws(&self, kind: u64, nth: u64) -> Draws {
        Draws::new(self.case.decisions.seed(), kind << 32 | nth)
    }

    #[cfg(feature = "app")]
    pub(crate) fn has_refused_the_start(&self) -> bool {
        self.has_refused_the_start.load(Ordering::Relaxed)
    }

    /// Before a job.
    fn job(&self) {
        self.has_begun.store(true, Ordering::Release);
        let nth = self.jobs.fetch_add(1, Ordering::Relaxed) + 1;
        let draws = &mut self.draws(JOBS, nth);
        if draws.one_in(self.faults.slow) {
            let takes = draws.duration(self.faults.slow_up_to);
            self.case.note(format!("job {nth} takes {takes:?}"));
            self.case.clock.advance(takes);
        }
        if draws.one_in(self.faults.panics) {
            self.case.note(format!("job {nth} panics"));
            // Past the hook that prints: it is no news.
            resume_unwind(Box::new("a fault of the test kit"));
        }
    }

    /// Whether a thread is refused.
    fn thread(&self) -> bool {
        let nth = self.threads.fetch_add(1, Ordering::Relaxed) + 1;
        let is_refused = if self.has_begun.load(Ordering::Acquire) {
            self.draws(THREADS, nth).one_in(self.faults.refused)
        } else {
            let is_refused = self.draws(START, 0).one_in(self.faults.not_started);
            self.has_refused_the_start.fetch_or(is_refused, Ordering::Relaxed);
            is_refused
        };
        if is_refused {
            self.case.note(format!("thread {nth} of the pool is refused"));
        }
        is_refused
    }
}
