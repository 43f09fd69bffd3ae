//! Whether a loop stays awake for a while before it sleeps: where other threads or I/O bring something soon, to be
//! woken costs more than to wait.
//!
//! What happened last is taken for what happens next. A loop to which something was brought twice in a row, soon after
//! it fell asleep, stays awake; when it does so in vain, it sleeps at once from then on, until that happens again. So a
//! loop with nothing to do wastes one such wait at most.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// For so long a loop stays awake: about as long as it takes to wake its thread where that has to wake its CPU, too.
const LINGER: Duration = Duration::from_micros(50);

/// Who sleeps for no longer than this, until he runs again, could have stayed awake.
const SOON: Duration = Duration::from_micros(100);

/// After so many short sleeps in a row the next is not slept.
const SHORT_SLEEPS: u8 = 2;

/// What a loop knows of its last sleeps.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    short_sleeps: Cell<u8>,
}

impl Patience {
    /// Until when to stay awake, if that is likely to pay.
    pub(crate) fn linger(&self, now: impl FnOnce() -> Instant) -> Option<Instant> {
        (self.short_sleeps.get() >= SHORT_SLEEPS).then(|| now() + LINGER)
    }

    /// Nothing came while the loop stayed awake.
    pub(crate) fn in_vain(&self) {
        self.short_sleeps.set(0);
    }

    /// The loop has slept for so long; then something was brought, or else it was time to go on.
    pub(crate) fn slept(&self, length: Duration, was_brought: bool) {
        let before = self.short_sleeps.get();
        self.short_sleeps.set(if was_brought && length <= SOON { before.saturating_add(1) } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_lifecycle::time::{Clock, SystemClock};

    use super::*;

    fn lingers(patience: &Patience) -> bool {
        patience.linger(|| SystemClock.now()).is_some()
    }

    #[test]
    fn a_loop_stays_awake_after_two_short_sleeps_in_a_row() {
        let patience = Patience::default();
        assert!(!lingers(&patience));
        patience.slept(SOON, true);
        assert!(!lingers(&patience));
        patience.slept(SOON, true);
        assert!(lingers(&patience));
    }

    #[test]
    fn a_sleep_that_is_long_or_ends_by_itself_ends_the_row() {
        for (length, was_brought) in [(SOON * 2, true), (SOON, false)] {
            let patience = Patience::default();
            for (length, was_brought) in [(SOON, true), (length, was_brought), (SOON, true)] {
                patience.slept(length, was_brought);
            }
            assert!(!lingers(&patience));
        }
    }

    #[test]
    fn who_stayed_awake_in_vain_sleeps_next_time() {
        let patience = Patience::default();
        patience.slept(SOON, true);
        patience.slept(SOON, true);
        patience.in_vain();
        assert!(!lingers(&patience));
    }
}
