//! Requests under deadlines, again and again: those that must time out, and those that mostly succeed; counted
//! by those who send them and by those who run them.
//!
//! Run by `cargo xtask soak timeout`. Each run has a loop, a pool and runners of its own. A request is an async
//! step, whose loser goes on as a late runner, and a CPU step, whose loser runs to its end in the pool; both
//! under the request's deadline and a timeout of their own. A step whose deadline has passed when it should begin,
//! because its thread had to wait for a CPU, never does, and leaves nothing behind. At the end of a run everything is
//! drained, every book has to balance, and nothing may be left of what the requests held.
//!
//! | variable | unless told otherwise | what it says |
//! |---|---|---|
//! | `RUNS` | 20 | how many runs of each scenario |
//! | `TIMEOUT_PER_RUN` | 30 | seconds after which a run counts as hung |
//! | `REQUESTS` | 500 | how many requests a run has |
//! | `CONCURRENCY` | 50 | how many of them at a time |
//! | `DEADLINE_MS_TIMEOUT`, `DEADLINE_MS_SUCCESS` | 4, 2000 | a request's deadline, in either scenario |
//! | `NODE_TIMEOUT_MS_TIMEOUT`, `NODE_TIMEOUT_MS_SUCCESS` | 3, 1000 | a step's timeout, in either scenario |

use std::{
    env,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Balance, Component,
    time::{Clock, Deadline, SystemClock},
};
use ebbtide_offload::{OffloadError, Pool};
use ebbtide_reactor::{EventLoop, Handle};
use ebbtide_timeout::{Elapsed, Runners};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match soak() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

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
    name: &'static str,
    deadline: Duration,
    node_timeout: Duration,
    /// How long an async step takes, at least and at most.
    sleeps: [Duration; 2],
    /// How long a CPU step takes.
    spins: Duration,
}

/// What the senders count.
#[derive(Default)]
struct Counts {
    succeeded: AtomicU64,
    async_steps_begun: AtomicU64,
    async_steps_late: AtomicU64,
    cpu_steps_late: AtomicU64,
    /// What requests hold, and should let go.
    canaries: AtomicU64,
}

/// Counted for as long as it is there.
struct Canary(Arc<Counts>);

impl Canary {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.canaries.fetch_add(1, Ordering::Relaxed);
        Self(counts.clone())
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.0.canaries.fetch_sub(1, Ordering::Relaxed);
    }
}

fn soak() -> Result<(), Error> {
    let millis = |name, default| number(name, default).map(Duration::from_millis);
    let runs = number("RUNS", 20)?;
    let guard = Duration::from_secs(number("TIMEOUT_PER_RUN", 30)?);
    let (requests, concurrency) = (number("REQUESTS", 500)?, number("CONCURRENCY", 50)?);
    let scenarios = [
        Scenario {
            name: "must time out",
            deadline: millis("DEADLINE_MS_TIMEOUT", 4)?,
            node_timeout: millis("NODE_TIMEOUT_MS_TIMEOUT", 3)?,
            sleeps: [Duration::from_millis(40), Duration::from_millis(80)],
            spins: Duration::from_millis(4),
        },
        Scenario {
            name: "mostly succeed",
            deadline: millis("DEADLINE_MS_SUCCESS", 2000)?,
            node_timeout: millis("NODE_TIMEOUT_MS_SUCCESS", 1000)?,
            sleeps: [Duration::ZERO, Duration::from_millis(3)],
            spins: Duration::from_micros(50),
        },
    ];
    for scenario in scenarios {
        let mut total = Totals::default();
        for run in 0..runs {
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || {
                let _ = sender.send(one_run(scenario, run, requests, concurrency));
            });
            let ended = receiver.recv_timeout(guard).map_err(|_| {
                format!("run {run} of {:?} has not ended within {guard:?}: it hangs", scenario.name)
            })?;
            total.add(&ended?);
        }
        println!("{runs} runs that {}: {total}", scenario.name);
        let fits = match scenario.name {
            // What is ready when it is looked at wins: on a machine that keeps the loop waiting for long, one may.
            "must time out" => total.succeeded * 100 <= total.requests,
            _ => total.succeeded * 10 >= total.requests * 9,
        };
        if !fits {
            return Err(format!("that is not {:?}; is the machine too busy?", scenario.name).into());
        }
    }
    Ok(())
}

#[derive(Default)]
struct Totals {
    requests: u64,
    succeeded: u64,
    async_steps_begun: u64,
    async_steps_late: u64,
    cpu_steps_late: u64,
    runners: Balance,
    pool: Balance,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.succeeded += other.succeeded;
        self.async_steps_begun += other.async_steps_begun;
        self.async_steps_late += other.async_steps_late;
        self.cpu_steps_late += other.cpu_steps_late;
        self.runners = self.runners + other.runners;
        self.pool = self.pool + other.pool;
    }

    fn async_steps_never_begun(&self) -> u64 {
        self.requests - self.async_steps_begun
    }

    fn cpu_steps_never_brought(&self) -> u64 {
        self.requests - self.pool.accepted
    }

    /// Whether whoever sent the requests and whoever ran them say the same of those that were too late.
    fn check(&self) -> Result<(), Error> {
        self.runners.check()?;
        self.pool.check()?;
        if self.runners.late + self.async_steps_never_begun() != self.async_steps_late {
            return Err(format!("late runners and steps that never began do not add up: {self}").into());
        }
        let left = self.pool.late + self.pool.cancelled;
        if left + self.cpu_steps_never_brought() != self.cpu_steps_late {
            return Err(format!("late, withdrawn and unbrought jobs do not add up: {self}").into());
        }
        Ok(())
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} requests, {} succeeded", self.requests, self.succeeded)?;
        let (late, never_begun) = (self.async_steps_late, self.async_steps_never_begun());
        writeln!(
            f,
            "  async steps too late {late}, of which never begun {never_begun}; runners: {}",
            self.runners
        )?;
        let (late, never_brought) = (self.cpu_steps_late, self.cpu_steps_never_brought());
        write!(f, "  CPU steps too late {late}, of which never brought {never_brought}; pool: {}", self.pool)
    }
}

/// A loop, a pool and runners, from their start to their end.
fn one_run(scenario: Scenario, run: u64, requests: u64, concurrency: u64) -> Result<Totals, Error> {
    let events = EventLoop::new();
    events.start()?;
    let handle = events.handle();
    let pool = Pool::builder().cpu_threads(2).start()?;
    let runners = Runners::new(&handle, handle.clone())?;
    let counts = Arc::new(Counts::default());

    // Half of the senders live on the loop, half on threads of their own: their timeouts meet their work across
    // threads.
    let next = Arc::new(AtomicU64::new(0));
    let sender = || {
        let request = Request {
            scenario,
            handle: handle.clone(),
            pool: pool.clone(),
            runners: runners.clone(),
            counts: counts.clone(),
        };
        let next = next.clone();
        async move {
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth >= requests {
                    return;
                }
                request.send(run * requests + nth).await;
            }
        }
    };
    let mut on_the_loop = Vec::new();
    for _ in 0..concurrency.div_ceil(2) {
        on_the_loop.push(handle.spawn(sender()).map_err(|refused| refused.why)?);
    }
    let elsewhere: Vec<_> = (0..concurrency / 2)
        .map(|_| {
            let sender = sender();
            thread::Builder::new().spawn(move || ebbtide_lifecycle::wait::block_on(sender))
        })
        .collect::<Result<_, _>>()?;
    for task in on_the_loop {
        ebbtide_lifecycle::wait::block_on(task)?;
    }
    for thread in elsewhere {
        thread.join().map_err(|_| "a sender panicked")?;
    }

    // In this order: late runners, pool, loop.
    runners.close();
    runners.wait_idle().wait();
    pool.close();
    pool.wait_idle().wait();
    let totals = Totals {
        requests,
        succeeded: counts.succeeded.load(Ordering::Relaxed),
        async_steps_begun: counts.async_steps_begun.load(Ordering::Relaxed),
        async_steps_late: counts.async_steps_late.load(Ordering::Relaxed),
        cpu_steps_late: counts.cpu_steps_late.load(Ordering::Relaxed),
        runners: runners.balance(),
        pool: pool.balance(),
    };
    events.stop();
    totals.check()?;
    drop((pool, runners));
    match counts.canaries.load(Ordering::Relaxed) {
        0 => Ok(totals),
        left => Err(format!("{left} values that requests held have not been dropped").into()),
    }
}

struct Request {
    scenario: Scenario,
    handle: Handle,
    pool: Pool,
    runners: Runners<Handle>,
    counts: Arc<Counts>,
}

impl Request {
    async fn send(&self, nth: u64) {
        let deadline = Deadline::after(SystemClock, self.scenario.deadline);
        let of_step = || deadline.effective(SystemClock.now(), Some(self.scenario.node_timeout));
        let [least, most] = self.scenario.sleeps;
        let sleeps = least + (most - least) * (nth * 7919 % 100) as u32 / 100;
        let (handle, counts, canary) = (self.handle.clone(), self.counts.clone(), Canary::new(&self.counts));
        let step = self.runners.timeout_at(of_step(), async move {
            counts.async_steps_begun.fetch_add(1, Ordering::Relaxed);
            handle.sleep(sleeps).await;
            canary
        });
        // Both steps go on side by side, so that in either scenario both meet their deadline.
        let (spins, canary) = (self.scenario.spins, Canary::new(&self.counts));
        let cpu_step = self.pool.offload_with_timeout(&self.handle, of_step(), move || {
            spin(spins);
            canary
        });
        let in_time = match step.await {
            Ok(_) => true,
            Err(Elapsed) => {
                self.counts.async_steps_late.fetch_add(1, Ordering::Relaxed);
                false
            }
        };
        match cpu_step.await {
            Ok(_) if in_time => drop(self.counts.succeeded.fetch_add(1, Ordering::Relaxed)),
            Ok(_) => {}
            Err(OffloadError::Elapsed) => drop(self.counts.cpu_steps_late.fetch_add(1, Ordering::Relaxed)),
            Err(error) => panic!("the pool is open, and the job does not panic: {error}"),
        }
    }
}

/// Keeps a CPU busy.
fn spin(duration: Duration) {
    let start: Instant = SystemClock.now();
    while SystemClock.now() - start < duration {
        std::hint::spin_loop();
    }
}
