//! Colours are for terminals.

use std::{fs::File, io::Read as _, os::unix::ffi::OsStrExt as _, thread};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::program::{Program, Said, ebbtide};

const CHECK: [&str; 3] = ["check", "hello", "plans/bad/syntax.json"];

/// What is printed on a terminal, and on standard error, which is none.
fn on_a_terminal(program: impl FnOnce() -> Program) -> (String, String) {
    let (printed, said) = watched(|terminal| program().out(terminal));
    (printed, said.err)
}

/// What is told on standard error where that is a terminal.
pub(crate) fn told_on_a_terminal(program: Program) -> String {
    watched(|terminal| program.err(terminal)).0
}

/// Runs a program with a terminal of its own, and gives what came there.
fn watched(program: impl FnOnce(File) -> Program) -> (String, Said) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let name = std::ffi::OsStr::from_bytes(name.as_bytes());
    let theirs = File::options().read(true).write(true).open(name).unwrap();
    // Meanwhile: a terminal holds little that nobody reads.
    let reader = thread::spawn(move || {
        let mut printed = Vec::new();
        // Its end is an error of the system: nobody has the other side open any more.
        let _ = File::from(ours).read_to_end(&mut printed);
        String::from_utf8(printed).unwrap()
    });
    let said = program(theirs).run();
    (reader.join().unwrap(), said)
}

#[test]
fn there_are_no_colours_in_a_pipe_unless_they_are_asked_for() {
    let said = ebbtide(CHECK).ends_with(65);
    assert!(!said.out.contains('\x1b') && !said.err.contains('\x1b'), "{said:#?}");
    let said = ebbtide(CHECK.into_iter().chain(["--color", "always"])).ends_with(65);
    assert!(
        said.out.contains("\x1b[32mok\x1b[0m") && said.out.contains("\x1b[31m1 mistake\x1b[0m"),
        "{said:#?}"
    );
    let said = ebbtide(["run", "nowhere", "--color", "always"]).ends_with(66);
    assert!(said.err.starts_with("\x1b[1;31merror:\x1b[0m there is no plan"), "{said:#?}");
    let said = ebbtide(["ops", "take", "--color", "always"]).ends_with(0);
    assert!(said.out.starts_with("\x1b[1mtake\x1b[0m ("), "{said:#?}");
}

#[test]
fn a_terminal_has_colours_unless_they_are_not_wanted() {
    let (printed, err) = on_a_terminal(|| ebbtide(CHECK));
    assert!(printed.contains("\x1b[32mok\x1b[0m"), "{printed:?}");
    assert_eq!(err, "");
    let (printed, _) = on_a_terminal(|| ebbtide(CHECK).env("NO_COLOR", "1"));
    assert!(printed.contains(": ok") && !printed.contains('\x1b'), "{printed:?}");
    let (printed, _) = on_a_terminal(|| ebbtide(CHECK).env("NO_COLOR", ""));
    assert!(printed.contains('\x1b'), "a variable that is empty says nothing: {printed:?}");
    let (printed, _) = on_a_terminal(|| ebbtide(CHECK.into_iter().chain(["--color", "never"])));
    assert!(printed.contains(": ok") && !printed.contains('\x1b'), "{printed:?}");
    let always = || ebbtide(CHECK.into_iter().chain(["--color", "always"])).env("NO_COLOR", "1");
    assert!(on_a_terminal(always).0.contains('\x1b'), "what is said now goes before what is set");
}
