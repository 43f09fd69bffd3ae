//! Programs that get so much time and no more.

use std::{
    fs, io,
    process::{Child, ChildStdout, Command, ExitStatus, Output},
    sync::mpsc::{self, RecvTimeoutError, SyncSender},
    thread,
    time::Duration,
};

use crate::shell::line;

/// Has the sweeps of a test kit run one case first. It is for the command that one types, and not for what that starts.
const REPLAY: &str = "EBBTIDE_SEED";

/// A program that is killed when its time is up, with all that it has started.
pub(crate) struct Watched {
    child: Child,
    typed: String,
    limit: Duration,
    /// Whoever sends here in time is heard. Later there is nobody: it has been killed.
    guard: SyncSender<()>,
}

impl Watched {
    /// Starts it, without what would have its tests replay a case.
    pub(crate) fn spawn(command: &mut Command, limit: Duration) -> Result<Self, String> {
        let typed = line(command);
        let child = command.env_remove(REPLAY).spawn().map_err(|error| format!("{typed}: {error}"))?;
        let (guard, ended) = mpsc::sync_channel(0);
        let id = child.id();
        thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                kill_tree(id);
            }
        });
        Ok(Self { child, typed, limit, guard })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it prints.
    pub(crate) fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("it is piped")
    }

    /// How it has ended.
    ///
    /// # Errors
    /// If it has not, in time.
    pub(crate) fn ends(mut self) -> Result<ExitStatus, String> {
        let waited = self.child.wait();
        in_time(waited, &self.typed, self.limit, &self.guard)
    }

    /// How it has ended, and all that it has printed.
    ///
    /// # Errors
    /// If it has not ended in time.
    pub(crate) fn output(self) -> Result<Output, String> {
        let Self { child, typed, limit, guard } = self;
        let waited = child.wait_with_output();
        in_time(waited, &typed, limit, &guard)
    }
}

/// What was waited for, unless the guard has ended it.
fn in_time<T>(
    waited: io::Result<T>,
    typed: &str,
    limit: Duration,
    guard: &SyncSender<()>,
) -> Result<T, String> {
    let waited = waited.map_err(|error| format!("{typed}: {error}"))?;
    match guard.send(()) {
        Ok(()) => Ok(waited),
        Err(_nobody) => Err(format!("it hangs: {typed} has not ended within {limit:?}")),
    }
}

/// Kills a process and all that descend from it. It is not by their group: one of their own would not hear of the
/// interrupt that a terminal sends to ours. Where the system has no `/proc`, it is that one process alone.
fn kill_tree(root: u32) {
    let mut doomed = vec![root];
    let parents = parents();
    let mut looked_at = 0;
    while let Some(parent) = doomed.get(looked_at).copied() {
        doomed.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        looked_at += 1;
    }
    let names = doomed.iter().map(u32::to_string);
    // All at once, and whoever has ended by itself meanwhile is none to complain about.
    let _ = Command::new("kill").arg("-KILL").args(names).output();
}

/// Each process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let pair = |entry: fs::DirEntry| {
        let status = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, which may be anything, ends at the last parenthesis.
        let parent = status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, parent))
    };
    processes.filter_map(|entry| pair(entry.ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn sh(script: &str, limit: Duration) -> Watched {
        Watched::spawn(Command::new("sh").args(["-c", script]).stdout(Stdio::piped()), limit).unwrap()
    }

    #[test]
    fn one_that_hangs_is_told_and_nothing_of_it_is_left() {
        // Whoever reads what it prints reads to the end of all who hold it.
        let mut hangs = sh("sleep 1000 & sh -c 'sleep 1001; true'; wait", Duration::from_millis(300));
        assert_eq!(io::read_to_string(hangs.stdout()).unwrap(), "");
        let told = hangs.ends().unwrap_err();
        assert!(told.starts_with("it hangs: sh -c sleep") && told.ends_with("within 300ms"), "{told}");
    }

    #[test]
    fn one_that_ends_in_time_says_how() {
        let patience = Duration::from_secs(20);
        assert_eq!(sh("exit 3", patience).ends().unwrap().code(), Some(3));
        let said = sh("echo said", patience).output().unwrap();
        assert!(said.status.success() && said.stdout == b"said\n");
        assert!(Watched::spawn(&mut Command::new("no-such-program"), patience).is_err());
    }

    #[test]
    fn what_is_started_replays_nothing() {
        let mut asked = Command::new("sh");
        asked.args(["-c", "echo ${EBBTIDE_SEED-none}"]).env(REPLAY, "seed:7").stdout(Stdio::piped());
        let mut asked = Watched::spawn(&mut asked, Duration::from_secs(20)).unwrap();
        assert_eq!(io::read_to_string(asked.stdout()).unwrap().trim(), "none");
        assert!(asked.ends().unwrap().success());
    }
}
