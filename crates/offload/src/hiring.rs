//! How a pool comes by its threads.

use std::{io, sync::Arc, time::Duration};

use ebbtide_lifecycle::time::{Clock, SystemClock};

use crate::{
    hub::{Hub, State, Which},
    sync::thread::JoinHandle,
    worker,
};

impl Hub {
    /// Starts a thread more for an elastic lane, if it needs one. If the system has none to give, the lane goes
    /// on with those that it has: one was there when the pool started, and one stays.
    #[inline]
    pub(crate) fn start_one_more(self: &Arc<Self>, state: &mut State, which: Which) {
        let lane = state.lane(which);
        if lane.crew.wants_one_more(lane.queue.len()) {
            let is_missed = self.start_thread(state, which).is_err();
            state.threads_missed += u64::from(is_missed);
            state.missed = is_missed.then(|| SystemClock.now());
        }
    }

    /// Tries once more to start a thread that the system did not give, if that was so long ago.
    #[cold]
    pub(crate) fn try_again(self: &Arc<Self>, state: &mut State, ago: Duration) {
        if state.missed.take_if(|missed| SystemClock.now() - *missed >= ago).is_some() {
            self.start_one_more(state, Which::Blocking);
        }
    }

    /// Starts a thread. Under the lock, so that whoever ends the pool knows of it.
    #[cold]
    pub(crate) fn start_thread(self: &Arc<Self>, state: &mut State, which: Which) -> io::Result<()> {
        let (number, desk) = state.lane(which).crew.hire();
        let started = self.faults.refuse_thread().and_then(|()| worker::start(self, which, number, desk));
        match started {
            Ok(handle) => {
                forget_finished(&mut state.handles);
                state.handles.push(handle);
                Ok(())
            }
            Err(error) => {
                state.lane(which).crew.dismiss(number);
                Err(error)
            }
        }
    }
}

/// Lets go of the handles of threads that have ended.
#[cfg(not(any(loom, shuttle)))]
fn forget_finished(handles: &mut Vec<JoinHandle<()>>) {
    handles.retain(|handle| !handle.is_finished());
}

#[cfg(any(loom, shuttle))]
fn forget_finished(_: &mut Vec<JoinHandle<()>>) {}
