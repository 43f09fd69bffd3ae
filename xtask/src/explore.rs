//! `cargo xtask explore`: a whole program, another one for each seed, with faults and stops: nothing may be lost.

use std::process::Command;

use crate::shell::{cargo, run as shell};

/// A minute or two on two cores, which CI has, too.
pub(crate) const SEEDS: u64 = 100_000;

/// What a proof explores.
pub(crate) const SEEDS_IN_PROOF: u64 = 1_000_000;

const USAGE: &str = "explore [--seeds N] [--from S]";

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let (seeds, from) = options(args)?;
    explore(seeds, from)
}

/// What CI explores.
pub(crate) fn short() -> Result<(), String> {
    explore(SEEDS, 0)
}

fn explore(seeds: u64, from: u64) -> Result<(), String> {
    shell(&mut command(seeds, from))
}

/// With the assertions of a debug build, which find more, and the speed of a release build.
pub(crate) fn command(seeds: u64, from: u64) -> Command {
    let mut command = cargo("run --profile explore --package ebbtide-testkit --example explore --");
    command.args(["--seeds", &seeds.to_string(), "--from", &from.to_string()]);
    command
}

fn options(args: &[&str]) -> Result<(u64, u64), String> {
    let (mut seeds, mut from) = (SEEDS, 0);
    for option in args.chunks(2) {
        match option {
            ["--seeds", given] => {
                seeds = given.parse().map_err(|_| format!("{given:?} is not a number of seeds"))?;
            }
            ["--from", given] => from = given.parse().map_err(|_| format!("{given:?} is not a seed"))?,
            _ => return Err(USAGE.into()),
        }
    }
    Ok((seeds, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_the_first_of_them_are_said_in_any_order_or_not_at_all() {
        assert_eq!(options(&[]), Ok((SEEDS, 0)));
        assert_eq!(options(&["--from", "7", "--seeds", "3"]), Ok((3, 7)));
        for wrong in [&["--seeds"][..], &["--seeds", "many"], &["--from", "-1"], &["3"]] {
            assert!(options(wrong).is_err(), "{wrong:?}");
        }
    }
}
