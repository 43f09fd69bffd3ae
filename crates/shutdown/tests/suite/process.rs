//! Processes that get real signals: this test binary runs itself.

#![cfg(unix)]

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    process::{self, ChildStderr, ChildStdout, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use ebbtide_shutdown::{
    Builder, Coordinator, Event, Priority, Reason, RunError, Runnable, Signals, Stopped, Trigger,
    group::Group,
    lifecycle::{Outcome, blame::Origin, time::Deadline},
};

/// Says which part of this file the process is to play.
const PLAY: &str = "EBBTIDE_SHUTDOWN_PLAY";

/// No test takes as long; a process that does hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the processes do. In any other process this is a test that passes.
#[test]
fn play() {
    let Ok(play) = env::var(PLAY) else { return };
    if let Some(failing) = play.strip_prefix("group") {
        let group = Group::builder().member("idles", Idler::default());
        let group = if failing.is_empty() { group } else { group.member("fails", Failing) };
        let report = group.build().unwrap().serve("group").unwrap();
        eprintln!("{report}");
        process::exit(report.exit_code().into());
    }
    let coordinator = match play.as_str() {
        "hangs_in_the_exit" => builder().exit(|_| park()).install(),
        "usr1" => builder().signals(Signals::of([10, 15])).install(),
        "talks" => Coordinator::install(),
        _ => builder().install(),
    };
    let coordinator = coordinator.unwrap();
    match play.as_str() {
        "idle" | "usr1" => {}
        // With what it says by default, after standard error was filled up.
        "talks" => {
            let text = "x".repeat(1000);
            thread::spawn(move || {
                loop {
                    eprintln!("{text}");
                }
            });
        }
        "busy" | "busy and returned" => {
            let request = coordinator.intake().admit().unwrap();
            thread::spawn(move || {
                let _ = std::io::stdin().read(&mut [0]);
                request.settle(Outcome::Completed);
            });
        }
        "hangs" | "hangs_in_the_exit" => {
            let hang = |_: _, _: &_| {
                println!("hanging");
                park()
            };
            coordinator.on_stop("the stuck one", Priority(0), hang).unwrap().keep();
        }
        "starting" => {
            // Starting is work like any other: the drain waits for it, and the phases come after.
            let start = coordinator.intake().admit_as(&Origin::here().named("start")).unwrap();
            println!("starting");
            coordinator.token().triggered().wait();
            let stop = |_: _, _: &_| {
                println!("stopped what was started");
                Ok(())
            };
            coordinator.on_stop("late", Priority(0), stop).unwrap().keep();
            start.settle(Outcome::Completed);
        }
        other => panic!("there is no play {other:?}"),
    }
    println!("ready");
    let report = coordinator.run();
    if play == "busy and returned" {
        report.exit();
    }
    if play != "talks" {
        eprintln!("{report}");
    }
    process::exit(report.exit_code().into());
}

/// Waits to be told.
#[derive(Default)]
struct Idler {
    told: Trigger,
    ended: Trigger,
}

impl Runnable for Idler {
    fn run(&self) -> Result<(), RunError> {
        println!("ready");
        let reason = self.told.token().triggered().wait();
        self.ended.fire(reason);
        Ok(())
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        self.told.fire(reason.clone());
        let ended = self.ended.token().triggered().wait_by(deadline);
        if ended.is_ok() { Stopped::Clean } else { Stopped::Overdue }
    }

    fn is_running(&self) -> bool {
        !self.ended.is_triggered()
    }
}

struct Failing;

impl Runnable for Failing {
    fn run(&self) -> Result<(), RunError> {
        Err("no route to the queue".into())
    }

    fn shutdown(&self, _: Deadline, _: &Reason) -> Stopped {
        Stopped::Clean
    }

    fn is_running(&self) -> bool {
        false
    }
}

fn builder() -> Builder {
    Coordinator::builder().drain_timeout(Duration::from_secs(1)).observer(|event| match event {
        Event::DrainBegun { .. } => println!("draining"),
        Event::Forced(_) => eprintln!("{event}"),
        _ => {}
    })
}

fn park() -> ! {
    loop {
        thread::park();
    }
}

/// A process that plays a part, and is killed when it takes too long.
struct Player {
    process: process::Child,
    /// Of the process that gets the signals.
    pid: u32,
    out: BufReader<ChildStdout>,
    err: ChildStderr,
    _guard: mpsc::Sender<()>,
}

impl Player {
    fn start(play: &str) -> Self {
        Self::start_by(Command::new(env::current_exe().unwrap()), play)
    }

    fn start_by(mut command: Command, play: &str) -> Self {
        command.args(["--exact", "process::play", "--nocapture"]).env(PLAY, play);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (guard, ended) = mpsc::channel::<()>();
        let pid = process.id();
        thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                signal("KILL", pid);
            }
        });
        let out = BufReader::new(process.stdout.take().unwrap());
        let err = process.stderr.take().unwrap();
        Self { process, pid, out, err, _guard: guard }
    }

    /// Reads until it has said `line`. A test's own output may stand before it in the same line.
    fn says(&mut self, line: &str) {
        let mut said = String::new();
        loop {
            let from = said.len();
            assert_ne!(self.out.read_line(&mut said).unwrap(), 0, "it never says {line:?}, but {said:?}");
            if said[from..].trim_end().ends_with(line) {
                return;
            }
        }
    }

    /// Reads until it has said `text` on standard error.
    fn complains(&mut self, text: &str) {
        let (mut said, mut byte) = (String::new(), [0]);
        while !said.ends_with(text) {
            assert_ne!(self.err.read(&mut byte).unwrap(), 0, "it never says {text:?}, but {said:?}");
            said.push(byte[0].into());
        }
    }

    fn gets(&self, name: &str) {
        signal(name, self.pid);
    }

    /// Waits for its end: the exit code, and what it said last.
    fn ends(mut self) -> (i32, String) {
        let mut said = String::new();
        self.err.read_to_string(&mut said).unwrap();
        let status = self.process.wait().unwrap();
        writeln!(said, "{status}").unwrap();
        (status.code().unwrap_or(-1), said)
    }
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn test_sigterm_triggers_shutdown() {
    let mut player = Player::start("idle");
    player.says("ready");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("clean (SIGTERM)"), "{said}");
}

#[test]
fn an_interrupt_stops_it_as_well() {
    let mut player = Player::start("idle");
    player.says("ready");
    player.gets("INT");
    let (code, said) = player.ends();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("clean (SIGINT)"), "{said}");
}

#[test]
fn any_signal_may_be_chosen() {
    let mut player = Player::start("usr1");
    player.says("ready");
    player.gets("USR1");
    let (code, said) = player.ends();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("clean (signal 10)"), "{said}");
}

#[test]
fn a_request_in_flight_is_waited_for() {
    let mut player = Player::start("busy");
    player.says("ready");
    player.gets("TERM");
    player.says("draining");
    drop(player.process.stdin.take());
    let (code, said) = player.ends();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("accepted 1, completed 1"), "{said}");
}

#[test]
fn what_is_in_flight_at_the_deadline_is_abandoned_and_the_exit_code_tells() {
    let mut player = Player::start("busy");
    player.says("ready");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 75, "{said}");
    assert!(said.contains("accepted 1, abandoned 1"), "{said}");
    assert!(said.contains("tests/suite/process.rs:"), "{said}");
}

#[test]
fn a_component_that_hangs_is_left_behind_and_named() {
    let mut player = Player::start("hangs");
    player.says("ready");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 75, "{said}");
    assert!(said.contains("the stuck one: has not returned for"), "{said}");
}

#[test]
fn s2_a_second_signal_during_the_drain_ends_the_process_with_the_report_so_far() {
    let mut player = Player::start("busy");
    player.says("ready");
    player.gets("TERM");
    player.says("draining");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("draining for"), "{said}");
    assert!(said.contains("forced by a second signal (SIGTERM)"), "{said}");
    assert!(said.contains("1 in flight"), "{said}");
}

#[test]
fn s2_a_second_signal_while_a_component_hangs_ends_the_process_and_names_it() {
    let mut player = Player::start("hangs");
    player.says("ready");
    player.gets("INT");
    player.says("hanging");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("the stuck one: has not returned for"), "{said}");
}

#[test]
fn s2_a_third_signal_ends_the_process_in_the_handler() {
    let mut player = Player::start("hangs_in_the_exit");
    player.says("ready");
    player.gets("TERM");
    player.says("hanging");
    // Not at the same time: signals of one kind that are pending are one.
    player.gets("INT");
    player.complains("the process ends");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 77, "{said}");
}

#[test]
fn two_signals_at_once_are_a_second_one_with_its_reason() {
    let mut player = Player::start("hangs");
    player.says("ready");
    // Both wait for it when it goes on.
    for name in ["STOP", "TERM", "INT", "CONT"] {
        player.gets(name);
    }
    let (code, said) = player.ends();
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("forced by a second signal (SIG"), "{said}");
}

/// A pipe that is full, and that nobody reads.
#[test]
fn a_standard_error_that_nobody_reads_keeps_nothing_from_stopping() {
    let mut player = Player::start("talks");
    player.says("ready");
    player.gets("TERM");
    let status = player.process.wait().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_report_that_cannot_be_printed_does_not_change_the_exit_code() {
    let mut command = Command::new("sh");
    let play =
        format!("exec {:?} --exact process::play --nocapture 2>/dev/full", env::current_exe().unwrap());
    command.args(["-c", &play]);
    let mut player = Player::start_by(command, "busy and returned");
    player.says("ready");
    // Else it ends when the process is waited for, and the request with it.
    let _stdin = player.process.stdin.take();
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 75, "{said}");
}

#[test]
fn a_stop_during_the_start_stops_what_is_started_after_it() {
    let mut player = Player::start("starting");
    player.says("starting");
    player.gets("TERM");
    player.says("stopped what was started");
    let (code, said) = player.ends();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn s6_a_group_that_is_served_stops_at_a_signal() {
    let mut player = Player::start("group");
    player.says("ready");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("clean (SIGTERM)"), "{said}");
    assert!(said.contains("group: clean in"), "{said}");
}

#[test]
fn s6_a_member_that_fails_stops_the_whole_program_and_is_the_reason() {
    let (code, said) = Player::start("group that fails").ends();
    assert_eq!(code, 70, "{said}");
    assert!(said.contains("a component failed (fails failed: no route to the queue)"), "{said}");
}

/// The first process of a container gets only signals that it handles: here, in a namespace of its own.
#[test]
fn s2_as_the_first_process_of_a_container_too() {
    if !may_unshare() {
        eprintln!("this machine does not let a process have a namespace of its own: nothing is shown");
        return;
    }
    let unshared = |play| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child"]);
        command.arg(env::current_exe().unwrap());
        // A sanitizer that looks for leaks stops all threads by their numbers in /proc, which are those outside of the
        // namespace: it misses them, and takes for a leak what they hold.
        let options = env::var("ASAN_OPTIONS").unwrap_or_default();
        command.env("ASAN_OPTIONS", format!("{options}:detect_leaks=0"));
        let mut player = Player::start_by(command, play);
        player.says("ready");
        let children = format!("/proc/{0}/task/{0}/children", player.process.id());
        player.pid = fs::read_to_string(children).unwrap().trim().parse().unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", player.pid)).unwrap();
        let pids = status.lines().find(|line| line.starts_with("NSpid:")).unwrap();
        assert!(pids.ends_with("\t1"), "it is the first of its namespace: {pids}");
        player
    };
    let player = unshared("idle");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 0, "{said}");

    let mut player = unshared("hangs_in_the_exit");
    player.gets("TERM");
    player.says("hanging");
    player.gets("INT");
    player.complains("the process ends");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, 77, "{said}");
}

fn may_unshare() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "true"]);
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
