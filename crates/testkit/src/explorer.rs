//! Whole programs.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ebbtide::{
    App, Error, Exit,
    app::Builder,
    lifecycle::{Component as _, time::VirtualClock},
    shutdown::{Feed, Signals, Verdict},
};

use crate::{
    audit::{Allowed, Audit},
    case::Case,
    decisions::{Code, Decisions},
    failing::Failing,
    faults::{Faults, Mischief},
    hand::Hand,
    sweep::{LIMIT, STEPS_MAX, Summary, Sweep},
    witness::Witness,
};

/// How long a program may live in virtual time before it is sent a signal, unless told otherwise.
const LIFETIME: Duration = Duration::from_secs(60);

/// Runs a program again and again, in virtual time, on the real loop, pool and coordinator, and stops it each time
/// somewhere else.
///
/// ```
/// use std::time::Duration;
/// use ebbtide::{App, sleep};
/// use ebbtide_testkit::{Explorer, Witness};
///
/// let witness = Witness::new();
/// let seen = witness.clone();
/// let explorer = Explorer::new(async move |app: App| {
///     let _canary = seen.canary();
///     let sum = app.pool().offload(|| (1..=10).sum::<u32>()).await?;
///     // A stop may have come first: then there is nobody to print for.
///     if let Ok(task) = app.spawn(seen.watch(async move { sleep(Duration::from_secs(1)).await; sum })) {
///         task.await?;
///     }
///     Ok(())
/// })
/// .witness(&witness);
/// explorer.stop_at_every_step()?;
/// explorer.seeds(0..20)?;
/// # Ok::<(), ebbtide_testkit::Failing>(())
/// ```
///
/// # What is checked after each case
/// - It has ended: a watchdog in real time names who is stuck.
/// - Every ledger closes: those of the intake and of all components. What was given up on is named.
/// - The verdict is one of those [allowed](Explorer::allow): clean, unless told otherwise.
/// - What its [witness](Explorer::witness) has seen: nothing is alive, nothing runs after the end, each promise was
///   kept or [excused](crate::Promise::excuse).
/// - Whatever the [program itself](Program::check) checks.
///
/// # How it is driven
/// A program that does not end by itself is sent a signal when its [lifetime](Explorer::lifetime) is over. Signals are
/// those of a [`Feed`]; the second of two would end the process, which here goes on.
#[must_use = "an explorer does nothing until it is told what to explore"]
pub struct Explorer {
    make: Arc<dyn Fn(u64) -> Program + Send + Sync>,
    choose: Arc<dyn Fn(Builder) -> Builder + Send + Sync>,
    witness: Witness,
    faults: Faults,
    allowed: Vec<Verdict>,
    breakers: Vec<Arc<str>>,
    before_each_step: Option<Arc<dyn Fn() + Send + Sync>>,
    lifetime: Duration,
    limit: Duration,
    steps: u64,
    replayed_by: Option<Arc<dyn Fn(Code) -> String + Send + Sync>>,
}

/// A program for one case: its main, and what must be true when it has ended.
pub struct Program {
    main: Main,
    check: Option<Check>,
}

type Main = Box<dyn FnOnce(App) -> Pin<Box<dyn Future<Output = Result<(), Error>>>> + Send>;
type Check = Box<dyn FnOnce(&Ended<'_>) -> Result<(), String> + Send>;

/// A program that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended<'a> {
    /// How.
    pub exit: &'a Exit,
    /// The time in which it lived. Nobody takes part in it any more.
    pub clock: &'a VirtualClock,
}

impl Program {
    /// What [`ebbtide::run`](ebbtide::run()) would run.
    #[must_use]
    pub fn new<M, F>(main: M) -> Self
    where
        M: FnOnce(App) -> F + Send + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        Self { main: Box::new(|app| Box::pin(main(app))), check: None }
    }

    /// Has `check` called when it has ended. What it says is wrong with it fails the case.
    #[must_use]
    pub fn check(mut self, check: impl FnOnce(&Ended<'_>) -> Result<(), String> + Send + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }
}

impl Explorer {
    /// Explores the program that `main` is.
    pub fn new<M>(main: M) -> Self
    where
        M: AsyncFn(App) -> Result<(), Error> + Send + Sync + 'static,
    {
        let main = Arc::new(main);
        Self::of_each(move |_| {
            let main = main.clone();
            Program::new(move |app| async move { main(app).await })
        })
    }

    /// Explores a program that is another one for each seed; for the cases that are no seeds, that of 0.
    pub fn of_each(make: impl Fn(u64) -> Program + Send + Sync + 'static) -> Self {
        Self {
            make: Arc::new(make),
            choose: Arc::new(|builder| builder),
            witness: Witness::new(),
            faults: Faults::none(),
            allowed: vec![Verdict::Clean],
            breakers: Vec::new(),
            before_each_step: None,
            lifetime: LIFETIME,
            limit: LIMIT,
            steps: STEPS_MAX,
            replayed_by: None,
        }
    }

    /// Makes choices for the program, as it makes them itself when it is not explored: a drain timeout, threads of the
    /// pool. Its clock and its signals are the kit's, and so are the hooks that are for tests: of the pool's jobs and
    /// threads, and of the loop's steps, for which there is [`before_each_step`](Explorer::before_each_step).
    pub fn app(mut self, choose: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Self {
        self.choose = Arc::new(choose);
        self
    }

    /// Has `hook` called before each step of the program's loop, on its thread, once the kit has had its turn.
    pub fn before_each_step(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.before_each_step = Some(Arc::new(hook));
        self
    }

    /// Has `witness`, of which the program has a clone, asked after each case. It serves one sweep at a time.
    pub fn witness(mut self, witness: &Witness) -> Self {
        self.witness = witness.clone();
        self
    }

    /// What may go wrong, in the cases that are seeds.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Another verdict with which it may end: [`Verdict::Failed`], if it fails when it is refused something or a job
    /// panics; [`Verdict::Abandoned`], if work may take longer than the drain timeout.
    pub fn allow(mut self, verdict: Verdict) -> Self {
        self.allowed.push(verdict);
        self
    }

    /// Who may break promises when a stop is cut short: `"intake"` for requests, or the name of a component, such as
    /// `"loop"`. In each case so many may be broken as its report says that this one has cancelled or given up on; none
    /// unless told otherwise. What else is not kept has to be [excused](crate::Promise::excuse), each by itself.
    pub fn may_break(mut self, component: impl Into<Arc<str>>) -> Self {
        self.breakers.push(component.into());
        self
    }

    /// How long it lives, in virtual time, before it is sent a signal; a minute unless told otherwise.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// How long a case may take, in real time; 20 seconds unless told otherwise.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// At how many steps it is stopped at most; 10,000 unless told otherwise.
    pub fn steps(mut self, most: u64) -> Self {
        self.steps = most;
        self
    }

    /// What replays a case, if that is not `cargo test`.
    pub fn replayed_by(mut self, line: impl Fn(Code) -> String + Send + Sync + 'static) -> Self {
        self.replayed_by = Some(Arc::new(line));
        self
    }

    /// Runs a case for each seed: tasks in an order, faults, and a stop by step, by time, by one signal or two, by a
    /// call, or none, all drawn from the seed. If the environment variable `EBBTIDE_SEED` is a seed, that one is run
    /// first, and is not counted.
    ///
    /// # Errors
    /// The first that goes wrong, or that there is no seed.
    pub fn seeds(&self, seeds: impl IntoIterator<Item = u64>) -> Result<Summary, Failing> {
        self.sweep().seeds(seeds)
    }

    /// Runs it with a stop before its first step, its second, its third, and so on, until it ends before it is stopped,
    /// several times in a row: with tasks in turn, and no faults. If the environment variable `EBBTIDE_SEED` is a step,
    /// that one is run first, and is not counted.
    ///
    /// # Errors
    /// The first case that goes wrong.
    pub fn stop_at_every_step(&self) -> Result<Summary, Failing> {
        self.sweep().every_step(self.steps)
    }

    /// Runs one case again, as a failing one was called: `seed:17`, `step:3`.
    ///
    /// # Errors
    /// If it goes wrong, or is not a case.
    pub fn replay(&self, code: &str) -> Result<Summary, Failing> {
        self.sweep().one(code.parse().map_err(|error| Failing::not_a_case(&error))?)
    }

    fn sweep(&self) -> Sweep {
        let (faults, lifetime) = (self.faults.clone(), self.lifetime);
        let (make, replay) = (self.make.clone(), self.replayed_by.clone());
        let terms = Terms {
            choose: self.choose.clone(),
            before_each_step: self.before_each_step.clone(),
            verdicts: self.allowed.clone(),
            breakers: self.breakers.clone(),
            lifetime,
        };
        Sweep {
            witness: self.witness.clone(),
            limit: self.limit,
            decide: Box::new(move |code| Decisions::of_program(code, &faults, lifetime)),
            run: Arc::new(move |case| run(case, make(case.decisions.seed()), &terms)),
            replay: replay.map(|replay| Box::new(move |code| replay(code)) as Box<_>),
            // One that is stopped before its start makes no step.
            must_step: false,
        }
    }
}

/// On what terms each program is run.
struct Terms {
    choose: Arc<dyn Fn(Builder) -> Builder + Send + Sync>,
    before_each_step: Option<Arc<dyn Fn() + Send + Sync>>,
    verdicts: Vec<Verdict>,
    breakers: Vec<Arc<str>>,
    lifetime: Duration,
}

/// Runs a program to its end, and looks at what it left behind.
fn run(case: &Arc<Case>, Program { main, check }: Program, terms: &Terms) {
    let feed = Feed::new();
    let (hand, mischief) = (Hand::new(case, &feed), Mischief::new(case, case.decisions.faults.clone()));
    let builder = wired(case, terms, &feed, &hand, &mischief);
    let main = {
        let (case, hand, lifetime) = (case.clone(), hand.clone(), terms.lifetime);
        move |app: App| {
            hand.meet(&app, lifetime);
            watch_over(&case, &app);
            main(app)
        }
    };
    let exit = builder.run(main);
    case.epoch.end();
    hand.rest();
    let allowed = Allowed {
        verdicts: terms.verdicts.clone(),
        breakers: terms.breakers.clone(),
        not_started: mischief.has_refused_the_start(),
        returned: hand.returned(),
    };
    let Audit { findings, ending, leave } = Audit::of(&exit, &allowed);
    findings.into_iter().for_each(|finding| case.find(finding));
    if let Some(Err(wrong)) = check.map(|check| check(&Ended { exit: &exit, clock: &case.clock })) {
        case.find(wrong);
    }
    drop(exit);
    case.forget();
    case.end(ending, leave);
}

/// Gives a program the kit's clock, signals, order and faults.
fn wired(
    case: &Arc<Case>,
    terms: &Terms,
    feed: &Feed,
    hand: &Arc<Hand>,
    mischief: &Arc<Mischief>,
) -> Builder {
    let (order, steps, theirs) = (case.decisions.order, hand.clone(), terms.before_each_step.clone());
    let noted = case.clone();
    (terms.choose)(App::builder())
        .clock(&case.clock)
        .signals(Signals::from_feed(feed))
        .event_loop(move |events| {
            let events = events.before_each_step(move |_| {
                steps.step();
                theirs.iter().for_each(|hook| hook());
            });
            match order {
                Some(order) => events.task_order(order),
                None => events,
            }
        })
        .pool(|pool| mischief.wire(pool))
        .coordinator(move |coordinator| {
            let exit = move |code| noted.note(format!("the process would have ended with {code}"));
            coordinator.observer(|_| {}).exit(exit)
        })
}

/// Keeps what can say who is stuck.
fn watch_over(case: &Case, app: &App) {
    let (coordinator, handle, pool) = (app.coordinator().clone(), app.handle().clone(), app.pool().clone());
    let parts = Mutex::new((coordinator, handle, pool));
    case.if_stuck(move || {
        let (coordinator, handle, pool) = &*parts.lock().unwrap_or_else(PoisonError::into_inner);
        format!(
            "it is {}\nrequests: {}\npool: {}\nloop: {}",
            coordinator.stage(),
            coordinator.intake().stragglers(),
            pool.stragglers(),
            handle.stragglers()
        )
    });
}

impl fmt::Debug for Explorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explorer")
            .field("faults", &self.faults)
            .field("allowed", &self.allowed)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("check", &self.check.is_some()).finish_non_exhaustive()
    }
}
