//! A program whose system refuses it threads, descriptors or calls, or that is paused: it lives on, or says what it was
//! refused and ends. It never hangs, and never panics.
//!
//! It is its own patient, so it has no harness: a harness needs threads of its own. Without arguments it only works
//! once, unharmed, and hangs once. `cargo xtask prove --only faults` says `--ignored`, as one would to a harness, and
//! needs `strace`.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the tools are those of Linux"))]

mod patient;
mod watched;

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    ops::RangeInclusive,
    path::Path,
    process::{Command, ExitCode, Stdio, Termination as _},
    time::Duration,
};

use self::watched::Watched;

/// Says which part the process is to play.
const PLAY: &str = "EBBTIDE_PLAY";

/// No patient takes as long, also on a machine that is busy; one that does hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough for a shell to have started what it waits for.
const IMPATIENCE: Duration = Duration::from_millis(300);

/// Ended well; failed, and said so; was not started.
const GOOD_CODES: [i32; 3] = [0, 70, 71];

/// A fact, and how many times it was tried.
type Fact = (&'static str, fn() -> (u32, &'static str));

const FACTS: &[Fact] = &[
    ("without_threads_a_program_says_so_and_ends", without_threads),
    ("a_thread_that_cannot_be_started_is_an_error_whichever_it_is", refused_threads),
    ("without_descriptors_a_program_says_so_and_ends", without_descriptors),
    ("calls_that_are_interrupted_are_made_again", interrupted_calls),
    ("calls_that_fail_are_told_or_lived_through", failing_calls),
    ("a_program_that_is_paused_goes_on_and_drains", pauses),
    ("a_clock_that_starts_elsewhere_changes_nothing", other_clocks),
];

fn main() -> ExitCode {
    match env::var(PLAY).as_deref() {
        Ok("works") => return patient::works().report(),
        Ok(_) => return patient::waits().report(),
        Err(_) => {}
    }
    if !env::args().any(|arg| arg == "--ignored") {
        assert_eq!(ends("unharmed", &mut patient("works")), Some(0));
        println!("test unharmed_it_ends_well ... ok");
        one_that_hangs_is_told_and_nothing_of_it_is_left();
        println!("test one_that_hangs_is_told_and_nothing_of_it_is_left ... ok");
        return ExitCode::SUCCESS;
    }
    for (fact, check) in FACTS {
        let (count, unit) = check();
        println!("test {fact} ... {count} {unit}\nok");
    }
    ExitCode::SUCCESS
}

fn patient(play: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program is a file"));
    command.env(PLAY, play);
    command
}

/// The patient as an argument of another program.
fn under(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).arg(env::current_exe().expect("this program is a file")).env(PLAY, "works");
    command
}

/// The patient after `limit`, in a shell.
fn limited(limit: &str) -> Command {
    under("sh", &["-c", &format!("{limit}; exec \"$0\"")])
}

/// Its exit code, if it had one.
fn ends(how: &str, command: &mut Command) -> Option<i32> {
    let (status, said) = Watched::spawn(command.stdout(Stdio::null()), PATIENCE)
        .ends()
        .unwrap_or_else(|why| panic!("{how}: {why}"));
    assert!(!said.contains("panicked at"), "{how}: {status}\n{said}");
    status.code()
}

/// A tool that waits for one that never ends, and holds what it says open, as a tracer does.
fn one_that_hangs_is_told_and_nothing_of_it_is_left() {
    if cfg!(unix) {
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "echo begun >&2; sleep 1000 & wait"]);
        let told = Watched::spawn(&mut hangs, IMPATIENCE).ends();
        assert_eq!(told.map(drop), Err("it hangs\nbegun\n".to_owned()));
    }
}

fn assert_good(how: &str, code: Option<i32>) {
    assert!(code.is_some_and(|code| GOOD_CODES.contains(&code)), "{how}: ends with {code:?}");
}

/// The most threads that a program with nobody else in its account may have: the system's own limit.
fn without_threads() -> (u32, &'static str) {
    // An account that nobody has, so that nobody else's threads are counted; to take it on needs one that may.
    const NOBODY_ELSE: &str = "--reuid=61234";
    let may = Command::new("setpriv").args([NOBODY_ELSE, "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        return (0, "limits");
    }
    for threads in 1..=20 {
        let how = format!("with {threads} threads");
        let limit = format!("ulimit -u {threads}; exec \"$0\"");
        let mut command = under("setpriv", &[NOBODY_ELSE, "sh", "-c", &limit]);
        assert_good(&how, ends(&how, &mut command));
    }
    (20, "limits")
}

/// The patient under `strace`, which lets `call` fail. Gives how many have failed: a call that is not made as often as
/// that cannot.
fn injected(call: &str, fault: &str) -> u32 {
    let how = format!("{call}:{fault}");
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("injected-{}", std::process::id()));
    let mut command = under(
        "strace",
        &[
            "-f",
            "-qq",
            "-o",
            trace.to_str().expect("cargo's own names"),
            "-e",
            &format!("trace={call}"),
            "-e",
            &format!("inject={how}"),
        ],
    );
    assert_good(&how, ends(&how, &mut command));
    let traced = fs::read_to_string(&trace).expect("it was traced");
    fs::remove_file(&trace).expect("it is ours");
    traced.lines().filter(|line| line.ends_with("(INJECTED)")).count() as u32
}

/// Has `call` fail in many runs, as each of `faults` says of the number of the call. At least one must have come about:
/// one that the program never makes proves nothing.
fn injected_each(call: &str, faults: &[&str]) -> u32 {
    let runs = calls().flat_map(|nth| faults.iter().map(move |fault| fault.replace("NTH", &nth.to_string())));
    let count = runs.map(|fault| injected(call, &fault)).sum();
    assert!(count > 0, "{call} {faults:?}: no call has failed");
    count
}

/// How many calls of each kind fail, one in each run: the first ten, unless somebody has less time.
fn calls() -> RangeInclusive<u32> {
    1..=number("CALLS", 10)
}

fn number(variable: &str, otherwise: u32) -> u32 {
    env::var(variable).map_or(otherwise, |given| given.parse().expect("a number"))
}

fn refused_threads() -> (u32, &'static str) {
    // One, and all from that one on.
    (injected_each("clone3", &["error=EAGAIN:when=NTH", "error=EAGAIN:when=NTH+"]), "injected faults")
}

fn without_descriptors() -> (u32, &'static str) {
    /// What the loader ends with that cannot open the system's libraries: the patient has not begun.
    const NOT_LOADED: i32 = 127;
    let mut tried = 0;
    for descriptors in 3..=20 {
        let limit = format!("ulimit -n {descriptors}");
        let code = ends(&limit, &mut limited(&limit));
        if code != Some(NOT_LOADED) {
            assert_good(&limit, code);
            tried += 1;
        }
    }
    (tried, "limits")
}

fn interrupted_calls() -> (u32, &'static str) {
    // Not `read`: the first are those of the loader.
    let kinds = ["epoll_pwait", "poll", "write", "recvfrom", "sendto", "timerfd_settime"];
    (kinds.iter().map(|call| injected_each(call, &["error=EINTR:when=NTH"])).sum(), "injected faults")
}

fn failing_calls() -> (u32, &'static str) {
    let kinds = [
        ("epoll_create1", "EMFILE"),
        ("eventfd2", "EMFILE"),
        ("timerfd_create", "EMFILE"),
        ("epoll_ctl", "ENOSPC"),
        ("write", "EAGAIN"),
        ("socketpair", "ENFILE"),
    ];
    let count = |(call, error)| injected_each(call, &[&format!("error={error}:when=NTH")]);
    (kinds.into_iter().map(count).sum(), "injected faults")
}

/// Stopped and continued again and again, and then told to end.
fn pauses() -> (u32, &'static str) {
    let pauses = number("PAUSES", 20);
    let mut watched = Watched::spawn(patient("waits").stdout(Stdio::piped()), PATIENCE);
    let mut said = String::new();
    BufReader::new(watched.stdout()).read_line(&mut said).expect("it says that it is ready");
    assert_eq!(said.trim(), "ready");
    let pid = watched.id().to_string();
    let signal = |name| {
        assert!(Command::new("kill").args([name, pid.as_str()]).status().is_ok_and(|sent| sent.success()));
    };
    for _ in 0..pauses {
        signal("-STOP");
        signal("-CONT");
    }
    signal("-TERM");
    let (status, said) = watched.ends().unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(status.code(), Some(0), "{status}\n{said}");
    (pauses, "rounds")
}

/// In a time namespace, where the machine has been up for years; or not at all where there can be none.
fn other_clocks() -> (u32, &'static str) {
    let may = Command::new("unshare").args(["--time", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        return (0, "rounds");
    }
    let offsets = ["86400", "1000000000"];
    for offset in offsets {
        let mut command = under("unshare", &["--time", "--fork", "--monotonic", offset]);
        assert_eq!(ends(offset, &mut command), Some(0), "{offset} seconds");
    }
    (offsets.len() as u32, "rounds")
}
