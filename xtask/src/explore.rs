//! `cargo xtask explore`: a whole program, another one for each seed, with faults and stops: nothing may be lost.

use std::{process::Command, time::Duration};

use crate::shell::{cargo, run_within};

/// A minute or two on two cores, which CI has, too.
pub(crate) const SEEDS: u64 = 100_000;

/// What a proof explores.
pub(crate) const SEEDS_IN_PROOF: u64 = 1_000_000;

/// Broken twins of the explored world, in `crates/testkit/examples/explore/twin.rs`.
pub(crate) const TWINS: &[&str] = &["lost-request", "lost-message", "late-job", "leak"];

/// Each is found in some hundred seeds; this many take a second or two.
const SEEDS_FOR_A_TWIN: u64 = 2_000;

const USAGE: &str = "explore [--seeds N] [--from S] [--twin NAME]";

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let Options { seeds, from, twin } = options(args)?;
    run_within(&mut command(seeds, from, twin), limit(seeds))
}

/// What CI explores: the world as it is, and its twins, in which a bug must be found.
pub(crate) fn short() -> Result<(), String> {
    run_within(&mut command(SEEDS, 0, None), limit(SEEDS))?;
    twins(&mut |command| run_within(command, limit(SEEDS_FOR_A_TWIN)))
}

/// Has `run` look for each twin, and fail if it is not found.
pub(crate) fn twins(run: &mut dyn FnMut(&mut Command) -> Result<(), String>) -> Result<(), String> {
    TWINS.iter().try_for_each(|twin| run(&mut command(SEEDS_FOR_A_TWIN, 0, Some(twin))))
}

/// How long so many may take, beside the build: each takes a millisecond, and many times that on a busy machine.
pub(crate) fn limit(seeds: u64) -> Duration {
    Duration::from_secs(900) + Duration::from_millis(20).saturating_mul(seeds.try_into().unwrap_or(u32::MAX))
}

/// With the assertions of a debug build, which find more, and the speed of a release build.
pub(crate) fn command(seeds: u64, from: u64, twin: Option<&str>) -> Command {
    let mut command = cargo("run --profile explore --package ebbtide-testkit --example explore --");
    command.args(["--seeds", &seeds.to_string(), "--from", &from.to_string()]);
    command.args(twin.into_iter().flat_map(|twin| ["--twin", twin]));
    command
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options<'a> {
    seeds: u64,
    from: u64,
    twin: Option<&'a str>,
}

fn options<'a>(args: &[&'a str]) -> Result<Options<'a>, String> {
    let mut options = Options { seeds: SEEDS, from: 0, twin: None };
    for option in args.chunks(2) {
        match option {
            ["--seeds", given] => {
                options.seeds = given.parse().map_err(|_| format!("{given:?} is not a number of seeds"))?;
            }
            ["--from", given] => {
                options.from = given.parse().map_err(|_| format!("{given:?} is not a seed"))?;
            }
            ["--twin", given] if TWINS.contains(given) => options.twin = Some(given),
            ["--twin", given] => {
                return Err(format!("there is no twin {given:?}; there are: {}", TWINS.join(", ")));
            }
            _ => return Err(USAGE.into()),
        }
    }
    if options.seeds == 0 {
        return Err("no seeds explore nothing".into());
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{read, root};

    #[test]
    fn what_is_explored_is_said_in_any_order_or_not_at_all() {
        assert_eq!(options(&[]), Ok(Options { seeds: SEEDS, from: 0, twin: None }));
        let some = options(&["--from", "7", "--twin", "leak", "--seeds", "3"]);
        assert_eq!(some, Ok(Options { seeds: 3, from: 7, twin: Some("leak") }));
        for wrong in [&["--seeds"][..], &["--seeds", "many"], &["--from", "-1"], &["3"], &["--seeds", "0"]] {
            assert!(options(wrong).is_err(), "{wrong:?}");
        }
        assert!(options(&["--twin", "sister"]).unwrap_err().contains("lost-request, lost-message"));
    }

    #[test]
    fn each_twin_of_the_world_is_looked_for() {
        let text = read(root().join("crates/testkit/examples/explore/twin.rs")).unwrap();
        let (_, table) = text.split_once("const TWINS").unwrap();
        let rows = table.split("];").next().unwrap().lines().filter_map(|row| row.trim().strip_prefix("(\""));
        let names: Vec<_> = rows.filter_map(|row| row.split('"').next()).collect();
        assert_eq!(names, TWINS);
    }
}
