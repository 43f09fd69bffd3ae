//! An async runtime that knows how to stop.
//!
//! A program with a loop, a pool, late runners and a coordinator, which stops in order when `main` ends, fails or
//! panics, and at SIGTERM, and says with its exit code how that went:
//!
//! ```
//! use std::time::Duration;
//! use ebbtide::{Exit, sleep};
//!
//! fn main() -> Exit {
//!     ebbtide::run(async |app| {
//!         let sum = app.pool().offload(|| (1..=1000_u64).sum::<u64>()).await?;
//!         app.spawn(async move {
//!             sleep(Duration::from_millis(10)).await;
//!             println!("{sum}"); // the stop waits for it
//!         })?
//!         .detach();
//!         Ok(())
//!     })
//! }
//! ```
//!
//! The [guide] goes from a future that is waited for to a service that drains.
//!
//! # Where things are
//! One path to each item:
//!
//! 1. Each crate is the module of its name, behind the feature of that name: `ebbtide::dag::Graph` is
//!    `ebbtide_dag::Graph`. [`lifecycle`], which all others stand on, is always there. What a crate shows of another
//!    one is hidden here: a `Deadline` is in `lifecycle::time`, whoever takes it.
//! 2. At the root is what a program begins with ([`run()`], [`App`], [`Exit`], [`Error`], [`block_on`]), and what
//!    stands in the middle of async code ([`spawn`], [`spawn_named`], [`sleep`], [`sleep_until`], [`yield_now`]). It
//!    is nowhere else.
//! 3. [`app`] has what is seldom written out: the builder of an `App`, its listeners, and its errors.
//!
//! # Features
//!
//! | feature | what it brings |
//! |---|---|
//! | `reactor`, `offload`, `timeout`, `shutdown` | a module each, on by default; `App` needs the first and the last |
//! | `dag`, `mailbox`, `redis` | a module each; with the last two, mailboxes on Redis |
//! | `json` | graphs from data |
//! | `page` | runs as pages of HTML, and plans as SVG |
//! | `http`, `systemd`, `serde` | health over HTTP; systemd is told; reports for machines |
//! | `resolve` | hosts by name |
//! | `full` | all of the above |
//! | `hyper`, `tokio-io` | a loop for hyper; tokio's traits for I/O |
//! | `tokio`, `async-io` | timers of other runtimes for `timeout` |
//! | `tracing` | events go there, and not to standard error |
//! | `conformance`, `testing` | for tests of implementors; for tests: seams of loop and pool, a Redis server |
//!
//! # Should I use this crate?
//! For a program on ebbtide's own loop, yes. To take one part into a program on tokio or smol, take that crate alone,
//! or this one with `default-features = false`: it costs nothing but what is switched on.
//!
//! # Reading order
//! 1. [`run()`], [`App`] and [`app::Builder`]: what users hold, and what is wired to what.
//! 2. `member`: a future that runs for as long as the program, as a component; `main` is one. `admitted`: a task that
//!    the drain waits for. `listener`: where connections come in. `resources`: what is dropped last.
//! 3. [`Exit`]: what becomes of it all.

#![forbid(unsafe_code)]

#[cfg(all(feature = "reactor", feature = "shutdown"))]
mod admitted;
#[cfg(all(feature = "reactor", feature = "shutdown"))]
mod builder;
mod crates;
#[cfg(all(feature = "reactor", feature = "shutdown"))]
mod exit;
#[cfg(all(feature = "reactor", feature = "shutdown"))]
mod handle;
#[cfg(all(feature = "reactor", feature = "shutdown"))]
mod listener;
#[cfg(all(feature = "reactor", feature = "shutdown"))]
mod loops;
#[cfg(all(feature = "reactor", feature = "shutdown"))]
mod member;
#[cfg(all(feature = "reactor", feature = "shutdown"))]
mod resources;
#[cfg(feature = "reactor")]
mod run;

pub mod guide;

#[cfg(feature = "reactor")]
pub use ebbtide_reactor::{sleep, sleep_until, spawn, spawn_named, yield_now};

#[cfg(feature = "dag")]
pub use self::crates::dag;
#[cfg(feature = "mailbox")]
pub use self::crates::mailbox;
#[cfg(feature = "offload")]
pub use self::crates::offload;
#[cfg(feature = "reactor")]
pub use self::crates::reactor;
#[cfg(feature = "redis")]
pub use self::crates::redis;
#[cfg(feature = "shutdown")]
pub use self::crates::shutdown;
#[cfg(feature = "timeout")]
pub use self::crates::timeout;
#[cfg(feature = "reactor")]
pub use self::run::block_on;
#[cfg(all(feature = "reactor", feature = "shutdown"))]
pub use self::{exit::Exit, handle::App, run::run};
pub use ebbtide_lifecycle as lifecycle;

/// What `main` may fail with: any error will do.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How an [`App`] is built, and what can go wrong with it.
#[cfg(all(feature = "reactor", feature = "shutdown"))]
pub mod app {
    pub use crate::{
        builder::{Builder, StartError},
        listener::{Connection, Listener},
        loops::LoopNotStarted,
        member::NotSpawned,
    };
}

/// The examples of the two READMEs are among the tests.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    mod of_the_crate {}

    #[doc = include_str!("../../../README.md")]
    mod of_the_project {}
}
