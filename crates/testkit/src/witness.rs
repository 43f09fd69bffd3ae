//! What a program leaves behind where the kit can see it: things that must be gone at the end, things that must not run
//! any more, and promises that must be kept.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use ebbtide_lifecycle::blame::Origin;
use pin_project_lite::pin_project;

/// So many are named in a message: the first tell what is wrong.
const NAMED_MAX: usize = 8;

/// Sees what a program leaves behind. A clone is another handle to the same witness.
///
/// It is made outside of the program, which takes a clone, and given to the [`Explorer`](crate::Explorer), which has it
/// forget between two cases; a [`Scene`](crate::Scene) has one of its own.
///
/// | in the program | after each case |
/// |---|---|
/// | [`canary`](Witness::canary), put into what must be dropped | none is alive |
/// | [`watch`](Witness::watch), around futures; [`mark`](Witness::mark), in jobs | nothing ran after the end |
/// | [`promise`](Witness::promise), for what was accepted | each was kept, or the report counts why not |
/// | [`complain`](Witness::complain) | nobody did |
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// What belongs to the case that runs.
    current: Arc<Mutex<Arc<Epoch>>>,
}

/// What was seen of one case.
#[derive(Debug, Default)]
pub(crate) struct Epoch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Numbers canaries and promises.
    issued: u64,
    canaries: BTreeMap<u64, Origin>,
    promises: BTreeMap<u64, Origin>,
    broken: Vec<Origin>,
    /// The program has stopped.
    is_over: bool,
    /// What ran after that.
    after: Vec<String>,
    complaints: Vec<String>,
}

impl Witness {
    /// One who has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Something that is alive until it is dropped, known by the caller's location. At the end of a case none may be.
    #[track_caller]
    pub fn canary(&self) -> Canary {
        let (epoch, origin) = (self.epoch(), Origin::here());
        epoch.ran(&origin, "a canary was hatched");
        let number = epoch.seen().issue(|seen, number| seen.canaries.insert(number, origin));
        Canary { epoch, number }
    }

    /// Has each poll of `future` seen, known by the caller's location: after the end there may be none.
    #[track_caller]
    pub fn watch<F: Future>(&self, future: F) -> Watched<F> {
        let canary = self.canary();
        Watched { future, origin: Origin::here(), canary }
    }

    /// Says that something of the case that runs does, known by the caller's location: after its end nothing may.
    #[track_caller]
    pub fn ran(&self) {
        self.epoch().ran(&Origin::here(), "it ran");
    }

    /// What says so of this very case, also when it is kept until another one runs.
    #[track_caller]
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { epoch: self.epoch(), origin: Origin::here() }
    }

    /// Something that was accepted, and has to be answered or handed back, under this name.
    #[track_caller]
    pub fn promise(&self, name: impl Into<Arc<str>>) -> Promise {
        let (epoch, origin) = (self.epoch(), Origin::here().named(name));
        let number = epoch.seen().issue(|seen, number| seen.promises.insert(number, origin));
        Promise { epoch, number }
    }

    /// Says that something is wrong: the case fails.
    pub fn complain(&self, what: impl fmt::Display) {
        self.epoch().seen().complaints.push(what.to_string());
    }

    fn epoch(&self) -> Arc<Epoch> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets: what is there from now on belongs to the next case.
    pub(crate) fn begin(&self) -> Arc<Epoch> {
        let epoch = Arc::<Epoch>::default();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = epoch.clone();
        epoch
    }
}

impl Seen {
    fn issue<T>(&mut self, put: impl FnOnce(&mut Self, u64) -> T) -> u64 {
        self.issued += 1;
        put(self, self.issued);
        self.issued
    }
}

/// What is allowed to be wrong with a case, because its report says so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leave {
    /// Something goes on after the end: it may run, and hold what it holds.
    pub(crate) goes_on: bool,
    /// So many promises may be broken: as much work failed, was cancelled, or was given up on.
    pub(crate) broken: u64,
}

impl Epoch {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Nothing that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ran(&self, origin: &Origin, what: &str) {
        let mut seen = self.seen();
        if seen.is_over {
            seen.after.push(format!("{what} after the end: {origin}"));
        }
    }

    /// The program has stopped.
    pub(crate) fn end(&self) {
        self.seen().is_over = true;
    }

    /// What is wrong.
    pub(crate) fn findings(&self, leave: Leave) -> Vec<String> {
        let seen = self.seen();
        let mut findings = seen.complaints.clone();
        if !leave.goes_on {
            findings.extend(seen.after.iter().take(NAMED_MAX).cloned());
            if !seen.canaries.is_empty() {
                findings.push(format!(
                    "{} alive after the end: {}",
                    seen.canaries.len(),
                    named(seen.canaries.values())
                ));
            }
        }
        let unkept = seen.broken.iter().chain(seen.promises.values());
        let count = unkept.clone().count();
        if count as u64 > leave.broken {
            let accounted = leave.broken;
            findings.push(format!(
                "{count} accepted and never answered, of which the report accounts for {accounted}: {}",
                named(unkept)
            ));
        }
        findings
    }
}

fn named<'a>(origins: impl Iterator<Item = &'a Origin>) -> String {
    let names: Vec<_> = origins.take(NAMED_MAX).map(ToString::to_string).collect();
    names.join(", ")
}

/// Belongs to one case; made by [`Witness::mark`].
#[derive(Clone, Debug)]
pub struct Mark {
    epoch: Arc<Epoch>,
    origin: Origin,
}

impl Mark {
    /// Says that something runs, known by where the mark was made: after the end of its case nothing may.
    pub fn ran(&self) {
        self.epoch.ran(&self.origin, "it ran");
    }
}

/// Alive until it is dropped; made by [`Witness::canary`].
#[derive(Debug)]
pub struct Canary {
    epoch: Arc<Epoch>,
    number: u64,
}

impl Drop for Canary {
    fn drop(&mut self) {
        let origin = self.epoch.seen().canaries.remove(&self.number);
        drop(origin);
    }
}

/// Something that has to be answered; made by [`Witness::promise`]. Dropped, it is broken.
#[derive(Debug)]
#[must_use = "a promise that is dropped is broken"]
pub struct Promise {
    epoch: Arc<Epoch>,
    number: u64,
}

impl Promise {
    /// It was answered, or handed back.
    pub fn keep(self) {
        let origin = self.epoch.seen().promises.remove(&self.number);
        drop(origin);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let mut seen = self.epoch.seen();
        let broken = seen.promises.remove(&self.number);
        seen.broken.extend(broken);
    }
}

pin_project! {
    /// A future of which each poll is seen; made by [`Witness::watch`].
    #[derive(Debug)]
    pub struct Watched<F> {
        #[pin]
        future: F,
        origin: Origin,
        canary: Canary,
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.canary.epoch.ran(this.origin, "it was polled");
        this.future.poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alive_runs_late_or_was_not_answered_is_found_and_named() {
        let witness = Witness::new();
        let epoch = witness.begin();
        let canary = witness.canary();
        drop(witness.promise("request 7"));
        witness.promise("request 8").keep();
        epoch.end();
        witness.ran();
        let findings = epoch.findings(Leave::default());
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].contains("it ran after the end: crates/testkit/src/witness.rs"), "{findings:?}");
        assert!(findings[1].contains("1 alive after the end: crates/testkit/src/witness.rs"), "{findings:?}");
        assert!(findings[2].contains("\"request 7\" at"), "{findings:?}");
        assert!(epoch.findings(Leave { goes_on: true, broken: 1 }).is_empty());
        drop(canary);
        assert_eq!(epoch.findings(Leave { goes_on: false, broken: 1 }).len(), 1, "it ran");
    }

    #[test]
    fn the_next_case_knows_nothing_of_the_one_before() {
        let witness = Witness::new();
        let first = witness.begin();
        let canary = witness.canary();
        let second = witness.begin();
        assert!(second.findings(Leave::default()).is_empty());
        assert_eq!(first.findings(Leave::default()).len(), 1);
        drop(canary);
    }
}
