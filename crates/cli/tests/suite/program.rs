//! A process of the program: what it is given, what it says, and how it ends.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// No process takes as long; one that does hangs, and is killed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What is set on the machine that runs the tests must not reach the program.
const HIDDEN: [&str; 6] = [
    "CLICOLOR_FORCE",
    "DRAIN_TIMEOUT_SECONDS",
    "EBBTIDE_DRAIN_TIMEOUT_SECONDS",
    "EBBTIDE_PLANS",
    "NO_COLOR",
    "RUST_MIN_STACK",
];

/// The program, with arguments, about to be run in the folder of the repository.
pub(crate) struct Program {
    command: Command,
    input: Vec<u8>,
}

/// How a process ended, and what it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A process that runs. Dropped, it is killed.
pub(crate) struct Running {
    process: Child,
    input: Option<ChildStdin>,
    /// None if it goes elsewhere.
    out: Option<BufReader<ChildStdout>>,
    /// The lines of standard error, as they come.
    told: Receiver<String>,
    err: String,
    _watch: Watch,
}

pub(crate) fn ebbtide<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Program {
    Program::of(Command::new(env!("CARGO_BIN_EXE_ebbtide")), args)
}

/// The program, started by a shell that changes its standard streams, as with `<&-`.
pub(crate) fn redirected<A: AsRef<OsStr>>(how: &str, args: impl IntoIterator<Item = A>) -> Program {
    in_a_shell(&format!("exec \"$0\" \"$@\" {how}"), args)
}

/// The program, started as by `nohup`.
pub(crate) fn deaf_to_hangups<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Program {
    in_a_shell("trap '' HUP; exec \"$0\" \"$@\"", args)
}

fn in_a_shell<A: AsRef<OsStr>>(script: &str, args: impl IntoIterator<Item = A>) -> Program {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_ebbtide"));
    Program::of(shell, args)
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Program {
    fn of<A: AsRef<OsStr>>(mut command: Command, args: impl IntoIterator<Item = A>) -> Self {
        command.args(args).current_dir(root()).env("RUST_BACKTRACE", "0").env("COLUMNS", "100");
        for name in HIDDEN {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, input: Vec::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// What is at its standard input. Without, that is empty.
    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self.command.stdin(Stdio::piped());
        self
    }

    /// Where its standard output goes.
    pub(crate) fn out(mut self, out: impl Into<Stdio>) -> Self {
        self.command.stdout(out);
        self
    }

    /// Where its standard error goes.
    pub(crate) fn err(mut self, err: impl Into<Stdio>) -> Self {
        self.command.stderr(err);
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Said {
        let mut process = self.command.spawn().unwrap();
        let _watch = Watch::over(&process);
        let writer = process.stdin.take().map(|mut stdin| {
            // It may end before it has read everything.
            thread::spawn(move || drop(stdin.write_all(&self.input)))
        });
        // What it was given is closed here, too.
        drop(self.command);
        let output = process.wait_with_output().unwrap();
        if let Some(writer) = writer {
            writer.join().unwrap();
        }
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs it, and asserts its exit code.
    pub(crate) fn ends_with(self, code: i32) -> Said {
        let said = self.run();
        assert_eq!(said.code, Some(code), "{said:#?}");
        said
    }

    /// Starts it. Its input stays open until `close_input`.
    pub(crate) fn start(mut self) -> Running {
        let mut process = self.command.stdin(Stdio::piped()).spawn().unwrap();
        let watch = Watch::over(&process);
        let (tell, told) = mpsc::channel();
        let err = BufReader::new(process.stderr.take().unwrap());
        thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                // Once nobody listens, what is told is still read: a full pipe would hold the process up.
                let _ = tell.send(line);
            }
        });
        let mut input = process.stdin.take().unwrap();
        input.write_all(&self.input).unwrap();
        let out = process.stdout.take().map(BufReader::new);
        Running { process, input: Some(input), out, told, err: String::new(), _watch: watch }
    }
}

impl Said {
    /// What it printed, which is JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// What it printed, of which each line is JSON.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asserts that standard error has each of `parts`, and that nothing panicked.
    pub(crate) fn complains<const N: usize>(&self, parts: [&str; N]) {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is missing: {self:#?}");
        }
        assert!(!self.err.contains("panicked"), "{self:#?}");
    }
}

impl Running {
    /// The next line of its standard output; none at the end.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.out.as_mut()?.read_line(&mut line).unwrap() > 0).then(|| line.trim_end().to_owned())
    }

    /// Waits until it has told `part` on standard error.
    pub(crate) fn tells(&mut self, part: &str) {
        loop {
            match self.told.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.err.push_str(&line);
                    self.err.push('\n');
                    if line.contains(part) {
                        return;
                    }
                }
                Err(_) => panic!("it does not tell {part:?}, but {}", self.err),
            }
        }
    }

    pub(crate) fn gets(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Writes to its standard input, and waits until all is read that a pipe does not hold.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes its input, and waits for its end.
    pub(crate) fn ends(mut self) -> Said {
        self.close_input();
        self.ends_unasked()
    }

    /// Waits for its end, with its input open.
    pub(crate) fn ends_unasked(mut self) -> Said {
        let mut out = String::new();
        if let Some(rest) = &mut self.out {
            rest.read_to_string(&mut out).unwrap();
        }
        for line in self.told.iter() {
            self.err.push_str(&line);
            self.err.push('\n');
        }
        let code = self.process.wait().unwrap().code();
        Said { code, out, err: std::mem::take(&mut self.err) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended is as dead.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Kills a process that takes too long. Dropped when the process has ended.
struct Watch {
    _ended: Sender<()>,
}

impl Watch {
    fn over(process: &Child) -> Self {
        let (ended, watched) = mpsc::channel::<()>();
        let pid = Pid::from_child(process);
        thread::spawn(move || {
            if watched.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { _ended: ended }
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
