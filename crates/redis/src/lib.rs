//! One reconnecting, pipelined link to Redis on any executor, that stops by contract.
//!
//! A [`Link`] is made of three things that its user brings: a closure that connects, a closure that spawns, and a
//! timer. So it runs on ebbtide's own loop as well as on tokio or smol, and knows none of them. (The `redis` crate
//! was the first choice. Its async half does not compile without tokio's runtime or smol's.)
//!
//! ```no_run
//! use std::net::{Ipv4Addr, SocketAddr, TcpStream};
//! use ebbtide_reactor::{Async, EventLoop};
//! use ebbtide_redis::{Command, Link, Settings, Value};
//!
//! let events = EventLoop::new();
//! events.start()?;
//! let (spawner, server) = (events.handle(), SocketAddr::from((Ipv4Addr::LOCALHOST, 6379)));
//! let link = Link::new(
//!     server.to_string(),
//!     Settings::default(),
//!     events.handle(),
//!     move || Async::<TcpStream>::connect(server),
//!     move |driver| drop(spawner.spawn(driver)),
//! );
//! # ebbtide_lifecycle::wait::block_on(async {
//! link.ask(Command::new("SET").arg("colour").arg("blue")).await?;
//! assert_eq!(link.ask(Command::new("GET").arg("colour")).await?, Value::Bytes("blue".into()));
//! # Ok::<_, ebbtide_redis::Error>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What happens when …
//!
//! | the server … | a command that was | |
//! |---|---|---|
//! | is not there | not sent | waits up to [`patience`](Settings::patience), then [`Why::Unreachable`] |
//! | is gone | sent | [`Why::Lost`]: it may have been done. Nothing is sent twice by itself |
//! | is silent | sent | [`Why::Silent`] after [`timeout`](Settings::timeout), and the connection is given up |
//! | says no | sent | [`Why::Server`]; if it says `READONLY`, the connection is given up as well |
//!
//! # Reading order
//! 1. [`Link`] and [`Settings`]; [`Command`], [`Batch`], [`Value`] and [`Error`]; [`Script`].
//! 2. `lane`: what waits to be sent and answered on one connection. `driver`: what runs on the executor. `wire`: bytes;
//!    `decode`: answers out of them.
//! 3. [`Answer`]: how one gets to whoever asked, and what becomes of it if he has gone.

#![forbid(unsafe_code)]

mod answer;
mod backoff;
mod batch;
mod command;
mod core;
mod decode;
mod driver;
mod error;
mod lane;
mod link;
mod script;
mod settings;
mod sha1;
#[cfg(feature = "testing")]
pub mod testing;
mod timer;
mod value;
mod wire;

pub use ebbtide_lifecycle as lifecycle;

pub use self::{
    answer::{Answer, Parked, Unclaimed},
    batch::Batch,
    command::Command,
    core::Driver,
    error::{Error, Why},
    link::Link,
    script::{Call, Joint, Part, Script},
    settings::Settings,
    timer::{LinkTimer, Nap},
    value::{ServerError, Value},
};
