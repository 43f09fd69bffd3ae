//! What goes wrong: the message, what to do about it, and the exit code.

use std::{fmt, io, path::Path, process::ExitCode};

use ebbtide::{Exit, dag::RunError};
use serde_json::{Value, json};

/// The exit codes, as `sysexits` has them; the help lists them.
pub(crate) mod code {
    /// A run failed, or an answer is missing.
    pub(crate) const FAILED: u8 = 1;
    /// The command line is wrong: what clap says, too.
    pub(crate) const USAGE: u8 = 2;
    /// A plan, a request or an endpoints file is wrong.
    pub(crate) const DATA: u8 = 65;
    /// A file is not there, or cannot be read.
    pub(crate) const NO_INPUT: u8 = 66;
    /// An address cannot be listened at, or a server cannot be reached.
    pub(crate) const UNAVAILABLE: u8 = 69;
    /// The result cannot be written.
    pub(crate) const IO: u8 = 74;
}

/// Why a command ends without its result.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) code: u8,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// What a failed run is known by, and the node that it is about.
    run: Option<(&'static str, Option<String>)>,
}

impl Fault {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, run: None }
    }

    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(code::DATA, message)
    }

    /// What to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Something else that has to be told. A fault that says nothing of its own becomes that.
    pub(crate) fn with(mut self, exit: &Exit) -> Self {
        if self.message.is_empty() {
            return Self::new(exit.code(), exit.to_string());
        }
        self.message = format!("{}\n{exit}", self.message);
        self
    }

    /// It is what this run failed with.
    pub(crate) fn of_run(mut self, error: &RunError) -> Self {
        self.run = Some((error.code(), error.node().map(|node| node.to_string())));
        self
    }

    /// For machines. The code is that of the run, or else the exit code.
    pub(crate) fn as_json(&self) -> Value {
        let (code, node) = match &self.run {
            Some((code, node)) => (Value::from(*code), node.as_deref()),
            None => (self.code.into(), None),
        };
        json!({"error": {"code": code, "message": self.message, "hint": self.hint, "node": node}})
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::new(code::NO_INPUT, format!("cannot read {}: {error}", path.display()))
    }

    /// A file that cannot be written.
    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::new(code::IO, format!("cannot write {}: {error}", path.display()))
    }

    /// Standard output that cannot be written.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        Self::new(code::IO, format!("cannot write to standard output: {error}"))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        self.code.into()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
