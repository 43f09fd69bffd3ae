//! Many cases, one after the other, each watched: one that hangs is found, too.

use std::{
    collections::BTreeMap,
    fmt,
    future::pending,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    contain,
    time::{Clock, Deadline, SystemClock},
    wait::block_on_by,
};

use crate::{
    case::Case,
    decisions::{Code, Decisions},
    failing::{Failing, line, wanted},
    witness::{Taken, Witness},
};

/// How long who is stuck may take to be said.
const DUMP_MAX: Duration = Duration::from_secs(2);

/// So many cases that are over are looked at again: what they have left behind may still run.
const LOOKED_AFTER_MAX: usize = 64;

/// At the end of a sweep, what was left behind gets so much real time in which it may show itself. A thread that gets
/// on by itself does within a few turns of a scheduler, on a busy machine too.
const GRACE: Duration = Duration::from_millis(100);

/// What was given up on, and goes on by rights, gets as much until it holds nothing any more.
const GRACES_MAX: u32 = 20;

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
    /// How many lived until their lifetime was over, and were sent a signal then.
    pub outlived: u64,
    /// How many promises were not kept, and need not be, by why.
    pub excused: BTreeMap<String, u64>,
    /// "Every step" ended at the limit, and not at the program's end: nobody knows what a later stop would have done.
    pub is_truncated: bool,
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
        self.outlived += other.outlived;
        self.is_truncated |= other.is_truncated;
        self.steps += other.steps;
        self.took += other.took;
        add(&mut self.endings, &other.endings);
        add(&mut self.excused, &other.excused);
        self
    }
}

fn add(sums: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, count) in more {
        *sums.entry(name.clone()).or_default() += count;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases, {} of them stopped, {} steps", self.cases, self.stopped, self.steps)?;
        if self.outlived > 0 {
            write!(f, ", {} lifetimes over", self.outlived)?;
        }
        if self.is_truncated {
            f.write_str(", not stopped at later steps than the limit")?;
        }
        for (ending, count) in &self.endings {
            write!(f, "\n{count:9} {ending}")?;
        }
        for (why, count) in &self.excused {
            write!(f, "\n{count:9} promises excused: {why}")?;
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
    /// A sweep in which no loop makes a step has stopped nothing.
    pub(crate) must_step: bool,
}

impl Sweep {
    pub(crate) fn seeds(&self, seeds: impl IntoIterator<Item = u64>) -> Result<Summary, Failing> {
        if let Some(code @ Code::Seed(_)) = wanted()? {
            self.one(code)?;
        }
        let mut going = Going::new(self)?;
        seeds.into_iter().try_for_each(|seed| going.case(Code::Seed(seed)).map(drop))?;
        going.end()
    }

    /// Stops before step 1, 2, 3 and so on, until it ends before it is stopped, several times in a row.
    pub(crate) fn every_step(&self, most: u64) -> Result<Summary, Failing> {
        if let Some(code @ Code::Step(_)) = wanted()? {
            self.one(code)?;
        }
        let mut going = Going::new(self)?;
        let mut unstopped = 0;
        for step in 1..=most {
            let was_stopped = going.case(Code::Step(step))?.was_stopped();
            unstopped = if was_stopped { 0 } else { unstopped + 1 };
            if unstopped == UNSTOPPED_MAX {
                break;
            }
        }
        going.summary.is_truncated = unstopped < UNSTOPPED_MAX;
        going.end()
    }

    pub(crate) fn one(&self, code: Code) -> Result<Summary, Failing> {
        let mut going = Going::new(self)?;
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
                theirs.panicked(panicked.message());
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
    /// Cases that are over, but may have left something behind.
    left: Vec<Arc<Case>>,
    _witness: Taken<'a>,
}

impl<'a> Going<'a> {
    fn new(sweep: &'a Sweep) -> Result<Self, Failing> {
        let witness = sweep.witness.take().ok_or_else(|| {
            Failing::not_a_case(
                &"its witness serves another sweep that is under way: give each one of its own",
            )
        })?;
        let since = SystemClock.now();
        Ok(Self { sweep, summary: Summary::default(), since, left: Vec::new(), _witness: witness })
    }

    fn case(&mut self, code: Code) -> Result<Arc<Case>, Failing> {
        let case = Case::new((self.sweep.decide)(code), &self.sweep.witness);
        self.sweep.watched(&case);
        self.summary.cases += 1;
        self.summary.stopped += u64::from(case.was_stopped());
        self.summary.outlived += u64::from(case.has_outlived());
        self.summary.steps += case.steps.load(std::sync::atomic::Ordering::Relaxed);
        *self.summary.endings.entry(case.ending()).or_default() += 1;
        self.left.push(case.clone());
        if self.left.len() > LOOKED_AFTER_MAX || case.is_wrong() {
            self.look_after()?;
        }
        Ok(case)
    }

    /// Looks at those that are over. Lets go of those of which nothing is left, when there are many.
    fn look_after(&mut self) -> Result<(), Failing> {
        if let Some(case) = self.left.iter().find(|case| case.is_wrong()) {
            return Err(self.sweep.failing(case));
        }
        if self.left.len() > LOOKED_AFTER_MAX {
            // Not of the last ones: they have had no time to show anything.
            let over = self.left.extract_if(..LOOKED_AFTER_MAX / 2, |case| case.findings().is_empty());
            over.for_each(|case| add(&mut self.summary.excused, &case.epoch.excused()));
        }
        Ok(())
    }

    fn end(mut self) -> Result<Summary, Failing> {
        for _ in 0..GRACES_MAX {
            let over = block_on_by(pending::<()>(), Deadline::after(SystemClock, GRACE));
            debug_assert!(over.is_err(), "it never comes");
            self.look_after()?;
            if self.left.iter().all(|case| case.findings().is_empty()) {
                break;
            }
        }
        if let Some(case) = self.left.iter().find(|case| !case.findings().is_empty()) {
            return Err(self.sweep.failing(case));
        }
        for case in &self.left {
            add(&mut self.summary.excused, &case.epoch.excused());
        }
        if self.summary.cases == 0 {
            return Err(Failing::not_a_case(&"there is no case: nothing was explored"));
        }
        if self.sweep.must_step && self.summary.steps == 0 {
            return Err(Failing::not_a_case(
                &"no loop of the scene has made a step, so nothing was stopped: take `Scene::runtime`",
            ));
        }
        self.summary.took = SystemClock.now() - self.since;
        Ok(self.summary)
    }
}
