//! What a task costs in memory that is resident, each in a process of its own.

use std::{env, fs, future::pending, process::Command, time::Duration};

use async_executor::LocalExecutor;
use ebbtide_reactor::Runtime;

use super::tasks::yield_once;
use crate::{
    contest::{Contestant, Table, measure},
    peers::{Tokio, monoio},
};

const TASKS: usize = 100_000;
const FAR: Duration = Duration::from_secs(3600);

pub(super) fn tables() -> [Table; 2] {
    let table = |title, kind: &'static str, target| {
        let contestant = |name| Contestant::value(name, move || measure_in_another_process(name, kind));
        let others = [contestant("ebbtide").target(target), contestant("tokio"), contestant("monoio")];
        measure(title, "bytes", 5, contestant("smol"), others)
    };
    [
        table("memory of a parked task", "parked", 115.0 / 114.0),
        table("memory of a task on a timer", "timer", 200.0 / 227.0),
    ]
}

fn measure_in_another_process(runtime: &str, kind: &str) -> f64 {
    let this = env::current_exe().expect("this program");
    let output = Command::new(this).args(["memory", runtime, kind]).output().expect("this program runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("it prints a number")
}

/// Prints the bytes that a task takes.
pub(crate) fn measure_in_this_process(runtime: &str, kind: &str) -> Result<(), String> {
    match (runtime, kind) {
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
        _ => return Err(format!("there is no memory of {runtime:?} for {kind:?}")),
    }
    Ok(())
}

/// Spawns tasks, lets them run until they wait, and says how much more memory there is for each. Ends the
/// process: how a runtime ends is not asked.
async fn tasks(spawn: impl Fn()) {
    let before = resident();
    (0..TASKS).for_each(|_| spawn());
    for _ in 0..TASKS / 10 {
        yield_once().await;
    }
    println!("{}", (resident() - before) as f64 / TASKS as f64);
    std::process::exit(0);
}

fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}
