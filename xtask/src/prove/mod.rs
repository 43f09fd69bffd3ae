//! `cargo xtask prove`: all that speaks for ebbtide, in one place, with how much of it there was.

mod answers;
mod cases;
mod costs;
mod faults;
mod finding;
mod models;
mod mutation;
mod powerset;
mod proof;
mod property;
mod sanitizers;
mod soaks;
mod table;
mod watch;

use std::{fs, process::Command};

use self::{
    proof::{InCi, PROOFS, Proof, Tier},
    table::Ran,
};
use crate::shell::{output, read, root, timed, write};

const USAGE: &str = "prove [--quick] [--only NAME,NAME] [--write], or prove list";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    tier: Tier,
    /// Empty for all.
    only: Vec<String>,
    write: bool,
}

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    if args == ["list"] {
        for proof in PROOFS {
            println!("{:9} {:18} {}", proof.name, proof.tool, proof.what);
        }
        return Ok(());
    }
    prove(&wanted(args)?)
}

/// What CI has time for.
pub(crate) fn quick() -> Result<(), String> {
    prove(&Wanted { tier: Tier::Quick, only: Vec::new(), write: false })
}

fn wanted(args: &[&str]) -> Result<Wanted, String> {
    let mut wanted = Wanted { tier: Tier::Full, only: Vec::new(), write: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--quick" => wanted.tier = Tier::Quick,
            "--write" => wanted.write = true,
            "--only" => {
                let names = args.next().ok_or(USAGE)?;
                wanted.only = names.split(',').map(str::to_owned).collect();
            }
            _ => return Err(USAGE.into()),
        }
    }
    let unknown = wanted.only.iter().find(|name| PROOFS.iter().all(|proof| proof.name != **name));
    if let Some(unknown) = unknown {
        let names: Vec<_> = PROOFS.iter().map(|proof| proof.name).collect();
        return Err(format!("there is no proof {unknown:?}; there are: {}", names.join(", ")));
    }
    if wanted.write && wanted.tier == Tier::Quick {
        return Err("what is written is that of full runs: leave out --quick or --write".into());
    }
    Ok(wanted)
}

impl Wanted {
    fn wants(&self, proof: &Proof) -> bool {
        if self.only.is_empty() {
            self.tier == Tier::Full || proof.in_ci == InCi::Quick
        } else {
            self.only.iter().any(|name| name == proof.name)
        }
    }
}

/// Runs all that is wanted, also after a failure, so that the table has all.
fn prove(wanted: &Wanted) -> Result<(), String> {
    let mut ran = Vec::new();
    for proof in PROOFS.iter().filter(|proof| wanted.wants(proof)) {
        println!("\n== {}: {}", proof.name, proof.what);
        let (time, outcome) = timed(|| (proof.act)(wanted.tier));
        if let Err(why) = &outcome {
            eprintln!("{} FAILED: {why}", proof.name);
        }
        ran.push(Ran { proof, time, outcome });
    }
    let rows = table::rows(&ran, &today()?);
    println!("\n{}", table::render(&rows));
    if wanted.tier == Tier::Quick && wanted.only.is_empty() {
        tell_the_rest();
    }
    // Also of a run in which something failed: the table says what.
    if wanted.write {
        write_down(&rows)?;
    }
    let said = |ran: &Ran<'_>| Some(format!("{}: {}", ran.proof.name, ran.outcome.as_ref().err()?));
    let mut failed: Vec<_> = ran.iter().filter_map(said).collect();
    // CI has to pass on machines that do not let everything be explored.
    failed.extend(table::no_pass(&rows, wanted.tier == Tier::Quick));
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("{} proofs were run, and this is wrong:\n\n{}", ran.len(), failed.join("\n\n")))
}

/// The day, and the commit, which is marked if the tree is not that of the commit.
fn today() -> Result<String, String> {
    let said = |command: &mut Command| -> Result<String, String> {
        Ok(String::from_utf8_lossy(&output(command)?.stdout).trim().to_owned())
    };
    let day = said(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    // The page itself is written while proofs are run one by one.
    let git = |args: &[&str]| said(Command::new("git").args(args).current_dir(root()));
    let changed = git(&["status", "--porcelain", "--", ".", ":!PROOF.md"])?;
    let mark = if changed.is_empty() { "" } else { "+" };
    Ok(format!("{day}, {}{mark}", git(&["rev-parse", "--short=9", "HEAD"])?))
}

fn tell_the_rest() {
    for proof in PROOFS {
        match proof.in_ci {
            InCi::Quick => {}
            InCi::Step(step) => println!("{:9} is the step {step} of `cargo xtask ci`", proof.name),
            InCi::No => println!("{:9} takes too long: `cargo xtask prove --only {0}`", proof.name),
        }
    }
}

const BEGIN: &str = "<!-- written by cargo xtask prove --write -->\n";
const END: &str = "<!-- end -->";

/// Puts the rows into `PROOF.md`. Those of proofs that were not run this time stay.
fn write_down(rows: &[table::Row]) -> Result<(), String> {
    let file = root().join("PROOF.md");
    let text = read(&file)?;
    let missing = || format!("PROOF.md has no lines {} and {END}", BEGIN.trim());
    let (before, rest) = text.split_once(BEGIN).ok_or_else(missing)?;
    let (older, after) = rest.split_once(END).ok_or_else(missing)?;
    let table = table::render(&table::merge(&table::parse(older), rows));
    write(&file, &format!("{before}{BEGIN}{table}{END}{after}"))?;
    println!("wrote PROOF.md");
    Ok(())
}

/// Somewhere below `target/` for what a proof leaves behind.
fn leavings(name: &str) -> Result<std::path::PathBuf, String> {
    let folder = root().join("target/prove").join(name);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_said_in_any_order_or_not_at_all() {
        let all = Wanted { tier: Tier::Full, only: Vec::new(), write: false };
        assert_eq!(wanted(&[]), Ok(all));
        let some = wanted(&["--write", "--only", "loom,twins"]).unwrap();
        assert_eq!((some.only.len(), some.write), (2, true));
        assert_eq!(PROOFS.iter().filter(|proof| some.wants(proof)).count(), 2);
        for wrong in [&["--only"][..], &["--only", "magic"], &["loom"], &["--quick", "--write"]] {
            assert!(wanted(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn ci_runs_nothing_twice() {
        let quick = wanted(&["--quick"]).unwrap();
        for proof in PROOFS.iter().filter(|proof| quick.wants(proof)) {
            assert_eq!(proof.in_ci, InCi::Quick, "{}", proof.name);
        }
    }
}
