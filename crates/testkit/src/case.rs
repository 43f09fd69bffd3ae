//! One case: what was decided about it, what happened in it, and what is wrong with it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use ebbtide_lifecycle::time::VirtualClock;

use crate::{
    decisions::{By, Decisions, Stop},
    witness::{Epoch, Leave, Witness},
};

/// Says who is stuck, while the case hangs.
type Dump = Box<dyn Fn() -> String + Send>;

pub(crate) struct Case {
    pub(crate) decisions: Decisions,
    pub(crate) clock: VirtualClock,
    pub(crate) epoch: Arc<Epoch>,
    /// How many steps its loop has made.
    pub(crate) steps: AtomicU64,
    /// It was stopped as decided, and did not end before that.
    was_stopped: AtomicBool,
    /// It was sent a signal because its lifetime was over.
    outlived: AtomicBool,
    course: Mutex<Course>,
}

/// How it goes.
#[derive(Default)]
struct Course {
    notes: Vec<String>,
    findings: Vec<String>,
    /// How it ended, in a word or two.
    ending: Option<String>,
    /// What it may leave behind. None as long as it has not ended, and if it panicked: then nothing is known of that.
    leave: Option<Leave>,
    dumps: Vec<Dump>,
}

impl Case {
    pub(crate) fn new(decisions: Decisions, witness: &Witness) -> Arc<Self> {
        Arc::new(Self {
            decisions,
            clock: VirtualClock::new(),
            epoch: witness.begin(),
            steps: AtomicU64::new(0),
            was_stopped: AtomicBool::new(false),
            outlived: AtomicBool::new(false),
            course: Mutex::default(),
        })
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        // Nothing that can panic runs under the lock.
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something that was drawn has come about.
    pub(crate) fn note(&self, what: String) {
        self.course().notes.push(what);
    }

    pub(crate) fn find(&self, what: impl Into<String>) {
        self.course().findings.push(what.into());
    }

    pub(crate) fn end(&self, ending: impl Into<String>, leave: Leave) {
        let mut course = self.course();
        (course.ending, course.leave) = (Some(ending.into()), Some(leave));
    }

    /// It did not come to its end.
    pub(crate) fn panicked(&self, message: &str) {
        let mut course = self.course();
        course.findings.push(format!("the case panicked: {message}"));
        course.ending = Some("panicked".into());
    }

    pub(crate) fn if_stuck(&self, dump: impl Fn() -> String + Send + 'static) {
        self.course().dumps.push(Box::new(dump));
    }

    /// A step of its loop. Gives by what it is stopped, if it is before this one.
    pub(crate) fn step(&self) -> Option<By> {
        let number = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        match self.decisions.stop {
            Stop::AtStep(step, by) if step == number => Some(by),
            _ => None,
        }
    }

    pub(crate) fn is_stopped(&self) {
        self.was_stopped.store(true, Ordering::Release);
    }

    pub(crate) fn was_stopped(&self) -> bool {
        self.was_stopped.load(Ordering::Acquire)
    }

    /// Its lifetime is over.
    #[cfg(feature = "app")]
    pub(crate) fn outlives(&self, lifetime: std::time::Duration) {
        self.outlived.store(true, Ordering::Release);
        self.note(format!("its lifetime of {lifetime:?} is over"));
    }

    pub(crate) fn has_outlived(&self) -> bool {
        self.outlived.load(Ordering::Acquire)
    }

    pub(crate) fn ending(&self) -> String {
        self.course().ending.clone().unwrap_or_else(|| "hung".into())
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.course().notes.clone()
    }

    /// All that is wrong. What is seen after the end can come later.
    pub(crate) fn findings(&self) -> Vec<String> {
        let course = self.course();
        let mut findings = course.findings.clone();
        findings.extend(course.leave.into_iter().flat_map(|leave| self.epoch.findings(leave)));
        findings
    }

    /// Whether something is wrong that time does not mend: work that was given up on, and goes on by rights, may let go
    /// yet of what it holds.
    pub(crate) fn is_wrong(&self) -> bool {
        let goes_on = self.course().leave.is_some_and(|leave| leave.goes_on > 0);
        if goes_on { !self.course().findings.is_empty() } else { !self.findings().is_empty() }
    }

    /// Who is stuck. Asked on a thread of its own: it may hang as well.
    pub(crate) fn who_is_stuck(&self) -> String {
        let dumps = std::mem::take(&mut self.course().dumps);
        dumps.iter().map(|dump| dump()).collect::<Vec<_>>().join("\n")
    }

    /// Lets go of what was kept in order to ask it.
    pub(crate) fn forget(&self) {
        let dumps = std::mem::take(&mut self.course().dumps);
        drop(dumps);
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("decisions", &self.decisions).finish_non_exhaustive()
    }
}
