//! First wins: races and timeouts on any executor.
//!
//! A timeout is not a cancellation, unless that is asked for. [`timeout`] and [`timeout_at`] drop the future
//! that is too late. Those of [`Runners`] let it go on: as a late runner, which is counted, named and waited
//! for before a loop stops.
//!
//! ```
//! use std::time::Duration;
//! use ebbtide_lifecycle::{Component, time::VirtualClock};
//! use ebbtide_reactor::{Runtime, sleep};
//! use ebbtide_timeout::{Elapsed, Runners};
//!
//! let mut runtime = Runtime::builder().clock(&VirtualClock::new()).runtime(); // takes no time
//! let runners = Runners::new(&runtime.handle(), runtime.handle())?;
//! runtime.block_on(async {
//!     let slow = async {
//!         sleep(Duration::from_secs(5)).await;
//!         "too late"
//!     };
//!     assert_eq!(runners.timeout(Duration::from_secs(1), slow).named("slow").await, Err(Elapsed));
//!     assert_eq!(runners.in_flight(), 1);
//!     runners.wait_idle().await;
//! });
//! assert_eq!(runners.balance().late, 1);
//! assert_eq!(runners.lateness().longest, Duration::from_secs(4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Whose time
//! Everything takes a [`Timer`]: a loop's handle or `Local` of `ebbtide-reactor`, `TokioTimer` and
//! `AsyncIoTimer` behind the features `tokio` and `async-io`, `ThreadTimer` of [`lifecycle`] for programs
//! without a runtime, and `VirtualClock` for tests.
//!
//! # Who wins
//! The future is polled first, then the time is looked at: what is ready at that moment wins, also if its time
//! has come. A deadline that has passed, or a duration of zero, fails before the future is polled at all. A
//! future that is slow in a single poll is not interrupted: nothing can.
//!
//! # Reading order
//! 1. `cancel`, `race`: what needs nothing else.
//! 2. [`Runners`] and [`Detachable`]: timeouts whose losers go on. [`Tracker`]: what is known of them.
//! 3. `desk` and `driver`: how a late runner changes hands, and who drives it then.

#![forbid(unsafe_code)]

mod cancel;
mod desk;
mod detach;
mod driver;
mod race;
mod runners;
mod sync;
mod timers;
mod tracker;

pub use ebbtide_lifecycle::{
    self as lifecycle,
    time::{Clock, Deadline, Timer},
    wait::Elapsed,
};

#[cfg(feature = "tokio")]
pub use self::timers::TokioTimer;
#[cfg(feature = "async-io")]
pub use self::timers::{AsyncIoSleep, AsyncIoTimer};
pub use self::{
    cancel::{Timeout, timeout, timeout_at},
    desk::{Idle, Lateness},
    detach::{Detachable, Runner},
    race::{First, Race, RaceAll, race, race_all},
    runners::{House, LocalRunner, LocalRunners, Runners, SendRunner},
    tracker::Tracker,
};

/// The example of the README is one of the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
