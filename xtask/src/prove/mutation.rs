//! Every small change of the files that carry contracts, made by cargo-mutants, is noticed by a test of the crate.

use std::{fs, path::Path, process::Command};

use super::{
    answers::{self, Answer, without_place},
    finding::Finding,
    leavings,
    proof::Tier,
};
use crate::{
    shell::{line, package, root, run as shell},
    tool::Tool,
};

/// The files of a crate that carry its contracts.
struct Contracts {
    folder: &'static str,
    files: &'static [&'static str],
    /// What else cargo-mutants is told.
    options: &'static str,
}

const CONTRACTS: &[Contracts] = &[
    Contracts {
        folder: "lifecycle",
        files: &["balance.rs", "gate/core.rs", "gate/permit.rs", "intake.rs", "ledger.rs", "state.rs"],
        options: "",
    },
    Contracts {
        folder: "reactor",
        files: &["inbox.rs"],
        // The crate declares it twice, once for models: the second half is the first again.
        options: "--shard 0/2 --sharding slice",
    },
    Contracts { folder: "offload", files: &["queue.rs"], options: "" },
    Contracts { folder: "timeout", files: &["cancel.rs", "desk.rs", "race.rs"], options: "" },
];

/// What is no use to try: what is only written for those who look for a bug, what only models are built with, and what
/// does not compile.
const USELESS: [&str; 4] = ["fmt::Debug", "Link::inert", "Link::next", "NonNull::"];

/// A mutant that takes memory without end is stopped by this, before it stops all others on the machine.
const MEMORY_MAX: u64 = 8 << 30;

const CARGO_MUTANTS: Tool = Tool {
    programs: &["cargo-mutants"],
    package: "cargo-mutants",
    needed_by: "mutation tests",
    otherwise: "or `cargo install cargo-mutants --locked`",
};

/// In seconds: many times what the fastest suites take, also on a busy machine.
const PATIENCE: &str = "10";

pub(super) fn run(_: Tier) -> Result<Vec<Finding>, String> {
    CARGO_MUTANTS.install_by_cargo()?;
    let answers = answers::all()?;
    let (mut findings, mut complaints) = (Vec::new(), Vec::new());
    for contracts in CONTRACTS {
        match contracts.try_mutants(&answers) {
            Ok(found) => findings.extend(found),
            Err(why) => complaints.push(why),
        }
    }
    if complaints.is_empty() { Ok(findings) } else { Err(complaints.join("\n")) }
}

impl Contracts {
    fn try_mutants(&self, answers: &[Answer]) -> Result<[Finding; 2], String> {
        let left = leavings("mutants")?.join(self.folder);
        // What a run before this one left is not mistaken for what this one finds.
        if left.exists() {
            fs::remove_dir_all(&left).map_err(|error| format!("{}: {error}", left.display()))?;
        }
        let mut command = self.command(&left);
        // It fails when a mutant survives: that is told below.
        let _ = shell(&mut command);
        let failed = |why: String| format!("{why}\nrepeat it: {}", line(&command));
        let list = |name: &str| fs::read_to_string(left.join("mutants.out").join(name)).unwrap_or_default();
        let survivors = list("missed.txt");
        let unanswered = unanswered(&survivors, answers);
        if !unanswered.is_empty() {
            let (file, list) = (answers::FILE, unanswered.join("\n  "));
            return Err(failed(format!("no test notices these; write one, or answer in {file}:\n  {list}")));
        }
        let count = |list: &str| list.lines().count() as u64;
        let caught = count(&list("caught.txt")) + count(&list("timeout.txt"));
        if caught == 0 {
            return Err(failed(format!("no mutant of {} was tried", self.folder)));
        }
        let (caught, answered) = ((caught, "mutants caught"), (count(&survivors), "answered"));
        Ok([caught, answered].map(|(count, unit)| Finding::new(self.folder, count, unit)))
    }

    /// The suites have to pass without a change first: one that fails anyway would notice everything. One that takes
    /// five times as long with a change as without, and [`PATIENCE`] at least, hangs: that is noticed, too. What they
    /// depend on is built once for all crates; of a copy of the tree, which is newer than anything built, all is built
    /// anew.
    fn command(&self, left: &Path) -> Command {
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={MEMORY_MAX}")).args(["cargo", "mutants"]);
        command.args(["--package", &package(self.folder), "--jobs", "1", "--minimum-test-timeout", PATIENCE]);
        command.args(["--no-shuffle", "--colors", "never"]).args(self.options.split_whitespace());
        for useless in USELESS {
            command.args(["--exclude-re", useless]);
        }
        for file in self.files {
            command.args(["--file", &format!("crates/{}/src/{file}", self.folder)]);
        }
        command.arg("--output").arg(left).args(["--", "--lib", "--test", "suite"]);
        command.current_dir(root()).env("CARGO_TARGET_DIR", root().join("target/mutants"));
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }
}

/// The survivors that have no answer. Two of the same name, in one function, need two.
fn unanswered<'a>(survivors: &'a str, answers: &[Answer]) -> Vec<&'a str> {
    let mut left: Vec<_> = answers.iter().collect();
    let is_unanswered = |survivor: &&str| {
        let name = without_place(survivor);
        match left.iter().position(|answer| answer.mutant == name) {
            Some(place) => {
                left.swap_remove(place);
                false
            }
            None => true,
        }
    };
    survivors.lines().filter(is_unanswered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTANTS: &str = "\
crates/dag/src/class.rs:3:1: replace < with > in f
crates/dag/src/class.rs:9:1: replace < with > in f
crates/dagger/src/class.rs:9:1: replace < with > in f
";

    #[test]
    fn one_answer_is_not_good_for_two_survivors() {
        let answer = || Answer { mutant: "crates/dag/src/class.rs: replace < with > in f".into() };
        assert_eq!(unanswered(MUTANTS, &[answer()]).len(), 2);
        assert_eq!(
            unanswered(MUTANTS, &[answer(), answer()]),
            ["crates/dagger/src/class.rs:9:1: replace < with > in f"]
        );
    }

    #[test]
    fn the_files_that_carry_contracts_are_there() {
        for Contracts { folder, files, .. } in CONTRACTS {
            for file in *files {
                assert!(
                    root().join("crates").join(folder).join("src").join(file).is_file(),
                    "{folder}/{file}"
                );
            }
        }
    }
}
