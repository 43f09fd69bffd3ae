//! Work elsewhere: a pool for what keeps a CPU busy and for what blocks, on any executor, that can be drained.

#![forbid(unsafe_code)]

mod batch;
mod builder;
mod crew;
mod error;
mod hub;
mod idle;
mod job;
mod lane;
mod offload;
mod pool;
mod queue;
mod stats;
mod sync;
mod unstarted;
mod work;
mod worker;

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
