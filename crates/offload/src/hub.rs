//! The heart of a pool: both lanes, the count of what is in flight and the books, under one lock.
//!
//! So accepting, counting and queueing a job are one step, and so are taking one out and closing. While all threads
//! are busy, a job is accepted by leaving it in the [`Tray`], and counted and queued by whoever locks. What is
//! foreign, or takes long, is done after the lock was released: see [`Aftermath`].

use std::{
    collections::VecDeque,
    iter, mem,
    ops::Range,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Outcome, Refusal, Tally,
    blame::{Activity, Straggler, Stragglers},
    time::{Clock, Hold, Tempo},
    wait::{Bell, Wait},
};

use crate::{
    crew::{Call, Crew, Kind},
    faults::Faults,
    idle::{Drained, Idle},
    queue::{Entry, Queue},
    sync::{AtomicBool, Mutex, MutexGuard, Ordering, lock, thread::JoinHandle},
    tray::{Cover, Tray},
    work::{Hook, Tag, Work},
    worker::{self, CameFrom},
};

pub(crate) struct Hub {
    /// No other pool has it.
    pub(crate) id: u64,
    state: Mutex<State>,
    pub(crate) tray: Tray,
    /// Rung when nothing is in flight any more, if somebody has announced that he waits for that.
    pub(crate) settled: Bell,
    /// For the thread of each lane that lingers: there is something in the queue.
    pub(crate) beckoned: [AtomicBool; 2],
    /// Which lanes have a limit.
    bounded: [bool; 2],
    /// Held by whoever joins the threads: others who want that wait for him.
    pub(crate) joining: Mutex<()>,
    /// In virtual time, jobs in flight hold it.
    pub(crate) time: Tempo,
    pub(crate) before_each: Option<Hook>,
    pub(crate) faults: Faults,
    pub(crate) name: Arc<str>,
}

/// Which of the two lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Cpu,
    Blocking,
}

/// One lane of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// The pool's id.
    pub(crate) pool: u64,
    pub(crate) which: Which,
}

impl Which {
    pub(crate) const ALL: [Self; 2] = [Self::Cpu, Self::Blocking];
}

pub(crate) struct State {
    pub(crate) tally: Tally,
    lanes: [LaneState; 2],
    pub(crate) cover: Cover,
    /// Somebody waits until nothing is in flight.
    pub(crate) is_waited_for: bool,
    /// Closed, and nothing is in flight: the threads end.
    pub(crate) has_ended: bool,
    /// There while something is in flight, in virtual time.
    hold: Option<Hold>,
    /// How often the system had no thread to give to an elastic lane.
    pub(crate) threads_missed: u64,
    /// When it had none the last time, in the system's time; none once it had one, or none is needed any more.
    pub(crate) missed: Option<Instant>,
    /// A stop has come to its deadline, and discarded accepted jobs.
    pub(crate) has_discarded: bool,
    /// How many are telling the waiters of what they have refused or discarded.
    pub(crate) telling: usize,
    /// Of all threads that were started, but for some that have ended.
    pub(crate) handles: Vec<JoinHandle<()>>,
}

pub(crate) struct LaneState {
    pub(crate) queue: Queue,
    /// When a thread last took something out of the queue, or something came into an empty one.
    pub(crate) moved: Instant,
    pub(crate) crew: Crew,
}

impl State {
    /// Whether nothing is in flight, given up on or not, and everybody has been told.
    pub(crate) fn is_idle(&self) -> bool {
        self.tally.outstanding() == 0 && self.telling == 0
    }

    /// Whether nothing comes in any more, and nothing is in flight but what was given up on.
    pub(crate) fn is_drained(&self) -> bool {
        self.tally.is_closed() && self.tally.in_flight() == 0 && self.telling == 0
    }

    /// Takes the handles of all threads, to join them.
    pub(crate) fn take_handles(&mut self) -> Vec<JoinHandle<()>> {
        mem::take(&mut self.handles)
    }

    pub(crate) fn lane(&mut self, which: Which) -> &mut LaneState {
        &mut self.lanes[which as usize]
    }
}

/// What is left to be done when the lock has been released.
#[derive(Default)]
#[must_use]
pub(crate) struct Aftermath {
    calls: Vec<(Which, Call)>,
    ring: bool,
    refused: Vec<Entry>,
    hold: Option<Hold>,
}

impl Aftermath {
    /// Refuses work that waited for room. Under the lock, so that its waiter does not run it meanwhile. Until he has
    /// been told, the pool is not idle.
    #[cold]
    pub(crate) fn refuse(&mut self, state: &mut State, entry: Entry) {
        entry.work.refuse(entry.parts.clone());
        state.telling += usize::from(self.refused.is_empty());
        self.refused.push(entry);
    }

    fn is_nothing(&self) -> bool {
        self.calls.is_empty() && !self.ring && self.refused.is_empty() && self.hold.is_none()
    }
}

/// A thread comes to the queue.
#[derive(Clone, Copy)]
pub(crate) struct Visit {
    pub(crate) which: Which,
    pub(crate) number: usize,
    pub(crate) now: Instant,
    pub(crate) came_from: CameFrom,
}

/// What comes of bringing work.
pub(crate) enum Brought {
    Accepted,
    /// It waits for room.
    Waits,
    Refused(Refusal),
}

impl Hub {
    pub(crate) fn new(
        name: Arc<str>,
        lanes: [(Option<usize>, Kind); 2],
        before_each: Option<Hook>,
        time: Tempo,
        faults: Faults,
    ) -> Self {
        let moved = time.now();
        let bounded = lanes.map(|(limit, _)| limit.is_some());
        let lane = |(limit, kind)| LaneState { queue: Queue::new(limit), moved, crew: Crew::new(kind) };
        let state = State {
            tally: Tally::new(),
            lanes: lanes.map(lane),
            cover: Cover::default(),
            is_waited_for: false,
            has_ended: false,
            hold: None,
            threads_missed: 0,
            missed: None,
            has_discarded: false,
            telling: 0,
            handles: Vec::new(),
        };
        // Not one of the model's atomics: it decides nothing.
        static POOLS: AtomicU64 = AtomicU64::new(0);
        let id = POOLS.fetch_add(1, Ordering::Relaxed);
        Self {
            id,
            state: Mutex::new(state),
            tray: Tray::default(),
            settled: Bell::new(),
            beckoned: Default::default(),
            bounded,
            joining: Mutex::new(()),
            time,
            before_each,
            faults,
            name,
        }
    }

    /// The state, with all that was accepted.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock_as_it_is();
        self.take_in(&mut state);
        state
    }

    /// The state, but for what lies in the tray.
    #[inline]
    pub(crate) fn lock_as_it_is(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn is_bounded(&self, which: Which) -> bool {
        self.bounded[which as usize]
    }

    pub(crate) fn home(&self, which: Which) -> Home {
        Home { pool: self.id, which }
    }

    /// Brings work. If there is no room, and it `may_wait`, it waits for some.
    #[inline]
    pub(crate) fn bring(
        self: &Arc<Self>,
        which: Which,
        work: Arc<dyn Work>,
        parts: Range<usize>,
        may_wait: bool,
    ) -> Brought {
        let inside = worker::is_in_a_job_of(self);
        let (entry, len) = (Entry { work, parts: parts.clone(), inside }, parts.len() as u64);
        let entry = match self.leave(which, entry) {
            Ok(()) => return Brought::Accepted,
            Err(entry) => entry,
        };
        let mut state = self.lock();
        if !state.lane(which).queue.has_room(parts.len(), may_wait) {
            if state.tally.is_closed() && !inside {
                return Brought::Refused(state.tally.refuse(Refusal::Closed, len));
            }
            if !may_wait {
                return Brought::Refused(state.tally.refuse(Refusal::Full, len));
            }
            state.lane(which).queue.wait(entry);
            return Brought::Waits;
        }
        let admitted = if inside { state.tally.admit_from_inside(len) } else { state.tally.admit(len) };
        if let Err(why) = admitted {
            return Brought::Refused(why);
        }
        let call = self.enqueue(&mut state, which, entry);
        self.see_to_tray(&mut state, which);
        drop(state);
        if let Some(call) = call {
            self.call(which, call);
        }
        Brought::Accepted
    }

    /// Puts accepted work into its line, and sees to it that there is somebody for it. Gives whom to call.
    #[inline]
    fn enqueue(self: &Arc<Self>, state: &mut State, which: Which, entry: Entry) -> Option<Call> {
        if let Tempo::Virtual(clock) = &self.time
            && state.hold.is_none()
        {
            state.hold = Some(clock.hold());
        }
        let lane = state.lane(which);
        let is_first = lane.queue.is_empty();
        lane.queue.push(entry);
        let call = lane.crew.summon();
        if call.is_none() {
            if is_first {
                // It has to wait, from now on.
                lane.moved = self.time.now();
            }
            self.start_one_more(state, which);
        }
        call
    }

    /// Takes the last part of work out of its line, or from where it waits for room, because its waiter is about to
    /// run that on a thread of the pool. It is accepted by then. If it is too late for that, it is refused.
    pub(crate) fn take_for_waiter(self: &Arc<Self>, which: Which, work: &Arc<dyn Work>) {
        let mut aftermath = Aftermath::default();
        let mut state = self.lock();
        let mut taken = state.lane(which).queue.take_last_out_of_waiting(work);
        if taken.is_none() {
            taken = state.lane(which).queue.take_last_out_of_line(work);
        } else if state.tally.admit_from_inside(1).is_err() {
            aftermath.refuse(&mut state, taken.take().expect("it waited"));
            if let Some(rest) = state.lane(which).queue.take_out_of_waiting(work) {
                state.tally.refuse(Refusal::Closed, rest.parts.len() as u64);
                aftermath.refuse(&mut state, rest);
            }
        }
        self.let_in_who_waits(&mut state, which, &mut aftermath);
        drop(state);
        drop(taken);
        self.see_to(aftermath);
    }

    /// Takes work out of a line with a limit that its waiter has withdrawn: it makes room.
    #[cold]
    pub(crate) fn make_room(self: &Arc<Self>, which: Which, work: &Arc<dyn Work>) {
        let (mut ended, mut aftermath) = (Vec::new(), Aftermath::default());
        let mut state = self.lock();
        let waited = state.lane(which).queue.take_out_of_waiting(work);
        let entry = state.lane(which).queue.take_out_of_line(work);
        if let Some(entry) = &entry {
            entry.work.take_out(entry.parts.clone(), Outcome::Cancelled, &mut ended);
        }
        self.let_in_who_waits(&mut state, which, &mut aftermath);
        self.settle(&mut state, &mut ended, &mut aftermath);
        drop(state);
        drop((waited, entry));
        self.see_to(aftermath);
    }

    /// Books how work ended, and tells those who wait for the end of all work.
    #[inline]
    pub(crate) fn settle(&self, state: &mut State, ended: &mut Vec<Outcome>, aftermath: &mut Aftermath) {
        if ended.is_empty() {
            return;
        }
        for outcome in ended.drain(..) {
            state.tally.settle(outcome);
        }
        if state.tally.in_flight() == 0 {
            Self::nothing_is_in_flight(state, aftermath);
        }
    }

    /// The state, with everything booked that has ended.
    pub(crate) fn lock_up_to_date(self: &Arc<Self>) -> MutexGuard<'_, State> {
        let (mut ended, mut aftermath) = (Vec::new(), Aftermath::default());
        let mut state = self.lock();
        for lane in &state.lanes {
            for (_, member) in lane.crew.members() {
                ended.append(&mut lock(&member.desk).ended);
            }
        }
        self.settle(&mut state, &mut ended, &mut aftermath);
        if state.missed.is_some() {
            self.try_again(&mut state, Duration::ZERO);
        }
        if aftermath.is_nothing() {
            return state;
        }
        drop(state);
        self.see_to(aftermath);
        self.lock()
    }

    pub(crate) fn nothing_is_in_flight(state: &mut State, aftermath: &mut Aftermath) {
        aftermath.hold = state.hold.take();
        aftermath.ring |= mem::take(&mut state.is_waited_for);
        if state.tally.is_closed() && state.tally.outstanding() == 0 {
            // Who waits for room is let in as soon as there is some, and an empty line has room for anything.
            debug_assert!(
                state.lanes.iter().all(|lane| lane.queue.waiting() == 0),
                "nobody waits for an empty line"
            );
            state.has_ended = true;
            for which in Which::ALL {
                let calls = state.lane(which).crew.summon_all();
                aftermath.calls.extend(calls.into_iter().map(|call| (which, call)));
            }
        }
    }

    /// Takes what a thread is to run next, and has another one woken if there is more. Gives whether there is
    /// something.
    #[inline]
    pub(crate) fn take_share(
        self: &Arc<Self>,
        state: &mut State,
        Visit { which, number, now, came_from }: Visit,
        share: &mut VecDeque<Entry>,
        aftermath: &mut Aftermath,
    ) -> bool {
        state.lane(which).crew.has_looked(number);
        self.see_to_tray(state, which);
        let lane = state.lane(which);
        lane.queue.take_share(lane.crew.share(), share);
        let helps = share.is_empty();
        if helps {
            lane.crew.help_others(share, number);
        }
        if share.is_empty() {
            return false;
        }
        lane.moved = now;
        // Several may have called one thread, each for what he has.
        let was_called = helps || came_from != CameFrom::Work;
        let has_more = share.len() > 1 || share[0].parts.len() > 1 || !lane.queue.is_empty();
        if has_more || (was_called && lane.crew.others_have_more(number)) {
            let call = lane.crew.summon().map(|call| (which, call));
            if call.is_none() {
                self.start_one_more(state, which);
            }
            aftermath.calls.extend(call);
        }
        self.let_in_who_waits(state, which, aftermath);
        true
    }

    /// Accepts those who wait for room, as far as there is some.
    #[inline]
    fn let_in_who_waits(self: &Arc<Self>, state: &mut State, which: Which, aftermath: &mut Aftermath) {
        while let Some(entry) = state.lane(which).queue.next_to_fit() {
            // Once it is closed, only those wait whom work inside has brought.
            match state.tally.admit_from_inside(entry.parts.len() as u64) {
                Ok(()) => {
                    let call = self.enqueue(state, which, entry);
                    aftermath.calls.extend(call.map(|call| (which, call)));
                }
                Err(_) => aftermath.refuse(state, entry),
            }
        }
    }

    /// Does what was left for after the lock.
    #[inline]
    pub(crate) fn see_to(self: &Arc<Self>, aftermath: Aftermath) {
        let Aftermath { calls, ring, refused, hold } = aftermath;
        for (which, call) in calls {
            self.call(which, call);
        }
        if !refused.is_empty() {
            self.tell(refused);
        }
        if ring {
            self.settled.ring();
        }
        // Time stands still until those who wait have been woken.
        drop(hold);
    }

    #[inline]
    fn call(&self, which: Which, call: Call) {
        match call {
            Call::Wake(thread) => thread.unpark(),
            Call::Beckon => self.beckon(which),
        }
    }

    /// Tells the thread of a lane that lingers.
    #[inline]
    pub(crate) fn beckon(&self, which: Which) {
        // Relaxed: what there is to see is behind a lock.
        self.beckoned[which as usize].store(true, Ordering::Relaxed);
    }

    /// Who is in flight. What is abandoned and goes on is among them. Of a job in the queue it tells for how long the
    /// queue has not moved: when each came is not kept.
    pub(crate) fn stragglers(&self) -> Stragglers {
        let now = self.time.now();
        let age = |since: Instant| now.saturating_duration_since(since);
        let mut stragglers = Vec::new();
        let state = self.lock();
        for (which, lane) in Which::ALL.into_iter().zip(&state.lanes) {
            let mut queued = |entry: &Entry| {
                let queued = Straggler::new(entry.work.tag().origin(), Activity::Queued, age(lane.moved));
                let unstarted = entry.work.unstarted(entry.parts.clone());
                stragglers.extend(iter::repeat_n(queued.on(self.name.clone()), unstarted));
            };
            lane.queue.line().for_each(&mut queued);
            for (_, member) in lane.crew.members() {
                lock(&member.desk).share.iter().for_each(&mut queued);
            }
            for (number, member) in lane.crew.members() {
                let thread: Arc<str> = worker::name(&self.name, which, number).into();
                let running = |(tag, since): &(Tag, Instant)| {
                    Straggler::new(tag.origin(), Activity::Running, age(*since)).on(thread.clone())
                };
                stragglers.extend(lock(&member.desk).running.iter().map(running));
            }
        }
        drop(state);
        stragglers.into_iter().collect()
    }

    pub(crate) fn wait_idle(self: &Arc<Self>) -> Wait<Idle> {
        Wait::new(Idle::new(self.clone()))
    }

    pub(crate) fn wait_drained(self: &Arc<Self>) -> Wait<Drained> {
        Wait::new(Drained::new(self.clone()))
    }
}
