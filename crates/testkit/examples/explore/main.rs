//! Explores a program that is another one for each seed: loop, pool, timeouts, graphs, coordinator and mailbox worker
//! together, with random faults and stops.
//!
//! ```sh
//! cargo xtask explore --seeds 100000
//! cargo xtask explore --from 4711 --seeds 1
//! cargo xtask explore --twin leak --seeds 1000 # a world with a bug, which must be found
//! ```

mod graph;
mod letters;
mod twin;
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

use self::twin::Twin;

/// What is taken by a thread at a time. At the end of each share it waits for what may still show itself.
const SHARE: u64 = 500;

/// More cases than CPUs at a time: in each, threads wait for each other.
const AT_A_TIME: usize = 3;

/// What is asked for.
struct Options {
    seeds: u64,
    from: u64,
    twin: Option<Twin>,
}

fn main() -> ExitCode {
    let Options { seeds, from, twin } = match options(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::FAILURE;
        }
    };
    hush();
    let since = SystemClock.now();
    let explored = explore(from..from.saturating_add(seeds), twin);
    let took = (SystemClock.now() - since).as_secs_f64();
    match (explored, twin) {
        (Err(failing), Some(twin)) if twin.is_told_by(&failing) => {
            println!("{failing}\n{took:.1} s, and it is caught");
            ExitCode::SUCCESS
        }
        (Ok(summary), Some(twin)) => {
            eprintln!("{summary}\n{twin:?} is not found in {seeds} seeds");
            ExitCode::FAILURE
        }
        (Err(failing), _) => {
            eprintln!("{failing}");
            ExitCode::FAILURE
        }
        (Ok(summary), None) => {
            println!("{summary}\n{took:.1} s, {:.0} seeds a second", summary.cases as f64 / took);
            ExitCode::SUCCESS
        }
    }
}

const USAGE: &str = "say --seeds N, --from S, --twin NAME";

/// How many seeds, from which on, and what is wrong with the world.
fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options { seeds: 1000, from: 0, twin: None };
    for option in args.chunks(2) {
        let [name, value] = option else { return Err(format!("{option:?}: {USAGE}")) };
        let number = || value.parse().map_err(|_| format!("{name} {value:?} is not a number"));
        match name.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--twin" => options.twin = Some(Twin::named(value)?),
            _ => return Err(format!("there is no option {name:?}: {USAGE}")),
        }
    }
    if options.seeds == 0 {
        return Err("no seeds explore nothing".into());
    }
    Ok(options)
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
fn explore(seeds: std::ops::Range<u64>, twin: Option<Twin>) -> Result<Summary, Failing> {
    let next = AtomicU64::new(seeds.start);
    let outcome = Mutex::new(Ok(Summary::default()));
    let lock = || outcome.lock().unwrap_or_else(PoisonError::into_inner);
    let explore = || {
        let explorers = [world::explorer(true, twin), world::explorer(false, twin)];
        while lock().is_ok() {
            let first = next.fetch_add(SHARE, Ordering::Relaxed);
            if first >= seeds.end {
                return;
            }
            for (odd, explorer) in (0..).zip(&explorers) {
                let mut share =
                    (first..seeds.end.min(first + SHARE)).filter(|seed| seed % 2 == odd).peekable();
                if share.peek().is_none() {
                    continue;
                }
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
