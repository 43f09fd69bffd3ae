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
//! handing back and reporting, as long as a floor. So a stage that hangs leaves something for all others. What does not
//! return at its deadline is waited for a *grace* longer, half a floor, because it is at its deadline that it gives up
//! on its work. If more stages come than there were at first, the floors become smaller. A stage that begins after the
//! end has a short grace, and nothing else.

use std::time::{Duration, Instant};

use ebbtide_lifecycle::time::Deadline;

/// The most that is kept for one stage: enough to say "stop" and to give up.
const FLOOR_MAX: Duration = Duration::from_secs(1);

/// How long a stage is waited for that begins after the end: a process that was suspended may have lost all its time at
/// once. What only has to be told still stops then, in order; without that all stages would be under way together.
const LAST_GRACE: Duration = Duration::from_millis(50);

/// When a stop has to be over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    end: Instant,
    /// What is kept for each stage.
    floor: Duration,
}

impl Budget {
    /// For so many stages. All of them, with the tail, keep at most half of the whole.
    pub(crate) fn new(start: Instant, whole: Duration, stages: usize) -> Self {
        Self { end: start + whole, floor: FLOOR_MAX.min(share(whole / 2, stages + 1)) }
    }

    pub(crate) const fn end(&self) -> Instant {
        self.end
    }

    /// The deadline of a stage that begins now and has so many after it. Never after the end, nor before now, if
    /// there is any time left.
    pub(crate) fn deadline(&mut self, now: Instant, stages_after: usize) -> Deadline {
        let left = self.end.saturating_duration_since(now);
        // A floor for each after it, one for the tail, and one for itself.
        self.floor = self.floor.min(share(left, stages_after + 2));
        let kept = self.floor * u32::try_from(stages_after + 1).unwrap_or(u32::MAX);
        Deadline::at(self.end.checked_sub(kept).unwrap_or(self.end))
    }

    /// How much longer than to its deadline something is waited for that begins now.
    pub(crate) fn grace(&self, now: Instant) -> Duration {
        if now >= self.end { LAST_GRACE } else { self.floor / 2 }
    }
}

fn share(whole: Duration, by: usize) -> Duration {
    whole / u32::try_from(by).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use ebbtide_lifecycle::time::{Clock, SystemClock};

    use super::*;

    #[test]
    fn every_stage_has_time_left_however_long_those_before_it_took() {
        let start = SystemClock.now();
        for whole in [1, 2, 30, 300].map(Duration::from_secs) {
            // Also if more come than there were at first.
            for (planned, stages) in (0..100).map(|n| (n, n)).chain((1..100).map(|n| (1, n))) {
                let mut budget = Budget::new(start, whole, planned);
                let mut now = start;
                for after in (0..stages).rev() {
                    let deadline = budget.deadline(now, after).instant().expect("it has one");
                    assert!(deadline > now, "{whole:?}, {after} after it of {stages}");
                    now = deadline + budget.grace(now);
                }
                assert!(now < budget.end(), "there is a tail: {whole:?}, {stages}");
            }
        }
    }
}
