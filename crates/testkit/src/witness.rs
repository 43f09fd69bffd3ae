//! What a program leaves behind where the kit can see it: things that must be gone at the end, things that must not run
//! any more, and promises that must be kept.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use ebbtide_lifecycle::{Balance, blame::Origin};
use pin_project_lite::pin_project;

/// So many are named in a message: the first tell what is wrong.
const NAMED_MAX: usize = 8;

/// Why a promise need not be kept that nobody has excused.
const CUT_SHORT: &str = "the stop was cut short";

/// Sees what a program leaves behind. A clone is another handle to the same witness.
///
/// It is made outside of the program, which takes a clone, and given to the [`Explorer`](crate::Explorer), which has it
/// forget between two cases; a [`Scene`](crate::Scene) has one of its own.
///
/// | in the program | after each case |
/// |---|---|
/// | [`canary`](Witness::canary), put into what must be dropped | none is alive |
/// | [`watch`](Witness::watch), around futures; [`mark`](Witness::mark), in jobs | nothing ran after the end |
/// | [`promise`](Witness::promise), for what was accepted | each was kept, or excused |
/// | [`complain`](Witness::complain) | nobody did |
///
/// # Panics
/// Whatever the program asks of it panics as long as it has never been given to an explorer that ran: what it saw
/// would be told to nobody.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    post: Arc<Mutex<Post>>,
}

/// Whom a witness serves.
#[derive(Debug, Default)]
struct Post {
    /// What belongs to the case that runs, or to the last that did. None before the first.
    current: Option<Arc<Epoch>>,
    /// A sweep goes on, whose cases come one after the other: another one would mix its own with them.
    is_taken: bool,
}

/// A witness that serves one sweep, and no other until this is dropped.
pub(crate) struct Taken<'a>(&'a Witness);

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
    /// How many promises were excused, by why.
    excused: BTreeMap<String, u64>,
    /// The program has stopped.
    is_over: bool,
    /// What ran after that.
    after: BTreeSet<String>,
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

    #[track_caller]
    fn epoch(&self) -> Arc<Epoch> {
        let current = self.post().current.clone();
        current.expect("a witness that nobody asks: give it to `Explorer::witness`")
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        // Nothing that can panic runs under the lock.
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it serve one sweep. None while it serves another.
    pub(crate) fn take(&self) -> Option<Taken<'_>> {
        let mut post = self.post();
        (!std::mem::replace(&mut post.is_taken, true)).then(|| Taken(self))
    }

    /// Forgets: what is there from now on belongs to the next case.
    pub(crate) fn begin(&self) -> Arc<Epoch> {
        let epoch = Arc::<Epoch>::default();
        self.post().current = Some(epoch.clone());
        epoch
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.post().is_taken = false;
    }
}

impl Seen {
    /// How many promises were dropped, or are still there, and neither kept nor excused.
    fn unkept(&self) -> u64 {
        (self.broken.len() + self.promises.len()) as u64
    }

    fn issue<T>(&mut self, put: impl FnOnce(&mut Self, u64) -> T) -> u64 {
        self.issued += 1;
        put(self, self.issued);
        self.issued
    }
}

/// What is allowed to be wrong with a case, because its report says so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leave {
    /// So many pieces of work go on after the end: in as many places something may run, and as many canaries be alive.
    pub(crate) goes_on: u64,
    /// So many promises may be broken: as much work was cancelled or given up on where the user said that it may.
    pub(crate) broken: u64,
}

impl Leave {
    /// What was dropped before its end, or given up on.
    pub(crate) fn cut_short(balance: &Balance) -> u64 {
        balance.cancelled + balance.abandoned + balance.in_flight
    }
}

impl Epoch {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Nothing that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ran(&self, origin: &Origin, what: &str) {
        let mut seen = self.seen();
        if seen.is_over {
            seen.after.insert(format!("{what} after the end: {origin}"));
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
        if seen.after.len() as u64 > leave.goes_on {
            findings.extend(seen.after.iter().take(NAMED_MAX).cloned());
        }
        let alive = seen.canaries.len();
        if alive as u64 > leave.goes_on {
            findings.push(format!("{alive} alive after the end: {}", named(seen.canaries.values())));
        }
        if leave.goes_on > 0 && !findings.is_empty() {
            findings.push(format!("pieces of work that were given up on and may go on: {}", leave.goes_on));
        }
        if seen.unkept() > leave.broken {
            let unkept = seen.broken.iter().chain(seen.promises.values());
            findings.push(format!(
                "{} accepted and never answered, of which a stop that was cut short may break {}: {}",
                seen.unkept(),
                leave.broken,
                named(unkept)
            ));
        }
        findings
    }

    /// How many promises were not kept, and need not be, by why.
    pub(crate) fn excused(&self) -> BTreeMap<String, u64> {
        let seen = self.seen();
        let mut excused = seen.excused.clone();
        if seen.unkept() > 0 {
            excused.insert(CUT_SHORT.to_owned(), seen.unkept());
        }
        excused
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

/// Something that has to be answered; made by [`Witness::promise`]. Dropped, it is broken, which fails the case: that
/// something else failed, was cancelled or was given up on in it is no excuse.
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

    /// It will not be answered, and the program knows why: it has cancelled the work itself, or was told that it
    /// failed. The summary counts how many were excused, by `why`.
    pub fn excuse(self, why: impl fmt::Display) {
        let mut seen = self.epoch.seen();
        let origin = seen.promises.remove(&self.number);
        *seen.excused.entry(why.to_string()).or_default() += 1;
        drop(seen);
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
        assert!(epoch.findings(Leave { goes_on: 1, broken: 1 }).is_empty());
        drop(canary);
        assert_eq!(epoch.findings(Leave { goes_on: 0, broken: 1 }).len(), 1, "it ran");
    }

    #[test]
    fn no_more_is_allowed_than_goes_on_and_was_cut_short() {
        let witness = Witness::new();
        let epoch = witness.begin();
        let canaries = [witness.canary(), witness.canary()];
        drop((witness.promise("one"), witness.promise("two")));
        epoch.end();
        assert_eq!(epoch.findings(Leave { goes_on: 2, broken: 2 }), Vec::<String>::new());
        let findings = epoch.findings(Leave { goes_on: 1, broken: 1 });
        assert!(findings[0].starts_with("2 alive") && findings[2].starts_with("2 accepted"), "{findings:?}");
        drop(canaries);
    }

    #[test]
    fn a_promise_is_excused_by_itself_and_counted() {
        let witness = Witness::new();
        let epoch = witness.begin();
        witness.promise("one").excuse("its job panicked");
        assert!(epoch.findings(Leave::default()).is_empty());
        drop(witness.promise("two"));
        assert_eq!(epoch.findings(Leave::default()).len(), 1, "the excuse of one is none for another");
        let excused = epoch.excused();
        assert_eq!((excused["its job panicked"], excused[CUT_SHORT]), (1, 1));
    }

    #[test]
    #[should_panic = "a witness that nobody asks"]
    fn a_witness_that_nobody_asks_says_so_at_its_first_use() {
        drop(Witness::new().canary());
    }

    #[test]
    fn a_witness_serves_one_sweep_at_a_time() {
        let witness = Witness::new();
        let taken = witness.take();
        assert!(taken.is_some() && witness.clone().take().is_none());
        drop(taken);
        assert!(witness.take().is_some());
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
