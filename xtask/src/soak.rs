//! `cargo xtask soak AREA`: work without end, counted by those who bring it and by those who take it.

use std::{process::Command, time::Duration};

use crate::{
    redis,
    shell::{cargo, run as shell, run_within},
};

/// What there is to soak, and the package whose example `soak` does it. For how long says `--seconds` of the loop,
/// `--rounds` of the signals and of the mailbox, and the environment of the others, which their own text explains.
const AREAS: &[(&str, &str)] = &[
    ("loop", "ebbtide-reactor"),
    ("timeout", "ebbtide-timeout"),
    ("dag", "ebbtide-dag"),
    ("signals", "ebbtide-shutdown"),
    ("mailbox", "ebbtide-mailbox"),
];

const SECONDS: u32 = 60;
const ROUNDS: u32 = 200;

/// A round of the mailbox takes a second, and not a moment.
const MAILBOX_ROUNDS: u32 = 50;

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
        ["mailbox", options @ ..] => {
            let (rounds, seed) = mailbox_options(options)?;
            soak_mailbox(rounds, seed)
        }
        [area @ ("timeout" | "dag")] => shell(&mut example(area)?),
        _ => Err(format!(
            "soak loop [--seconds N], soak signals [--rounds N], soak mailbox [--rounds N] [--seed N], or soak AREA, \
             with an area of: {}",
            names()
        )),
    }
}

pub(crate) fn soak_signals(rounds: u32) -> Result<(), String> {
    run_within(example("signals")?.args(["--", &rounds.to_string()]), limit(rounds))
}

/// With the seed of another run its rounds are like those of that one.
pub(crate) fn soak_mailbox(rounds: u32, seed: Option<u64>) -> Result<(), String> {
    redis::install()?;
    let mut soak = example("mailbox")?;
    soak.args(["--", &rounds.to_string()]);
    run_within(soak.args(seed.map(|seed| seed.to_string())), limit(rounds))
}

fn mailbox_options(options: &[&str]) -> Result<(u32, Option<u64>), String> {
    let (mut rounds, mut seed) = (MAILBOX_ROUNDS, None);
    for option in options.chunks(2) {
        match option {
            ["--rounds", given] => {
                rounds = given.parse().map_err(|_| format!("{given:?} is not a number of rounds"))?;
            }
            ["--seed", given] => seed = Some(given.parse().map_err(|_| format!("{given:?} is not a seed"))?),
            _ => return Err("soak mailbox [--rounds N] [--seed N]".into()),
        }
    }
    Ok((rounds, seed))
}

pub(crate) fn soak_loop(seconds: u32) -> Result<(), String> {
    run_within(example("loop")?.args(["--", &seconds.to_string()]), limit(seconds))
}

/// How long so many seconds, or rounds, may take, beside the build: a round of any takes a second or two.
pub(crate) fn limit(rounds: u32) -> Duration {
    Duration::from_secs(900) + Duration::from_secs(10) * rounds
}

/// A few runs of each scenario.
pub(crate) fn soak_timeouts(runs: u32) -> Result<(), String> {
    for area in ["timeout", "dag"] {
        shell(example(area)?.env("RUNS", runs.to_string()))?;
    }
    Ok(())
}

/// The soak of an area, before it is told for how long.
pub(crate) fn example(area: &str) -> Result<Command, String> {
    let found = AREAS.iter().find(|(name, _)| *name == area);
    let (_, package) = found.ok_or_else(|| format!("there is no area {area:?}; there are: {}", names()))?;
    Ok(cargo(&format!("run --release --package {package} --example soak")))
}

fn names() -> String {
    AREAS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_and_seed_are_said_in_any_order_or_not_at_all() {
        assert_eq!(mailbox_options(&[]), Ok((MAILBOX_ROUNDS, None)));
        assert_eq!(mailbox_options(&["--seed", "7", "--rounds", "3"]), Ok((3, Some(7))));
        for wrong in [&["--rounds"][..], &["--rounds", "many"], &["--seed", "-1"], &["3"]] {
            assert!(mailbox_options(wrong).is_err(), "{wrong:?}");
        }
    }
}
