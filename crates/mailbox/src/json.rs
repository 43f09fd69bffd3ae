//! Bodies in JSON, with types of one's own.
//!
//! ```
//! use std::sync::Arc;
//! use ebbtide_lifecycle::{Runnable, time::ThreadTimer, wait::block_on};
//! use ebbtide_mailbox::{Mailbox, Message, Office, json, worker::Worker};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order {
//!     item: String,
//!     count: u32,
//! }
//!
//! let timer = ThreadTimer::start()?;
//! let office = Office::new(timer.clone());
//! let (orders, dead) = (Arc::new(office.mailbox("orders")), Arc::new(office.mailbox("dead")));
//! let handler = json::handler(|order: Order, _job| async move {
//!     println!("{} of {}", order.count, order.item);
//!     Ok(()) // or a reply, which is written in JSON as well
//! });
//! let worker =
//!     Worker::builder(orders.clone(), timer, handler).dead_letters(dead.clone()).max_iterations(1).build();
//!
//! block_on(async {
//!     orders.send(json::message(&Order { item: "apples".into(), count: 2 })?).await?;
//!     orders.send(Message::new("two apples")).await?; // no JSON: a dead letter at once
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//! })?;
//! worker.run()?;
//! assert_eq!(worker.balance().to_string(), "accepted 2, completed 1, failed 1");
//! assert_eq!(block_on(dead.counts())?.pending, 1);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```

use std::{any::type_name, error::Error, fmt, future::Future};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    mailbox::Boxed,
    message::Message,
    worker::{GiveUp, HandlerResult, Job},
};

/// A message whose body is `value`, to be sent like any other.
///
/// # Errors
/// If the type has no form in JSON: a map whose keys are no strings, for example.
pub fn message<V: Serialize + ?Sized>(value: &V) -> Result<Message, NotJson> {
    write(value).map(Message::new)
}

/// What a body says.
///
/// ```
/// use ebbtide_mailbox::{Reply, json};
///
/// let Reply::Done(body) = Reply::decode(Reply::Done("[1,2]".into()).encode())? else { panic!("it was done") };
/// assert_eq!(json::read::<Vec<u32>>(&body)?, [1, 2]);
/// assert_eq!(json::read::<u32>(&body).unwrap_err().to_string(),
///     "not a u32 in JSON: invalid type: sequence, expected u32 at line 1 column 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If it is something else, saying what and where.
pub fn read<V: DeserializeOwned>(body: &[u8]) -> Result<V, NotJson> {
    serde_json::from_slice(body).map_err(NotJson::of::<V>)
}

/// A handler for a [`Worker`](crate::worker::Worker) that is given what the body says, and whose output is the reply in
/// JSON, for those who want one.
///
/// A body that says something else does not get better when it is read again: the message is given up on at once, and
/// is a dead letter with the reason. So is one whose reply cannot be written.
pub fn handler<V, R, F>(
    handle: impl Fn(V, Job) -> F + Send + Sync + 'static,
) -> impl Fn(Job) -> Boxed<'static, HandlerResult> + Send + Sync + 'static
where
    V: DeserializeOwned,
    R: Serialize,
    F: Future<Output = Result<R, Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    move |job| {
        let wants_reply = job.delivery().reply_to.is_some();
        let handling = read(job.body()).map(|value| handle(value, job));
        Box::pin(async move {
            let reply = handling.map_err(GiveUp::because)?.await?;
            if !wants_reply {
                return Ok(None);
            }
            Ok(Some(write(&reply).map_err(GiveUp::because)?))
        })
    }
}

fn write<V: Serialize + ?Sized>(value: &V) -> Result<Bytes, NotJson> {
    serde_json::to_vec(value).map(Bytes::from).map_err(NotJson::of::<V>)
}

/// A body is not what is wanted, or a value cannot be a body.
#[derive(Debug)]
pub struct NotJson {
    wanted: &'static str,
    error: serde_json::Error,
}

impl NotJson {
    fn of<V: ?Sized>(error: serde_json::Error) -> Self {
        Self { wanted: type_name::<V>(), error }
    }
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a {} in JSON: {}", self.wanted, self.error)
    }
}

impl Error for NotJson {}
