//! Models of the parts by which several threads decide, and what keeps them honest.

use std::process::Command;

use super::{
    finding::{Finding, of_tests},
    proof::Tier,
    watch::watch,
};
use crate::{
    ci::{LOOM, crates_with, loom_commands},
    mutants::{self, MUTANTS},
    shell::{cargo, package},
};

/// One model after the other, so that what each says can be told apart.
const ONE_BY_ONE: [&str; 3] = ["--", "--nocapture", "--test-threads=1"];

/// As many schedules of each model, by each scheduler, as the properties ask for.
const SCHEDULES: u64 = 1_000_000;

/// Enough to catch each of the bugs that the models were tried with.
const SCHEDULES_IN_CI: u64 = 20_000;

pub(super) fn loom(_: Tier) -> Result<Vec<Finding>, String> {
    explored(loom_commands()?)
}

pub(super) fn shuttle(tier: Tier) -> Result<Vec<Finding>, String> {
    let schedules = if tier == Tier::Full { SCHEDULES } else { SCHEDULES_IN_CI };
    let commands = crates_with("tests/shuttle.rs")?.into_iter().map(|folder| {
        let mut command = cargo(&format!("test --release --package {} --test shuttle", package(&folder)));
        command.env("RUSTFLAGS", "--cfg shuttle").env("CARGO_TARGET_DIR", "target/shuttle");
        // As for loom: to build with more optimisation would take longer than it saves, in the quick tier.
        command.envs(LOOM.into_iter().filter(|(name, _)| *name != "RUSTFLAGS"));
        // It takes every ordering for the strongest, which `PROOF.md` says.
        command.env("SHUTTLE_SILENCE_WARNINGS", "1").env("SCHEDULES", schedules.to_string());
        command
    });
    explored(commands.collect())
}

fn explored(commands: Vec<Command>) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for mut command in commands {
        findings.extend(of_tests(&watch(command.args(ONE_BY_ONE))?));
    }
    Ok(findings)
}

pub(super) fn twins(_: Tier) -> Result<Vec<Finding>, String> {
    mutants::run().map_err(|why| format!("{why}\nrepeat it: cargo xtask ci mutants"))?;
    Ok(MUTANTS.iter().map(|mutant| Finding::new(mutant.name, 1, "caught")).collect())
}
