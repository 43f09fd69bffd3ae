//! What a mailbox refuses, and why. What was refused comes back.

use std::{error::Error, fmt};

use crate::message::{Address, Message};

/// What went wrong in the machinery behind a mailbox.
pub type BackendError = Box<dyn Error + Send + Sync>;

/// A message was not sent.
#[derive(Debug)]
pub struct SendError {
    /// The message.
    pub message: Message,
    /// Why not.
    pub why: NotSent,
}

/// Why a message was not sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotSent {
    /// The mailbox is closed.
    Closed,
    /// The mailbox holds as many messages as it may.
    Full {
        /// How many that are.
        capacity: usize,
    },
    /// The body is larger than the mailbox takes.
    TooLarge {
        /// How many bytes it has.
        size: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The machinery behind it failed: whether the message was sent is not known.
    Backend(BackendError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            NotSent::Closed => f.write_str("the mailbox is closed"),
            NotSent::Full { capacity } => {
                write!(f, "the mailbox is full: it holds {capacity} messages at most")
            }
            NotSent::TooLarge { size, limit } => {
                write!(f, "a body of {size} bytes is too large: the mailbox takes {limit} at most")
            }
            NotSent::Backend(error) => write!(f, "the message may not have been sent: {error}"),
        }
    }
}

impl Error for SendError {}

/// Nothing was received.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The mailbox is closed.
    Closed,
    /// The machinery behind it failed; what it may have taken out comes back when its time out of sight is over.
    Backend(BackendError),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the mailbox is closed"),
            Self::Backend(error) => write!(f, "cannot receive: {error}"),
        }
    }
}

impl Error for ReceiveError {}

/// A delivery was not settled.
#[derive(Debug)]
#[non_exhaustive]
pub enum SettleError {
    /// The delivery was settled before, or its time out of sight is over: the message may be in other hands.
    ReceiptExpired,
    /// What was to be [saved](crate::Mailbox::checkpoint) is larger than a body may be: nothing was.
    TooLarge {
        /// How many bytes it has.
        size: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The machinery behind it failed: whether it was settled is not known.
    Backend(BackendError),
}

impl fmt::Display for SettleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReceiptExpired => f.write_str(
                "the receipt has expired: the message was settled, or is due to be delivered again",
            ),
            Self::TooLarge { size, limit } => {
                write!(f, "progress of {size} bytes is too large: the mailbox saves {limit} at most")
            }
            Self::Backend(error) => write!(f, "the delivery may not have been settled: {error}"),
        }
    }
}

impl Error for SettleError {}

/// A reply was not sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplyError {
    /// There is no mailbox of that name.
    Unknown(Address),
    /// The mailbox of that name did not take it.
    Refused(SendError),
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(address) => write!(f, "there is no mailbox {address} to reply to"),
            Self::Refused(error) => write!(f, "the reply was refused: {error}"),
        }
    }
}

impl Error for ReplyError {}
