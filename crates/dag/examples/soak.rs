//! Requests that run a graph under a deadline, again and again: those that must time out, and those that mostly
//! succeed; counted by those who send them and by those who run them.
//!
//! Run by `cargo xtask soak dag`. Each run has a loop, a pool, runners and an engine of its own. A request reads twice,
//! works on the CPU, and puts both together. At the end of a run everything is drained, every book has to balance, and
//! nothing may be left of what the requests held. The variables are those of `cargo xtask soak timeout`:
//!
//! | variable | unless told otherwise | what it says |
//! |---|---|---|
//! | `RUNS` | 20 | how many runs of each scenario |
//! | `TIMEOUT_PER_RUN` | 30 | seconds after which a run counts as hung |
//! | `REQUESTS` | 500 | how many requests a run has |
//! | `CONCURRENCY` | 50 | how many of them at a time |
//! | `DEADLINE_MS_TIMEOUT`, `DEADLINE_MS_SUCCESS` | 4, 2000 | a request's deadline, in either scenario |
//! | `NODE_TIMEOUT_MS_TIMEOUT`, `NODE_TIMEOUT_MS_SUCCESS` | 3, 1000 | a node's timeout, in either scenario |

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ebbtide_dag::{Engine, Env, Graph, Handle};
use ebbtide_lifecycle::{
    Balance, Component,
    time::{Clock, SystemClock},
    wait::block_on,
};
use ebbtide_offload::Pool;
use ebbtide_reactor::{EventLoop, sleep};
use ebbtide_timeout::Runners;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A variable of the environment, which has to be a number above zero.
fn number(name: &str, default: u64) -> Result<u64, Error> {
    match env::var(name) {
        Err(env::VarError::NotPresent) => Ok(default),
        Ok(text) => match text.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{name} is {text:?}: it has to be a whole number above zero").into()),
        },
        Err(error) => Err(format!("{name}: {error}").into()),
    }
}

/// What all requests of a scenario have in common.
#[derive(Clone, Copy)]
struct Scenario {
    must_time_out: bool,
    deadline: Duration,
    node_timeout: Duration,
    /// How long the second read takes, and the CPU work. The first is there at once, so that its CPU work begins.
    reads: Duration,
    spins: Duration,
}

/// How many requests there were, and what became of them.
#[derive(Default)]
struct Sums {
    sent: u64,
    succeeded: u64,
    runs: Balance,
    late: Balance,
}

/// Counted for as long as it is there.
struct Canary(Arc<AtomicU64>);

impl Canary {
    fn new(alive: &Arc<AtomicU64>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(alive.clone())
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn main() -> Result<(), Error> {
    let millis = |name, default| number(name, default).map(Duration::from_millis);
    let (runs, guard) = (number("RUNS", 20)?, Duration::from_secs(number("TIMEOUT_PER_RUN", 30)?));
    let (requests, concurrency) = (number("REQUESTS", 500)?, number("CONCURRENCY", 50)?);
    let timeout = Scenario {
        must_time_out: true,
        deadline: millis("DEADLINE_MS_TIMEOUT", 4)?,
        node_timeout: millis("NODE_TIMEOUT_MS_TIMEOUT", 3)?,
        reads: Duration::from_millis(20),
        spins: Duration::from_millis(4),
    };
    let success = Scenario {
        must_time_out: false,
        deadline: millis("DEADLINE_MS_SUCCESS", 2000)?,
        node_timeout: millis("NODE_TIMEOUT_MS_SUCCESS", 1000)?,
        reads: Duration::from_millis(1),
        spins: Duration::from_micros(50),
    };
    for (what, scenario) in [("must time out", timeout), ("mostly succeed", success)] {
        let mut total = Sums::default();
        for run in 0..runs {
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || drop(sender.send(one_run(scenario, requests, concurrency))));
            let ended = receiver.recv_timeout(guard);
            let sums =
                ended.map_err(|_| format!("run {run} that {what} has not ended within {guard:?}"))??;
            total.sent += sums.sent;
            total.succeeded += sums.succeeded;
            total.runs = total.runs + sums.runs;
            total.late = total.late + sums.late;
        }
        println!(
            "{runs} runs that {what}: {} requests, {} succeeded; engine: {}; late runners: {}",
            total.sent, total.succeeded, total.runs, total.late
        );
        let fits = if scenario.must_time_out {
            // What is ready when it is looked at wins: on a machine that keeps the loop waiting for long, one may.
            total.succeeded * 100 <= total.sent
        } else {
            total.succeeded * 10 >= total.sent * 9
        };
        if !fits {
            return Err(format!("that is not {what:?}; is the machine too busy?").into());
        }
    }
    Ok(())
}

type Feed = Engine<Canary, Handle<u64>, ebbtide_reactor::Handle>;

/// Two reads side by side, CPU work on either, and both together.
fn engine(
    scenario: Scenario,
    env: Env<ebbtide_reactor::Handle>,
    alive: &Arc<AtomicU64>,
) -> Result<Feed, Error> {
    let mut graph = Graph::<Canary>::new("soak");
    let branch = |graph: &mut Graph<Canary>, nth: u64| {
        let hatch = alive.clone();
        let read = graph.future(format!("read {nth}"), (), move |cx, ()| {
            let (request, canary) = (cx.request().clone(), Canary::new(&hatch));
            async move {
                if nth > 1 {
                    sleep(scenario.reads).await;
                }
                drop(request);
                Ok(canary)
            }
        });
        graph.cpu(format!("spin {nth}"), read, move |_, _| {
            let until = SystemClock.now() + scenario.spins;
            while SystemClock.now() < until {
                std::hint::spin_loop();
            }
            Ok(nth)
        })
    };
    let branches = [branch(&mut graph, 1), branch(&mut graph, 2)];
    let sum = graph.inline("sum", branches, |_, [a, b]| Ok(*a + *b));
    Ok(graph.plan(sum)?.bind(env)?)
}

fn one_run(scenario: Scenario, requests: u64, concurrency: u64) -> Result<Sums, Error> {
    let alive = Arc::new(AtomicU64::new(0));
    let events = EventLoop::new();
    events.start()?;
    let pool = Pool::builder().cpu_threads(2).start()?;
    let runners = Runners::new(&events.handle(), events.handle())?;
    let env = Env::new(events.handle()).pool(&pool).runners(&runners);
    let engine = engine(scenario, env, &alive)?;
    let mut sums = Sums { sent: requests, ..Sums::default() };
    let senders: Vec<_> = (0..concurrency)
        .map(|nth| {
            let (engine, alive) = (engine.clone(), alive.clone());
            let mine = requests / concurrency + u64::from(nth < requests % concurrency);
            let sender = events.handle().spawn(async move {
                let mut succeeded = 0;
                for _ in 0..mine {
                    let run = engine.run(Canary::new(&alive));
                    let run = run.within(scenario.deadline).node_timeout(scenario.node_timeout);
                    succeeded += u64::from(run.await.is_ok_and(|sum| *sum == 3));
                }
                succeeded
            });
            sender.map_err(|refused| refused.to_string())
        })
        .collect::<Result<_, _>>()?;
    for sender in senders {
        sums.succeeded += block_on(sender)?;
    }
    // In the order of a stop: runs, late nodes, late runners, the pool, the loop.
    engine.close();
    pool.wait_idle().wait();
    runners.wait_idle().wait();
    (sums.runs, sums.late) = (engine.balance(), runners.balance());
    for balance in [sums.runs, sums.late, pool.balance()] {
        balance.check()?;
        if balance.in_flight > 0 {
            return Err(format!("something is left in flight: {balance}").into());
        }
    }
    runners.close();
    events.stop();
    match alive.load(Ordering::Relaxed) {
        0 => Ok(sums),
        alive => Err(format!("{alive} of what the requests held is still there").into()),
    }
}
