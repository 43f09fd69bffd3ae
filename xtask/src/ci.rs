//! `cargo xtask ci`: the one command that passes on a fresh clone, and that CI runs.

use std::{process::Command, time::Duration};

use crate::{
    explore, features, mutants, page, prove, redis,
    shell::{cargo, crates, package, root, run as shell, timed},
    soak::{soak_loop, soak_mailbox, soak_signals, soak_timeouts},
    tidy,
};

/// One step: what it is called, what it is for, and what it does.
struct Step {
    name: &'static str,
    what: &'static str,
    act: fn() -> Result<(), String>,
}

/// Long enough for some thousand loops.
const SOAK_SECONDS: u32 = 3;

/// Some thousand requests.
const SOAK_RUNS: u32 = 3;

/// Enough for each moment and each number of signals.
const SOAK_ROUNDS: u32 = 40;

/// A thousand messages, some twenty workers, and a server that goes away.
const SOAK_STORMS: u32 = 2;

/// In this order: what fails most often and fastest comes first.
const STEPS: &[Step] = &[
    Step { name: "fmt", what: "the code is formatted", act: fmt },
    Step { name: "tidy", what: "arrows, contracts, figures and versions agree", act: tidy::run },
    Step { name: "clippy", what: "no warnings, in any target", act: clippy },
    Step {
        name: "features",
        what: "the facade builds with each of its features",
        act: || features::check().map(drop),
    },
    Step { name: "alone", what: "each package builds and passes its tests by itself", act: alone },
    Step { name: "test", what: "the whole workspace passes its tests, doc tests included", act: test },
    Step { name: "portable", what: "tests pass without epoll, and without pipes", act: portable },
    Step { name: "examples", what: "the examples end well", act: examples },
    Step {
        name: "page",
        what: "the page of a run is right in a browser, in light and in dark",
        act: page::run,
    },
    Step { name: "doc", what: "the documentation builds without warnings", act: doc },
    Step { name: "soak", what: "a short soak ends with its sums", act: short_soak },
    Step {
        name: "explore",
        what: "programs by seed lose nothing, whenever they are stopped, and broken ones are found",
        act: explore::short,
    },
    Step { name: "loom", what: "the models hold", act: loom },
    Step { name: "mutants", what: "broken twins of the modelled code are caught", act: mutants::run },
    Step { name: "prove", what: "what else can be proved in a minute", act: prove::quick },
];

pub(crate) fn run(wanted: &[&str]) -> Result<(), String> {
    if wanted == ["list"] {
        for step in STEPS {
            println!("{:8} {}", step.name, step.what);
        }
        return Ok(());
    }
    if let Some(unknown) = wanted.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!("there is no step {unknown:?}; there are: {}", names.join(", ")));
    }
    let mut done: Vec<(&str, Duration)> = Vec::new();
    for step in STEPS.iter().filter(|step| wanted.is_empty() || wanted.contains(&step.name)) {
        println!("\n== {}: {}", step.name, step.what);
        let (time, outcome) = timed(step.act);
        done.push((step.name, time));
        if let Err(why) = outcome {
            print_summary(&done, Some(step.name));
            return Err(format!("step {}: {why}\nrun it alone: cargo xtask ci {}", step.name, step.name));
        }
    }
    print_summary(&done, None);
    Ok(())
}

fn print_summary(done: &[(&str, Duration)], failed: Option<&str>) {
    println!("\n== summary");
    for (name, time) in done {
        let verdict = if Some(*name) == failed { "FAILED" } else { "ok" };
        println!("{name:8} {:7.1} s  {verdict}", time.as_secs_f64());
    }
    let total: Duration = done.iter().map(|(_, time)| *time).sum();
    println!("{:8} {:7.1} s", "total", total.as_secs_f64());
}

fn fmt() -> Result<(), String> {
    shell(&mut cargo("fmt --all --check"))
}

fn clippy() -> Result<(), String> {
    shell(&mut cargo("clippy --workspace --all-targets --all-features -- --deny warnings"))
}

fn alone() -> Result<(), String> {
    redis::install()?;
    for folder in crates()? {
        let package = package(&folder);
        // Without the tests first: their dependencies may switch on features that the package forgot to ask for.
        shell(&mut cargo(&format!("build --package {package}")))?;
        shell(&mut cargo(&format!("test --package {package}")))?;
    }
    Ok(())
}

fn test() -> Result<(), String> {
    redis::install()?;
    shell(&mut cargo("test --workspace --all-features"))
}

/// The seam to systems without epoll: once with edges, as on macOS, and once without, as on Windows.
fn portable() -> Result<(), String> {
    for flags in ["--cfg ebbtide_portable", "--cfg ebbtide_portable --cfg ebbtide_oneshot"] {
        let mut command = cargo("test --package ebbtide-reactor --lib --test suite --test descriptors");
        shell(command.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", "target/portable"))?;
    }
    let mut command = cargo("test --package ebbtide-shutdown --test suite -- signals process");
    shell(command.env("RUSTFLAGS", "--cfg ebbtide_portable").env("CARGO_TARGET_DIR", "target/portable"))
}

/// The examples of the facade, and the feature that each needs besides the default.
const FACADE_EXAMPLES: &[(&str, &str)] = &[
    ("post_and_stop", "default"),
    ("offload_with_timeout", "default"),
    ("typed_graph", "dag"),
    ("queue_worker", "mailbox"),
    ("service", "http"),
    ("hyper_drain", "hyper"),
    ("leaf_in_tokio", "tokio"),
];

/// Those that check themselves.
fn examples() -> Result<(), String> {
    shell(&mut cargo("run --quiet --package ebbtide-lifecycle --example drain"))?;
    shell(&mut cargo("run --quiet --package ebbtide-reactor --example echo -- --seconds 1"))?;
    shell(&mut cargo("run --quiet --package ebbtide-reactor --features hyper --example hyper"))?;
    shell(&mut cargo("run --quiet --package ebbtide-reactor --example tls"))?;
    shell(&mut cargo("run --quiet --package ebbtide-dag --example feed"))?;
    shell(&mut cargo("run --quiet --package ebbtide-shutdown --example server"))?;
    for (example, feature) in FACADE_EXAMPLES {
        shell(&mut cargo(&format!(
            "run --quiet --package ebbtide --features {feature} --example {example}"
        )))?;
    }
    Ok(())
}

fn doc() -> Result<(), String> {
    let mut command = cargo("doc --workspace --all-features --no-deps --document-private-items");
    shell(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn short_soak() -> Result<(), String> {
    soak_loop(SOAK_SECONDS)?;
    soak_timeouts(SOAK_RUNS)?;
    soak_signals(SOAK_ROUNDS)?;
    soak_mailbox(SOAK_STORMS, None)
}

fn loom() -> Result<(), String> {
    loom_commands()?.iter_mut().try_for_each(shell)
}

/// The commands that go through the models of each crate. Code under `--cfg loom` has a target directory of its own,
/// so that the flag does not rebuild everything else.
pub(crate) fn loom_commands() -> Result<Vec<Command>, String> {
    let commands = crates_with("tests/loom.rs")?.into_iter().map(|folder| {
        let mut command = cargo(&format!("test --release --package {} --test loom", package(&folder)));
        command.envs(LOOM).env("CARGO_TARGET_DIR", "target/loom");
        command
    });
    Ok(commands.collect())
}

/// The folders of the crates that have this file.
pub(crate) fn crates_with(file: &str) -> Result<Vec<String>, String> {
    let mut folders = crates()?;
    folders.retain(|folder| root().join("crates").join(folder).join(file).is_file());
    Ok(folders)
}

/// How models are built. More optimisation takes longer to build than it saves.
pub(crate) const LOOM: [(&str, &str); 3] = [
    ("RUSTFLAGS", "--cfg loom"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
];
