//! What is resident for things that wait, each in a process of its own: tasks, timers, posts, runs of a graph.

use std::{
    env, fs,
    future::{Future, pending},
    hint::black_box,
    pin::Pin,
    process::{self, Command},
    task::{Context, Waker},
    time::Duration,
};

use async_executor::LocalExecutor;
use ebbtide_dag::{Env, Failure, Graph};
use ebbtide_reactor::Runtime;
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::{
    areas::Part,
    contest::{Contestant, Table, measure},
    r#loop::yield_once,
    peers::{Tokio, monoio},
};

pub(crate) const PARTS: [Part; 3] = [
    Part::new("tasks", || vec![parked_tasks(), tasks_on_timers()]),
    Part::new("posts", || vec![posts()]),
    Part::new("runs", || vec![runs()]),
];

/// As many are counted, so that what there is only one of does not matter.
const COUNT: usize = 100_000;

/// Memory differs little from process to process.
const ROUNDS: usize = 5;

const FAR: Duration = Duration::from_secs(3600);

/// How many nodes a run has.
const NODES: usize = 10;

fn parked_tasks() -> Table {
    let others =
        [of("ebbtide", "parked").target(115.0 / 114.0), of("tokio", "parked"), of("monoio", "parked")];
    measure("memory of a parked task", "bytes", ROUNDS, of("smol", "parked"), others)
}

fn tasks_on_timers() -> Table {
    let others = [of("ebbtide", "timer").target(200.0 / 227.0), of("tokio", "timer"), of("monoio", "timer")];
    measure("memory of a task on a timer", "bytes", ROUNDS, of("smol", "timer"), others)
}

fn posts() -> Table {
    let others = [of("ebbtide", "post"), of("async-channel", "post")];
    measure("memory of a queued post of 16 bytes", "bytes", ROUNDS, of("tokio mpsc", "post"), others)
}

fn runs() -> Table {
    let peer = of("FuturesUnordered and counters by hand", "run");
    measure("memory of a run of ten nodes that waits in one", "bytes", ROUNDS, peer, [of("ebbtide", "run")])
}

fn of(who: &'static str, what: &'static str) -> Contestant<'static> {
    Contestant::value(who, move || measure_in_another_process(who, what))
}

fn measure_in_another_process(who: &str, what: &str) -> f64 {
    let this = env::current_exe().expect("this program");
    let output = Command::new(this).args(["memory", who, what]).output().expect("this program runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("it prints a number")
}

/// Prints the bytes that one of them takes.
pub(crate) fn measure_in_this_process(who: &str, what: &str) -> Result<(), String> {
    match (who, what) {
        ("ebbtide", "parked") => {
            Runtime::new().block_on(tasks(|| drop(ebbtide_reactor::spawn(pending::<()>()))));
        }
        ("ebbtide", "timer") => {
            Runtime::new().block_on(tasks(|| drop(ebbtide_reactor::spawn(ebbtide_reactor::sleep(FAR)))));
        }
        ("tokio", "parked") => {
            Tokio::new().block_on(tasks(|| drop(tokio::task::spawn_local(pending::<()>()))));
        }
        ("tokio", "timer") => {
            Tokio::new().block_on(tasks(|| drop(tokio::task::spawn_local(tokio::time::sleep(FAR)))));
        }
        ("smol", "parked") => {
            let smol = LocalExecutor::new();
            async_io::block_on(smol.run(tasks(|| smol.spawn(pending::<()>()).detach())));
        }
        ("smol", "timer") => {
            let smol = LocalExecutor::new();
            async_io::block_on(smol.run(tasks(|| smol.spawn(async_io::Timer::after(FAR)).detach())));
        }
        ("monoio", "parked") => monoio().block_on(tasks(|| drop(monoio::spawn(pending::<()>())))),
        ("monoio", "timer") => monoio().block_on(tasks(|| drop(monoio::spawn(monoio::time::sleep(FAR))))),

        ("ebbtide", "post") => {
            // Nobody drives it, so they stay where they are.
            let runtime = Runtime::new();
            let handle = runtime.handle();
            kept(|| assert!(handle.post(job()).is_ok()));
        }
        ("tokio mpsc", "post") => {
            let (sender, _receiver) = tokio::sync::mpsc::unbounded_channel::<Box<dyn FnOnce() + Send>>();
            kept(|| assert!(sender.send(Box::new(job())).is_ok()));
        }
        ("async-channel", "post") => {
            let (sender, _receiver) = async_channel::unbounded::<Box<dyn FnOnce() + Send>>();
            kept(|| assert!(sender.try_send(Box::new(job())).is_ok()));
        }

        ("ebbtide", "run") => run_of_ours(),
        ("FuturesUnordered and counters by hand", "run") => run_by_hand(),
        _ => return Err(format!("there is no memory of {who:?} for {what:?}")),
    }
    Ok(())
}

/// As much as a post mostly brings: two words.
fn job() -> impl FnOnce() + Send + 'static {
    let words = black_box([1_usize, 2]);
    move || {
        black_box(words);
    }
}

/// Spawns tasks, lets them run until they wait, and says how much more memory there is for each.
async fn tasks(spawn: impl Fn()) {
    let before = resident();
    (0..COUNT).for_each(|_| spawn());
    for _ in 0..COUNT / 10 {
        yield_once().await;
    }
    say(before);
}

/// The same for what is there at once.
fn kept(mut keep: impl FnMut()) {
    let before = resident();
    (0..COUNT).for_each(|_| keep());
    say(before);
}

/// Polls futures once, and keeps them.
fn polled<F: Future>(begin: impl Fn() -> F) {
    let mut futures: Vec<Pin<Box<F>>> = Vec::with_capacity(COUNT);
    let mut cx = Context::from_waker(Waker::noop());
    kept(|| {
        let mut future = Box::pin(begin());
        assert!(future.as_mut().poll(&mut cx).is_pending());
        futures.push(future);
    });
}

/// Runs that wait for their first node.
fn run_of_ours() {
    let mut graph = Graph::<()>::new("ten");
    let mut node = graph.future("first", (), |_, ()| pending::<Result<u64, Failure>>());
    for nth in 1..NODES {
        node = graph.inline(format!("node {nth}"), node, |_, before| Ok(*before + 1_u64));
    }
    let plan = graph.plan(node).expect("it has no circles");
    let runtime = Runtime::new();
    let engine = plan.bind(Env::new(runtime.handle())).expect("it has what its nodes need");
    polled(|| engine.run(()));
}

/// As in `dag/peers.rs`: what each node misses and gives, and the one that is under way, boxed.
fn run_by_hand() {
    type Node = Pin<Box<dyn Future<Output = (u32, u64)>>>;

    polled(|| async {
        let missing: Vec<u32> = (0..NODES).map(|nth| u32::from(nth > 0)).collect();
        let mut values = vec![0_u64; NODES];
        let mut under_way = FuturesUnordered::<Node>::new();
        under_way.push(Box::pin(pending()));
        while let Some((node, value)) = under_way.next().await {
            values[node as usize] = value + u64::from(missing[node as usize]);
        }
        values
    });
}

/// Ends the process: how anybody ends is not asked.
fn say(before: usize) -> ! {
    println!("{}", (resident() - before) as f64 / COUNT as f64);
    process::exit(0);
}

fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}
