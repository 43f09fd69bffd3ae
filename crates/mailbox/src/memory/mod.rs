//! Mailboxes in the memory of one process.
//!
//! Nothing runs in the background: a receiver that waits is woken by whoever sends, or at the time at which the next
//! message comes back by itself.

mod receive;
mod shelf;

use std::{
    collections::BTreeMap,
    fmt,
    future::ready,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use ebbtide_lifecycle::{time::Timer, wait::Bell};

use self::{
    receive::Receiving,
    shelf::{Expired, Shelf, Unreceived},
};
use crate::{
    error::{BackendError, NotSent, ReceiveError, ReplyError, SendError, SettleError},
    mailbox::{Boxed, Mailbox},
    message::{Address, Counts, Delivery, Message, MessageId, Receipt, Settlement},
    pull::Pull,
};

/// What a mailbox takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many messages, those in the hands of receivers included. No limit unless told otherwise, but that of the
    /// memory and of four billion.
    pub capacity: usize,
    /// How many bytes a body may have, and what is saved of a message's progress: a mebibyte unless told otherwise.
    pub body: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { capacity: u32::MAX as usize, body: 1 << 20 }
    }
}

/// The mailboxes that can reply to each other, by name. A clone is another handle to the same.
///
/// ```
/// use std::time::Duration;
/// use ebbtide_lifecycle::{time::ThreadTimer, wait::block_on};
/// use ebbtide_mailbox::{Mailbox, Message, Office, Pull, Settlement};
///
/// let office = Office::new(ThreadTimer::start()?);
/// let orders = office.mailbox("orders");
/// block_on(async {
///     orders.send(Message::new("two apples")).await?;
///     for delivery in orders.receive(Pull::default()).await? {
///         assert_eq!(&delivery.body[..], b"two apples");
///         orders.settle(delivery.receipt, Settlement::Ack).await?;
///     }
///     Ok(())
/// })
/// # .map_err(|error: Box<dyn std::error::Error>| error)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Office<T> {
    inner: Arc<Directory<T>>,
}

struct Directory<T> {
    timer: T,
    mailboxes: Mutex<BTreeMap<Address, Arc<Desk>>>,
}

/// A mailbox in memory. A clone is another handle to the same; [closing](Mailbox::close) closes it for all.
pub struct MemoryMailbox<T> {
    office: Office<T>,
    address: Address,
    desk: Arc<Desk>,
}

/// What the handles of a mailbox share.
struct Desk {
    limits: Limits,
    shelf: Mutex<Shelf>,
    closed: AtomicBool,
    /// How many receivers wait. Counted before they look for the last time.
    waiting: AtomicUsize,
    /// Rung when something can be received, or the mailbox closes.
    changed: Bell,
}

impl<T> Office<T> {
    /// An office without mailboxes, on `timer`'s time.
    pub fn new(timer: T) -> Self {
        Self { inner: Arc::new(Directory { timer, mailboxes: Mutex::default() }) }
    }

    /// The mailbox of that name; made if there is none.
    pub fn mailbox(&self, name: impl Into<Address>) -> MemoryMailbox<T> {
        self.mailbox_with(name, Limits::default())
    }

    /// The same; if it has to be made, then with these limits.
    pub fn mailbox_with(&self, name: impl Into<Address>, limits: Limits) -> MemoryMailbox<T> {
        let address = name.into();
        let capacity = limits.capacity.min(u32::MAX as usize);
        let make = || Arc::new(Desk::new(Limits { capacity, ..limits }));
        let desk = self.directory().entry(address.clone()).or_insert_with(make).clone();
        MemoryMailbox { office: self.clone(), address, desk }
    }

    fn find(&self, address: &Address) -> Option<Arc<Desk>> {
        self.directory().get(address).cloned()
    }

    fn directory(&self) -> MutexGuard<'_, BTreeMap<Address, Arc<Desk>>> {
        // Nothing that can panic runs under the lock.
        self.inner.mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Office<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<T> fmt::Debug for Office<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.directory().keys().cloned().collect();
        f.debug_struct("Office").field("mailboxes", &names).finish_non_exhaustive()
    }
}

impl Desk {
    fn new(limits: Limits) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        // Relaxed: nothing but the number is told.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Self {
            limits,
            shelf: Mutex::new(Shelf::new(number)),
            closed: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            changed: Bell::new(),
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // Nothing that can panic runs under the lock.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes receivers after a change of the shelf, if any wait.
    fn ring(&self) {
        // SeqCst, with that of the receivers: either they see the change, or this sees that they wait.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.changed.ring();
        }
    }

    fn put<T: Timer>(&self, message: Message, timer: &T) -> Result<MessageId, SendError> {
        let (size, limit) = (message.body.len(), self.limits.body);
        if size > limit {
            return Err(SendError { message, why: NotSent::TooLarge { size, limit } });
        }
        let mut shelf = self.shelf();
        // Looked at under the lock, under which it is closed: what is taken in after that would never come out.
        if self.closed.load(Ordering::Relaxed) {
            drop(shelf);
            return Err(SendError { message, why: NotSent::Closed });
        }
        let capacity = self.limits.capacity;
        if shelf.len() >= capacity {
            drop(shelf);
            return Err(SendError { message, why: NotSent::Full { capacity } });
        }
        let id = shelf.put(message, timer.now());
        drop(shelf);
        self.ring();
        Ok(id)
    }

    fn settle<T: Timer>(&self, receipt: Receipt, how: Settlement, timer: &T) -> Result<(), SettleError> {
        let settled = self.shelf().settle(receipt, how, timer.now());
        match settled {
            Err(Expired) => Err(SettleError::ReceiptExpired),
            Ok(rest) => {
                drop(rest);
                if matches!(how, Settlement::Nack(_) | Settlement::Release) {
                    self.ring();
                }
                Ok(())
            }
        }
    }
}

impl<T: Timer> MemoryMailbox<T> {
    /// Where replies to it are sent.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Takes out what nobody has received: what to hand back, or to keep elsewhere, when it is closed and everything
    /// ends.
    #[must_use]
    pub fn take_unreceived(&self) -> Vec<Message> {
        let taken = self.desk.shelf().take_unreceived(self.timer().now());
        taken.into_iter().map(Unreceived::into_message).collect()
    }

    fn timer(&self) -> &T {
        &self.office.inner.timer
    }
}

impl<T> Mailbox for MemoryMailbox<T>
where
    T: Timer + Send + Sync,
    T::Sleep: Send,
{
    fn send(&self, message: Message) -> Boxed<'_, Result<MessageId, SendError>> {
        at_once(self.desk.put(message, self.timer()))
    }

    fn receive(&self, pull: Pull) -> Boxed<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(Receiving::new(&self.desk, self.timer(), pull))
    }

    fn settle(&self, receipt: Receipt, how: Settlement) -> Boxed<'_, Result<(), SettleError>> {
        at_once(self.desk.settle(receipt, how, self.timer()))
    }

    fn checkpoint(&self, receipt: Receipt, progress: Bytes) -> Boxed<'_, Result<(), SettleError>> {
        let (size, limit) = (progress.len(), self.desk.limits.body);
        if size > limit {
            return at_once(Err(SettleError::TooLarge { size, limit }));
        }
        let mut progress = Some(progress);
        let saved = self.desk.shelf().save(receipt, &mut progress, self.timer().now());
        at_once(saved.map_err(|Expired| SettleError::ReceiptExpired))
    }

    fn reply(&self, address: Address, body: Bytes) -> Boxed<'_, Result<(), ReplyError>> {
        let Some(desk) = self.office.find(&address) else {
            return at_once(Err(ReplyError::Unknown(address)));
        };
        let put = desk.put(Message::new(body), self.timer());
        at_once(put.map(drop).map_err(ReplyError::Refused))
    }

    fn purge(&self) -> Boxed<'_, Result<u64, BackendError>> {
        let purged = self.desk.shelf().clear();
        at_once(Ok(purged.len() as u64))
    }

    fn counts(&self) -> Boxed<'_, Result<Counts, BackendError>> {
        let mut shelf = self.desk.shelf();
        shelf.catch_up(self.timer().now());
        let counts = shelf.counts();
        drop(shelf);
        at_once(Ok(counts))
    }

    fn close(&self) -> bool {
        let shelf = self.desk.shelf();
        let was_closed = self.desk.closed.swap(true, Ordering::Release);
        drop(shelf);
        self.desk.changed.ring();
        !was_closed
    }

    fn is_closed(&self) -> bool {
        self.desk.closed.load(Ordering::Acquire)
    }
}

/// What is done when it is called, not when it is awaited, as it is with everything here that need not wait.
fn at_once<'a, V: Send + 'a>(value: V) -> Boxed<'a, V> {
    Box::pin(ready(value))
}

impl<T> Clone for MemoryMailbox<T> {
    fn clone(&self) -> Self {
        Self { office: self.office.clone(), address: self.address.clone(), desk: self.desk.clone() }
    }
}

impl<T> fmt::Debug for MemoryMailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryMailbox")
            .field("address", &self.address)
            .field("counts", &self.desk.shelf().counts())
            .finish_non_exhaustive()
    }
}
