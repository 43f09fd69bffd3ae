//! Explores a program that is another one for each seed: loop, pool, timeouts, graphs, coordinator and mailbox worker
//! together, with random faults and stops.
//!
//! ```sh
//! cargo xtask explore --seeds 100000
//! cargo xtask explore --from 4711 --seeds 1
//! ```

mod graph;
mod letters;
mod world;

use std::{
    env,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use ebbtide::lifecycle::time::{Clock, SystemClock};
use ebbtide_testkit::{Failing, Summary};

/// What is taken by a thread at a time.
const SHARE: u64 = 50;

/// More cases than CPUs at a time: in each, threads wait for each other.
const AT_A_TIME: usize = 3;

fn main() -> ExitCode {
    let (seeds, from) = match options(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::FAILURE;
        }
    };
    hush();
    let since = SystemClock.now();
    let explored = explore(from..from.saturating_add(seeds));
    let took = (SystemClock.now() - since).as_secs_f64();
    match explored {
        Err(failing) => {
            eprintln!("{failing}");
            ExitCode::FAILURE
        }
        Ok(summary) => {
            println!("{summary}\n{took:.1} s, {:.0} seeds a second", summary.cases as f64 / took);
            ExitCode::SUCCESS
        }
    }
}

/// How many seeds, and from which on.
fn options(args: &[String]) -> Result<(u64, u64), String> {
    let (mut seeds, mut from) = (1000, 0);
    for option in args.chunks(2) {
        let [name, value] = option else { return Err(format!("{option:?}: say --seeds N, --from S")) };
        let value = value.parse().map_err(|_| format!("{name} {value:?} is not a number"))?;
        match name.as_str() {
            "--seeds" => seeds = value,
            "--from" => from = value,
            _ => return Err(format!("there is no option {name:?}: say --seeds N, --from S")),
        }
    }
    Ok((seeds, from))
}

/// What was planted is no news when it panics.
fn hush() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some("planted") {
            tell(panic);
        }
    }));
}

/// Several at a time, until one fails.
fn explore(seeds: std::ops::Range<u64>) -> Result<Summary, Failing> {
    let next = AtomicU64::new(seeds.start);
    let outcome = Mutex::new(Ok(Summary::default()));
    let lock = || outcome.lock().unwrap_or_else(PoisonError::into_inner);
    let explore = || {
        let explorers = [world::explorer(true), world::explorer(false)];
        while lock().is_ok() {
            let first = next.fetch_add(SHARE, Ordering::Relaxed);
            if first >= seeds.end {
                return;
            }
            for (odd, explorer) in (0..).zip(&explorers) {
                let share = (first..seeds.end.min(first + SHARE)).filter(|seed| seed % 2 == odd);
                let explored = explorer.seeds(share);
                let mut outcome = lock();
                match (&mut *outcome, explored) {
                    (Ok(sum), Ok(summary)) => *sum = std::mem::take(sum).and(&summary),
                    (Ok(_), Err(failing)) => *outcome = Err(failing),
                    (Err(_), _) => {}
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(explore);
        }
    });
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}
