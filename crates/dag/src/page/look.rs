//! How the end of a node is shown: as a colour, and always as a word, too.

use crate::report::{NodeEnd, NodeReport, Report};

use super::time::brief;

/// How a node ended, as far as colours go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Ok,
    FellBack,
    Failed,
    TimedOut,
    /// It was given up on, and went on.
    Late,
    Skipped,
    Cancelled,
    NotStarted,
}

impl Look {
    /// The worst first, as in a legend.
    pub(super) const ALL: [Self; 8] = [
        Self::Failed,
        Self::TimedOut,
        Self::Late,
        Self::FellBack,
        Self::Cancelled,
        Self::Skipped,
        Self::NotStarted,
        Self::Ok,
    ];

    pub(super) fn of(node: &NodeReport<'_>) -> Self {
        match &node.end {
            _ if node.late => Self::Late,
            NodeEnd::Ok => Self::Ok,
            NodeEnd::FellBack(_) => Self::FellBack,
            NodeEnd::Failed(_) | NodeEnd::Panicked(_) => Self::Failed,
            NodeEnd::TimedOut => Self::TimedOut,
            NodeEnd::Skipped { .. } => Self::Skipped,
            NodeEnd::Cancelled => Self::Cancelled,
            NodeEnd::NotStarted => Self::NotStarted,
        }
    }

    /// Its name in the style.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::FellBack => "fell-back",
            Self::Failed => "failed",
            Self::TimedOut => "timed-out",
            Self::Late => "late",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::NotStarted => "not-started",
        }
    }

    /// Its name in a legend.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::FellBack => "fell back",
            Self::TimedOut => "timed out",
            Self::NotStarted => "not started",
            other => other.class(),
        }
    }

    /// Whether somebody has to look at it.
    pub(super) fn is_trouble(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Late | Self::FellBack)
    }

    /// Whether it has not run at all.
    pub(super) fn is_idle(self) -> bool {
        matches!(self, Self::Skipped | Self::NotStarted)
    }
}

/// How a node ended, in two or three words.
pub(super) fn word(node: &NodeReport<'_>) -> &'static str {
    match (&node.end, node.late) {
        (NodeEnd::TimedOut, true) => "timed out, late",
        (NodeEnd::FellBack(_), true) => "fell back, late",
        (NodeEnd::Cancelled, true) => "cancelled, late",
        (NodeEnd::Panicked(_), _) => "panicked",
        _ => Look::of(node).word(),
    }
}

/// Why a node ended as it did, and what became of it; empty if there is nothing to say.
pub(super) fn why(report: &Report, node: &NodeReport<'_>) -> String {
    let why = match &node.end {
        NodeEnd::Ok | NodeEnd::NotStarted => String::new(),
        NodeEnd::FellBack(why) | NodeEnd::Failed(why) | NodeEnd::Panicked(why) => why.clone(),
        NodeEnd::TimedOut => timed_out(report, node),
        NodeEnd::Skipped { by } if **by == *node.name => "its condition did not hold".to_owned(),
        NodeEnd::Skipped { by } => format!("because of {by}"),
        NodeEnd::Cancelled => "the run ended first".to_owned(),
    };
    let tried = if node.attempts > 1 {
        format!("{}tried {} times", joint(&why), node.attempts)
    } else {
        String::new()
    };
    let late = if node.late {
        format!("{}it went on, and its output was discarded", joint(&format!("{why}{tried}")))
    } else {
        String::new()
    };
    format!("{why}{tried}{late}")
}

fn joint(before: &str) -> &'static str {
    if before.is_empty() { "" } else { "; " }
}

/// Whether it was its own timeout or the deadline can be told by whether it was seen to in time.
fn timed_out(report: &Report, node: &NodeReport<'_>) -> String {
    let had_ended = node.span.as_ref().is_some_and(|span| span.ended.is_some());
    match (node.timeout, report.deadline) {
        (Some(timeout), _) if had_ended => format!("it took longer than its {}", brief(timeout)),
        (Some(timeout), None) => format!("it took longer than its {}", brief(timeout)),
        (_, Some(deadline)) if report.traced => {
            format!("it had not ended at the deadline of {}", brief(deadline))
        }
        _ => "it took longer than it may, or the deadline came".to_owned(),
    }
}
