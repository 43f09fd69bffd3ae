//! Hot paths whose instructions are counted, for which a busy machine is as good as a quiet one.
//!
//! A path is run twice under callgrind, with few and with many operations; the difference of the two counts is what
//! the operations between cost, and what the process does before and after cancels out. All of them run on one thread:
//! with two, the counts would depend on how the system switches between them. Where other threads are started at all,
//! they may look around for a while before they sleep, and the lowest of several counts is taken.

use std::{
    future::{Future, pending, poll_fn, ready},
    hint::black_box,
    pin::pin,
    process,
    sync::mpsc,
    task::{Context, Poll},
    time::Duration,
};

use ebbtide_lifecycle::{Gate, Intake, Ledger, Outcome, Terms, time::VirtualClock};
use ebbtide_offload::Pool;
use ebbtide_reactor::{Local, Runtime};
use ebbtide_timeout::timeout;

use crate::{
    dag::{Nodes, Ours, Shape},
    engine,
    r#loop::yield_once,
    mailbox,
};

/// What is counted.
struct Path {
    name: &'static str,
    /// How many operations are run, once and once more.
    few: usize,
    many: usize,
    /// How often it is counted, for the lowest count.
    times: usize,
    run: fn(usize),
}

/// For those that start threads.
const TIMES: usize = 3;

const FAR: Duration = Duration::from_secs(3600);

const PATHS: &[Path] = &[
    path("gate: enter and leave", |n| {
        let gate = Gate::new();
        (0..n).for_each(|_| drop(black_box(gate.enter().expect("open"))));
    }),
    path("gate: enter owned, with a ledger, and settle", |n| {
        let gate = Gate::with(Terms { ledger: Some(Ledger::new()), ..Terms::default() });
        (0..n).for_each(|_| gate.enter_owned().expect("open").settle(Outcome::Completed));
    }),
    path("intake: admit and settle", |n| {
        let intake = Intake::new(VirtualClock::new());
        (0..n).for_each(|_| intake.admit().expect("open").settle(Outcome::Completed));
    }),
    path("loop: post and run", post_and_run),
    path("loop: spawn and join", |n| {
        Runtime::new().block_on(async {
            for number in 0..n {
                black_box(ebbtide_reactor::spawn(async move { number }).expect("runs").await.expect("ends"));
            }
        });
    }),
    path("loop: self-wake", |n| {
        let wakes = async move {
            for _ in 0..n {
                yield_once().await;
            }
        };
        Runtime::new().block_on(async { ebbtide_reactor::spawn(wakes).expect("runs").await.expect("ends") });
    }),
    path("loop: arm and cancel a timer", |n| {
        inside(|cx| (0..n).for_each(|_| poll_pending(ebbtide_reactor::sleep(FAR), cx)));
    }),
    path("timeout: around a ready future", |n| {
        inside(|cx| {
            (0..n).for_each(|_| assert!(pin!(timeout(Local, FAR, black_box(ready(1)))).poll(cx).is_ready()));
        });
    }),
    path("timeout: around a future that waits", |n| {
        inside(|cx| (0..n).for_each(|_| poll_pending(timeout(Local, FAR, pending::<()>()), cx)));
    }),
    path("offload: bring a job", bring).beside_threads(),
    nodes("dag: inline node of a chain", CHAIN, |n| run(&Shape::chain(), Nodes::Inline, n)),
    nodes("dag: inline node of a fan", FAN, |n| run(&Shape::fan(), Nodes::Inline, n)),
    nodes("dag: inline node of layers", LAYERED, |n| run(&Shape::layered(), Nodes::Inline, n)),
    nodes("dag: async node of a chain", CHAIN, |n| run(&Shape::chain(), Nodes::Ready, n)),
    nodes("dag: async node of a fan", FAN, |n| run(&Shape::fan(), Nodes::Ready, n)),
    nodes("dag: async node of layers", LAYERED, |n| run(&Shape::layered(), Nodes::Ready, n)),
    path("mailbox: send, receive and acknowledge", mailbox::handle_one_by_one).beside_threads(),
    Path {
        few: 400,
        many: 800,
        ..path("engine: a request of the feed", engine::answer_one_by_one).beside_threads()
    },
];

/// How many nodes the shapes have.
const CHAIN: usize = 1_000;
const FAN: usize = 1_002;
const LAYERED: usize = 10_000;

const fn path(name: &'static str, run: fn(usize)) -> Path {
    Path { name, few: 5_000, many: 25_000, times: 1, run }
}

impl Path {
    const fn beside_threads(mut self) -> Self {
        self.times = TIMES;
        self
    }
}

/// Its operations are nodes, of whole runs of a shape with so many.
const fn nodes(name: &'static str, shape: usize, run: fn(usize)) -> Path {
    let runs = 20_000 / shape;
    Path { name, few: runs * shape, many: 3 * runs * shape, times: 1, run }
}

/// A line for each path, in fields separated by tabs.
pub(crate) fn list() -> String {
    let line = |Path { name, few, many, times, .. }: &Path| format!("{name}\t{few}\t{many}\t{times}\n");
    PATHS.iter().map(line).collect()
}

/// Runs so many operations of a path.
pub(crate) fn run_path(name: &str, operations: &str) -> Result<(), String> {
    let operations = operations.parse().map_err(|_| format!("{operations:?} is not a number"))?;
    let path =
        PATHS.iter().find(|path| path.name == name).ok_or_else(|| format!("there is no path {name:?}"))?;
    (path.run)(operations);
    Ok(())
}

/// Posts from the loop's own thread, so many between two turns.
fn post_and_run(n: usize) {
    const TOGETHER: usize = 50;
    let mut runtime = Runtime::new();
    let handle = runtime.handle();
    runtime.block_on(async {
        for _ in 0..n / TOGETHER {
            for number in 0..TOGETHER {
                let job = move || {
                    black_box(number);
                };
                assert!(handle.post(job).is_ok());
            }
            ebbtide_reactor::yield_now().await;
        }
    });
}

/// To a pool whose one thread is busy, so that only whoever brings jobs does anything.
fn bring(n: usize) {
    let pool = Pool::builder().cpu_threads(1).start().expect("one thread");
    let (begun, has_begun) = mpsc::channel();
    let _busy = pool.offload(move || {
        begun.send(()).expect("somebody waits");
        loop {
            std::thread::park();
        }
    });
    has_begun.recv().expect("it begins");
    let jobs: Vec<_> = (0..n).map(|number| pool.offload(move || black_box(number))).collect();
    assert_eq!(jobs.len(), n);
    // The thread never ends.
    process::exit(0);
}

fn run(shape: &Shape, nodes: Nodes, n: usize) {
    Ours::new(shape, nodes).run(n / shape.len(), |run| run);
}

/// Runs `act` in a future on a loop.
fn inside(act: impl FnOnce(&mut Context<'_>)) {
    let mut act = Some(act);
    Runtime::new().block_on(poll_fn(|cx| {
        act.take().expect("polled once")(cx);
        Poll::Ready(())
    }));
}

fn poll_pending(future: impl Future, cx: &mut Context<'_>) {
    assert!(pin!(future).poll(cx).is_pending());
}
