//! The worker processes: started, killed, told to stop, and replaced.

use std::{
    env,
    io::{self, BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::time::{Clock as _, SystemClock};

use crate::{Outcome, WORKER, note::Note, random::Random};

/// A process that takes longer to stop hangs.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Crowd {
    server: SocketAddr,
    present: Vec<Process>,
    leaving: Vec<JoinHandle<Outcome<Farewell>>>,
}

/// How a process was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    Kill,
    Term,
}

/// What a process leaves behind.
pub(crate) struct Farewell {
    pub(crate) blow: Blow,
    pub(crate) status: ExitStatus,
    /// How long it took to end.
    pub(crate) took: Duration,
    pub(crate) notes: Vec<Note>,
    pub(crate) complaints: String,
}

struct Process {
    child: Child,
    /// Told once, when it hears signals.
    listening: mpsc::Receiver<()>,
    notes: JoinHandle<Outcome<Vec<Note>>>,
    complaints: JoinHandle<String>,
}

impl Crowd {
    pub(crate) fn start(server: SocketAddr, count: usize, random: &mut Random) -> Outcome<Self> {
        let mut crowd = Self { server, present: Vec::new(), leaving: Vec::new() };
        for _ in 0..count {
            crowd.present.push(Process::start(server, random)?);
        }
        Ok(crowd)
    }

    /// Ends one of them, in one way or the other, and starts another in its place.
    pub(crate) fn strike(&mut self, random: &mut Random) -> Outcome<()> {
        let blow = if random.below(2) == 0 { Blow::Kill } else { Blow::Term };
        let struck = random.below(self.present.len() as u64) as usize;
        let process = std::mem::replace(&mut self.present[struck], Process::start(self.server, random)?);
        self.leaving.push(process.end(blow)?);
        Ok(())
    }

    /// Tells those who are left to stop. Gives what all of them leave behind.
    pub(crate) fn dismiss(&mut self) -> Outcome<Vec<Farewell>> {
        for process in self.present.drain(..) {
            self.leaving.push(process.end(Blow::Term)?);
        }
        self.leaving.drain(..).map(|leaving| leaving.join().map_err(|_| "a reader panicked")?).collect()
    }
}

/// A storm that was given up leaves nobody behind.
impl Drop for Crowd {
    fn drop(&mut self) {
        for process in &mut self.present {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

impl Process {
    fn start(server: SocketAddr, random: &mut Random) -> Outcome<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args([WORKER, &server.to_string(), &random.next().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("it has an output")?);
        let mut err = child.stderr.take().ok_or("it has one for errors")?;
        let (listens, listening) = mpsc::channel();
        let read = move |line: io::Result<String>| {
            let note = line?.parse()?;
            if note == Note::Listening {
                // Nobody asks who is to be killed.
                let _ = listens.send(());
            }
            Ok(note)
        };
        let notes = thread::Builder::new().spawn(move || out.lines().map(read).collect())?;
        let complaints = thread::Builder::new().spawn(move || {
            let mut said = String::new();
            let _ = err.read_to_string(&mut said);
            said
        })?;
        Ok(Self { child, listening, notes, complaints })
    }

    fn end(mut self, blow: Blow) -> Outcome<JoinHandle<Outcome<Farewell>>> {
        match blow {
            Blow::Kill => self.child.kill()?,
            Blow::Term => {
                self.listening.recv_timeout(PATIENCE).map_err(|_| "a worker does not start")?;
                signal("TERM", self.child.id())?;
            }
        }
        Ok(thread::Builder::new().spawn(move || self.leave(blow))?)
    }

    fn leave(mut self, blow: Blow) -> Outcome<Farewell> {
        let start = SystemClock.now();
        let _guard = guard(self.child.id());
        // Not `wait`, which would close its input, at whose end it exits.
        let notes = self.notes.join().map_err(|_| "a reader panicked")??;
        let complaints = self.complaints.join().map_err(|_| "a reader panicked")?;
        let status = self.child.wait()?;
        Ok(Farewell { blow, status, took: SystemClock.now() - start, notes, complaints })
    }
}

fn signal(name: &str, pid: u32) -> Outcome<()> {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status()?;
    if sent.success() { Ok(()) } else { Err(format!("process {pid} has ended by itself").into()) }
}

/// Kills a process that hangs, unless what this gives is dropped before.
fn guard(pid: u32) -> mpsc::Sender<()> {
    let (guard, ended) = mpsc::channel();
    thread::spawn(move || {
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("process {pid} hangs");
            let _ = signal("KILL", pid);
        }
    });
    guard
}
