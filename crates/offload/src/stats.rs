//! How much there is of everything.

use crate::hub::{State, Which};

/// How many jobs and threads a pool has at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The lane for CPU work.
    pub cpu: LaneStats,
    /// The lane for blocking work.
    pub blocking: LaneStats,
    /// How often the system had no thread to give to the blocking lane, which then went on with those that it had.
    pub threads_missed: u64,
}

/// How many jobs and threads a lane has at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneStats {
    /// Jobs in line for a thread.
    pub queued: usize,
    /// Jobs that wait for room in the line: they are not accepted yet.
    pub waiting: usize,
    /// Threads.
    pub threads: usize,
    /// Threads with nothing to do.
    pub asleep: usize,
}

impl Stats {
    pub(crate) fn of(state: &mut State) -> Self {
        let mut lane = |which| {
            let lane = state.lane(which);
            let (queued, waiting) = (lane.queue.len(), lane.queue.waiting());
            LaneStats { queued, waiting, threads: lane.crew.len(), asleep: lane.crew.asleep() }
        };
        let (cpu, blocking) = (lane(Which::Cpu), lane(Which::Blocking));
        Self { cpu, blocking, threads_missed: state.threads_missed }
    }
}
