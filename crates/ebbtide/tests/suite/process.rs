//! Processes that get real signals: this test binary runs itself.

#![cfg(unix)]

use std::{
    env,
    future::pending,
    io::{self, BufRead as _, BufReader, Read as _},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use ebbtide::{App, sleep};

/// Says which part of this file the process is to play.
const PLAY: &str = "EBBTIDE_PLAY";

/// No test takes as long; a process that does hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the processes do. In any other process this is a test that passes.
#[test]
fn play() {
    let Ok(play) = env::var(PLAY) else { return };
    // Whatever features others want: what is tested is what is told, not where.
    let mut app = App::builder().observer(|event| eprintln!("{event}"));
    if play == "does not start" {
        app = app.heartbeat(Duration::ZERO);
    }
    let exit = app.run(async move |app| {
        match play.as_str() {
            "accepts" => return super::under_load::serve(app).await,
            "serves" => {
                let closing = app.closing();
                app.spawn(async move {
                    closing.triggered().await;
                    sleep(Duration::from_millis(50)).await;
                    println!("answered");
                })?
                .detach();
            }
            "is stuck" => app.spawn_named("GET /stuck", pending::<()>())?.detach(),
            "blocks" => {
                println!("ready");
                loop {
                    thread::park();
                }
            }
            "fails" => return Err("no route to the queue".into()),
            "panics" => panic!("told to"),
            other => panic!("there is no play {other:?}"),
        }
        app.ready();
        println!("ready");
        app.closing().triggered().await;
        println!("draining");
        Ok(())
    });
    exit.exit();
}

fn command(play: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "process::play", "--nocapture"]);
    command.env(PLAY, play).env("DRAIN_TIMEOUT_SECONDS", "1").env("RUST_BACKTRACE", "0");
    command.stdout(Stdio::piped());
    command
}

/// A process that plays a part, and is killed when it takes too long.
pub(crate) struct Player {
    process: Child,
    out: BufReader<ChildStdout>,
    /// Dropped when the process has ended: it need not be killed then.
    _guard: mpsc::Sender<()>,
}

impl Player {
    pub(crate) fn start(play: &str) -> Self {
        Self::of(command(play))
    }

    /// One that may have so many files open, and no more.
    pub(crate) fn with_files(play: &str, most: u32) -> Self {
        let plain = command(play);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -n {most}; exec \"$0\" \"$@\"")).arg(plain.get_program());
        shell.args(plain.get_args()).stdout(Stdio::piped());
        for (name, value) in plain.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        Self::of(shell)
    }

    fn of(mut command: Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let (guard, ended) = mpsc::channel::<()>();
        let pid = process.id();
        thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                signal("KILL", pid);
            }
        });
        let out = BufReader::new(process.stdout.take().unwrap());
        Self { process, out, _guard: guard }
    }

    /// What stands behind `begin` in the first line that has it. A test's own output may stand before it.
    pub(crate) fn line_from(&mut self, begin: &str) -> String {
        loop {
            let mut said = String::new();
            assert_ne!(self.out.read_line(&mut said).unwrap(), 0, "it never says {begin:?}");
            if let Some((_, rest)) = said.trim_end().split_once(begin) {
                return rest.to_owned();
            }
        }
    }

    /// Reads until it has said `line`. A test's own output may stand before it in the same line.
    fn says(&mut self, line: &str) {
        let mut said = String::new();
        while !said.trim_end().ends_with(line) {
            assert_ne!(self.out.read_line(&mut said).unwrap(), 0, "it never says {line:?}, but {said:?}");
        }
    }

    pub(crate) fn gets(&self, name: &str) {
        signal(name, self.process.id());
    }

    /// Waits for its end: the exit code, and what it said on standard output and standard error.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.out.read_to_string(&mut said).unwrap();
        (self.process.wait().unwrap().code(), said)
    }
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn sigterm_and_sigint_let_requests_end_and_the_code_is_0() {
    for name in ["TERM", "INT"] {
        let mut player = Player::start("serves");
        player.says("ready");
        player.gets(name);
        let (code, said) = player.ends();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(&format!("stopping: SIG{name}")) && said.contains("answered"), "{said}");
    }
}

#[test]
fn a_request_that_is_stuck_is_named_on_standard_error_and_the_code_is_75() {
    let mut player = Player::start("is stuck");
    player.says("ready");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("\"GET /stuck\" at crates/ebbtide/tests/suite/process.rs:"), "{said}");
}

#[test]
fn a_second_signal_ends_the_process_at_once_with_76() {
    let mut player = Player::start("is stuck");
    player.says("ready");
    player.gets("TERM");
    player.says("draining");
    player.gets("INT");
    let (code, said) = player.ends();
    assert_eq!(code, Some(76), "{said}");
    assert!(
        said.contains("forced by a second signal (SIGTERM)") && said.contains("\"GET /stuck\""),
        "{said}"
    );
}

#[test]
fn p3_a_process_whose_main_never_awaits_ends_by_its_deadline() {
    let mut player = Player::start("blocks");
    player.says("ready");
    player.gets("TERM");
    let (code, said) = player.ends();
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("\"main\" at crates/ebbtide/tests/suite/process.rs:"), "{said}");
}

#[test]
fn a_main_that_fails_or_panics_is_code_70() {
    for (play, why) in
        [("fails", "main failed: no route to the queue"), ("panics", "main failed: panicked: told to")]
    {
        let (code, said) = Player::start(play).ends();
        assert_eq!(code, Some(70), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_program_that_does_not_start_is_code_71_also_where_nobody_reads_why() {
    let (code, said) = Player::start("does not start").ends();
    assert_eq!(code, Some(71), "{said}");
    assert!(said.contains("the program was not started"), "{said}");
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let code = command("does not start").stderr(writer).status().unwrap().code();
    assert_eq!(code, Some(71));
}
