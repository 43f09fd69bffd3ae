//! What a coordinator has to tell while it goes on.

use std::{fmt, sync::Arc, time::Duration};

use ebbtide_lifecycle::{Balance, Reason, blame::Stragglers};

use crate::{
    health::Stalled,
    priority::Priority,
    report::{Ending, Report},
    stage::Stage,
};

/// One step of a stop, in the order in which they are taken. Its text is a line of a log.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The program has said that it is ready.
    Ready,
    /// The intake is closed, and may be opened again: nobody has asked for a stop.
    Paused,
    /// The intake is open again.
    Resumed,
    /// The trigger has fired.
    Triggered {
        /// Why.
        reason: &'a Reason,
    },
    /// Readiness is off.
    NotReady,
    /// A callback has ended, or was left behind.
    CallbackEnded {
        /// What it was registered as.
        name: &'a str,
        /// How it ended.
        ending: &'a Ending,
    },
    /// It goes on serving for so long.
    Delaying {
        /// How long.
        delay: Duration,
    },
    /// The intake is closed, and what is in flight is waited for.
    DrainBegun {
        /// How much that is.
        pending: usize,
        /// How long the whole stop may take from here on.
        timeout: Duration,
    },
    /// What is still waited for, every few seconds.
    Progress(&'a Progress),
    /// What was in flight has ended, or was abandoned.
    DrainEnded {
        /// How long it took.
        took: Duration,
        /// How much was left.
        pending: usize,
        /// How long the whole stop may take.
        timeout: Duration,
        /// What became of all requests.
        balance: &'a Balance,
    },
    /// The components of one priority are told to stop.
    PhaseBegun {
        /// Their priority.
        priority: Priority,
        /// How many there are.
        components: usize,
    },
    /// A component's stop has ended.
    ComponentEnded {
        /// What it was registered as.
        name: &'a str,
        /// How it ended.
        ending: &'a Ending,
        /// How long it took.
        took: Duration,
    },
    /// All components of a phase have stopped, or were left behind.
    PhaseEnded {
        /// Their priority.
        priority: Priority,
    },
    /// A heartbeat did not come.
    Stalled(&'a Stalled),
    /// Something is not as it should be, but keeps nobody from stopping.
    Warning(&'a str),
    /// A second signal, or a stalled heartbeat, ends the process; this is the report so far.
    Forced(&'a Report),
    /// It is over.
    Stopped(&'a Report),
}

/// What is still waited for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// How far the stop has come.
    pub stage: Stage,
    /// How much time is left.
    pub left: Duration,
    /// Who has not stopped, and who is in flight there.
    pub waiting: Vec<(Arc<str>, Stragglers)>,
    /// Whether something has ended since the last time.
    pub has_moved: bool,
}

impl Progress {
    /// How many are waited for, and how much is in flight there.
    pub(crate) fn count(&self) -> usize {
        self.waiting.iter().map(|(_, stragglers)| 1 + stragglers.len()).sum()
    }
}

impl Event<'_> {
    /// Whether a person should look at it.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Stalled(_) | Self::Warning(_) | Self::Forced(_) => true,
            Self::CallbackEnded { ending, .. } | Self::ComponentEnded { ending, .. } => {
                **ending != Ending::Clean
            }
            Self::DrainEnded { pending, .. } => *pending > 0,
            Self::Stopped(report) => !report.is_clean(),
            _ => false,
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Paused => f.write_str("the intake is closed, until it is resumed"),
            Self::Resumed => f.write_str("the intake is open again"),
            Self::Triggered { reason } => write!(f, "stopping: {reason}"),
            Self::NotReady => f.write_str("not ready any more"),
            Self::CallbackEnded { name, ending } => write!(f, "callback {name}: {ending}"),
            Self::Delaying { delay } => write!(f, "serving for {delay:.1?} more"),
            Self::DrainBegun { pending, timeout } => {
                write!(f, "drain begins: {pending} in flight, {timeout:.1?} left")
            }
            Self::Progress(progress) => progress.fmt(f),
            Self::DrainEnded { took, pending: 0, balance, .. } => {
                write!(f, "drained in {took:.1?}: {balance}")
            }
            Self::DrainEnded { took, pending, timeout, .. } => {
                write!(f, "not drained in {took:.1?}: {pending} abandoned, drain timeout {timeout:.1?}")
            }
            Self::PhaseBegun { priority, components } => write!(f, "phase {priority}: stopping {components}"),
            Self::ComponentEnded { name, ending, took } => write!(f, "{name}: {ending} in {took:.1?}"),
            Self::PhaseEnded { priority } => write!(f, "phase {priority} has ended"),
            Self::Stalled(stalled) => write!(f, "stalled: {stalled}"),
            Self::Warning(warning) => f.write_str(warning),
            Self::Forced(report) => write!(f, "the process ends before it has stopped\n{report}"),
            Self::Stopped(report) => report.fmt(f),
        }
    }
}

/// A line with what is left, and one for each who is waited for.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} to go, {:.1?} left", self.stage, self.waiting.len(), self.left)?;
        for (name, stragglers) in &self.waiting {
            write!(f, "\n  {name}: {}", stragglers.to_string().replace('\n', "\n  "))?;
        }
        Ok(())
    }
}

/// Is told of each event, on whatever thread takes the step: the ends of components that stop side by side may be told
/// at the same time. It must not block: the stop waits for it.
pub(crate) type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// To `tracing`, at the levels info and warn.
#[cfg(feature = "tracing")]
pub(crate) fn tell_by_default(event: &Event<'_>) {
    match event {
        Event::DrainBegun { pending, timeout } => {
            tracing::info!(pending, timeout = timeout.as_secs_f64(), "drain begins");
        }
        Event::DrainEnded { took, pending: 0, balance, .. } => {
            tracing::info!(duration = took.as_secs_f64(), pending = 0, %balance, "drained");
        }
        Event::DrainEnded { took, pending, timeout, balance } => {
            let (duration, timeout) = (took.as_secs_f64(), timeout.as_secs_f64());
            tracing::warn!(duration, pending, timeout, %balance, "not drained in time");
        }
        event if event.is_warning() => tracing::warn!("{event}"),
        event => tracing::info!("{event}"),
    }
}

/// To standard error: what a person should look at, and what is waited for. The report itself is for whoever asked
/// for it, unless there is nobody left to get it.
#[cfg(not(feature = "tracing"))]
pub(crate) fn tell_by_default(event: &Event<'_>) {
    let told = event.is_warning() && !matches!(event, Event::Stopped(_));
    if told || matches!(event, Event::Triggered { .. } | Event::Progress(_)) {
        crate::print::print(event.to_string());
    }
}
