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
const UNSAFE: &[&str] = &["dag", "lifecycle", "reactor", "shutdown"];

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{read, root, tracked_files};

    #[test]
    fn every_crate_with_unsafe_of_its_own_is_run_under_valgrind() {
        let files = tracked_files().unwrap();
        let sources = files.iter().filter(|file| {
            file.starts_with("crates") && file.iter().nth(2).is_some_and(|folder| folder == "src")
        });
        let with_unsafe = sources.filter(|file| {
            let text = read(root().join(file)).unwrap_or_default();
            text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("unsafe {"))
        });
        let mut folders: Vec<_> = with_unsafe.filter_map(|file| file.iter().nth(1)?.to_str()).collect();
        folders.sort_unstable();
        folders.dedup();
        assert_eq!(folders, UNSAFE);
    }
}
