//! Bodies with something written on them: replies, and letters that could not be delivered.
//!
//! | | bytes |
//! |---|---|
//! | a reply | `0`, then the body; or `1`, then the reason of the failure in UTF-8 |
//! | a dead letter | attempts, length of the reason (4 bytes each, the lowest first), the reason in UTF-8, the body |

use std::{error::Error, fmt, sync::Arc};

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What a worker answers to whoever wanted a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// What the handler gave.
    Done(Bytes),
    /// The message was given up on, for this reason, of which as much is kept as fits. Or it was handled, but what the
    /// handler gave is larger than the mailbox for replies takes: then that is the reason.
    Failed(Arc<str>),
}

impl Reply {
    /// As the body of a message.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Done(body) => marked(0, body),
            Self::Failed(reason) => marked(1, shortened(reason, REASON_MAX).as_bytes()),
        }
    }

    /// A failure in so many bytes, with as much of the reason as there is room for. Nothing if there is none at all.
    pub(crate) fn failed_within(reason: &str, limit: usize) -> Option<Bytes> {
        let room = limit.checked_sub(MARK)?;
        Some(marked(1, shortened(reason, room.min(REASON_MAX)).as_bytes()))
    }

    /// From the body of a message.
    ///
    /// # Errors
    /// [`NotAnEnvelope`] if it is something else.
    pub fn decode(mut body: Bytes) -> Result<Self, NotAnEnvelope> {
        match body.try_get_u8() {
            Ok(0) => Ok(Self::Done(body)),
            Ok(1) => Ok(Self::Failed(text(&body)?)),
            _ => Err(NotAnEnvelope),
        }
    }
}

fn marked(mark: u8, body: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(MARK + body.len());
    bytes.put_u8(mark);
    bytes.put_slice(body);
    bytes.freeze()
}

/// A message that was given up on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// What was sent.
    pub body: Bytes,
    /// Why it was given up on.
    pub reason: Arc<str>,
    /// How often it was tried.
    pub attempts: u32,
}

impl DeadLetter {
    /// A message that was tried so often, and failed for this reason the last time.
    #[must_use]
    pub const fn new(body: Bytes, reason: Arc<str>, attempts: u32) -> Self {
        Self { body, reason, attempts }
    }

    /// As the body of a message.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        self.encode_with(shortened(&self.reason, REASON_MAX))
    }

    /// The same in so many bytes, with as much of the reason as there is room for. Nothing if there is none for the
    /// body.
    pub(crate) fn encode_within(&self, limit: usize) -> Option<Bytes> {
        let room = limit.checked_sub(NUMBERS + self.body.len())?;
        Some(self.encode_with(shortened(&self.reason, room.min(REASON_MAX))))
    }

    fn encode_with(&self, reason: &str) -> Bytes {
        let mut bytes = BytesMut::with_capacity(NUMBERS + reason.len() + self.body.len());
        bytes.put_u32_le(self.attempts);
        bytes.put_u32_le(reason.len() as u32);
        bytes.put_slice(reason.as_bytes());
        bytes.put_slice(&self.body);
        bytes.freeze()
    }

    /// From the body of a message.
    ///
    /// # Errors
    /// [`NotAnEnvelope`] if it is something else.
    pub fn decode(mut body: Bytes) -> Result<Self, NotAnEnvelope> {
        let attempts = body.try_get_u32_le().map_err(|_| NotAnEnvelope)?;
        let length = body.try_get_u32_le().map_err(|_| NotAnEnvelope)? as usize;
        if length > body.len() {
            return Err(NotAnEnvelope);
        }
        let reason = text(&body.split_to(length))?;
        Ok(Self { body, reason, attempts })
    }
}

/// How much of a reason is kept: an error's text may have a whole document in it, and it still has to fit.
const REASON_MAX: usize = 4096;

/// How many bytes say what a reply is.
const MARK: usize = 1;

/// How many bytes the attempts and the length of the reason take.
const NUMBERS: usize = 8;

fn shortened(reason: &str, max: usize) -> &str {
    let end = (0..=max.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end));
    &reason[..end.unwrap_or(0)]
}

fn text(bytes: &[u8]) -> Result<Arc<str>, NotAnEnvelope> {
    std::str::from_utf8(bytes).map(Arc::from).map_err(|_| NotAnEnvelope)
}

/// A body is not what a worker writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnEnvelope;

impl fmt::Display for NotAnEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is neither a reply nor a dead letter of a worker")
    }
}

impl Error for NotAnEnvelope {}
