//! A process that gets so much time and no more, and takes with it all that it has started.

use std::{
    io::Read as _,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError, SyncSender},
    thread,
    time::Duration,
};

pub(crate) struct Watched {
    child: Child,
    /// Whoever sends here in time is heard. Later there is nobody: it has been killed.
    guard: SyncSender<()>,
}

impl Watched {
    /// In a group of its own: a tracer that is killed alone lets what it traces go on, and that keeps the other end of
    /// `stderr` open, which is read to its end.
    pub(crate) fn spawn(command: &mut Command, patience: Duration) -> Self {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let spawned = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (guard, ended) = mpsc::sync_channel(0);
        let group = format!("-{}", child.id());
        thread::spawn(move || {
            if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            }
        });
        Self { child, guard }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("it is piped")
    }

    /// How it has ended, and what it has said of what is wrong.
    pub(crate) fn ends(mut self) -> Result<(ExitStatus, String), String> {
        let mut said = String::new();
        let _ = self.child.stderr.as_mut().expect("it is piped").read_to_string(&mut said);
        let status = self.child.wait().expect("it was started");
        match self.guard.send(()) {
            Ok(()) => Ok((status, said)),
            Err(_nobody) => Err(format!("it hangs\n{said}")),
        }
    }
}
