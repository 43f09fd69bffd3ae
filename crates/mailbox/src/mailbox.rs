//! What every mailbox does.

use std::{future::Future, pin::Pin};

use bytes::Bytes;

use crate::{
    error::{BackendError, ReceiveError, ReplyError, SendError, SettleError},
    message::{Address, Counts, Delivery, Message, MessageId, Receipt, Settlement},
    pull::Pull,
};

/// A future on the heap.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A queue whose messages are delivered until they are acknowledged. See the crate for the life of a message.
///
/// Implementors check themselves with `conformance` (a feature).
pub trait Mailbox: Send + Sync {
    /// Puts a message in.
    ///
    /// Cancelled, it may or may not have been sent.
    ///
    /// # Errors
    /// Hands the message back, with the reason.
    fn send(&self, message: Message) -> Boxed<'_, Result<MessageId, SendError>>;

    /// Takes messages out of sight, as many as there are and are wanted; if there are none, waits for the first, and
    /// gives none if none comes. A batch that is not full is given at once.
    ///
    /// # Cancel safety
    /// Dropped before its end, it has taken nothing, or what it has taken is released.
    ///
    /// # Errors
    /// Once the mailbox is closed, also while this waits; and those of the machinery behind it.
    fn receive(&self, pull: Pull) -> Boxed<'_, Result<Vec<Delivery>, ReceiveError>>;

    /// Says what becomes of a delivery. Also when the mailbox is closed.
    ///
    /// # Errors
    /// [`SettleError::ReceiptExpired`] if the delivery was settled before, or is over.
    fn settle(&self, receipt: Receipt, how: Settlement) -> Boxed<'_, Result<(), SettleError>>;

    /// Saves what the next delivery of the message gets back, should there be one. It may be as large as a body.
    ///
    /// # Errors
    /// As [`settle`](Mailbox::settle); and [`SettleError::TooLarge`], after which what was saved before stays.
    fn checkpoint(&self, receipt: Receipt, progress: Bytes) -> Boxed<'_, Result<(), SettleError>>;

    /// Sends `body` to the mailbox at `address`.
    ///
    /// # Errors
    /// If there is none, or it does not take it.
    fn reply(&self, address: Address, body: Bytes) -> Boxed<'_, Result<(), ReplyError>>;

    /// Takes out every message, also those in the hands of receivers, whose receipts expire. Gives how many there were.
    ///
    /// # Errors
    /// That of the machinery behind it.
    fn purge(&self) -> Boxed<'_, Result<u64, BackendError>>;

    /// How many messages there are.
    ///
    /// # Errors
    /// That of the machinery behind it.
    fn counts(&self) -> Boxed<'_, Result<Counts, BackendError>>;

    /// Takes nothing more in and gives nothing more out, and wakes whoever waits for a message. Deliveries can still be
    /// settled. Gives whether it was open.
    fn close(&self) -> bool;

    /// Whether it is closed.
    fn is_closed(&self) -> bool;
}
