//! The answer to "is it ready?" and "is it alive?", for people and for programs.

use std::{
    fmt::{self, Write as _},
    sync::Arc,
};

/// An answer of [`Health`](super::Health), as it was at the moment of asking.
#[must_use = "a probe is only an answer"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    question: Question,
    findings: Vec<Finding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Ready,
    Live,
}

/// One reason for a no.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The condition or the heartbeat.
    pub name: Arc<str>,
    /// What is wrong with it.
    pub reason: Arc<str>,
}

impl Probe {
    pub(super) fn ready(findings: Vec<Finding>) -> Self {
        Self { question: Question::Ready, findings }
    }

    pub(super) fn live(findings: Vec<Finding>) -> Self {
        Self { question: Question::Live, findings }
    }

    /// Whether the answer is yes.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.findings.is_empty()
    }

    /// Why it is no; empty if it is yes.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// `{"status":"ok","findings":[]}`, or `"unavailable"` with a `name` and a `reason` for each finding.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::from("{\"status\":");
        push_json(&mut text, if self.is_ok() { "ok" } else { "unavailable" });
        text.push_str(",\"findings\":[");
        for (index, finding) in self.findings.iter().enumerate() {
            text.push_str(if index == 0 { "{\"name\":" } else { ",{\"name\":" });
            push_json(&mut text, &finding.name);
            text.push_str(",\"reason\":");
            push_json(&mut text, &finding.reason);
            text.push('}');
        }
        text.push_str("]}");
        text
    }
}

/// `ok`, or `not ready: database: connecting; cache: not yet`.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ok() {
            return f.write_str("ok");
        }
        f.write_str(match self.question {
            Question::Ready => "not ready",
            Question::Live => "not live",
        })?;
        for (index, finding) in self.findings.iter().enumerate() {
            write!(f, "{} {finding}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

/// `name: reason`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

/// Adds `string` as JSON has it: in quotes, which it cannot get out of.
fn push_json(text: &mut String, string: &str) {
    text.push('"');
    for char in string.chars() {
        match char {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            control if control < ' ' => {
                write!(text, "\\u{:04x}", u32::from(control)).expect("a string takes all that is written");
            }
            other => text.push(other),
        }
    }
    text.push('"');
}
