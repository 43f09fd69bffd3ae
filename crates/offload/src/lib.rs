//! Work elsewhere: a pool for what keeps a CPU busy and for what blocks, on any executor, that can be drained.
//!
//! ```
//! use ebbtide_offload::{Component, Pool, lifecycle::wait::block_on};
//!
//! let pool = Pool::new()?;
//! block_on(async {
//!     // On a thread for CPU work; whoever awaits it may live on any executor.
//!     let sum: u64 = pool.offload(|| (1..=1000).sum()).await?;
//!     assert_eq!(sum, 500_500);
//!     // On a thread that may block, with a name for reports.
//!     let text = pool.blocking().named("manifest").offload(|| std::fs::read_to_string("Cargo.toml")).await?;
//!     assert!(text.is_ok());
//!     // Many at once.
//!     let squares = pool.offload_all((0..100_u64).map(|n| move || n * n)).await;
//!     assert_eq!(squares.len(), 100);
//!     Ok::<_, ebbtide_offload::OffloadError>(())
//! })?;
//! pool.close();
//! pool.wait_idle().wait();
//! assert_eq!(pool.balance().to_string(), "accepted 102, completed 102");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What becomes of a job
//!
//! | | |
//! |---|---|
//! | its [`Offload`] is dropped before it begins | it is withdrawn (`cancelled`), or run all the same: [`OnDrop`] |
//! | its [`Offload`] is dropped after it has begun | it runs to its end (`late`), and can ask: [`waiter_has_gone`] |
//! | its deadline passes ([`Pool::offload_with_timeout`]) | as if it were dropped, when it is polled next |
//! | it panics | `failed`; whoever awaits it gets [`OffloadError::Panicked`] |
//! | the pool is closed | it is run; or [handed back](Pool::close_and_hand_back) as a value (`handed back`) |
//! | a stop comes to its deadline before it begins | it is discarded, and its waiter told (`cancelled`) |
//! | the same, and it runs | it goes on, is named for as long as it does, and given up on (`abandoned`) |
//!
//! # Waiting for a job within a job
//! Awaiting an [`Offload`] on a thread of the job's own pool runs the job there, unless it has begun, also if other
//! threads are idle. So a job may wait for another that it has brought, to either lane, even with one thread. It is
//! run *inside that poll*, which returns when it has ended: nothing that is joined or raced with it goes on
//! meanwhile, and a deadline is looked at only before it begins. Of a [`Batch`] as many are run as are waited for,
//! one after the other, and those that have not begun can still be taken by others, handed back or discarded.
//!
//! # What cannot work
//! - Jobs that wait for each other in a circle.
//! - Within a job, an `Offload` that is joined or raced with what its own job waits for.
//! - A job that waits for something else than an `Offload`, a channel for one, which a job behind it in the queue
//!   would send, when there is no thread left for that.
//! - `pool.wait_idle().wait()` in a job of that pool: it waits for itself.
//!
//! # Limits
//! A queue may have a limit: then [`Lane::offload`] waits for room and [`Lane::try_offload`] refuses. The
//! blocking lane has 512 threads at most unless told otherwise; they leave after ten seconds with nothing to
//! do, but one always stays. If the system has no further thread to give, the lane goes on with those that it has,
//! and asks again when the next job is brought to it, when a thread of either lane has run what it had, and when
//! somebody asks the pool how it is. If none of that happens, what is in line waits for the threads there are.
//!
//! # Reading order
//! 1. [`Pool`] and [`Lane`]: where jobs are brought. [`Offload`] and [`Batch`]: how their results come back.
//! 2. `hub`: both lanes, the count and the books, under one lock. `queue` and `crew`: what waits, and who runs it.
//! 3. `worker`: one thread. `work`, `job` and `batch`: what it runs.

#![forbid(unsafe_code)]

mod batch;
mod builder;
mod crew;
mod ending;
mod error;
mod faults;
mod hiring;
mod hub;
mod idle;
mod job;
mod lane;
mod offload;
mod pool;
mod queue;
mod stats;
mod sync;
mod tray;
mod unstarted;
mod work;
mod worker;

pub use ebbtide_lifecycle::{
    self as lifecycle, Component, Refusal, Refused,
    time::{Deadline, Timer},
    wait::Elapsed,
};

pub use self::{
    batch::{Batch, Finished},
    builder::Builder,
    error::{OffloadError, StartError},
    idle::Idle,
    job::OnDrop,
    lane::Lane,
    offload::{Offload, OffloadWithTimeout},
    pool::Pool,
    stats::{LaneStats, Stats},
    unstarted::Unstarted,
    work::waiter_has_gone,
};

/// The example of the README is one of the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
