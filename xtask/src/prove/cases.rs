//! Random cases: sequences and graphs against a plain model, storms of threads, and whole programs by seed.

use super::{
    finding::{Finding, before, of_tests},
    proof::Tier,
    watch::{watch, watch_within},
};
use crate::{
    explore::{self, SEEDS_IN_PROOF},
    shell::{cargo, package},
};

/// As many cases of each as the properties ask for.
const CASES: u64 = 100_000;

/// A few seconds of them.
const CASES_IN_CI: u64 = 5_000;

/// The tests that can be told how many cases to try, and the crate that each is in.
const TESTS: &[(&str, &str)] = &[
    ("lifecycle", "the_lifecycle_is_what_its_plain_model_says"),
    ("reactor", "e3_every_one_of_four_stops_waits_for_the_last_callback"),
    ("reactor", "e4_a_loop_that_a_callback_stops_ends_and_never_waits_for_itself"),
    ("reactor", "l1_a_stop_at_any_moment_of_the_start_ends_both"),
    ("dag", "d3_each_node_runs_once_after_its_inputs_if_and_only_if_the_policy_says_so"),
    ("dag", "whatever_ends_a_run_everything_is_accounted_for"),
    ("testkit", "e10_a_quiesce_keeps_to_its_timeout_and_counts_what_is_left"),
];

pub(super) fn run(tier: Tier) -> Result<Vec<Finding>, String> {
    let cases = if tier == Tier::Full { CASES } else { CASES_IN_CI };
    let mut findings = Vec::new();
    for (folder, test) in TESTS {
        let mut command =
            cargo(&format!("test --profile explore --package {} --test suite", package(folder)));
        command.env("PROPTEST_CASES", cases.to_string()).env("ROUNDS", cases.to_string());
        findings.extend(of_tests(&watch(command.args(["--", "--nocapture", "--test-threads=1", test]))?));
    }
    Ok(findings)
}

pub(super) fn explore(tier: Tier) -> Result<Vec<Finding>, String> {
    let seeds = if tier == Tier::Full { SEEDS_IN_PROOF } else { explore::SEEDS };
    let output = watch_within(&mut explore::command(seeds, 0, None), explore::limit(seeds))?;
    let counted = |word, unit| Some(Finding::new("explore", before(&output, word)?, unit));
    let findings = [counted("cases", "programs"), counted("steps", "steps")];
    let findings: Option<Vec<_>> = findings.into_iter().collect();
    let mut findings = findings.ok_or("the exploration did not say how many")?;
    explore::twins(&mut |command| watch(command).map(drop))?;
    findings.push(Finding::new("explore", explore::TWINS.len() as u64, "twins caught"));
    Ok(findings)
}
