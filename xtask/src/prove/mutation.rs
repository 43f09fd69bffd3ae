//! Every small change of the files that carry contracts, made by cargo-mutants, is noticed by a test of the crate.

use std::{collections::BTreeSet, fs, path::Path, process::Command, time::Duration};

use super::{
    answers::{self, Answer, without_place},
    finding::Finding,
    leavings,
    proof::Tier,
};
use crate::{
    shell::{line, output, package, root},
    tool::Tool,
    watched::Watched,
};

/// The files of a crate that carry its contracts.
struct Contracts {
    folder: &'static str,
    files: &'static [&'static str],
    /// Which part of the mutants is tried. What the others have must be in it, too.
    part: &'static str,
}

const CONTRACTS: &[Contracts] = &[
    Contracts {
        folder: "lifecycle",
        files: &["balance.rs", "gate/core.rs", "gate/permit.rs", "intake.rs", "ledger.rs", "state.rs"],
        part: "",
    },
    Contracts {
        folder: "reactor",
        files: &["inbox.rs"],
        // The crate declares it twice, once for models: the second half is the first again.
        part: "--shard 0/2 --sharding slice",
    },
    Contracts { folder: "offload", files: &["queue.rs"], part: "" },
    Contracts { folder: "timeout", files: &["cancel.rs", "desk.rs", "race.rs"], part: "" },
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

/// For all mutants of a crate. The most there are take an hour on two cores.
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(6 * 3600);

/// What cargo-mutants ends with when it has tried what it was to: all were noticed; some survived; some ran out of
/// time. With any other it has not, because the suites fail without a change, or of itself.
const TRIED_ALL: [i32; 3] = [0, 2, 3];

pub(super) fn run(_: Tier) -> Result<Vec<Finding>, String> {
    CARGO_MUTANTS.install_by_cargo()?;
    let mut answers = answers::all()?;
    let (mut findings, mut complaints) = (Vec::new(), Vec::new());
    for contracts in CONTRACTS {
        match contracts.try_mutants(&mut answers) {
            Ok(found) => findings.extend(found),
            Err(why) => complaints.push(why),
        }
    }
    // Those of a crate that could not be judged would all seem to be in vain.
    if complaints.is_empty() {
        let in_vain = answers.iter().map(|Answer { mutant }| {
            format!("{} answers for a mutant that is noticed, or is none: {mutant}", answers::FILE)
        });
        complaints.extend(in_vain);
    }
    if complaints.is_empty() { Ok(findings) } else { Err(complaints.join("\n")) }
}

/// How the mutants of a crate ended, as they are named.
struct Outcomes {
    caught: Vec<String>,
    missed: Vec<String>,
    /// A test hung with them: that is noticed, too, but by the clock.
    timeout: Vec<String>,
    /// They do not compile.
    unviable: Vec<String>,
}

impl Outcomes {
    fn read(folder: &Path) -> Result<Self, String> {
        let list = |name: &str| {
            let file = folder.join(name);
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            Ok::<_, String>(text.lines().map(str::to_owned).collect())
        };
        let [caught, missed] = [list("caught.txt")?, list("missed.txt")?];
        Ok(Self { caught, missed, timeout: list("timeout.txt")?, unviable: list("unviable.txt")? })
    }

    fn count(&self) -> usize {
        self.caught.len() + self.missed.len() + self.timeout.len() + self.unviable.len()
    }
}

impl Contracts {
    /// Tries all of them, and takes out of `answers` those that it needs.
    fn try_mutants(&self, answers: &mut Vec<Answer>) -> Result<Vec<Finding>, String> {
        let listed = self.listed()?;
        let left = leavings("mutants")?.join(self.folder);
        // What a run before this one left is not mistaken for what this one finds.
        if left.exists() {
            fs::remove_dir_all(&left).map_err(|error| format!("{}: {error}", left.display()))?;
        }
        let mut command = self.command(&left);
        let failed = |why: String, command: &Command| format!("{why}\nrepeat it: {}", line(command));
        println!("$ {}", line(&command));
        let status = Watched::spawn(&mut command, PATIENCE_FOR_ALL).and_then(Watched::ends)?;
        if !status.code().is_some_and(|code| TRIED_ALL.contains(&code)) {
            return Err(failed(format!("cargo-mutants has not tried all: {status}"), &command));
        }
        let outcomes = Outcomes::read(&left.join("mutants.out"))?;
        if outcomes.count() != listed || outcomes.caught.is_empty() {
            let (folder, count) = (self.folder, outcomes.count());
            return Err(failed(format!("{folder}: {count} mutants have an outcome, of {listed}"), &command));
        }
        let unanswered = unanswered(&outcomes.missed, answers);
        if !unanswered.is_empty() {
            let (file, list) = (answers::FILE, unanswered.join("\n  "));
            let why = format!("no test notices these; write one, or answer in {file}:\n  {list}");
            return Err(failed(why, &command));
        }
        let counts = [
            (outcomes.caught.len(), "mutants caught"),
            (outcomes.timeout.len(), "hung"),
            (outcomes.missed.len(), "answered"),
            (outcomes.unviable.len(), "not compiled"),
        ];
        let found = counts.into_iter().filter(|(count, _)| *count > 0);
        Ok(found.map(|(count, unit)| Finding::new(self.folder, count as u64, unit)).collect())
    }

    /// How many there are to try.
    ///
    /// # Errors
    /// If a part of them is left out that has others than those which are tried.
    fn listed(&self) -> Result<usize, String> {
        let list = |part: &str| -> Result<Vec<String>, String> {
            let mut command = Command::new("cargo");
            command.args(["mutants", "--list"]).current_dir(root());
            self.choose(&mut command, part);
            let listed = output(&mut command)?;
            let text = String::from_utf8_lossy(&listed.stdout);
            match listed.status.success() {
                true => Ok(text.lines().map(str::to_owned).collect()),
                false => {
                    Err(format!("{} failed:\n{}", line(&command), String::from_utf8_lossy(&listed.stderr)))
                }
            }
        };
        let (all, tried) = (list("")?, list(self.part)?);
        let known: BTreeSet<_> = tried.iter().collect();
        match all.iter().find(|mutant| !known.contains(mutant)) {
            Some(left_out) => Err(format!("{:?} leaves out, among others, {left_out}", self.part)),
            None => Ok(tried.len()),
        }
    }

    /// Says which mutants there are.
    fn choose(&self, command: &mut Command, part: &str) {
        command.args(["--package", &package(self.folder), "--no-shuffle", "--colors", "never"]);
        command.args(part.split_whitespace());
        for useless in USELESS {
            command.args(["--exclude-re", useless]);
        }
        for file in self.files {
            command.args(["--file", &format!("crates/{}/src/{file}", self.folder)]);
        }
    }

    /// The suites have to pass without a change first: one that fails anyway would notice everything. One that takes
    /// five times as long with a change as without, and [`PATIENCE`] at least, hangs: that is noticed, too. What they
    /// depend on is built once for all crates; of a copy of the tree, which is newer than anything built, all is built
    /// anew.
    fn command(&self, left: &Path) -> Command {
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={MEMORY_MAX}")).args(["cargo", "mutants"]);
        self.choose(&mut command, self.part);
        command.args(["--jobs", "1", "--minimum-test-timeout", PATIENCE]);
        command.arg("--output").arg(left).args(["--", "--lib", "--test", "suite"]);
        command.current_dir(root()).env("CARGO_TARGET_DIR", root().join("target/mutants"));
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }
}

/// The survivors that have no answer. Takes out the answers of the others: two of the same name, in one function, need
/// two.
fn unanswered<'a>(survivors: &'a [String], answers: &mut Vec<Answer>) -> Vec<&'a str> {
    let is_unanswered = |survivor: &&str| {
        let name = without_place(survivor);
        match answers.iter().position(|answer| answer.mutant == name) {
            Some(place) => {
                answers.swap_remove(place);
                false
            }
            None => true,
        }
    };
    survivors.iter().map(String::as_str).filter(is_unanswered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_is_not_good_for_two_survivors_and_what_is_not_needed_stays() {
        let survivors = [
            "crates/dag/src/class.rs:3:1: replace < with > in f",
            "crates/dag/src/class.rs:9:1: replace < with > in f",
            "crates/dagger/src/class.rs:9:1: replace < with > in f",
        ]
        .map(str::to_owned);
        let answer = |file: &str| Answer { mutant: format!("crates/{file}.rs: replace < with > in f") };
        let mut one = vec![answer("dag/src/class")];
        assert_eq!(unanswered(&survivors, &mut one), [&survivors[1], &survivors[2]]);
        let mut three = vec![answer("dag/src/class"), answer("other"), answer("dag/src/class")];
        assert_eq!(unanswered(&survivors, &mut three), [&survivors[2]]);
        assert_eq!(three, [answer("other")]);
    }

    #[test]
    fn a_list_that_was_not_written_is_not_taken_for_an_empty_one() {
        assert!(Outcomes::read(Path::new("/nowhere")).is_err());
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
