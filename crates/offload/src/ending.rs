//! How a pool ends: closing, handing back, giving up.

use std::{mem, sync::Arc};

use ebbtide_lifecycle::{Outcome, Refusal};

use crate::{
    hub::{Aftermath, Hub, State, Which},
    queue::Entry,
    sync::lock,
    work::Lost,
};

impl Hub {
    /// Lets nothing in from outside any more. Gives whether it did until now.
    pub(crate) fn close(self: &Arc<Self>) -> bool {
        let mut aftermath = Aftermath::default();
        let mut state = self.lock_as_it_is();
        self.shut_tray(&mut state);
        let was_open = state.tally.close();
        // What work inside has brought may still find room.
        Self::refuse_who_waits(&mut state, |entry| !entry.inside, &mut aftermath);
        if state.tally.in_flight() == 0 {
            Self::nothing_is_in_flight(&mut state, &mut aftermath);
        }
        drop(state);
        self.see_to(aftermath);
        was_open
    }

    fn refuse_who_waits(state: &mut State, whom: impl Fn(&Entry) -> bool, aftermath: &mut Aftermath) {
        for which in Which::ALL {
            for entry in state.lane(which).queue.take_waiting(&whom) {
                state.tally.refuse(Refusal::Closed, entry.parts.len() as u64);
                aftermath.refuse(state, entry);
            }
        }
    }

    /// Tells the waiters of what was refused.
    #[cold]
    pub(crate) fn tell(self: &Arc<Self>, refused: Vec<Entry>) {
        for entry in refused {
            entry.work.discard(entry.parts, Lost::Closed);
        }
        let mut aftermath = Aftermath::default();
        let mut state = self.lock();
        state.telling -= 1;
        if state.tally.in_flight() == 0 {
            Self::nothing_is_in_flight(&mut state, &mut aftermath);
        }
        drop(state);
        self.see_to(aftermath);
    }

    /// Closes it, and takes out all that has not begun, to be handed back: also what waits for room, which is accepted
    /// for that.
    pub(crate) fn hand_back(self: &Arc<Self>) -> Vec<Entry> {
        let (mut ended, mut aftermath) = (Vec::new(), Aftermath::default());
        let mut state = self.lock_as_it_is();
        self.shut_tray(&mut state);
        state.tally.close();
        let mut entries = Self::take_out(&mut state, Outcome::HandedBack, &mut ended);
        for which in Which::ALL {
            for entry in state.lane(which).queue.take_waiting(|_| true) {
                state.tally.take_in(entry.parts.len() as u64);
                entry.work.take_out(entry.parts.clone(), Outcome::HandedBack, &mut ended);
                entries.push(entry);
            }
        }
        for outcome in ended {
            state.tally.settle(outcome);
        }
        if state.tally.in_flight() == 0 {
            Self::nothing_is_in_flight(&mut state, &mut aftermath);
        }
        drop(state);
        self.see_to(aftermath);
        entries
    }

    /// Takes out all that was accepted and has not begun, the oldest of each lane first: that is its `outcome`.
    fn take_out(state: &mut State, outcome: Outcome, ended: &mut Vec<Outcome>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for which in Which::ALL {
            let lane = state.lane(which);
            for (_, member) in lane.crew.members() {
                // Both at once: the thread goes on meanwhile.
                let desk = &mut *lock(&member.desk);
                entries.extend(mem::take(&mut desk.share));
                ended.append(&mut desk.ended);
            }
            entries.extend(lane.queue.take_line());
        }
        for entry in &entries {
            entry.work.take_out(entry.parts.clone(), outcome, ended);
        }
        entries
    }

    /// Closes it and gives up on what runs. What has not begun is discarded, and its waiter told.
    pub(crate) fn abandon(self: &Arc<Self>) {
        self.close();
        let (mut ended, mut aftermath) = (Vec::new(), Aftermath::default());
        let mut state = self.lock();
        // All in one step, so that nothing begins, or is brought, in between.
        let entries = Self::take_out(&mut state, Outcome::Cancelled, &mut ended);
        Self::refuse_who_waits(&mut state, |_| true, &mut aftermath);
        for entry in &entries {
            state.has_discarded |= entry.work.unstarted(entry.parts.clone()) > 0;
            entry.work.refuse(entry.parts.clone());
        }
        for outcome in ended.drain(..) {
            state.tally.settle(outcome);
        }
        state.tally.abandon();
        state.telling += 1;
        drop(state);
        for entry in entries {
            entry.work.discard(entry.parts, Lost::Discarded);
        }
        let mut state = self.lock();
        state.telling -= 1;
        Self::nothing_is_in_flight(&mut state, &mut aftermath);
        drop(state);
        self.see_to(aftermath);
    }
}
