//! Processes that are told to stop at any moment: while they start, while they serve, while they drain, once, twice and
//! three times. Run by `cargo xtask soak signals --rounds N`.
//!
//! Each round is a process with a loop, threads that have requests admitted, and tasks that answer them. It counts
//! its requests by itself, and says at its end what it has counted and what its report says. A process that was told
//! to stop once has to end clean, with every request answered; one that was told so more often ends clean or with one
//! of the two codes that say so; none may hang.

use std::{
    env,
    error::Error,
    io::{BufRead, BufReader, Read as _},
    process::{self, Child, Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use ebbtide_reactor::EventLoop;
use ebbtide_shutdown::{Coordinator, Priority, Verdict, lifecycle::Outcome};

/// Says that this process is one of a round.
const ROUND: &str = "round";

/// A process that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many threads bring requests.
const CLIENTS: usize = 2;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.as_slice() {
        [round] if round == ROUND => serve(),
        [rounds] => storm(rounds.parse().map_err(|_| format!("{rounds:?} is not a number of rounds"))?),
        _ => Err("say how many rounds".into()),
    }
}

/// One process: serves until it is told to stop.
fn serve() -> Result<ExitCode, Box<dyn Error>> {
    let coordinator = Coordinator::builder().observer(|_| ()).install()?;
    println!("listening");
    let events = Arc::new(EventLoop::new());
    events.start()?;
    coordinator.register("loop", Priority::LOOPS, events.clone())?.keep();
    let answered = Arc::new(AtomicU64::new(0));
    coordinator.ready();
    println!("ready");
    let admitted: u64 = thread::scope(|scope| {
        let bring = || {
            let mut admitted = 0;
            while let Ok(request) = coordinator.intake().admit() {
                admitted += 1;
                let answered = answered.clone();
                let answer = async move {
                    ebbtide_reactor::sleep(Duration::from_millis(admitted % 3)).await;
                    answered.fetch_add(1, Ordering::Relaxed);
                    request.settle(Outcome::Completed);
                };
                // What was admitted is answered: the loop is stopped after the drain.
                events.spawn(answer).expect("the loop runs while requests are in flight").detach();
                if admitted % 64 == 0 {
                    thread::yield_now();
                }
            }
            admitted
        };
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(bring)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).sum()
    });
    let report = coordinator.run();
    let balance = report.intake().ok_or("it was drained")?.balance;
    println!(
        "sums {admitted} {} {} {}",
        answered.load(Ordering::Relaxed),
        balance.accepted,
        balance.completed
    );
    if !report.is_clean() {
        eprintln!("{report}");
    }
    process::exit(report.exit_code().into());
}

/// What came of all rounds.
#[derive(Default)]
struct Sums {
    clean: u64,
    forced: u64,
    immediate: u64,
    admitted: u64,
    answered: u64,
}

/// When the first signal comes.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// As soon as it listens.
    Start,
    /// As soon as it serves.
    Ready,
    /// Some time after that.
    Later(Duration),
}

fn storm(rounds: u64) -> Result<ExitCode, Box<dyn Error>> {
    let mut sums = Sums::default();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..rounds {
        let moment = match random.below(4) {
            0 => Moment::Start,
            1 => Moment::Ready,
            _ => Moment::Later(Duration::from_micros(random.below(20_000))),
        };
        let signals: Vec<_> =
            (0..=random.below(3)).map(|_| ["TERM", "INT"][random.below(2) as usize]).collect();
        let pause = Duration::from_micros(random.below(3_000));
        sums.add(moment, &signals, pause)
            .map_err(|error| format!("round {round}, {moment:?}, {signals:?}: {error}"))?;
    }
    println!(
        "{rounds} rounds: {} clean, {} forced, {} ended in the handler; \
         {} requests admitted = {} answered, none lost, none hung",
        sums.clean, sums.forced, sums.immediate, sums.admitted, sums.answered
    );
    Ok(ExitCode::SUCCESS)
}

impl Sums {
    fn add(&mut self, moment: Moment, signals: &[&str], pause: Duration) -> Result<(), Box<dyn Error>> {
        let mut child = Command::new(env::current_exe()?)
            .arg(ROUND)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let _guard = guard(&child);
        let mut out = BufReader::new(child.stdout.take().ok_or("it has an output")?);
        let wanted = if matches!(moment, Moment::Start) { "listening" } else { "ready" };
        let mut line = String::new();
        while line.trim() != wanted {
            line.clear();
            if out.read_line(&mut line)? == 0 {
                return Err(format!("it ended before it was {wanted}").into());
            }
        }
        if let Moment::Later(after) = moment {
            thread::park_timeout(after);
        }
        for (nth, signal) in signals.iter().enumerate() {
            if nth > 0 {
                thread::park_timeout(pause);
            }
            // It may have ended by the second one.
            let mut kill = Command::new("kill");
            kill.args([&format!("-{signal}"), &child.id().to_string()]).stderr(Stdio::null()).status()?;
        }
        self.judge(&mut child, &mut out, signals.len())
    }

    fn judge(
        &mut self,
        child: &mut Child,
        out: &mut impl BufRead,
        signals: usize,
    ) -> Result<(), Box<dyn Error>> {
        let mut said = String::new();
        out.read_to_string(&mut said)?;
        let mut complaints = String::new();
        child.stderr.take().ok_or("it has one")?.read_to_string(&mut complaints)?;
        let status = child.wait()?;
        let sums = said.lines().find_map(|line| line.strip_prefix("sums "));
        match (status.code(), sums) {
            (Some(0), Some(sums)) => {
                let sums: Vec<u64> = sums.split(' ').map(str::parse).collect::<Result<_, _>>()?;
                let [admitted, answered, accepted, completed] = sums[..] else {
                    return Err(format!("it says {said:?}").into());
                };
                if [answered, accepted, completed] != [admitted; 3] {
                    return Err(format!(
                        "{admitted} admitted, {answered} answered, the report says {said:?}"
                    )
                    .into());
                }
                self.clean += 1;
                self.admitted += admitted;
                self.answered += answered;
                Ok(())
            }
            (Some(code), _) if signals > 1 && code == i32::from(Verdict::Forced.exit_code()) => {
                self.forced += 1;
                Ok(())
            }
            (Some(code), _) if signals > 2 && code == i32::from(Verdict::IMMEDIATE) => {
                self.immediate += 1;
                Ok(())
            }
            _ => Err(format!("it ended with {status}, and says {said:?}, {complaints:?}").into()),
        }
    }
}

/// Kills a process that hangs, unless what this gives is dropped before.
fn guard(child: &Child) -> mpsc::Sender<()> {
    let (guard, ended) = mpsc::channel();
    let pid = child.id();
    thread::spawn(move || {
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("process {pid} hangs");
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
    });
    guard
}

/// An xorshift: the rounds are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
