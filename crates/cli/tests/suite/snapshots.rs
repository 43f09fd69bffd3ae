//! What is printed, to the letter.

use std::{env, fs, path::PathBuf};

use super::program::{ebbtide, root};

/// Compares with a file, or writes it anew.
fn assert_same(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(path, text).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let at = expected.lines().zip(text.lines()).position(|(expected, got)| expected != got);
    let at = at.unwrap_or_else(|| expected.lines().count().min(text.lines().count()));
    assert!(
        expected == text,
        "{name} differs in line {}:\n  expected {:?}\n  got      {:?}\nUPDATE_SNAPSHOTS=1 writes it anew",
        at + 1,
        expected.lines().nth(at),
        text.lines().nth(at),
    );
}

const COMMANDS: [&str; 10] =
    ["run", "check", "graph", "ops", "plans", "bench", "serve", "worker", "send", "completions"];

#[test]
fn the_help_of_the_program_and_of_each_command() {
    let help = ebbtide(["--help"]).ends_with(0).out;
    assert_same("help.txt", &help);
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
        assert_same(&format!("help-{command}.txt"), &ebbtide([command, "--help"]).ends_with(0).out);
    }
}

#[test]
fn help_is_the_same_on_a_wide_terminal() {
    let wide = ebbtide(["serve", "--help"]).env("COLUMNS", "300").ends_with(0);
    assert_eq!(wide.out, ebbtide(["serve", "--help"]).ends_with(0).out);
}

#[test]
fn every_mistake_of_the_bad_plans() {
    let mut plans: Vec<String> = fs::read_dir(root().join("plans/bad"))
        .unwrap()
        .map(|entry| format!("plans/bad/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    plans.sort();
    let said = ebbtide(["check"].into_iter().chain(plans.iter().map(String::as_str))).ends_with(65);
    assert_same("check-bad.txt", &said.out);
    assert_eq!(said.err, "");
}
