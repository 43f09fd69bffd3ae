//! Why something is being stopped.

use std::{fmt, sync::Arc};

/// What made a [`Trigger`](super::Trigger) fire. The first one is kept: it is what the report gives as the cause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The process got this signal.
    Signal(i32),
    /// The program asked for it, and says why.
    Requested(Arc<str>),
    /// A component failed, and the others cannot go on without it.
    Failed {
        /// The component's name.
        component: Arc<str>,
        /// What went wrong.
        error: Arc<str>,
    },
    /// The input with this name has ended: there is nothing more to do.
    InputClosed(Arc<str>),
}

impl Reason {
    /// The program asks for it because of `why`.
    #[must_use]
    pub fn requested(why: impl Into<Arc<str>>) -> Self {
        Self::Requested(why.into())
    }

    /// `component` failed with `error`.
    #[must_use]
    pub fn failed(component: impl Into<Arc<str>>, error: &dyn fmt::Display) -> Self {
        Self::Failed { component: component.into(), error: error.to_string().into() }
    }

    /// `input` has ended.
    #[must_use]
    pub fn input_closed(input: impl Into<Arc<str>>) -> Self {
        Self::InputClosed(input.into())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The numbers that POSIX fixes for all systems.
            Self::Signal(1) => f.write_str("SIGHUP"),
            Self::Signal(2) => f.write_str("SIGINT"),
            Self::Signal(3) => f.write_str("SIGQUIT"),
            Self::Signal(15) => f.write_str("SIGTERM"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Requested(why) => write!(f, "requested: {why}"),
            Self::Failed { component, error } => write!(f, "{component} failed: {error}"),
            Self::InputClosed(input) => write!(f, "input {input} closed"),
        }
    }
}
