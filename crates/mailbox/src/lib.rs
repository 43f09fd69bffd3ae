//! Mailboxes that lose no message, and workers that stop by contract.
//!
//! A message is delivered until somebody acknowledges it. Whoever receives it has it for a while, out of sight of
//! others; if he does not settle it by then, it is delivered again. So what a worker had in hand when it was lost is
//! not.
//!
//! ```
//! use std::sync::Arc;
//! use ebbtide_lifecycle::{Runnable, time::ThreadTimer, wait::block_on};
//! use ebbtide_mailbox::{Mailbox, Message, Office, Span, worker::{Retry, Worker}};
//!
//! let timer = ThreadTimer::start()?;
//! let office = Office::new(timer.clone());
//! let (orders, dead) = (Arc::new(office.mailbox("orders")), Arc::new(office.mailbox("dead")));
//! let worker = Worker::builder(orders.clone(), timer, |job| async move {
//!     println!("{:?}, attempt {}", job.body(), job.delivery().delivery_count);
//!     Ok(Some("done".into())) // the reply, for those who want one
//! })
//! .retry(Retry::default().attempts(3))
//! .dead_letters(dead)
//! .max_iterations(1)
//! .build();
//!
//! block_on(orders.send(Message::new("two apples").delayed(Span::ZERO)))?;
//! worker.run()?; // until it is told to stop, or here, has received once
//! assert_eq!(worker.balance().to_string(), "accepted 1, completed 1");
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! # The life of a message
//! | a message that is … | becomes | when |
//! |---|---|---|
//! | sent | pending, or delayed | it is put in |
//! | delayed | pending | its time has come |
//! | pending | invisible | it is received |
//! | invisible | gone | it is acknowledged |
//! | invisible | pending, in front, the delivery not counted | it is released |
//! | invisible | pending, or delayed | it failed |
//! | invisible | pending | its time out of sight is over |
//!
//! Delivery is at least once: a worker that is lost between its work and the acknowledgement has done it, and it is
//! done again.
//!
//! # Reading order
//! 1. [`Mailbox`]: what every mailbox does. [`Message`], [`Delivery`], [`Settlement`], [`Pull`], [`Span`].
//! 2. [`Office`] and [`MemoryMailbox`]: mailboxes in memory. `memory::shelf` has the messages, `memory::receive` the
//!    wait.
//! 3. [`worker`]: `work` is the loop, `attempt` one message, `lease` what keeps it out of sight.
//! 4. `json`, behind the feature of that name: bodies with types of one's own.
//! 5. `conformance`, behind the feature of that name: what an implementor calls from his own tests.

#![forbid(unsafe_code)]

#[cfg(feature = "conformance")]
pub mod conformance;
mod envelope;
mod error;
#[cfg(feature = "json")]
pub mod json;
mod mailbox;
mod memory;
mod message;
mod pull;
#[cfg(feature = "redis")]
mod redis;
mod span;
pub mod worker;

#[doc(no_inline)]
pub use bytes::Bytes;
pub use ebbtide_lifecycle as lifecycle;

#[cfg(feature = "redis")]
pub use self::redis::RedisMailbox;
pub use self::{
    envelope::{DeadLetter, NotAnEnvelope, Reply},
    error::{BackendError, NotSent, ReceiveError, ReplyError, SendError, SettleError},
    mailbox::{Boxed, Mailbox},
    memory::{Limits, MemoryMailbox, Office},
    message::{Address, Counts, Delivery, Message, MessageId, Receipt, Settlement},
    pull::Pull,
    span::{OutOfRange, Span},
};
