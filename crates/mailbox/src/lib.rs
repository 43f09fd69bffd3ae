//! Mailboxes that lose no message, and workers that stop by contract.

#![forbid(unsafe_code)]

#[cfg(feature = "conformance")]
pub mod conformance;
mod envelope;
mod error;
mod mailbox;
mod memory;
mod message;
mod pull;
mod span;
pub mod worker;

#[doc(no_inline)]
pub use bytes::Bytes;
pub use ebbtide_lifecycle as lifecycle;

pub use self::{
    envelope::{DeadLetter, NotAnEnvelope, Reply},
    error::{BackendError, NotSent, ReceiveError, ReplyError, SendError, SettleError},
    mailbox::{Boxed, Mailbox},
    memory::{Limits, MemoryMailbox, Office},
    message::{Address, Counts, Delivery, Message, MessageId, Receipt, Settlement},
    pull::Pull,
    span::{OutOfRange, Span},
};
