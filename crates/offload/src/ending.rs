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
        let mut state = self.lock();
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
                aftermath.refuse(entry);
            }
        }
    }

    /// Takes out all that has not begun, to be handed back.
    pub(crate) fn hand_back(self: &Arc<Self>) -> Vec<Entry> {
        let (mut ended, mut aftermath) = (Vec::new(), Aftermath::default());
        let mut state = self.lock();
        let entries = Self::take_out(&mut state, Outcome::HandedBack, &mut ended, &mut aftermath);
        self.settle(&mut state, &mut ended, &mut aftermath);
        drop(state);
        self.see_to(aftermath);
        entries
    }

    /// Takes out all that has not begun: that is its `outcome`. Who waits for room is refused.
    fn take_out(
        state: &mut State,
        outcome: Outcome,
        ended: &mut Vec<Outcome>,
        aftermath: &mut Aftermath,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        for which in Which::ALL {
            let lane = state.lane(which);
            entries.extend(lane.queue.take_line());
            for (_, member) in lane.crew.members() {
                // Both at once: the thread goes on meanwhile.
                let desk = &mut *lock(&member.desk);
                entries.extend(mem::take(&mut desk.share));
                ended.append(&mut desk.ended);
            }
        }
        Self::refuse_who_waits(state, |_| true, aftermath);
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
        let entries = Self::take_out(&mut state, Outcome::Cancelled, &mut ended, &mut aftermath);
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
