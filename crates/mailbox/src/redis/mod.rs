//! Mailboxes on a Redis server, shared by all who know their name.
//!
//! Every act is one script, so one command and one step: nothing is seen half done. Times are the server's, and no
//! process has to run in order that messages come back: whoever receives moves those whose time has come, behind
//! what was sent meanwhile.

mod bell;
mod keys;
mod receive;
mod scripts;

use std::{
    fmt,
    future::ready,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use ebbtide_lifecycle::{Reason, Trigger, blame::Origin};
use ebbtide_redis::{Call, Joint, Link, Part, Unclaimed, Value};

use self::{
    bell::Bells,
    keys::{Keys, horizon, micros, numbers, with_receipt},
    receive::{nonsense, pack, passes, releases},
    scripts::SCRIPTS,
};
use crate::{
    error::{BackendError, NotSent, ReceiveError, ReplyError, SendError, SettleError},
    mailbox::{Boxed, Mailbox},
    memory::Limits,
    message::{Address, Counts, Delivery, Message, MessageId, Receipt, Settlement},
    pull::Pull,
    span::Span,
};

/// A mailbox on a Redis server. A clone is another handle to the same; [closing](Mailbox::close) closes it for all
/// clones of this one, and for nobody else: other processes go on.
///
/// What a delivery costs, in commands: 1 to send, 1 to receive a whole batch, 1 to settle; and batches that are
/// received in the same turn of a loop go together, as those do that are acknowledged in one. Whoever waits again and
/// again at an empty mailbox makes 1 for each wait: in turn one that looks, and one that blocks, on a connection of
/// its own, and goes on to do so between two waits, for a minute. Only if a message comes back by itself meanwhile,
/// or soon after, does he look again.
///
/// Each who waits needs a place among the `waits` of the link's [`Settings`](ebbtide_redis::Settings), 64 unless told
/// otherwise: with more of them on one link, some get an error instead of their wait, and have to come again.
/// Whoever dies in the moment in which he was to look takes that with him: others who wait look by themselves within
/// about a minute.
///
/// The server has to be Redis 6.2 or later, or one that does the same. All keys of the mailbox `orders` begin with
/// `{orders}:`, so that a cluster keeps them together; the [`Link`] goes to the server that has them. A message
/// survives whatever the server survives: `appendonly yes` with `appendfsync always` for those that must not be lost.
///
/// ```no_run
/// use std::{net::{SocketAddr, TcpStream}, sync::Arc};
/// use ebbtide_lifecycle::{Runnable, wait::block_on};
/// use ebbtide_mailbox::{Mailbox, Message, RedisMailbox, worker::Worker};
/// use ebbtide_reactor::{Async, EventLoop};
/// use ebbtide_redis::{Link, Settings};
///
/// let events = EventLoop::new();
/// events.start()?;
/// let (spawner, server) = (events.handle(), SocketAddr::from(([127, 0, 0, 1], 6379)));
/// let link = Link::new(
///     "the shop's Redis",
///     Settings::default(),
///     events.handle(),
///     move || Async::<TcpStream>::connect(server),
///     move |driver| drop(spawner.spawn(driver)),
/// );
/// let orders = Arc::new(block_on(RedisMailbox::open(&link, "orders"))?);
/// block_on(orders.send(Message::new("two apples")))?;
/// let worker = Worker::builder(orders, link.timer().clone(), |job| async move {
///     println!("{:?}, attempt {}", job.body(), job.delivery().delivery_count);
///     Ok(None) // no reply
/// })
/// .build();
/// worker.run()?; // until it is told to stop
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
pub struct RedisMailbox {
    desk: Arc<Desk>,
}

/// What the handles of a mailbox share.
struct Desk {
    /// Dropped before the link is, whose connection ends them.
    bells: Bells,
    link: Link,
    address: Address,
    keys: Arc<Keys>,
    /// See [`Keys::acks`].
    acks: Joint,
    /// See [`Keys::receives`]: that of the last visibility.
    receives: Mutex<Option<(Span, Joint)>>,
    limits: Limits,
    /// The limits, as the server has them.
    limits_text: String,
    /// What its commands are called while they are in flight.
    origin: Origin,
    /// Fired when it is closed.
    closing: Trigger,
    /// See [`releases`].
    release: Unclaimed,
    /// See [`passes`].
    pass: Unclaimed,
}

impl RedisMailbox {
    /// Opens the mailbox of that name; made if there is none, with the default [`Limits`].
    ///
    /// # Errors
    /// As [`open_with`](RedisMailbox::open_with).
    #[track_caller]
    pub fn open(link: &Link, name: impl Into<Address>) -> Boxed<'static, Result<Self, BackendError>> {
        Self::open_with(link, name, Limits::default())
    }

    /// The same; if it has to be made, then with these limits. One that is there keeps those that it has.
    ///
    /// # Errors
    /// If the server is not there, or the keys of the mailbox hold something else; and if the name is empty or begins
    /// with a brace, because a cluster could not keep its keys together.
    #[track_caller]
    pub fn open_with(
        link: &Link,
        name: impl Into<Address>,
        limits: Limits,
    ) -> Boxed<'static, Result<Self, BackendError>> {
        Box::pin(Self::open_at(link.clone(), name.into(), limits, Origin::here()))
    }

    async fn open_at(
        link: Link,
        address: Address,
        wanted: Limits,
        origin: Origin,
    ) -> Result<Self, BackendError> {
        let origin = origin.named(format!("mailbox {address}"));
        let keys = Arc::new(Keys::new(&address)?);
        let text = format!("{}:{}", wanted.capacity, wanted.body);
        let held = match link.run(keys.call(&SCRIPTS.open).arg(&text).known_as(&origin)).await {
            Ok(held) => held.bytes().unwrap_or_default(),
            Err(error) => return Err(keys.explain(&link, error).await),
        };
        let limits_text = String::from_utf8_lossy(&held).into_owned();
        let numbers = limits_text.split_once(':').map(|(capacity, body)| (capacity.parse(), body.parse()));
        let Some((Ok(capacity), Ok(body))) = numbers else { return Err(nonsense("opening")) };
        let (release, pass) = (releases(keys.clone()), passes(keys.clone()));
        let limits = Limits { capacity, body };
        let closing = Trigger::new();
        let bells = Bells::default();
        let acks = keys.acks();
        let desk = Desk {
            bells,
            link,
            address,
            keys,
            acks,
            receives: Mutex::default(),
            limits,
            limits_text,
            origin,
            closing,
            release,
            pass,
        };
        Ok(Self { desk: Arc::new(desk) })
    }

    /// Where replies to it are sent.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.desk.address
    }

    /// What it takes.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.desk.limits
    }

    /// Closes it, and takes it off the server with everything in it: for mailboxes that are made for one purpose, such
    /// as a few replies. Replies to it find nobody there. It is made anew when it is opened again, or when somebody who
    /// has it open sends to it.
    ///
    /// # Errors
    /// If the server is not there.
    pub fn remove(self) -> Boxed<'static, Result<(), BackendError>> {
        self.close();
        Box::pin(async move {
            let answer = self.desk.link.ask(self.desk.keys.unlink().known_as(&self.desk.origin)).await;
            answer.map(drop).map_err(BackendError::from)
        })
    }
}

impl Desk {
    async fn run(&self, keys: &Keys, call: Call) -> Result<Value, BackendError> {
        match self.link.run(call.known_as(&self.origin)).await {
            Ok(value) => Ok(value),
            Err(error) => Err(keys.explain(&self.link, error).await),
        }
    }

    async fn number(&self, what: &str, call: Call) -> Result<u64, BackendError> {
        let number = self.run(&self.keys, call).await?.int();
        number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| nonsense(what))
    }

    async fn send(&self, message: &Message) -> Result<MessageId, NotSent> {
        if self.closing.is_triggered() {
            return Err(NotSent::Closed);
        }
        let (size, limit) = (message.body.len(), self.limits.body);
        if size > limit {
            return Err(NotSent::TooLarge { size, limit });
        }
        let call = self.keys.call(&SCRIPTS.send).int(self.limits.capacity as u64);
        match self.put(&self.keys, call, message).await? {
            Put::At(id) => Ok(id),
            Put::Refused(why) => Err(why),
            Put::Nowhere => Err(NotSent::Backend(nonsense("sending"))),
        }
    }

    async fn put(&self, keys: &Keys, call: Call, message: &Message) -> Result<Put, NotSent> {
        let call = call.int(micros(message.delay)).int(horizon());
        let call = call.arg(pack(message.reply_to.as_ref())).arg(&message.body);
        let answer = self.run(keys, call).await.map_err(NotSent::Backend)?;
        if let Some(id) = answer.int() {
            return Ok(Put::At(MessageId(id.cast_unsigned())));
        }
        let parts = answer.array().unwrap_or_default();
        let [Value::Bytes(why), Value::Int(limit)] = &parts[..] else {
            return Err(NotSent::Backend(nonsense("sending")));
        };
        let limit = usize::try_from(*limit).unwrap_or_default();
        match &why[..] {
            b"full" => Ok(Put::Refused(NotSent::Full { capacity: limit })),
            b"large" => Ok(Put::Refused(NotSent::TooLarge { size: message.body.len(), limit })),
            _ => Ok(Put::Nowhere),
        }
    }

    async fn reply(&self, address: Address, body: Bytes) -> Result<(), ReplyError> {
        let message = Message::new(body);
        let Ok(keys) = Keys::new(&address) else { return Err(ReplyError::Unknown(address)) };
        // By the limits of that mailbox, which only the server knows.
        let why = match self.put(&keys, keys.call(&SCRIPTS.send).arg(""), &message).await {
            Ok(Put::At(_)) => return Ok(()),
            Ok(Put::Nowhere) => return Err(ReplyError::Unknown(address)),
            Ok(Put::Refused(why)) | Err(why) => why,
        };
        Err(ReplyError::Refused(SendError { message, why }))
    }

    /// Those that are acknowledged in the same turn of the loop go to the server as one command.
    async fn ack(&self, receipt: Receipt) -> Result<(), SettleError> {
        self.keys.own(receipt)?;
        let part = numbers(receipt).into_iter().fold(self.acks.part().known_as(&self.origin), Part::int);
        match self.link.run_part(part).await {
            Ok(value) => is_settled(&value),
            Err(error) => Err(SettleError::Backend(self.keys.explain(&self.link, error).await)),
        }
    }

    async fn settle(&self, receipt: Receipt, call: Call) -> Result<(), SettleError> {
        self.keys.own(receipt)?;
        is_settled(&self.run(&self.keys, call).await.map_err(SettleError::Backend)?)
    }

    async fn counts(&self) -> Result<Counts, BackendError> {
        let counts = self.run(&self.keys, self.keys.call(&SCRIPTS.counts)).await?.array().unwrap_or_default();
        let counts: Vec<_> = counts.iter().filter_map(|count| u64::try_from(count.int()?).ok()).collect();
        let [pending, delayed, invisible] = counts[..] else { return Err(nonsense("counting")) };
        Ok(Counts::new(pending, delayed, invisible))
    }
}

/// What the server says of one delivery, alone or in an array of one.
fn is_settled(value: &Value) -> Result<(), SettleError> {
    match value {
        Value::Int(0) => Err(SettleError::ReceiptExpired),
        Value::Int(_) => Ok(()),
        Value::Array(values) if values.len() == 1 => is_settled(&values[0]),
        _ => Err(SettleError::Backend(nonsense("settling"))),
    }
}

/// What became of a message.
enum Put {
    At(MessageId),
    Refused(NotSent),
    /// There is no such mailbox.
    Nowhere,
}

impl Mailbox for RedisMailbox {
    fn send(&self, message: Message) -> Boxed<'_, Result<MessageId, SendError>> {
        Box::pin(async move { self.desk.send(&message).await.map_err(|why| SendError { message, why }) })
    }

    fn receive(&self, pull: Pull) -> Boxed<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(self.desk.receive(pull))
    }

    fn settle(&self, receipt: Receipt, how: Settlement) -> Boxed<'_, Result<(), SettleError>> {
        match how {
            Settlement::Ack => Box::pin(self.desk.ack(receipt)),
            how => Box::pin(self.desk.settle(receipt, self.desk.keys.settle([receipt], how))),
        }
    }

    fn checkpoint(&self, receipt: Receipt, progress: Bytes) -> Boxed<'_, Result<(), SettleError>> {
        let (size, limit) = (progress.len(), self.desk.limits.body);
        if size > limit {
            return Box::pin(ready(Err(SettleError::TooLarge { size, limit })));
        }
        let call = with_receipt(self.desk.keys.call(&SCRIPTS.checkpoint), receipt);
        Box::pin(self.desk.settle(receipt, call.arg(progress)))
    }

    fn reply(&self, address: Address, body: Bytes) -> Boxed<'_, Result<(), ReplyError>> {
        Box::pin(self.desk.reply(address, body))
    }

    fn purge(&self) -> Boxed<'_, Result<u64, BackendError>> {
        Box::pin(self.desk.number("purging", self.desk.keys.call(&SCRIPTS.purge)))
    }

    fn counts(&self) -> Boxed<'_, Result<Counts, BackendError>> {
        Box::pin(self.desk.counts())
    }

    fn close(&self) -> bool {
        let was_open = self.desk.closing.fire(Reason::requested("the mailbox is closed"));
        self.desk.bells.close();
        was_open
    }

    fn is_closed(&self) -> bool {
        self.desk.closing.is_triggered()
    }
}

impl fmt::Debug for RedisMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisMailbox")
            .field("address", &self.desk.address)
            .field("link", &self.desk.link)
            .finish_non_exhaustive()
    }
}
