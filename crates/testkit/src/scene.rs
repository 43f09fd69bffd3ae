//! Single components, on a loop in virtual time.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Reason, Stopped, Stopping, Token, Trigger,
    time::{Deadline, VirtualClock},
};
use ebbtide_offload::Pool;
use ebbtide_reactor::{EventLoop, Handle, Runtime, spawn_named};

use crate::{
    case::Case,
    decisions::{Code, Decisions},
    failing::Failing,
    faults::{Faults, Mischief},
    sweep::{LIMIT, STEPS_MAX, Summary, Sweep},
    witness::{Leave, Witness},
};

/// How long a component may take to stop, in virtual time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where one component, or a few, are run and stopped, without a whole program: the case that
/// [`stop_at_every_step`](Scene::stop_at_every_step) and [`seeds`](Scene::seeds) run again and again gets a new one
/// each time.
///
/// ```
/// use ebbtide_offload::Component;
/// use ebbtide_testkit::Scene;
///
/// Scene::stop_at_every_step(|scene| {
///     let mut runtime = scene.runtime(); // whose steps are counted
///     let pool = scene.pool().cpu_threads(1).start().expect("there are threads");
///     scene.stops("pool", pool.clone()); // at the step
///     runtime.block_on(async {
///         for number in 0..3 {
///             // Run, or refused; nothing else.
///             let _ = pool.offload(move || number).await;
///         }
///     });
/// })?;
/// # Ok::<(), ebbtide_testkit::Failing>(())
/// ```
///
/// After each case the components have stopped in time and their books close, and what the
/// [witness](Scene::witness) has seen is in order. An assertion that fails in the case fails it.
pub struct Scene {
    case: Arc<Case>,
    witness: Witness,
    trigger: Trigger,
    subjects: Arc<Mutex<Subjects>>,
}

#[derive(Default)]
struct Subjects {
    known: Vec<(Arc<str>, Arc<dyn Component>)>,
    /// Those that may break promises.
    breakers: Vec<Arc<str>>,
    /// Threads on which components stop that block one.
    stopping: Vec<JoinHandle<()>>,
}

impl Scene {
    /// Runs `case` with a stop before the first step of its loops, the second, the third, and so on, until it ends
    /// before it is stopped, several times in a row. Tasks run in turn.
    ///
    /// # Errors
    /// The first case that goes wrong, or that no loop of a scene has made a step.
    pub fn stop_at_every_step(case: impl Fn(&Self) + Send + Sync + 'static) -> Result<Summary, Failing> {
        sweep(case).every_step(STEPS_MAX)
    }

    /// Runs `case` for each seed, which says in which order tasks run, and before which step it is stopped.
    ///
    /// # Errors
    /// The first case that goes wrong, or that no loop of a scene has made a step.
    pub fn seeds(
        seeds: impl IntoIterator<Item = u64>,
        case: impl Fn(&Self) + Send + Sync + 'static,
    ) -> Result<Summary, Failing> {
        sweep(case).seeds(seeds)
    }

    /// Runs one case again: `seed:17`, `step:3`.
    ///
    /// # Errors
    /// If it goes wrong, or is not a case.
    pub fn replay(code: &str, case: impl Fn(&Self) + Send + Sync + 'static) -> Result<Summary, Failing> {
        sweep(case).one(code.parse().map_err(|error| Failing::not_a_case(&error))?)
    }

    /// The time in which everything here lives.
    #[must_use]
    pub fn clock(&self) -> &VirtualClock {
        &self.case.clock
    }

    /// Who sees what is left behind.
    #[must_use]
    pub fn witness(&self) -> &Witness {
        &self.witness
    }

    /// Fires at the stop.
    #[must_use]
    pub fn token(&self) -> Token {
        self.trigger.token()
    }

    /// What the case is called.
    #[must_use]
    pub fn code(&self) -> Code {
        self.case.decisions.code
    }

    /// A runtime whose steps are counted, and whose tasks run in the order of the case.
    #[must_use]
    pub fn runtime(&self) -> Runtime {
        let runtime = self.directed().runtime();
        self.watch_over(&runtime.handle());
        runtime
    }

    /// The same with a thread of its own, not started yet.
    #[must_use]
    pub fn event_loop(&self) -> EventLoop {
        let events = self.directed().event_loop();
        self.watch_over(&events.handle());
        events
    }

    /// A pool in the time of the case, not started yet.
    pub fn pool(&self) -> ebbtide_offload::Builder {
        Pool::builder().clock(self.clock())
    }

    /// The same, with faults: in the cases that are steps too.
    pub fn pool_with(&self, faults: Faults) -> ebbtide_offload::Builder {
        Mischief::new(&self.case, faults).wire(self.pool())
    }

    /// Keeps what can say who is stuck on a loop.
    fn watch_over(&self, handle: &Handle) {
        let (handle, clock) = (handle.clone(), self.clock().clone());
        self.case.if_stuck(move || format!("{clock:?}, loop: {}", handle.stragglers()));
    }

    fn directed(&self) -> ebbtide_reactor::Builder {
        let (case, trigger, subjects) = (self.case.clone(), self.trigger.clone(), self.subjects.clone());
        let builder = Runtime::builder().clock(self.clock()).before_each_step(move |_| {
            if case.step().is_some() {
                case.is_stopped();
                stop(&case, &trigger, &subjects);
            }
        });
        match self.case.decisions.order {
            Some(order) => builder.task_order(order),
            None => builder,
        }
    }

    /// Has `component` stopped at the stop, on the loop that makes that step; at the end of the case in any case.
    pub fn stops(&self, name: impl Into<Arc<str>>, component: impl Component + 'static) {
        let (name, component) = (name.into(), Arc::new(component));
        let (asked, called) = (component.clone(), name.clone());
        self.case.if_stuck(move || format!("{called}: {}", asked.stragglers()));
        lock(&self.subjects).known.push((name, component));
    }

    /// Has the component of this name break promises: as many as it has cancelled, because it was told to stop. What
    /// else is not kept has to be [excused](crate::Promise::excuse), each by itself.
    pub fn may_break(&self, component: impl Into<Arc<str>>) {
        lock(&self.subjects).breakers.push(component.into());
    }

    /// Stops what was not, and looks at all books.
    fn end(&self) {
        let (mut overdue, mut leave) = (false, Leave::default());
        let Subjects { known, breakers, stopping } = std::mem::take(&mut *lock(&self.subjects));
        for (name, component) in known {
            // Each call of a stop ends when the stop has.
            let stopped = match component.stop(Deadline::after(self.clock(), PATIENCE), &reason()) {
                Stopping::Blocking(wait) => wait(),
                Stopping::Future(stopping) => self.clock().block_on(stopping),
            };
            let balance = component.balance();
            overdue |= stopped == Stopped::Overdue;
            if breakers.contains(&name) {
                leave.broken += Leave::cut_short(&balance);
            }
            if let Err(unbalanced) = balance.check() {
                self.case.find(format!("{name}: {unbalanced}"));
            } else if stopped == Stopped::Clean && balance.in_flight + balance.abandoned > 0 {
                self.case
                    .find(format!("{name} says that it stopped cleanly, and its books do not: {balance}"));
            } else if stopped == Stopped::Overdue && balance.in_flight + balance.abandoned > 0 {
                self.case.find(format!("{name} did not stop in {PATIENCE:?}: {}", component.stragglers()));
            }
        }
        for thread in stopping {
            // What it waits for has ended.
            let _ = thread.join();
        }
        self.case.epoch.end();
        self.case.forget();
        self.case.end(if overdue { "overdue" } else { "clean" }, leave);
    }
}

/// Tells everybody, on the loop.
fn stop(case: &Case, trigger: &Trigger, subjects: &Mutex<Subjects>) {
    trigger.fire(reason());
    let known = lock(subjects).known.clone();
    for (name, component) in known {
        match component.stop(Deadline::after(&case.clock, PATIENCE), &reason()) {
            // Whether it is driven to its end or not: another call is, at the end of the case.
            Stopping::Future(stopping) => drop(spawn_named(name, stopping)),
            Stopping::Blocking(wait) => {
                let thread = thread::Builder::new().name(format!("stop:{name}")).spawn(move || {
                    wait();
                });
                lock(subjects).stopping.extend(thread);
            }
        }
    }
}

fn reason() -> Reason {
    Reason::requested("the test kit")
}

fn lock(subjects: &Mutex<Subjects>) -> MutexGuard<'_, Subjects> {
    // Nothing that can panic runs under the lock.
    subjects.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sweep(case: impl Fn(&Scene) + Send + Sync + 'static) -> Sweep {
    let witness = Witness::new();
    let seen = witness.clone();
    Sweep {
        witness,
        limit: LIMIT,
        decide: Box::new(Decisions::of_component),
        run: Arc::new(move |of| {
            let scene = Scene {
                case: of.clone(),
                witness: seen.clone(),
                trigger: Trigger::new(),
                subjects: Arc::default(),
            };
            case(&scene);
            scene.end();
        }),
        replay: None,
        must_step: true,
    }
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").field("case", &self.case).finish_non_exhaustive()
    }
}
