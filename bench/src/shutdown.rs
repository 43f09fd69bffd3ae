//! From the word "stop" to the end: with many parked tasks, with one job in flight, and what a stop costs before it comes.

use std::{
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::{
    Gate, Ledger, Outcome, Reason, Terms,
    time::{Clock, SystemClock},
};
use ebbtide_reactor::EventLoop;
use ebbtide_shutdown::{Coordinator, Priority};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    areas::Part,
    contest::{Contestant, Table, contest, measure, time},
};

/// How many tasks are parked when the word comes.
const TASKS: usize = 10_000;

/// How long the job in flight takes.
const JOB: Duration = Duration::from_millis(20);

pub(crate) const PARTS: [Part; 4] = [
    Part::new("tasks", || vec![parked_tasks()]),
    Part::new("job", || vec![a_job_in_flight()]),
    Part::new("request", || vec![a_request()]),
    Part::new("idle", || vec![wake_ups()]),
];

fn coordinator() -> Coordinator {
    Coordinator::builder().observer(|_| ()).start().expect("threads")
}

fn reason() -> Reason {
    Reason::Signal(15)
}

fn timed(act: impl FnOnce()) -> Duration {
    let start = SystemClock.now();
    act();
    SystemClock.now() - start
}

fn parked_tasks() -> Table {
    let each = |time: Duration| time.as_nanos() as f64 / TASKS as f64;
    measure(
        "stop 10,000 parked tasks from another thread, a task",
        "ns",
        41,
        Contestant::value("smol, a closed channel", || each(smol_channel())),
        [
            Contestant::value("ebbtide", || each(ours())).target(0.7),
            Contestant::value("tokio TaskTracker + CancellationToken", || each(tokio_tracker())),
        ],
    )
}

/// Tasks on a loop wait for the token; the coordinator stops the loop, which waits for its tasks.
fn ours() -> Duration {
    let coordinator = coordinator();
    let events = EventLoop::new();
    events.start().expect("a thread");
    let (parked, all_parked) = mpsc::channel();
    let (token, handle) = (coordinator.token(), events.handle());
    let spawn = move || {
        for _ in 0..TASKS {
            let token = token.clone();
            let task = ebbtide_reactor::spawn(async move { token.triggered().await });
            task.expect("it runs").detach();
        }
        // After all of them were polled.
        handle.post(move || parked.send(()).expect("somebody waits")).expect("it runs");
    };
    events.post(spawn).expect("it runs");
    coordinator.register("loop", Priority::LOOPS, events).expect("one of that name").keep();
    all_parked.recv().expect("it runs");
    timed(|| assert!(coordinator.stop(reason()).wait().is_clean()))
}

fn smol_channel() -> Duration {
    let (close, closed) = async_channel::bounded::<()>(1);
    let (parked, all_parked) = mpsc::channel();
    let thread = thread::spawn(move || {
        let executor = async_executor::LocalExecutor::new();
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let closed = closed.clone();
                executor.spawn(async move { closed.recv().await.is_err() })
            })
            .collect();
        futures_lite::future::block_on(executor.run(async {
            futures_lite::future::yield_now().await;
            while executor.try_tick() {}
            parked.send(()).expect("somebody waits");
            for task in tasks {
                assert!(task.await);
            }
        }));
    });
    end(&all_parked, thread, || {
        close.close();
    })
}

fn tokio_tracker() -> Duration {
    let (token, tracker) = (CancellationToken::new(), TaskTracker::new());
    let (parked, all_parked) = mpsc::channel();
    let thread = {
        let (token, tracker) = (token.clone(), tracker.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                for _ in 0..TASKS {
                    let token = token.clone();
                    tracker.spawn(async move { token.cancelled().await });
                }
                for _ in 0..TASKS {
                    tokio::task::yield_now().await;
                }
                parked.send(()).expect("somebody waits");
                tracker.wait().await;
            });
        })
    };
    end(&all_parked, thread, || {
        token.cancel();
        tracker.close();
    })
}

/// From `stop` to the end of the thread.
fn end(all_parked: &mpsc::Receiver<()>, thread: JoinHandle<()>, stop: impl FnOnce()) -> Duration {
    all_parked.recv().expect("it runs");
    timed(|| {
        stop();
        thread.join().expect("it does not panic");
    })
}

/// How much later than its last request a stop ends.
fn a_job_in_flight() -> Table {
    let beyond = |ended: Duration| ended.as_nanos() as f64 / 1_000.0;
    measure(
        "a stop with a job of 20 ms in flight, how long beyond it",
        "µs",
        21,
        Contestant::value("the bar", || 200.0),
        [
            Contestant::value("ebbtide", || {
                let coordinator = coordinator();
                let request = coordinator.intake().admit().expect("it is open");
                let job = thread::spawn(move || {
                    thread::park_timeout(JOB);
                    let ended = SystemClock.now();
                    request.settle(Outcome::Completed);
                    ended
                });
                assert!(coordinator.stop(reason()).wait().is_clean());
                let stopped = SystemClock.now();
                beyond(stopped - job.join().expect("it does not panic"))
            })
            .target(1.0),
            Contestant::value("tokio TaskTracker", || {
                let tracker = TaskTracker::new();
                let token = tracker.token();
                let job = thread::spawn(move || {
                    thread::park_timeout(JOB);
                    let ended = SystemClock.now();
                    drop(token);
                    ended
                });
                tracker.close();
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(tracker.wait());
                let stopped = SystemClock.now();
                beyond(stopped - job.join().expect("it does not panic"))
            }),
        ],
    )
}

fn a_request() -> Table {
    let gate = Gate::with(Terms { ledger: Some(Ledger::new()), ..Terms::default() });
    let coordinator = coordinator();
    contest(
        "a request is let in, and ends",
        2_000,
        Contestant::new("a gate with a ledger", |n| {
            time(n, || gate.enter_owned().expect("it is open").settle(Outcome::Completed))
        })
        .ours(),
        [
            Contestant::new("the coordinator's gate", |n| {
                let gate = coordinator.intake().gate();
                time(n, || gate.enter_owned().expect("it is open").settle(Outcome::Completed))
            })
            .target(1.05),
            Contestant::new("the same, with a name", |n| {
                time(n, || coordinator.intake().admit().expect("it is open").settle(Outcome::Completed))
            })
            .ours(),
        ],
    )
}

/// How often the threads of an idle coordinator are woken in half a second.
fn wake_ups() -> Table {
    let coordinator = coordinator();
    // Until it has gone to sleep, and those of other contests have ended.
    thread::park_timeout(Duration::from_millis(200));
    let before = switches();
    thread::park_timeout(Duration::from_millis(500));
    let woken = switches() - before;
    drop(coordinator);
    measure(
        "an idle coordinator for half a second",
        "wake-ups",
        1,
        Contestant::value("the bar", || 1.0),
        [Contestant::value("ebbtide", move || woken as f64).target(0.0)],
    )
}

/// How often the threads of all coordinators of this process went to sleep.
fn switches() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ours = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    // As much of their names as the system keeps.
    let names = ["Name:\tebbtide-coordin\n", "Name:\tebbtide-spare\n"];
    let ours = ours.filter(|status| names.iter().any(|name| status.starts_with(name)));
    let count = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    ours.filter_map(count).sum()
}
