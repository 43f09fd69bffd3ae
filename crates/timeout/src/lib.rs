//! First wins: races and timeouts on any executor.

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
