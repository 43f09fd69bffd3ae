//! What became of a program.

use std::{
    fmt,
    io::{self, Write as _},
    process::{ExitCode, Termination},
    sync::Arc,
};

use ebbtide_lifecycle::contain;
use ebbtide_shutdown::Report;

use crate::{
    Error,
    builder::StartError,
    member::{Fate, Member},
};

/// How a program ended: what its `main` returns.
///
/// | code | what it says |
/// |---|---|
/// | 0 | clean: main and all components ended well, and all accepted work was run or handed back |
/// | 70 | main or a component failed or panicked, or books do not balance |
/// | 71 | it was not started: the system has no thread, no port or no signal to give |
/// | 75 | the time was up, and work was abandoned: the report says whose |
/// | 76 | a second signal came before the end |
/// | 77 | a third signal came, and the handler ended the process |
///
/// All but 71 are those of a [`Verdict`](crate::shutdown::Verdict). With the last two the process is ended from
/// elsewhere: there is no `Exit`. Where both 70 and 75 would do it is 70.
///
/// As the result of `main` it prints to standard error what was not clean, and gives its code.
#[must_use = "how the program ended is in it"]
pub struct Exit {
    end: End,
}

enum End {
    NotStarted(StartError),
    Stopped { report: Box<Report>, main: Option<Arc<Member>> },
}

impl Exit {
    /// The code of a program that could not be started: `sysexits`' error of the operating system.
    pub const NOT_STARTED: u8 = 71;

    pub(crate) fn not_started(error: StartError) -> Self {
        Self { end: End::NotStarted(error) }
    }

    pub(crate) fn stopped(report: Report, main: Option<Arc<Member>>) -> Self {
        Self { end: End::Stopped { report: Box::new(report), main } }
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match &self.end {
            End::NotStarted(_) => Self::NOT_STARTED,
            End::Stopped { report, .. } => report.exit_code(),
        }
    }

    /// Whether the code is 0.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.code() == 0
    }

    /// What became of everything. None if the program was not started.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        match &self.end {
            End::NotStarted(_) => None,
            End::Stopped { report, .. } => Some(report),
        }
    }

    /// What `main` failed with, if it did, for a program that has codes of its own; or why it was not started.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        match &self.end {
            End::NotStarted(error) => Some(error),
            End::Stopped { main, .. } => match main.as_ref()?.fate()? {
                Fate::Failed(error) => Some(&**error),
                Fate::Ended | Fate::Panicked(_) => None,
            },
        }
    }

    /// Ends the process, at once and with this code, after printing to standard error what was not clean. Nothing
    /// that is registered to be run at the exit is run, and nothing on the stack is dropped.
    pub fn exit(self) -> ! {
        match self.end {
            End::NotStarted(error) => {
                tell(&error);
                std::process::exit(Self::NOT_STARTED.into())
            }
            End::Stopped { report, .. } => report.exit(),
        }
    }
}

/// If nobody reads it, there is nobody to tell: the code is what counts.
fn tell(error: &StartError) {
    let _ = writeln!(io::stderr(), "{error}");
}

/// Prints to standard error what was not clean.
impl Termination for Exit {
    fn report(self) -> ExitCode {
        match self.end {
            End::NotStarted(error) => {
                tell(&error);
                Self::NOT_STARTED.into()
            }
            End::Stopped { report, .. } => report.report(),
        }
    }
}

/// The report, or why there is none.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            End::NotStarted(error) => error.fmt(f),
            End::Stopped { report, .. } => report.fmt(f),
        }
    }
}

impl fmt::Debug for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exit").field("code", &self.code()).finish_non_exhaustive()
    }
}

/// What an error says, and its sources after it, unless it has said that itself. It is foreign code.
pub(crate) fn text_of(error: &Error) -> String {
    let text = contain(|| {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            let more = error.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            source = error.source();
        }
        text
    });
    text.unwrap_or_else(|_| "an error that panics when it is printed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_why_once() {
        #[derive(Debug)]
        struct Outer(&'static str, io::Error);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
        }
        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.1)
            }
        }
        let said = |text| text_of(&Outer(text, io::Error::other("no such host")).into());
        assert_eq!(said("cannot connect"), "cannot connect: no such host");
        assert_eq!(said("cannot connect: no such host"), "cannot connect: no such host");
    }
}
