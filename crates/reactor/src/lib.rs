//! A single-threaded executor with timers and I/O that stops by contract.
//!
//! What it accepted it runs, hands back or names; what it refused never runs. Drive a [`Runtime`] with your own
//! thread, or give an [`EventLoop`] one.
//!
//! ```
//! use ebbtide_reactor::Runtime;
//!
//! let mut runtime = Runtime::new();
//! assert_eq!(runtime.block_on(async { 1 + 1 }), 2);
//! ```
//!
//! # Reading order
//! 1. [`Runtime`] and [`EventLoop`]: the two ways to drive a loop. [`Handle`]: what other threads do with it.
//! 2. `inbox`: how work comes in, and how it is refused, in one word. `core`: how the loop turns. `pause`
//!    and `patience`: how it sleeps, and when it does not. `ending`: how it ends.
//! 3. [`Async`] and [`net`]: I/O. `io::source`: who is told what. [`interop`]: other crates on a loop.
//! 4. [`Task`], `task::header` and `task::cell`: the word of a task, and its memory.
//! 5. [`Sleep`] and `time::wheel`: timers.
//! 6. `direction`, with the feature `testing`: an order of one's choice, and a word before each step.

mod builder;
mod core;
#[cfg(feature = "testing")]
mod direction;
#[cfg(not(feature = "testing"))]
#[path = "undirected.rs"]
mod direction;
mod ending;
mod errand;
mod event_loop;
mod handle;
mod hook;
#[cfg(not(any(loom, shuttle)))]
#[expect(unreachable_pub, reason = "public for the models")]
mod inbox;
#[cfg(any(loom, shuttle))]
pub mod inbox;
pub mod interop;
#[cfg(not(any(loom, shuttle)))]
mod io;
#[cfg(any(loom, shuttle))]
pub mod io;
mod lease;
mod local;
pub mod net;
mod patience;
mod pause;
mod post;
mod prefetch;
mod run_queue;
mod runtime;
mod segment;
mod shared;
mod stats;
mod sync;
mod task;
mod time;

/// What a loop is made of, and what it takes and gives: deadlines, clocks, tokens, balances.
pub use ebbtide_lifecycle as lifecycle;

#[cfg(feature = "testing")]
pub use self::direction::{LoopStep, StepOf};
pub use self::{
    builder::Builder,
    event_loop::{EventLoop, StartError},
    handle::{Handle, ShutdownHandle, spawn, spawn_named, yield_now},
    hook::PanicReport,
    io::{Async, Ready},
    local::Local,
    runtime::{QuiesceTimeout, Runtime},
    stats::{ShutdownStats, StatsSnapshot},
    task::{JoinError, Task},
    time::{Interval, Missed, Sleep, interval, now, sleep, sleep_until},
};
