//! Where jobs are left while all threads are busy, beside the pool's own lock.
//!
//! A thread that has run something comes to the pool's lock. If each job were brought to the same lock, both sides
//! would pass all that is under it to and fro, for every single one. So jobs are left here, and whoever has the pool's
//! lock takes them in: those who look at the pool at once, a thread when it finds nothing in line. By then several have
//! come. What lies here is accepted: it counts for all who look.
//!
//! | the tray is | while |
//! |---|---|
//! | open | nobody has to be woken for a job: all threads are busy, or one lingers, or one was woken and looks |
//! | closed, and empty | somebody sleeps and has to be woken; or the pool is closed |
//!
//! Whoever closes it takes out what is in it in the same step, and nobody lingers or sleeps without having seen it
//! empty. So **what lies in it is found**, by a thread that is awake.

use std::{mem, time::Instant};

use ebbtide_lifecycle::time::{Clock, Tempo};

use crate::{
    hub::{Hub, State, Which},
    queue::Entry,
    sync::{Mutex, lock},
};

/// On lines of the cache of its own: both sides write to it all the time. Locked after the pool's own lock, or
/// alone.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Tray {
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    is_open: bool,
    /// Somebody lingers, and nobody has beckoned him from here.
    beckon: bool,
    entries: Vec<Entry>,
    /// Since when the first of them is here.
    since: Option<Instant>,
}

/// What is known of the tray under the pool's own lock.
#[derive(Default)]
pub(crate) struct Cover {
    /// As the tray's own. It changes under both locks.
    is_open: bool,
    /// What was taken out last, but empty: kept for its room.
    spare: Vec<Entry>,
}

impl Hub {
    /// Whether jobs of that lane may be left in the tray. A lane with a limit counts them when they come, one whose
    /// threads come and go starts some for them, and in virtual time they hold the clock.
    fn has_tray(&self, which: Which) -> bool {
        which == Which::Cpu && !self.is_bounded(which) && matches!(self.time, Tempo::Real)
    }

    /// Leaves work in the tray: it is accepted.
    ///
    /// # Errors
    /// Gives it back if the tray is closed.
    #[inline]
    pub(crate) fn leave(&self, which: Which, entry: Entry) -> Result<(), Entry> {
        if !self.has_tray(which) {
            return Err(entry);
        }
        let mut contents = lock(&self.tray.contents);
        if !contents.is_open {
            return Err(entry);
        }
        if contents.entries.is_empty() {
            // It has to wait, from now on.
            contents.since = Some(self.time.now());
        }
        contents.entries.push(entry);
        let beckon = mem::take(&mut contents.beckon);
        drop(contents);
        if beckon {
            self.beckon(which);
        }
        Ok(())
    }

    /// Takes in what lies in the tray.
    pub(crate) fn take_in(&self, state: &mut State) {
        if state.cover.is_open {
            self.empty_tray(state, true);
        }
    }

    /// Takes in what lies in the tray, and closes it for good: the pool is about to be closed.
    pub(crate) fn shut_tray(&self, state: &mut State) {
        if state.cover.is_open {
            self.empty_tray(state, false);
        }
    }

    /// Takes in what lies in the tray, if nothing is in line before it; and opens or closes it, as it has to be.
    #[inline]
    pub(crate) fn see_to_tray(&self, state: &mut State, which: Which) {
        if !self.has_tray(which) {
            return;
        }
        let lane = state.lane(which);
        let (is_first, wants_a_call) = (lane.queue.is_empty(), lane.crew.wants_a_call());
        let may_be_open = !wants_a_call && !state.tally.is_closed();
        if state.cover.is_open != may_be_open || (may_be_open && is_first) {
            self.empty_tray(state, may_be_open);
        }
    }

    /// A thread that has found nothing is about to linger, or to sleep. Gives false if something has come in.
    pub(crate) fn may_rest(&self, state: &mut State, which: Which, lingers: bool) -> bool {
        if !self.has_tray(which) {
            return true;
        }
        let is_attended = lingers || state.lane(which).crew.is_attended();
        let stays_open = is_attended && !state.tally.is_closed();
        if !stays_open && !state.cover.is_open {
            return true;
        }
        let mut contents = lock(&self.tray.contents);
        if !contents.entries.is_empty() {
            return false;
        }
        contents.is_open = stays_open;
        contents.beckon |= lingers;
        state.cover.is_open = stays_open;
        true
    }

    fn empty_tray(&self, state: &mut State, stays_open: bool) {
        let mut contents = lock(&self.tray.contents);
        let since = contents.since;
        mem::swap(&mut contents.entries, &mut state.cover.spare);
        contents.is_open = stays_open;
        drop(contents);
        state.cover.is_open = stays_open;
        if state.cover.spare.is_empty() {
            return;
        }
        let mut entries = mem::take(&mut state.cover.spare);
        state.tally.take_in(entries.iter().map(|entry| entry.parts.len() as u64).sum());
        let lane = state.lane(Which::Cpu);
        if lane.queue.is_empty() {
            lane.moved = since.map_or(lane.moved, |since| since.max(lane.moved));
        }
        for entry in entries.drain(..) {
            lane.queue.push(entry);
        }
        state.cover.spare = entries;
    }
}
