//! Many cases, one after the other, each watched: one that hangs is found, too.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    contain,
    time::{Clock, SystemClock},
};

use crate::{
    case::Case,
    decisions::{Code, Decisions},
    failing::{Failing, line, wanted},
    witness::Witness,
};

/// How long who is stuck may take to be said.
const DUMP_MAX: Duration = Duration::from_secs(2);

/// So many cases that are over are looked at again: what they have left behind may still run.
const LOOKED_AFTER_MAX: usize = 64;

/// "For all steps" ends here, unless told otherwise: a program that goes on for so long does nothing new.
pub(crate) const STEPS_MAX: u64 = 10_000;

/// "For all steps" ends when so many cases in a row have ended before they were stopped. A single one may have been
/// shorter than the others: with threads of its own, a program does not make the same steps each time.
const UNSTOPPED_MAX: u32 = 3;

/// A case may take this long in real time, unless told otherwise. It takes a millisecond as a rule; the machine may be
/// busy.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// What became of all cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// How many there were.
    pub cases: u64,
    /// How many ended how.
    pub endings: BTreeMap<String, u64>,
    /// How many were stopped as decided. The others ended before that.
    pub stopped: u64,
    /// How many steps all of them made together.
    pub steps: u64,
    /// Real time.
    pub took: Duration,
}

impl Summary {
    /// Both together, one after the other.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.cases += other.cases;
        self.stopped += other.stopped;
        self.steps += other.steps;
        self.took += other.took;
        for (ending, count) in &other.endings {
            *self.endings.entry(ending.clone()).or_default() += count;
        }
        self
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases, {} of them stopped, {} steps", self.cases, self.stopped, self.steps)?;
        for (ending, count) in &self.endings {
            write!(f, "\n{count:9} {ending}")?;
        }
        Ok(())
    }
}

/// Runs a case to its end, and says there what is wrong with it.
type RunCase = dyn Fn(&Arc<Case>) + Send + Sync;

/// How cases are run.
pub(crate) struct Sweep {
    pub(crate) witness: Witness,
    /// How long one may take, in real time.
    pub(crate) limit: Duration,
    pub(crate) decide: Box<dyn Fn(Code) -> Decisions>,
    pub(crate) run: Arc<RunCase>,
    /// What replays a case, if it is not a test.
    pub(crate) replay: Option<Box<dyn Fn(Code) -> String>>,
}

impl Sweep {
    pub(crate) fn seeds(&self, seeds: impl IntoIterator<Item = u64>) -> Result<Summary, Failing> {
        let mut going = Going::new(self);
        match wanted()? {
            Some(code) => drop(going.case(code)?),
            None => seeds.into_iter().try_for_each(|seed| going.case(Code::Seed(seed)).map(drop))?,
        }
        going.end()
    }

    /// Stops before step 1, 2, 3 and so on, until it ends before it is stopped, several times in a row.
    pub(crate) fn every_step(&self, most: u64) -> Result<Summary, Failing> {
        let mut going = Going::new(self);
        if let Some(code) = wanted()? {
            going.case(code)?;
            return going.end();
        }
        let mut unstopped = 0;
        for step in 1..=most {
            let was_stopped = going.case(Code::Step(step))?.was_stopped();
            unstopped = if was_stopped { 0 } else { unstopped + 1 };
            if unstopped == UNSTOPPED_MAX {
                break;
            }
        }
        going.end()
    }

    pub(crate) fn one(&self, code: Code) -> Result<Summary, Failing> {
        let mut going = Going::new(self);
        going.case(code)?;
        going.end()
    }

    fn failing(&self, case: &Case) -> Failing {
        let code = case.decisions.code;
        Failing::new(case, self.replay.as_ref().map_or_else(|| line(code), |replay| replay(code)))
    }

    /// Runs a case on a thread of its own, so that one that hangs can be left behind.
    fn watched(&self, case: &Arc<Case>) {
        let (run, theirs) = (self.run.clone(), case.clone());
        let (ended, has_ended) = mpsc::channel();
        let spawned = thread::Builder::new().name("testkit-case".into()).spawn(move || {
            if let Err(panicked) = contain(|| run(&theirs)) {
                theirs.find(format!("the case panicked: {}", panicked.message()));
            }
            // Whoever does not wait any more has been told otherwise.
            let _ = ended.send(());
        });
        match spawned {
            Err(error) => case.find(format!("there is no thread to run the case on: {error}")),
            Ok(thread) if has_ended.recv_timeout(self.limit).is_ok() => {
                // It has nothing left to do.
                let _ = thread.join();
            }
            Ok(_hangs) => case.find(format!("it did not end within {:?}:\n{}", self.limit, stuck(case))),
        }
    }
}

/// Who is stuck, as far as that can be said in time.
fn stuck(case: &Arc<Case>) -> String {
    let (told, tells) = mpsc::channel();
    let theirs = case.clone();
    let spawned =
        thread::Builder::new().name("testkit-dump".into()).spawn(move || told.send(theirs.who_is_stuck()));
    let told = spawned.ok().and_then(|_| tells.recv_timeout(DUMP_MAX).ok());
    told.unwrap_or_else(|| "who is stuck cannot be said: whoever is asked does not answer".into())
}

/// A sweep that is under way.
struct Going<'a> {
    sweep: &'a Sweep,
    summary: Summary,
    since: std::time::Instant,
    /// Cases that are over, but have left something behind.
    left: VecDeque<Arc<Case>>,
}

impl<'a> Going<'a> {
    fn new(sweep: &'a Sweep) -> Self {
        Self { sweep, summary: Summary::default(), since: SystemClock.now(), left: VecDeque::new() }
    }

    fn case(&mut self, code: Code) -> Result<Arc<Case>, Failing> {
        let case = Case::new((self.sweep.decide)(code), &self.sweep.witness);
        self.sweep.watched(&case);
        self.summary.cases += 1;
        self.summary.stopped += u64::from(case.was_stopped());
        self.summary.steps += case.steps.load(std::sync::atomic::Ordering::Relaxed);
        *self.summary.endings.entry(case.ending()).or_default() += 1;
        if !case.findings().is_empty() {
            return Err(self.sweep.failing(&case));
        }
        self.left.push_back(case.clone());
        if self.left.len() > LOOKED_AFTER_MAX {
            self.look_after()?;
        }
        Ok(case)
    }

    /// Looks again at those that are over.
    fn look_after(&mut self) -> Result<(), Failing> {
        match self.left.drain(..).find(|case| !case.findings().is_empty()) {
            Some(case) => Err(self.sweep.failing(&case)),
            None => Ok(()),
        }
    }

    fn end(mut self) -> Result<Summary, Failing> {
        self.look_after()?;
        self.summary.took = SystemClock.now() - self.since;
        Ok(self.summary)
    }
}
