//! One deadline for a whole stop, and how its stages share it.
//!
//! ```text
//! start                                                                              end
//!   │ drain, while it needs it      │ floor: phase 1 │ floor: phase 2 │  …  │   tail   │
//!   │◄───────── deadline of the drain ──────────────►│                │     │          │
//!                                    ◄── of phase 1, if the drain took all ──►
//! ```
//!
//! A stage may use all the time there is, but for a *floor* that is kept for each stage after it, and a *tail* for
//! handing back and reporting. So a stage that hangs leaves something for all others. What does not return at its
//! deadline is waited for a *grace* longer, half a floor, because it is at its deadline that it gives up on its work.

use std::time::{Duration, Instant};

use ebbtide_lifecycle::time::Deadline;

/// The most that is kept for one stage: enough to say "stop" and to give up.
const FLOOR_MAX: Duration = Duration::from_secs(1);

/// When a stop has to be over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    end: Instant,
    /// What is kept for each stage. All of them, with the tail, get at most half of the whole.
    floor: Duration,
}

impl Budget {
    /// For so many stages.
    pub(crate) fn new(start: Instant, whole: Duration, stages: usize) -> Self {
        let stages = u32::try_from(stages).unwrap_or(u32::MAX - 1);
        Self { end: start + whole, floor: FLOOR_MAX.min(whole / 2 / (stages + 1)) }
    }

    pub(crate) const fn end(&self) -> Instant {
        self.end
    }

    /// The deadline of a stage that has so many after it.
    pub(crate) fn deadline(&self, stages_after: usize) -> Deadline {
        let kept = u32::try_from(stages_after + 1).ok().and_then(|stages| self.floor.checked_mul(stages));
        // More stages than were planned for may have come meanwhile; there is nothing left for them to share.
        Deadline::at(kept.and_then(|kept| self.end.checked_sub(kept)).unwrap_or(self.end))
    }

    /// How much longer than to its deadline something is waited for.
    pub(crate) fn grace(&self) -> Duration {
        self.floor / 2
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_lifecycle::time::{Clock, SystemClock};

    use super::*;

    #[test]
    fn every_stage_has_time_left_however_long_those_before_it_took() {
        let start = SystemClock.now();
        for whole in [1, 2, 30, 300].map(Duration::from_secs) {
            for stages in 0..100 {
                let budget = Budget::new(start, whole, stages);
                let mut before = start;
                for after in (0..stages).rev() {
                    let deadline = budget.deadline(after).instant().expect("it has one");
                    assert!(deadline > before, "{whole:?}, {after} after it of {stages}");
                    before = deadline + budget.grace();
                }
                assert!(before < budget.end(), "there is a tail");
            }
        }
    }
}
