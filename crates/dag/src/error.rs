//! What is wrong with a graph, and why a run has no result.

use std::{
    fmt::{self, Write},
    sync::Arc,
    time::Duration,
};

use ebbtide_lifecycle::{Panicked, Reason, Refusal};

use crate::{failure::Failure, line::Line};

/// What is wrong with a graph or a plan: stable, for machines and for looking it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// The text is not JSON, or not of the shape of a plan.
    P001,
    /// A field that a plan does not have.
    P002,
    /// There are no nodes.
    P003,
    /// A node without a name.
    P004,
    /// Two nodes of one name.
    P005,
    /// An op that is not registered.
    P006,
    /// An input that is not a node of this graph.
    P007,
    /// A node that depends on itself.
    P008,
    /// Nodes that depend on each other in a circle.
    P009,
    /// Too few or too many inputs.
    P010,
    /// The same input, or output, twice.
    P011,
    /// A parameter of the wrong type, out of range, missing, or unknown.
    P012,
    /// An input of the wrong type. Not in use: handles are typed, and all nodes of a plan from data give one type.
    P013,
    /// An expression or predicate that cannot be read, or that its table does not have.
    P014,
    /// An output that is not a node of this graph, or no output at all.
    P015,
    /// An endpoint or class that does not exist.
    P016,
    /// Fallbacks that lead to each other in a circle. Not in use: a fallback is a value, and leads nowhere.
    P017,
    /// More nodes than a plan may have.
    P018,
    /// A warning: a node that feeds no output.
    W001,
    /// A warning: a timeout that is longer than the deadline.
    W002,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One thing that is wrong with a graph or a plan, or worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanError {
    /// What kind of mistake it is.
    pub code: Code,
    /// Where it is: a node, or a place in a text.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What may have been meant.
    pub hint: Option<String>,
}

impl PlanError {
    pub(crate) fn new(code: Code, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, place: place.into(), message: message.into(), hint: None }
    }

    #[cfg(feature = "json")]
    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

/// On one line: `P007 node "vm": there is no node "folow" (did you mean "follow"?)`
impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Line(f);
        write!(line, "{} {}: {}", self.code, self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(line, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PlanError {}

/// All that is wrong with a graph or a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanErrors {
    errors: Vec<PlanError>,
}

impl PlanErrors {
    pub(crate) fn new(errors: Vec<PlanError>) -> Self {
        Self { errors }
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, PlanError> {
        self.errors.iter()
    }

    /// Their codes, in the same order.
    #[must_use]
    pub fn codes(&self) -> Vec<Code> {
        self.errors.iter().map(|error| error.code).collect()
    }
}

impl<'a> IntoIterator for &'a PlanErrors {
    type Item = &'a PlanError;
    type IntoIter = std::slice::Iter<'a, PlanError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One line for each.
impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, error) in self.errors.iter().enumerate() {
            let separator = if nth == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanErrors {}

/// What an engine needs and was not given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// A pool, for this node.
    Pool {
        /// The first that needs it.
        node: Arc<str>,
    },
    /// Runners, for this node, which is to go on after its deadline.
    Runners {
        /// The first that needs them.
        node: Arc<str>,
    },
    /// An endpoint, for this node.
    Endpoint {
        /// The first that needs it.
        node: Arc<str>,
        /// What it is called.
        endpoint: Arc<str>,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool { node } => {
                write!(f, "node \"{node}\" runs on a pool: give the environment one with `pool`")
            }
            Self::Runners { node } => write!(
                f,
                "node \"{node}\" is to go on after its deadline: give the environment runners with `runners`"
            ),
            Self::Endpoint { node, endpoint } => write!(
                f,
                "node \"{node}\" needs the endpoint \"{endpoint}\": give it to the environment with `endpoint`"
            ),
        }
    }
}

impl std::error::Error for Missing {}

/// Why a run has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The request's deadline came.
    Deadline {
        /// The nodes that had begun and not ended.
        running: Vec<Arc<str>>,
        /// The nodes that had not begun.
        not_started: Vec<Arc<str>>,
    },
    /// The request's deadline had come before the run began: no node was run.
    Expired,
    /// A node took longer than it may.
    TimedOut {
        /// Its name.
        node: Arc<str>,
        /// How long it may take.
        after: Duration,
    },
    /// A node failed.
    Failed {
        /// Its name.
        node: Arc<str>,
        /// Why.
        failure: Failure,
        /// How often it was tried.
        attempts: u32,
    },
    /// A node panicked.
    Panicked {
        /// Its name.
        node: Arc<str>,
        /// What it panicked with.
        panic: Panicked,
    },
    /// The run's token was triggered.
    Cancelled {
        /// Why.
        reason: Reason,
    },
    /// The engine does not take runs: no node was run.
    Refused(Refusal),
    /// The time until the deadline is less than the plan takes by experience: no node was run.
    TooShort {
        /// How long there was.
        left: Duration,
        /// How long it takes.
        usual: Duration,
    },
    /// An output was not made, because a node was skipped.
    Skipped {
        /// The output's node.
        node: Arc<str>,
        /// The node whose condition did not hold, or that has failed.
        by: Arc<str>,
    },
    /// The pool did not run a node: it was closed or stopped, or its hook before each job panicked.
    NotRun {
        /// Its name.
        node: Arc<str>,
    },
}

impl RunError {
    /// Its code: stable, for machines and for looking it up.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Deadline { .. } => "R001",
            Self::Expired => "R002",
            Self::TimedOut { .. } => "R003",
            Self::Failed { .. } => "R004",
            Self::Panicked { .. } => "R005",
            Self::Cancelled { .. } => "R006",
            Self::Refused(_) => "R007",
            Self::TooShort { .. } => "R008",
            Self::Skipped { .. } => "R009",
            Self::NotRun { .. } => "R010",
        }
    }

    /// The node that it is about, if it is about one.
    #[must_use]
    pub const fn node(&self) -> Option<&Arc<str>> {
        match self {
            Self::TimedOut { node, .. }
            | Self::Failed { node, .. }
            | Self::Panicked { node, .. }
            | Self::Skipped { node, .. }
            | Self::NotRun { node } => Some(node),
            Self::Deadline { .. }
            | Self::Expired
            | Self::Cancelled { .. }
            | Self::Refused(_)
            | Self::TooShort { .. } => None,
        }
    }
}

/// How many names a message lists.
const NAMES_SHOWN_MAX: usize = 10;

/// `[a, b, … and 3 more]`
struct Names<'a>(&'a [Arc<str>]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.len().min(NAMES_SHOWN_MAX);
        write!(f, "[{}", self.0[..shown].join(", "))?;
        match self.0.len() - shown {
            0 => f.write_str("]"),
            more => write!(f, ", … and {more} more]"),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.code())?;
        match self {
            Self::Deadline { running, not_started } => write!(
                f,
                "request deadline exceeded: running {}, not started {}",
                Names(running),
                Names(not_started)
            ),
            Self::Expired => f.write_str("deadline exceeded before the run started"),
            Self::TimedOut { node, after } => write!(f, "node \"{node}\" timed out after {after:?}"),
            Self::Failed { node, failure, attempts: 0 | 1 } => write!(f, "node \"{node}\" failed: {failure}"),
            Self::Failed { node, failure, attempts } => {
                write!(f, "node \"{node}\" failed {attempts} times: {failure}")
            }
            Self::Panicked { node, panic } => write!(f, "node \"{node}\" panicked: {}", panic.message()),
            Self::Cancelled { reason } => write!(f, "run cancelled: {reason}"),
            Self::Refused(why) => write!(f, "run refused: {why}"),
            Self::TooShort { left, usual } => {
                write!(f, "run refused: {left:?} are left, and it usually takes {usual:?}")
            }
            Self::Skipped { node, by } if node == by => {
                write!(f, "output \"{node}\" was skipped by its condition")
            }
            Self::Skipped { node, by } => write!(f, "output \"{node}\" was skipped because of \"{by}\""),
            Self::NotRun { node } => {
                write!(
                    f,
                    "node \"{node}\" was not run: the pool is closed, or its hook before each job panicked"
                )
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed { failure, .. } => Some(failure.error()),
            Self::Panicked { panic, .. } => Some(panic),
            Self::Refused(why) => Some(why),
            _ => None,
        }
    }
}
