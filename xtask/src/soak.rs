//! `cargo xtask soak AREA`: work without end, counted by those who bring it and by those who take it.

use std::process::Command;

use crate::shell::{cargo, run as shell};

/// What there is to soak, and the package whose example `soak` does it. For how long says `--seconds` of the
/// loop, `--rounds` of the signals, and the environment of the others, which their own text explains.
const AREAS: &[(&str, &str)] = &[
    ("loop", "ebbtide-reactor"),
    ("timeout", "ebbtide-timeout"),
    ("dag", "ebbtide-dag"),
    ("signals", "ebbtide-shutdown"),
];

const SECONDS: u32 = 60;
const ROUNDS: u32 = 200;

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    match args {
        ["loop"] => soak_loop(SECONDS),
        ["loop", "--seconds", seconds] => {
            soak_loop(seconds.parse().map_err(|_| format!("{seconds:?} is not a number of seconds"))?)
        }
        ["signals"] => soak_signals(ROUNDS),
        ["signals", "--rounds", rounds] => {
            soak_signals(rounds.parse().map_err(|_| format!("{rounds:?} is not a number of rounds"))?)
        }
        [area @ ("timeout" | "dag")] => shell(&mut example(area)?),
        _ => Err(format!(
            "soak loop [--seconds N], soak signals [--rounds N], or soak AREA, with an area of: {}",
            names()
        )),
    }
}

pub(crate) fn soak_signals(rounds: u32) -> Result<(), String> {
    shell(example("signals")?.args(["--", &rounds.to_string()]))
}

pub(crate) fn soak_loop(seconds: u32) -> Result<(), String> {
    shell(example("loop")?.args(["--", &seconds.to_string()]))
}

/// A few runs of each scenario.
pub(crate) fn soak_timeouts(runs: u32) -> Result<(), String> {
    for area in ["timeout", "dag"] {
        shell(example(area)?.env("RUNS", runs.to_string()))?;
    }
    Ok(())
}

fn example(area: &str) -> Result<Command, String> {
    let found = AREAS.iter().find(|(name, _)| *name == area);
    let (_, package) = found.ok_or_else(|| format!("there is no area {area:?}; there are: {}", names()))?;
    Ok(cargo(&format!("run --release --package {package} --example soak")))
}

fn names() -> String {
    AREAS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
