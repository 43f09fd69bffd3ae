//! What went wrong, with what, and where.

use std::{error, fmt, sync::Arc, time::Duration};

use ebbtide_lifecycle::Refusal;

use crate::value::ServerError;

/// A command got no answer, or a bad one: says which command, which server, and why.
#[derive(Clone, Debug)]
pub struct Error {
    what: &'static str,
    address: Arc<str>,
    why: Why,
}

/// Why a command got no answer, or a bad one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The link takes no more: it is stopped, or as much is in flight as is allowed. The command was not sent.
    Refused(Refusal),
    /// The command is longer than a server takes. It was not sent.
    TooLong {
        /// How many bytes it has.
        size: usize,
        /// How many it may have.
        limit: usize,
    },
    /// There was no connection for so long, because of the trouble, if there was any. The command was not sent.
    Unreachable {
        /// For how long it was waited for.
        patience: Duration,
        /// What went wrong when it was last tried.
        trouble: Option<Arc<str>>,
    },
    /// The connection broke after the command was sent: it may have been done or not.
    Lost(Arc<str>),
    /// Nothing came for so long, so that the connection was given up: the command may have been done or not.
    Silent(Duration),
    /// The deadline of a stop came first: the command may have been done or not.
    Stopped,
    /// The executor has dropped the driver of the link, or something panicked in it: the command may have been done or
    /// not.
    Undriven,
    /// The server says what is wrong.
    Server(ServerError),
    /// The server's answer is not what this command is answered with.
    Unexpected(Arc<str>),
}

impl Error {
    pub(crate) fn new(what: &'static str, address: &Arc<str>, why: Why) -> Self {
        Self { what, address: address.clone(), why }
    }

    /// Why.
    #[must_use]
    pub const fn why(&self) -> &Why {
        &self.why
    }

    /// The command.
    #[must_use]
    pub const fn command(&self) -> &'static str {
        self.what
    }

    /// The server, as the link was told to call it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the server says, if that is what is wrong.
    #[must_use]
    pub const fn server(&self) -> Option<&ServerError> {
        match &self.why {
            Why::Server(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.what, self.address, self.why)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(Refusal::Full) => f.write_str(
                "not sent, as many are in flight, or block, as `in_flight` and `waits` of the link's Settings allow",
            ),
            Self::Refused(_) => f.write_str("not sent, the link is stopped"),
            Self::TooLong { size, limit } => write!(
                f,
                "not sent, it has {size} bytes, and `command_max` of the link's Settings allows {limit}"
            ),
            Self::Unreachable { patience, trouble: Some(trouble) } => {
                write!(f, "not sent, no connection within {patience:?}: {trouble}")
            }
            Self::Unreachable { patience, trouble: None } => {
                write!(f, "not sent, no connection within {patience:?}")
            }
            Self::Lost(trouble) => write!(f, "sent, but the connection broke before the answer: {trouble}"),
            Self::Silent(patience) => write!(f, "sent, but no answer came within {patience:?}"),
            Self::Stopped => f.write_str("given up at the deadline of the link's stop"),
            Self::Undriven => f.write_str("the executor has dropped the driver of the link"),
            Self::Server(error) => error.fmt(f),
            Self::Unexpected(answer) => write!(f, "an answer that makes no sense: {answer}"),
        }
    }
}

impl error::Error for Error {}
