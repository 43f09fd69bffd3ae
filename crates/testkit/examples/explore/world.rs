//! A whole program by seed: loop, pool, timeouts, a graph, a mailbox worker and the coordinator together.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ebbtide::{
    App, Error, Exit,
    dag::{self, Engine, Env, Policy},
    lifecycle::{Outcome, Reason, time::Deadline},
    offload::OnDrop,
    reactor::{Handle, PanicReport},
    shutdown::{Priority, Verdict},
    sleep, spawn, timeout, yield_now,
};
use ebbtide_testkit::{Draws, Explorer, Faults, Program, Promise, Witness};

use super::{
    graph::{self, Value},
    letters::Letters,
    twin::{self, Twin},
};

/// What draws are made for.
const GRAPH: u64 = 100;
const COURSE: u64 = 101;
const WORKER: u64 = 102;

const REQUESTS_MAX: u64 = 10;

/// How main ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    AtOnce,
    WhenTold,
    Stops,
    Fails,
    Panics,
}

/// The two kinds of cases: in a calm one everything ends in time, so nothing may be given up on; in a rough one jobs
/// may take longer than there is time.
pub(crate) fn explorer(is_calm: bool, twin: Option<Twin>) -> Explorer {
    let witness = Witness::new();
    let faults = Faults::none().job_panics(15).refused_threads(3);
    let faults =
        if is_calm { faults } else { faults.slow_jobs(6, Duration::from_secs(8)).refused_starts(100) };
    let seen = witness.clone();
    Explorer::of_each(move |seed| program(seed, is_calm, twin, &seen))
        .witness(&witness)
        .faults(faults)
        // Those that the drain gives up on. All others are answered, or somebody is told why not.
        .may_break("intake")
        .allow(Verdict::Failed)
        .allow(Verdict::Abandoned)
        .app(move |app| {
            let time = if is_calm { 30 } else { 3 };
            let app = app.drain_timeout(Duration::from_secs(time));
            app.pool(|pool| pool.cpu_threads(1).blocking_threads(2))
                .event_loop(|events| events.panic_hook(tell))
        })
        .replayed_by(move |code| {
            let seed = code.to_string().replace("seed:", "");
            let twin = twin.map_or_else(String::new, |twin| format!(" --twin {}", twin.name()));
            format!("cargo xtask explore --from {seed} --seeds 1{twin}")
        })
}

/// What was planted is no news.
fn tell(panic: &PanicReport<'_>) {
    if panic.panic.message() != "planted" {
        eprintln!("{panic}");
    }
}

fn program(seed: u64, is_calm: bool, twin: Option<Twin>, witness: &Witness) -> Program {
    let mut draws = Draws::new(seed, COURSE);
    let end = match draws.below(12) {
        0 => End::Fails,
        1 => End::Panics,
        2 | 3 => End::Stops,
        4 | 5 => End::AtOnce,
        _ => End::WhenTold,
    };
    let letters = Letters::new(twin);
    let (theirs, witness) = (letters.clone(), witness.clone());
    let main = move |app: App| async move {
        let world = World::begin(seed, &app, twin, witness, theirs)?;
        world.course(&app, &mut draws, end).await
    };
    Program::new(main).check(move |ended| {
        letters.check(ended.clock)?;
        check_verdict(ended.exit, is_calm, matches!(end, End::Fails | End::Panics))
    })
}

/// A case fails only if its main was to, and gives up on something only if jobs may take too long.
fn check_verdict(exit: &Exit, is_calm: bool, may_fail: bool) -> Result<(), String> {
    let verdict = exit.report().map(|report| report.verdict());
    match verdict {
        Some(Verdict::Failed) if !may_fail => Err(format!("nothing was to fail:\n{exit}")),
        Some(Verdict::Abandoned) if is_calm => Err(format!("there was time for everything:\n{exit}")),
        _ => Ok(()),
    }
}

struct World {
    /// What is wrong with it, if anything is.
    twin: Option<Twin>,
    witness: Witness,
    letters: Letters,
    engine: Engine<u64, Vec<dag::Optional<Value>>, Handle>,
}

/// What was accepted, and has to be answered. It is in its task; whoever gets that back takes it out.
#[derive(Clone)]
struct Ticket(Arc<Mutex<Option<Promise>>>);

impl Ticket {
    fn new(witness: &Witness, name: String) -> Self {
        Self(Arc::new(Mutex::new(Some(witness.promise(name)))))
    }

    fn take(&self) -> Option<Promise> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Answered, or handed back.
    fn settle(&self) {
        if let Some(promise) = self.take() {
            promise.keep();
        }
    }

    /// Not to be answered: whoever brought it was told why.
    fn excuse(&self, why: &str) {
        if let Some(promise) = self.take() {
            promise.excuse(why);
        }
    }
}

impl World {
    /// Puts everything together.
    fn begin(
        seed: u64,
        app: &App,
        twin: Option<Twin>,
        witness: Witness,
        letters: Letters,
    ) -> Result<Self, Error> {
        let (graph, handles) = graph::random(&mut Draws::new(seed, GRAPH), &witness);
        let outputs: Vec<_> = handles.iter().map(|handle| handle.optional()).collect();
        let env = Env::new(app.handle().clone()).pool(app.pool()).runners(app.runners());
        let engine = graph.plan(outputs)?.bind(env)?;
        app.register("engine", Priority::WORKERS, engine.clone()).map_err(|taken| taken.to_string())?;
        letters.begin(app, Draws::new(seed, WORKER), &witness)?;
        app.keep("connection", witness.canary());
        let mark = witness.mark();
        app.on_trigger("say so", move || mark.ran());
        let ticks = witness.clone();
        // Refused by a program that has been stopped that far: then there is nothing to tick for.
        let _ = app.spawn_component("ticker", Priority::SERVERS, move |stop| {
            ticks.clone().watch(async move {
                while stop.wrap(sleep(Duration::from_millis(300))).await.is_ok() {
                    ticks.ran();
                }
                Ok(())
            })
        });
        Ok(Self { witness, letters, engine, twin })
    }

    /// Brings requests, until it is told to stop or there are no more.
    async fn course(&self, app: &App, draws: &mut Draws, end: End) -> Result<(), Error> {
        for number in 0..draws.below(REQUESTS_MAX) {
            self.bring(app, number, draws).await;
            if draws.one_in(2)
                && app.closing().wrap(sleep(draws.duration(Duration::from_secs(1)))).await.is_err()
            {
                break;
            }
        }
        match end {
            End::AtOnce => {}
            End::WhenTold => drop(app.token().triggered().await),
            End::Stops => {
                app.stop(Reason::requested("enough"));
                app.closing().triggered().await;
            }
            End::Fails => return Err("planted".into()),
            End::Panics => panic!("planted"),
        }
        Ok(())
    }

    async fn bring(&self, app: &App, number: u64, draws: &mut Draws) {
        match draws.below(11) {
            0 | 1 => self.run(app, number, draws),
            2 => self.offload(app, number, draws),
            3 => self.batch(app, number, draws),
            4 => self.cancel(app, number, draws),
            5 => self.detach(app, number, draws),
            6 => self.hand_over(app, number),
            7 => self.forget(app, draws),
            8 => self.post(app, draws),
            9 => self.fall(app, draws).await,
            _ => self.letters.send(number, draws).await,
        }
    }

    /// Has `work` done as a request, which is answered when it has ended, well or not.
    fn request<F>(&self, app: &App, name: String, work: F)
    where
        F: Future + Send + 'static,
    {
        let ticket = Ticket::new(&self.witness, name.clone());
        let answers = ticket.clone();
        let (loses, closing) = (self.twin == Some(Twin::LostRequest), app.closing());
        let request = self.witness.watch(async move {
            drop(work.await);
            if loses && closing.is_triggered() {
                return;
            }
            answers.settle();
        });
        match app.spawn_named(name, request) {
            Ok(task) => task.detach(),
            Err(refused) => {
                drop(refused.work);
                ticket.settle();
            }
        }
    }

    /// A run of the graph.
    fn run(&self, app: &App, number: u64, draws: &mut Draws) {
        let mut run = self.engine.run(number);
        if draws.one_in(2) {
            run = run.within(draws.duration(Duration::from_secs(2)));
        }
        if draws.one_in(3) {
            run = run.policy(Policy::FinishIndependent);
        }
        if draws.one_in(4) {
            run = run.node_timeout(draws.duration(Duration::from_millis(300)));
        }
        if draws.one_in(6) {
            run = run.cancelled_by(&app.token());
        }
        self.request(app, format!("run {number}"), async move { run.await.map(|values| values.len()) });
    }

    /// A job, which may be given up on.
    fn offload(&self, app: &App, number: u64, draws: &mut Draws) {
        let (pool, canary, mark) = (app.pool(), self.witness.canary(), self.witness.mark());
        let lane = if draws.one_in(2) { pool.cpu() } else { pool.blocking() };
        let lane = lane.named("job");
        let job = move || {
            mark.ran();
            drop(canary);
        };
        if draws.one_in(2) {
            let deadline = Deadline::after(app.handle(), draws.duration(Duration::from_secs(2)));
            let job = lane.offload_with_timeout(app.handle().clone(), deadline, job);
            self.request(app, format!("job with a timeout {number}"), job);
        } else {
            self.request(app, format!("job {number}"), lane.offload(job));
        }
    }

    /// Several jobs at once.
    fn batch(&self, app: &App, number: u64, draws: &mut Draws) {
        let jobs = (0..draws.below(6)).map(|_| {
            let canary = self.witness.canary();
            move || drop(canary)
        });
        let batch = app.pool().offload_all(jobs);
        self.request(app, format!("batch {number}"), batch);
    }

    /// Something that is dropped when it takes too long.
    fn cancel(&self, app: &App, number: u64, draws: &mut Draws) {
        let (takes, limit) = (draws.duration(Duration::from_secs(2)), draws.duration(Duration::from_secs(2)));
        let slow = self.witness.watch(sleep(takes));
        self.request(app, format!("timeout {number}"), timeout::timeout(app.handle().clone(), limit, slow));
    }

    /// Something that goes on when it takes too long.
    fn detach(&self, app: &App, number: u64, draws: &mut Draws) {
        let (takes, limit) = (draws.duration(Duration::from_secs(2)), draws.duration(Duration::from_secs(2)));
        let slow = app.runners().timeout(limit, self.witness.watch(sleep(takes)));
        self.request(app, format!("late {number}"), slow);
    }

    /// A request that is answered on the pool, and posts to the loop from there.
    fn hand_over(&self, app: &App, number: u64) {
        let Ok(admission) = app.admit() else { return };
        let (ticket, handle, mark) = (
            Ticket::new(&self.witness, format!("admission {number}")),
            app.handle().clone(),
            self.witness.mark(),
        );
        let answers = ticket.clone();
        let job = app.pool().cpu().offload(move || {
            // It runs, or comes back.
            let _ = handle.post(move || mark.ran());
            answers.settle();
            admission.settle(Outcome::Completed);
        });
        // Refused only by a loop that drops its tasks: then the job is withdrawn, or runs.
        drop(spawn(async move {
            if job.on_drop(OnDrop::Run).await.is_err() {
                ticket.excuse("its job panicked");
            }
        }));
    }

    /// A job for which nobody waits any more.
    fn forget(&self, app: &App, draws: &mut Draws) {
        let (canary, mark) = (self.witness.canary(), self.witness.mark());
        let leaks = self.twin == Some(Twin::Leak);
        let job = app.pool().blocking().offload(move || {
            mark.ran();
            if leaks {
                std::mem::forget(canary);
            }
        });
        if draws.one_in(2) {
            job.detach();
        }
        if self.twin == Some(Twin::LateJob) {
            twin::run_late(self.witness.mark());
        }
    }

    /// Posts, of which one panics: those around it run all the same.
    fn post(&self, app: &App, draws: &mut Draws) {
        let planted = draws.below(3);
        for nth in 0..3 {
            let (ticket, canary) = (Ticket::new(&self.witness, format!("post {nth}")), self.witness.canary());
            let answers = ticket.clone();
            let posted = app.handle().post(move || {
                let _canary = canary;
                answers.settle();
                assert!(nth != planted, "planted");
            });
            if posted.is_err() {
                ticket.settle();
            }
        }
    }

    /// A request that panics: at the end of its last poll, when it is cancelled, or when nobody takes what it gives.
    /// What it holds beside that is dropped all the same.
    async fn fall(&self, app: &App, draws: &mut Draws) {
        let (canary, takes) = (self.witness.canary(), draws.duration(Duration::from_millis(50)));
        let (keeps, cancels) = (draws.one_in(2), draws.one_in(3));
        let task = app.spawn(async move {
            let (_canary, breaks) = (canary, Breaks);
            sleep(takes).await;
            keeps.then_some(breaks)
        });
        match task {
            Ok(task) if cancels => {
                // It has begun by then, as a rule.
                yield_now().await;
                task.cancel();
            }
            Ok(task) => task.detach(),
            // It has not begun, so there is nothing to break.
            Err(refused) => drop(refused),
        }
    }
}

/// Panics when it is dropped.
struct Breaks;

impl Drop for Breaks {
    fn drop(&mut self) {
        // A second panic while the first unwinds would end the process.
        if !std::thread::panicking() {
            panic!("planted");
        }
    }
}
