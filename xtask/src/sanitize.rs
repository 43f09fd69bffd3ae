//! `cargo xtask sanitize`: all tests but those of the models, under the address and leak sanitizers.

use std::{fs, process::Command};

use crate::{
    ci::crates_with,
    shell::{cargo, package, root, run as shell, write},
};

/// The sanitizers need a target to be named, and a compiler that lets a stable toolchain use them.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What is left behind on purpose: a loop that hangs, whose drop would wait for it, and resources that there was no
/// time to drop. The tests that show that are named.
const LEFT_BEHIND: &str = "\
leak:p3_a_main_that_never_awaits_holds_up_no_report
leak:a_task_that_blocks_the_loop_is_named
leak:another_loop_that_hangs_holds_the_program_up_no_longer_than_it_may
leak:what_is_left_when_the_time_is_up_is_named_and_not_dropped
";

pub(crate) fn run() -> Result<(), String> {
    commands()?.iter_mut().try_for_each(|(_, command)| shell(command))
}

/// The folder of each crate that has a suite, and the command that runs it with the crate's other tests: those beside
/// its code, and those that need a process of their own. Models are built differently, and are empty here.
pub(crate) fn commands() -> Result<Vec<(String, Command)>, String> {
    let suppressions = root().join("target/sanitize/left-behind");
    fs::create_dir_all(root().join("target/sanitize")).map_err(|error| error.to_string())?;
    write(&suppressions, LEFT_BEHIND)?;
    let commands = crates_with("tests/suite/main.rs")?.into_iter().map(|folder| {
        let package = package(&folder);
        let mut test = cargo(&format!("test --release --target {TARGET} --package {package} --tests"));
        test.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
        test.env("LSAN_OPTIONS", format!("print_suppressions=0:suppressions={}", suppressions.display()));
        test.env("CARGO_TARGET_DIR", "target/sanitize");
        (folder, test)
    });
    Ok(commands.collect())
}
