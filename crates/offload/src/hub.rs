//! The heart of a pool: both lanes, the count of what is in flight and the books, under one lock.
//!
//! So accepting, counting and queueing a job are one step, and so are taking one out and closing. What is foreign,
//! or takes long, is done after the lock was released: see [`Aftermath`].

use std::{
    collections::VecDeque,
    iter, mem,
    sync::{Arc, atomic::AtomicU64},
    time::Instant,
};

use ebbtide_lifecycle::{
    Outcome, Refusal, Tally,
    blame::{Activity, Straggler, Stragglers},
    time::{Clock, Hold, SystemClock, VirtualClock},
    wait::{Bell, Wait},
};

use crate::{
    crew::{Call, Crew, Desk, Kind},
    idle::{Drained, Idle},
    queue::{Entry, Queue},
    sync::{AtomicBool, Mutex, MutexGuard, Ordering, lock},
    work::{Hook, Lost, Work},
    worker,
};

pub(crate) struct Hub {
    /// No other pool has it.
    id: u64,
    state: Mutex<State>,
    /// Rung when nothing is in flight any more, if somebody has announced that he waits for that.
    pub(crate) settled: Bell,
    /// For the thread of each lane that lingers: there is something in the queue.
    pub(crate) beckoned: [AtomicBool; 2],
    pub(crate) time: Time,
    pub(crate) before_each: Option<Hook>,
    pub(crate) name: Arc<str>,
}

/// Whose time the pool lives in.
pub(crate) enum Time {
    Real,
    /// Jobs in flight hold it.
    Virtual(VirtualClock),
}

impl Time {
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Real => SystemClock.now(),
            Self::Virtual(clock) => clock.now(),
        }
    }
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
    pool: u64,
    which: Which,
}

impl Which {
    pub(crate) const ALL: [Self; 2] = [Self::Cpu, Self::Blocking];
}

pub(crate) struct State {
    pub(crate) tally: Tally,
    lanes: [LaneState; 2],
    /// Somebody waits until nothing is in flight.
    pub(crate) is_waited_for: bool,
    /// Closed, and nothing is in flight: the threads end.
    pub(crate) has_ended: bool,
    /// There while something is in flight, in virtual time.
    hold: Option<Hold>,
    /// How often the system had no thread to give to an elastic lane.
    pub(crate) threads_missed: u64,
}

pub(crate) struct LaneState {
    pub(crate) queue: Queue,
    /// When a thread last took something out of the queue.
    moved: Instant,
    pub(crate) crew: Crew,
}

impl State {
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
    /// Threads that are to be started.
    hired: Vec<(Which, Hired)>,
    refused: Vec<Entry>,
    hold: Option<Hold>,
}

impl Aftermath {
    /// Refuses work that waited for room. Under the lock, so that its waiter does not run it meanwhile.
    fn refuse(&mut self, entry: Entry) {
        entry.work.refuse(entry.parts.clone());
        self.refused.push(entry);
    }

    fn is_nothing(&self) -> bool {
        self.calls.is_empty()
            && !self.ring
            && self.hired.is_empty()
            && self.refused.is_empty()
            && self.hold.is_none()
    }
}

/// What has to be done for work that is in its line.
enum Enqueued {
    /// Nothing: somebody is awake who will see it.
    Awake,
    Call(Call),
    Hire(Hired),
}

/// A thread that is to be started: its number, and its desk.
pub(crate) type Hired = (usize, Arc<Mutex<Desk>>);

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
        time: Time,
    ) -> Self {
        let moved = time.now();
        let lane = |(limit, kind)| LaneState { queue: Queue::new(limit), moved, crew: Crew::new(kind) };
        let state = State {
            tally: Tally::new(),
            lanes: lanes.map(lane),
            is_waited_for: false,
            has_ended: false,
            hold: None,
            threads_missed: 0,
        };
        // Not one of the model's atomics: it decides nothing.
        static POOLS: AtomicU64 = AtomicU64::new(0);
        let id = POOLS.fetch_add(1, Ordering::Relaxed);
        Self {
            id,
            state: Mutex::new(state),
            settled: Bell::new(),
            beckoned: Default::default(),
            time,
            before_each,
            name,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn home(&self, which: Which) -> Home {
        Home { pool: self.id, which }
    }

    /// Brings work. If there is no room, and it `may_wait`, it waits for some.
    #[inline]
    pub(crate) fn bring(self: &Arc<Self>, which: Which, entry: Entry, may_wait: bool) -> Brought {
        let inside = worker::is_of(self);
        let mut state = self.lock();
        let parts = entry.parts.len() as u64;
        if !state.lane(which).queue.has_room(entry.parts.len()) {
            if state.tally.is_closed() && !inside {
                return Brought::Refused(state.tally.refuse(Refusal::Closed, parts));
            }
            if !may_wait {
                return Brought::Refused(state.tally.refuse(Refusal::Full, parts));
            }
            state.lane(which).queue.wait(entry);
            return Brought::Waits;
        }
        let admitted = if inside { state.tally.admit_from_inside(parts) } else { state.tally.admit(parts) };
        if let Err(why) = admitted {
            return Brought::Refused(why);
        }
        let enqueued = self.enqueue(&mut state, which, entry);
        drop(state);
        match enqueued {
            Enqueued::Awake => {}
            Enqueued::Call(call) => self.call(which, call),
            Enqueued::Hire(hired) => self.start_or_do_without(which, hired),
        }
        Brought::Accepted
    }

    /// Puts accepted work into its line, and has somebody woken for it.
    #[inline]
    fn enqueue(&self, state: &mut State, which: Which, entry: Entry) -> Enqueued {
        if let Time::Virtual(clock) = &self.time
            && state.hold.is_none()
        {
            state.hold = Some(clock.hold());
        }
        let lane = state.lane(which);
        lane.queue.push(entry);
        match lane.crew.summon() {
            Some(call) => Enqueued::Call(call),
            None if lane.crew.wants_one_more(lane.queue.len()) => Enqueued::Hire(lane.crew.hire()),
            None => Enqueued::Awake,
        }
    }

    /// Accepts work that waits for room, and that its waiter is about to run on a thread of the pool. Gives it
    /// back if that is too late.
    pub(crate) fn accept_for_waiter(&self, which: Which, work: &Arc<dyn Work>) -> Result<(), Entry> {
        let mut state = self.lock();
        let Some(entry) = state.lane(which).queue.take_out_of_waiting(work) else { return Ok(()) };
        state.tally.admit_from_inside(entry.parts.len() as u64).map_err(|_| entry)
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
        if aftermath.is_nothing() {
            return state;
        }
        drop(state);
        self.see_to(aftermath);
        self.lock()
    }

    fn nothing_is_in_flight(state: &mut State, aftermath: &mut Aftermath) {
        aftermath.hold = state.hold.take();
        aftermath.ring |= mem::take(&mut state.is_waited_for);
        if state.tally.is_closed() && state.tally.outstanding() == 0 {
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
        &self,
        state: &mut State,
        which: Which,
        number: usize,
        now: Instant,
        share: &mut VecDeque<Entry>,
        aftermath: &mut Aftermath,
    ) -> bool {
        let lane = state.lane(which);
        lane.crew.has_looked();
        let threads = lane.crew.len();
        lane.queue.take_share(threads, share);
        let others_have_more = share.is_empty() && lane.crew.help_others(share, number);
        if share.is_empty() {
            return false;
        }
        if share.len() > 1 || others_have_more || !lane.queue.is_empty() {
            aftermath.calls.extend(lane.crew.summon().map(|call| (which, call)));
        }
        lane.moved = now;
        self.let_in_who_waits(state, which, aftermath);
        true
    }

    /// Accepts those who wait for room, as far as there is some.
    #[inline]
    fn let_in_who_waits(&self, state: &mut State, which: Which, aftermath: &mut Aftermath) {
        while let Some(entry) = state.lane(which).queue.next_to_fit() {
            // Once it is closed, only those wait whom work inside has brought.
            match state.tally.admit_from_inside(entry.parts.len() as u64) {
                Ok(()) => match self.enqueue(state, which, entry) {
                    Enqueued::Awake => {}
                    Enqueued::Call(call) => aftermath.calls.push((which, call)),
                    Enqueued::Hire(hired) => aftermath.hired.push((which, hired)),
                },
                Err(_) => aftermath.refuse(entry),
            }
        }
    }

    /// Lets nothing in from outside any more. Gives whether it did until now.
    pub(crate) fn close(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        let was_open = state.tally.close();
        let mut aftermath = Aftermath::default();
        for which in Which::ALL {
            let waiting = state.lane(which).queue.take_waiting();
            let parts = waiting.iter().map(|entry| entry.parts.len() as u64).sum();
            state.tally.refuse(Refusal::Closed, parts);
            waiting.into_iter().for_each(|entry| aftermath.refuse(entry));
        }
        if state.tally.in_flight() == 0 {
            Self::nothing_is_in_flight(&mut state, &mut aftermath);
        }
        drop(state);
        self.see_to(aftermath);
        was_open
    }

    /// Takes out all that has not begun, and books it with `outcome`.
    pub(crate) fn take_out(self: &Arc<Self>, outcome: Outcome) -> Vec<Entry> {
        let (mut entries, mut ended, mut aftermath) = (Vec::new(), Vec::new(), Aftermath::default());
        let mut state = self.lock();
        for which in Which::ALL {
            let lane = state.lane(which);
            entries.extend(lane.queue.take_line());
            for (_, member) in lane.crew.members() {
                entries.extend(mem::take(&mut lock(&member.desk).share));
            }
            state.lane(which).queue.take_waiting().into_iter().for_each(|entry| aftermath.refuse(entry));
        }
        for entry in &entries {
            entry.work.take_out(entry.parts.clone(), outcome, &mut ended);
        }
        self.settle(&mut state, &mut ended, &mut aftermath);
        drop(state);
        self.see_to(aftermath);
        entries
    }

    /// Closes it and gives up on what runs. What has not begun is discarded, and its waiter told.
    pub(crate) fn abandon(self: &Arc<Self>) {
        self.close();
        for entry in self.take_out(Outcome::Cancelled) {
            entry.work.discard(entry.parts, Lost::Discarded);
        }
        let mut aftermath = Aftermath::default();
        let mut state = self.lock_up_to_date();
        state.tally.abandon();
        Self::nothing_is_in_flight(&mut state, &mut aftermath);
        drop(state);
        self.see_to(aftermath);
    }

    /// Does what was left for after the lock.
    #[inline]
    pub(crate) fn see_to(self: &Arc<Self>, aftermath: Aftermath) {
        let Aftermath { calls, ring, hired, refused, hold } = aftermath;
        for (which, call) in calls {
            self.call(which, call);
        }
        for (which, hired) in hired {
            self.start_or_do_without(which, hired);
        }
        for entry in refused {
            entry.work.discard(entry.parts, Lost::Closed);
        }
        drop(hold);
        if ring {
            self.settled.ring();
        }
    }

    #[inline]
    fn call(&self, which: Which, call: Call) {
        match call {
            Call::Wake(thread) => thread.unpark(),
            // Relaxed: what there is to see is behind the lock.
            Call::Beckon => self.beckoned[which as usize].store(true, Ordering::Relaxed),
        }
    }

    /// Starts a thread more for an elastic lane. If the system has none to give, the lane goes on with those that it
    /// has: the first was there when the pool started, and stays.
    #[cold]
    fn start_or_do_without(self: &Arc<Self>, which: Which, hired: Hired) {
        let number = hired.0;
        match worker::start(self, which, hired) {
            Ok(handle) => {
                if let Some(member) = self.lock().lane(which).crew.member(number) {
                    member.handle = Some(handle);
                }
            }
            Err(_) => {
                let mut state = self.lock();
                state.lane(which).crew.dismiss(number);
                state.threads_missed += 1;
            }
        }
    }

    /// Who is in flight. What is abandoned and goes on is among them. Of a job in the queue it tells for how
    /// long the queue has not moved: when each came is not kept.
    pub(crate) fn stragglers(&self) -> Stragglers {
        let now = self.time.now();
        let age = |since: Instant| now.saturating_duration_since(since);
        let state = self.lock();
        let mut stragglers = Vec::new();
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
                if let Some((tag, since)) = &lock(&member.desk).running {
                    let thread = worker::name(&self.name, which, number);
                    stragglers.push(Straggler::new(tag.origin(), Activity::Running, age(*since)).on(thread));
                }
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
