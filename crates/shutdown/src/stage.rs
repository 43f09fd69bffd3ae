//! How far a stop has come.

use std::fmt;

/// Where a program is in its life, as its coordinator sees it, in the order in which it gets there.
///
/// ```text
/// Running ──trigger──► Triggered ─────► Delaying ─────► Draining ─────► Stopping ─────► Stopped
///                      callbacks        still serving   intake closed,  phases, the     the report
///                      run; not ready                   requests end    highest first   is there
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Nobody has asked for a stop.
    Running,
    /// The trigger has fired. Readiness is off; the callbacks are being called.
    Triggered,
    /// Still serving, so that whoever sends requests can see that it should not.
    Delaying,
    /// The intake is closed; what is in flight comes to its end.
    Draining,
    /// The components are being stopped, phase by phase.
    Stopping,
    /// It is over; there is a report.
    Stopped,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Triggered => "triggered",
            Self::Delaying => "delaying",
            Self::Draining => "draining",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        })
    }
}
