//! The suites again, with every access to memory watched.

use std::process::Command;

use super::{
    finding::{Finding, passed},
    proof::Tier,
    watch::watch,
};
use crate::{
    redis, sanitize,
    shell::{cargo, output, package},
    tool::Tool,
};

const TESTS: &str = "tests passed";

pub(super) fn address(_: Tier) -> Result<Vec<Finding>, String> {
    redis::install()?;
    let mut findings = Vec::new();
    for (folder, mut command) in sanitize::commands()? {
        findings.push(Finding::new(folder, passed(&watch(&mut command)?), TESTS));
    }
    Ok(findings)
}

const VALGRIND: Tool = Tool {
    programs: &["valgrind"],
    package: "valgrind",
    needed_by: "memory checks",
    otherwise: "`dnf install valgrind`",
};

/// The crates with `unsafe` of their own.
const UNSAFE: &[&str] = &["lifecycle", "reactor"];

pub(super) fn memcheck(_: Tier) -> Result<Vec<Finding>, String> {
    let valgrind = VALGRIND.install()?;
    let mut findings = Vec::new();
    for folder in UNSAFE {
        let mut command = Command::new(valgrind);
        command.args("--quiet --leak-check=full --fair-sched=yes --error-exitcode=9".split(' '));
        command.arg("--errors-for-leak-kinds=definite").arg(suite(folder)?).arg("--test-threads=1");
        findings.push(Finding::new(*folder, passed(&watch(&mut command)?), TESTS));
    }
    Ok(findings)
}

/// Builds a crate's suite, and says where it is.
fn suite(folder: &str) -> Result<String, String> {
    let mut build = cargo(&format!("test --no-run --package {} --test suite", package(folder)));
    let said = output(&mut build)?;
    let said = String::from_utf8_lossy(&said.stderr);
    let built =
        said.lines().find_map(|line| line.trim().strip_prefix("Executable ")?.split(['(', ')']).nth(1));
    built.map(str::to_owned).ok_or_else(|| format!("the suite of {folder} was not built:\n{said}"))
}
