//! What is sent, and what is received.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::span::Span;

/// What is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Whatever sender and receiver have agreed on.
    pub body: Bytes,
    /// How long it stays out of sight at first.
    pub delay: Span,
    /// Where a reply is wanted.
    pub reply_to: Option<Address>,
}

impl Message {
    /// A message to be delivered at once.
    #[must_use]
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// The same, delivered after `delay`.
    #[must_use]
    pub fn delayed(mut self, delay: Span) -> Self {
        self.delay = delay;
        self
    }

    /// The same, with a reply wanted at `address`.
    #[must_use]
    pub fn reply_to(mut self, address: Address) -> Self {
        self.reply_to = Some(address);
        self
    }
}

/// The name of a mailbox, among those that can reply to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub Arc<str>);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for Address {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

/// Which message of its mailbox: the same in every delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The right to settle a message: fresh for each delivery, and gone once the message is settled or its time out of
/// sight is over. Good for nothing at any other mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// Of which mailbox: what tells it from others.
    pub mailbox: u64,
    /// Of which message.
    pub id: MessageId,
    /// Of which delivery: no two of a mailbox have the same.
    pub delivery: u64,
    /// Which of the message's deliveries that is, as they are [counted](Delivery::delivery_count).
    pub count: u32,
}

/// A message in the hands of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// What was sent.
    pub body: Bytes,
    /// What to settle it with.
    pub receipt: Receipt,
    /// How often it has been delivered, this time included; not counting those that were released.
    pub delivery_count: u32,
    /// How long ago it was sent.
    pub age: Duration,
    /// Where a reply is wanted.
    pub reply_to: Option<Address>,
    /// What an earlier delivery has saved.
    pub checkpoint: Option<Bytes>,
}

impl Delivery {
    /// A delivery, for implementors of [`Mailbox`](crate::Mailbox).
    #[must_use]
    pub const fn new(body: Bytes, receipt: Receipt, delivery_count: u32, age: Duration) -> Self {
        Self { body, receipt, delivery_count, age, reply_to: None, checkpoint: None }
    }

    /// Which message it is.
    #[must_use]
    pub const fn id(&self) -> MessageId {
        self.receipt.id
    }
}

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settlement {
    /// It is done: the message is gone.
    Ack,
    /// It failed: the message is delivered again, after so long.
    Nack(Span),
    /// It was not begun: the message can be received at once, and this delivery is not counted.
    Release,
    /// It goes on: the message stays out of sight for so long from now. Never shortens the time that there is.
    Extend(Span),
}

/// How many messages there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Can be received.
    pub pending: u64,
    /// Are delayed, or wait to be tried again.
    pub delayed: u64,
    /// Are in the hands of a receiver.
    pub invisible: u64,
}

impl Counts {
    /// So many of each.
    #[must_use]
    pub const fn new(pending: u64, delayed: u64, invisible: u64) -> Self {
        Self { pending, delayed, invisible }
    }

    /// All of them: what counts against a capacity.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.pending + self.delayed + self.invisible
    }
}
