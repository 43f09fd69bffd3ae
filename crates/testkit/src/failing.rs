//! What is told of a case that went wrong: what is wrong with it, what was decided, and the line that replays it.

use std::{env, fmt, sync::atomic::Ordering, thread};

use crate::{
    case::Case,
    decisions::{Code, Decisions},
};

/// The environment variable that has the sweeps of a process run one case before all others: seeds, if it is a seed,
/// and steps, if it is a step. What they are to run otherwise they run all the same, so that what a test says of their
/// summary holds.
pub(crate) const VARIABLE: &str = "EBBTIDE_SEED";

/// A case that went wrong. In a test, `unwrap` it: it prints what is wrong, what was decided about the case, and the
/// one line that replays it.
#[non_exhaustive]
pub struct Failing {
    /// Which case; none if it was not even one.
    pub code: Option<Code>,
    /// What is wrong.
    pub findings: Vec<String>,
    /// There if it was a case.
    account: Option<Box<Account>>,
}

/// How it came to that.
struct Account {
    decisions: Decisions,
    /// What of the decisions has come about.
    notes: Vec<String>,
    ending: String,
    steps: u64,
    replay: String,
}

impl Failing {
    pub(crate) fn new(case: &Case, replay: String) -> Self {
        let account = Account {
            decisions: case.decisions.clone(),
            notes: case.notes(),
            ending: case.ending(),
            steps: case.steps.load(Ordering::Relaxed),
            replay,
        };
        Self { code: Some(case.decisions.code), findings: case.findings(), account: Some(Box::new(account)) }
    }

    /// There is no such case.
    pub(crate) fn not_a_case(why: &impl fmt::Display) -> Self {
        Self { code: None, findings: vec![why.to_string()], account: None }
    }

    /// The line that runs this case again; empty if it was not a case.
    #[must_use]
    pub fn replay(&self) -> &str {
        self.account.as_ref().map_or("", |account| &account.replay)
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = self.code {
            write!(f, "case {code} went wrong:")?;
        }
        for finding in &self.findings {
            write!(f, "\n  {}", finding.replace('\n', "\n    "))?;
        }
        match &self.account {
            Some(account) => account.fmt(f),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\ndecided: {}\nhappened: {} steps", self.decisions, self.steps)?;
        for note in &self.notes {
            write!(f, "; {note}")?;
        }
        write!(f, "; in the end: {}\nreplay: {}", self.ending, self.replay)
    }
}

/// As it is displayed: that is what `unwrap` prints.
impl fmt::Debug for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failing {}

/// The line that replays a case of the test that calls this: its thread has its name, and cargo says its package.
pub(crate) fn line(code: Code) -> String {
    let package = env::var("CARGO_PKG_NAME").map(|package| format!(" -p {package}")).unwrap_or_default();
    let thread = thread::current();
    let test = thread.name().filter(|name| is_harnessed() && is_path(name));
    format!(
        "{VARIABLE}={code} cargo test{package}{}",
        test.map(|name| format!(" -- --exact {name}")).unwrap_or_default()
    )
}

/// Whether this may be a binary of tests, whose harness calls threads by them: cargo keeps those in a place of their
/// own.
fn is_harnessed() -> bool {
    let program = env::current_exe().ok();
    program.and_then(|program| program.parent()?.file_name().map(|folder| folder == "deps")).unwrap_or(false)
}

/// Whether it can be the name of a test: `outer::inner::fact`. The thread of `main` has none.
fn is_path(name: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && word.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    name != "main" && name.split("::").all(is_word)
}

/// The one case that is to be run, if the environment says so.
pub(crate) fn wanted() -> Result<Option<Code>, Failing> {
    let Ok(text) = env::var(VARIABLE) else { return Ok(None) };
    text.parse().map(Some).map_err(|error| Failing::not_a_case(&format!("{VARIABLE}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_test_whose_thread_this_is_and_no_other_thread() {
        let named =
            " -- --exact failing::tests::the_line_names_the_test_whose_thread_this_is_and_no_other_thread";
        // With one thread for all of them a harness calls none by its test.
        if thread::current().name() != Some("main") {
            assert!(line(Code::Step(3)).ends_with(named), "{}", line(Code::Step(3)));
        }
        let elsewhere = thread::Builder::new().name("worker-7".into()).spawn(|| line(Code::Step(3))).unwrap();
        assert_eq!(elsewhere.join().unwrap(), "EBBTIDE_SEED=step:3 cargo test -p ebbtide-testkit");
        assert!(["a", "a::b_c", "_a1"].iter().all(|name| is_path(name)));
        assert!(["main", "", "a b", "a-1", "a::", "1"].iter().all(|name| !is_path(name)));
    }
}
