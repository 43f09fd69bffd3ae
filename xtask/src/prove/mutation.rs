//! Every small change of the files that carry contracts, made by cargo-mutants, is noticed by a test of the crate.

use std::fs;

use super::{
    answers::{self, without_place},
    finding::Finding,
    leavings,
    proof::Tier,
};
use crate::{
    shell::{cargo, line, package, run as shell},
    tool::Tool,
};

/// The files of each crate that carry its contracts.
const FILES: &[(&str, &[&str])] =
    &[("lifecycle", &["balance.rs", "gate/core.rs", "gate/permit.rs", "state.rs"])];

const CARGO_MUTANTS: Tool = Tool {
    programs: &["cargo-mutants"],
    package: "cargo-mutants",
    needed_by: "mutation tests",
    otherwise: "or `cargo install cargo-mutants --locked`",
};

/// Longer than any suite takes that goes on at all.
const PATIENCE_SECONDS: &str = "60";

pub(super) fn run(_: Tier) -> Result<Vec<Finding>, String> {
    CARGO_MUTANTS.install_by_cargo()?;
    let answers = answers::all()?;
    let mut findings = Vec::new();
    for (folder, files) in FILES {
        let left = leavings("mutants")?.join(folder);
        let mut command =
            cargo(&format!("mutants --package {} --timeout {PATIENCE_SECONDS}", package(folder)));
        command.args(["--baseline", "skip", "--no-shuffle", "--colors", "never"]).arg("--output").arg(&left);
        for file in *files {
            command.args(["--file", &format!("crates/{folder}/src/{file}")]);
        }
        command.args(["--", "--lib", "--test", "suite"]);
        // It fails when a mutant survives: that is told below.
        let _ = shell(&mut command);
        let list = |name: &str| fs::read_to_string(left.join("mutants.out").join(name)).unwrap_or_default();
        let survivors = list("missed.txt");
        let unanswered: Vec<_> = survivors
            .lines()
            .filter(|survivor| answers.iter().all(|answer| answer.mutant != without_place(survivor)))
            .collect();
        if !unanswered.is_empty() {
            let list = unanswered.join("\n  ");
            return Err(format!(
                "no test notices these; write one, or answer in {}:\n  {list}\nrepeat it: {}",
                answers::FILE,
                line(&command)
            ));
        }
        let count = |name: &str| list(name).lines().count() as u64;
        let caught = count("caught.txt") + count("timeout.txt");
        if caught == 0 {
            return Err(format!("no mutant of {folder} was tried\nrepeat it: {}", line(&command)));
        }
        findings.push(Finding::new(*folder, caught, "mutants caught"));
        findings.push(Finding::new(*folder, survivors.lines().count() as u64, "answered"));
    }
    Ok(findings)
}
