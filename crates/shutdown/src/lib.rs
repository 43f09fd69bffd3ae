//! A shutdown coordinator: it stops a program in order, within one deadline, and says who is stuck.
//!
//! ```no_run
//! use std::error::Error;
//! use ebbtide_shutdown::{Coordinator, Priority, Report};
//!
//! fn main() -> Result<Report, Box<dyn Error>> {
//!     let coordinator = Coordinator::install()?; // SIGTERM and SIGINT
//!     coordinator.on_stop("flush the log", Priority::RESOURCES, |_deadline, _reason| Ok(()))?.keep();
//!     coordinator.ready();
//!     // … `coordinator.intake().admit()` for each request, on any thread or executor …
//!     Ok(coordinator.run()) // until a signal, and then until everything has stopped; its exit code tells how
//! }
//! ```
//!
//! # Should I use this crate?
//! Take it for a service on tokio, smol, plain threads or a loop of ours that has more than one thing to stop, has to
//! do so in order and in time, and whose operators want to know what it was that did not. It needs no runtime: it
//! waits on a thread of its own, because it cannot run on what it stops. For one `TaskTracker` and one
//! `CancellationToken` it is too much.
//!
//! # What a stop is
//! See [`Stage`] for the picture.
//!
//! 1. The [trigger](Coordinator::trigger) fires, with a [reason](Reason): a signal, a call, a failed component. All
//!    [tokens](Coordinator::token) see it. Readiness goes off. Then the [callbacks](Coordinator::on_trigger) are
//!    called.
//! 2. It goes on serving for a [delay](Builder::readiness_delay), if there is one: not ready, so that no load
//!    balancer sends more.
//! 3. The [intake](Coordinator::intake) closes, [`closing`](Coordinator::closing) fires, and what was admitted comes
//!    to its end, or to its deadline.
//! 4. The components are stopped by [priority](Priority), high first, and side by side within one: each on a thread
//!    of its own, so that one that blocks, panics or never returns keeps no other from stopping.
//! 5. The [report](Report) says for each how it ended, what became of its work, and who is still there.
//!
//! Everything from step 3 on shares one [deadline](DrainTimeout). What hangs is left behind while there is time for
//! the others, and named. A second signal ends the process with the report so far; a third ends it in the handler:
//! see [`Signals`].
//!
//! # Starting is work
//! Admit it, and a stop that comes while the program starts waits for it before it stops what was started; once the
//! stop has begun it is refused:
//!
//! ```
//! # use ebbtide_shutdown::{Coordinator, lifecycle::{Outcome, blame::Origin}};
//! # let coordinator = Coordinator::builder().start()?;
//! let start = coordinator.intake().admit_as(&Origin::here().named("start"))?;
//! // … connect, spawn, register …
//! start.settle(Outcome::Completed);
//! coordinator.ready();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Tests
//! [`Builder::clock`] has the whole stop take place in virtual time, [`Feed`] sends signals, [`Builder::exit`] takes
//! the place of the end of the process, and [`Builder::observer`] sees every step in its order.
//!
//! # Features
//! `http`: health over HTTP. `systemd`: tells systemd. `serde`: a report can be serialized. `tracing`: events go
//! there, and not to standard error.
//!
//! # Reading order
//! 1. [`Coordinator`] and [`Builder`]: what users hold. `sequence`: the stop, step by step. `budget`: who gets how much
//!    time.
//! 2. `desk`: who is registered, and how far each has come. `subject`, `errand`, `witness`: how foreign code is
//!    called, and left behind.
//! 3. [`Report`] and [`Event`]: what is told. [`Signals`]: where the word comes from.
//! 4. [`group`]: loops that run and stop as one. [`health`]: whether the program lives, and is ready.

#![deny(unsafe_code)]

mod budget;
mod builder;
mod coordinator;
mod desk;
mod drain_timeout;
mod errand;
mod event;
pub mod group;
pub mod health;
mod pace;
mod print;
mod priority;
mod registration;
mod report;
mod sequence;
mod shared;
mod signals;
mod stage;
mod stall;
mod subject;
#[cfg(all(unix, feature = "systemd"))]
pub mod systemd;
mod verdict;
mod witness;

#[doc(no_inline)]
pub use ebbtide_lifecycle::{
    self as lifecycle, Component, Reason, RunError, Runnable, Stopped, Stopping, Token, Trigger,
};

pub use self::{
    builder::{Builder, StartError},
    coordinator::Coordinator,
    drain_timeout::DrainTimeout,
    event::{Event, Progress},
    priority::Priority,
    registration::{CallbackId, Duplicate, Registration},
    report::{CallbackReport, ComponentReport, Ending, IntakeReport, PhaseReport, Report},
    shared::Ended,
    signals::{Feed, SignalError, Signals},
    stage::Stage,
    stall::OnStall,
    subject::StopError,
    verdict::Verdict,
};

/// The example of the README is one of the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
