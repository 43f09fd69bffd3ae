//! The loop itself: what only its own thread touches, and how it turns.
//!
//! A turn takes what came in, runs up to a budget of what is ready, and then looks at the clock. Between two turns it
//! [pauses](crate::pause).

use std::{
    cell::{Cell, RefCell},
    panic::Location,
    ptr,
    sync::Arc,
    task::Waker,
    thread,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Balance, Book, Entry, Outcome,
    blame::{Activity, Straggler, Stragglers},
    contain,
    time::{Clock, Participant, SystemClock, VirtualClock},
};

use crate::{
    direction::Direction,
    io::Driver,
    lease,
    patience::Patience,
    pause::Asked,
    run_queue::RunQueue,
    shared::Shared,
    task::{Depot, Roll, TaskRef},
    time::{Key, Wheel},
};

thread_local! {
    /// The loop that this thread is turning, if any. Set by [`Core::enter`] for as long as the loop is on the
    /// stack.
    static CURRENT: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

pub(crate) struct Core {
    shared: Arc<Shared>,
    pub(crate) queue: RunQueue,
    pub(crate) roll: Roll,
    pub(crate) depot: Depot,
    /// How many leases began on this thread, less those that ended here. See `lease`.
    pub(crate) leases: Cell<isize>,
    /// Borrowed only while no foreign code runs: wakers are taken out of it, and called or dropped after.
    pub(crate) wheel: RefCell<Wheel>,
    book: Book,
    pub(crate) time: Time,
    pub(crate) patience: Patience,
    /// How many are run before the clock, the inbox and I/O are looked at again.
    budget: u32,
    /// Who runs next, and who is told of it: nobody is, but in tests.
    pub(crate) direction: Direction,
    /// How many operations of I/O may still be done before whoever does the next has to let others go first.
    operations: Cell<u32>,
    /// The time of this turn, in nanoseconds since the loop's epoch.
    stamp: Cell<u64>,
    /// The future of `block_on` wants to be polled.
    pub(crate) main_ready: Cell<bool>,
    /// The loop that was current when this one was entered.
    below: Cell<*const Core>,
    /// Tasks are dropped instead of polled, and none is accepted: the inner door is closed.
    pub(crate) cancelling: Cell<bool>,
    /// Wakers that are due, kept for their room.
    pub(crate) due: RefCell<Vec<Waker>>,
}

/// How many operations of I/O are done without waiting before one has to let others go first.
const OPERATIONS_MAX: u32 = 128;

/// Whose time the loop lives in.
pub(crate) enum Time {
    Real,
    Virtual { clock: VirtualClock, participant: RefCell<Participant> },
}

/// What ends when the loop leaves its thread's stack: then the loop below it, if any, is the current one again.
pub(crate) struct Entered {
    below: *const Core,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.below);
    }
}

impl Core {
    pub(crate) fn new(
        shared: Arc<Shared>,
        clock: Option<VirtualClock>,
        budget: u32,
        direction: Direction,
    ) -> Self {
        shared.set_thread(thread::current());
        lease::open(&shared);
        let time = match clock {
            None => Time::Real,
            Some(clock) => {
                let asked = Waker::from(Arc::new(Asked(shared.clone())));
                Time::Virtual { participant: RefCell::new(clock.join(asked)), clock }
            }
        };
        Self {
            queue: RunQueue::default(),
            roll: Roll::default(),
            depot: Depot::default(),
            leases: Cell::new(0),
            wheel: RefCell::new(Wheel::new()),
            book: shared.ledger.book(),
            time,
            patience: Patience::default(),
            budget,
            direction,
            operations: Cell::new(OPERATIONS_MAX),
            stamp: Cell::new(0),
            main_ready: Cell::new(false),
            below: Cell::new(ptr::null()),
            cancelling: Cell::new(false),
            due: RefCell::default(),
            shared,
        }
    }

    /// The loop of `shared`, if this thread is turning it: perhaps further down on its stack, below another one.
    #[inline]
    pub(crate) fn current_of<'a>(shared: &Shared) -> Option<&'a Self> {
        let mut core = CURRENT.get();
        // SAFETY: as in `current`; and what a loop has below it stays there while it is on the stack.
        while let Some(current) = unsafe { core.as_ref() } {
            if ptr::eq(&*current.shared, shared) {
                return Some(current);
            }
            core = current.below.get();
        }
        None
    }

    /// The loop that this thread is turning.
    #[inline]
    pub(crate) fn current<'a>() -> Option<&'a Self> {
        // SAFETY: it is set only while the core is borrowed by a function further down on this thread's stack,
        // which is where every caller of this stands; none keeps what it gets beyond its own call.
        unsafe { CURRENT.get().as_ref() }
    }

    /// Whether this is the loop that the thread is turning, and not one below it.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        ptr::eq(CURRENT.get(), self)
    }

    /// Whether `driver` is that of a loop below the one that this thread is turning, which cannot turn meanwhile.
    pub(crate) fn stands_still(driver: &Driver) -> bool {
        let Some(current) = Self::current() else { return false };
        let mut below = current.below.get();
        // SAFETY: what a loop has below it stays there while it is on the stack.
        while let Some(core) = unsafe { below.as_ref() } {
            if core.shared.driver().is_some_and(|theirs| ptr::eq(&**theirs, driver)) {
                return true;
            }
            below = core.below.get();
        }
        false
    }

    /// Makes this the loop that the thread is turning, until what it gives is dropped; that must be before the
    /// loop is.
    #[must_use]
    pub(crate) fn enter(&self) -> Entered {
        let below = CURRENT.replace(self);
        // A loop that enters itself again keeps what it has below it.
        if !ptr::eq(below, self) {
            self.below.set(below);
        }
        Entered { below }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn now(&self) -> Instant {
        match &self.time {
            Time::Real => SystemClock.now(),
            Time::Virtual { clock, .. } => clock.now(),
        }
    }

    /// The time, in nanoseconds since the loop's epoch.
    #[inline]
    pub(crate) fn nanos_now(&self) -> u64 {
        self.shared.nanos(self.now())
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.get()
    }

    #[inline]
    pub(crate) fn show(&self, site: &'static Location<'static>) {
        self.shared.show(site);
    }

    pub(crate) fn show_named(&self, site: &'static Location<'static>, name: &Arc<str>) {
        self.shared.show_named(site, name);
    }

    pub(crate) fn main_is_ready(&self) {
        self.main_ready.set(true);
    }

    pub(crate) fn take_main_ready(&self) -> bool {
        self.main_ready.replace(false)
    }

    pub(crate) fn is_cancelling(&self) -> bool {
        self.cancelling.get()
    }

    // ---- the books ----

    pub(crate) fn count(&self, entry: Entry) {
        self.book.count(entry);
    }

    pub(crate) fn settle(&self, outcome: Outcome) {
        self.book.settle(outcome);
    }

    /// Puts a task on the roll that has not been there, and books it as accepted.
    #[inline]
    pub(crate) fn enrol(&self, task: TaskRef) {
        self.roll.enrol(task);
        self.count(Entry::Accepted);
    }

    pub(crate) fn strike(&self, task: TaskRef) {
        self.roll.strike(task);
    }

    /// The sums of the ledger, with the tasks that are there.
    pub(crate) fn balance(&self) -> Balance {
        self.shared.ledger.balance(self.roll.len() as u64)
    }

    pub(crate) fn tasks(&self) -> usize {
        self.roll.len()
    }

    /// How many tasks are ready to run, and of how many somebody holds a handle.
    pub(crate) fn ready_and_held(&self) -> (usize, usize) {
        let tasks = self.roll.tasks();
        let ready = tasks.iter().filter(|task| task.parked_since().is_none()).count();
        (ready, tasks.into_iter().filter(TaskRef::is_joined).count())
    }

    pub(crate) fn timers(&self) -> usize {
        self.wheel.borrow().len()
    }

    /// The tasks that are there, oldest first.
    pub(crate) fn stragglers(&self) -> Stragglers {
        let now = self.nanos_now();
        let straggler = |task: TaskRef| {
            let (activity, since) = match task.parked_since() {
                Some(parked) => (Activity::Parked, parked),
                None => (Activity::Queued, self.stamp.get()),
            };
            let age = Duration::from_nanos(now.saturating_sub(since));
            Straggler::new(task.origin(), activity, age).on(self.shared.name.clone())
        };
        self.roll.tasks().into_iter().map(straggler).collect()
    }

    // ---- timers ----

    /// Arms a timer, unless its time has come by that of this turn: never too early, because the turn's time is
    /// not.
    #[inline]
    pub(crate) fn arm(&self, nanos: u64, waker: &Waker) -> Option<Key> {
        if nanos <= self.stamp.get() {
            return None;
        }
        let waker = waker.clone();
        Some(self.wheel.borrow_mut().insert(nanos, waker))
    }

    /// Plans a timer for so many nanoseconds after the end of this turn, with nobody to be woken yet.
    #[inline]
    pub(crate) fn plan(&self, after: u64) -> Key {
        self.wheel.borrow_mut().plan(after)
    }

    /// Has what was planned count from now, if it does not count yet.
    pub(crate) fn settle_planned(&self) {
        let mut wheel = self.wheel.borrow_mut();
        if wheel.has_planned() {
            wheel.settle(self.nanos_now());
        }
    }

    /// Takes a timer out, and gives its time, in nanoseconds; none if it has fired.
    pub(crate) fn take_out(&self, key: Key) -> Option<u64> {
        self.settle_planned();
        let mut wheel = self.wheel.borrow_mut();
        wheel.waker(key)?;
        let at = wheel.time(key);
        let waker = wheel.remove(key);
        drop(wheel);
        drop(waker);
        Some(at)
    }

    /// Says who is woken by a timer. Gives false if it has fired.
    #[inline]
    pub(crate) fn rearm(&self, key: Key, waker: &Waker) -> bool {
        // Wakers are foreign code: they are cloned, and dropped, outside of the borrow.
        let armed = self.wheel.borrow_mut().waker(key).is_some();
        let Some(waker) = armed.then(|| waker.clone()) else { return false };
        let unneeded = match self.wheel.borrow_mut().waker(key) {
            Some(kept) => Ok(kept.replace(waker)),
            None => Err(waker),
        };
        unneeded.is_ok()
    }

    /// The same for a timer whose sleep has gone to another thread. Gives its time, in nanoseconds.
    pub(crate) fn hand_over(&self, key: Key, waker: &Waker) -> Option<u64> {
        self.settle_planned();
        self.rearm(key, waker).then(|| self.wheel.borrow().time(key))
    }

    #[inline]
    pub(crate) fn disarm(&self, key: Key) {
        let waker = self.wheel.borrow_mut().remove(key);
        drop(waker);
    }

    fn fire(&self) {
        let mut due = self.due.take();
        let mut wheel = self.wheel.borrow_mut();
        wheel.settle(self.stamp.get());
        wheel.advance(self.stamp.get(), &mut due);
        drop(wheel);
        self.wake_all(due);
    }

    /// Wakes whoever is due, and keeps the room.
    pub(crate) fn wake_all(&self, mut due: Vec<Waker>) {
        for waker in due.drain(..) {
            if contain(|| waker.wake()).is_err() {
                self.shared.stats.panic();
            }
        }
        self.due.replace(due);
    }

    // ---- I/O ----

    /// Whether another operation of I/O may be done; no, now and then, so that others can go first. Who asks again
    /// gets on: it may be somebody whom a loop below this one does not see.
    #[inline]
    pub(crate) fn may_operate(&self) -> bool {
        let left = self.operations.get();
        self.operations.set(if left == 0 { OPERATIONS_MAX } else { left });
        left > 0
    }

    #[inline]
    pub(crate) fn spend_operation(&self) {
        self.operations.set(self.operations.get().saturating_sub(1));
    }

    // ---- turning ----

    /// Takes what came in, runs up to a budget of what is ready, and fires the timers that are due.
    pub(crate) fn turn(&self) {
        self.take_in();
        for _ in 0..self.budget {
            if self.shared.is_forced() {
                break;
            }
            let Some(link) = self.direction.next(&self.queue) else { break };
            // SAFETY: the queue gave the link up; it lives until it is run.
            let kind = unsafe { link.as_ref() }.kind();
            self.direction.step(kind.sort);
            // SAFETY: `run` is of the link's own kind.
            unsafe { (kind.run)(link, self) };
        }
        self.stamp.set(self.nanos_now());
        self.shared.hide(self.stamp.get());
        if self.timers() > 0 {
            self.fire();
        }
    }

    pub(crate) fn take_in(&self) {
        if let Some((first, last)) = self.shared.inbox.take() {
            // SAFETY: the inbox gave the links up.
            unsafe { self.queue.append(first, last) };
        }
    }

    /// Whether there is nothing to do but for timers.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.shared.inbox.is_empty()
    }

    pub(crate) fn publish(&self) {
        self.shared.stats.set_in_flight(self.roll.len() as u64);
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        lease::close(&self.shared, self.leases.get());
    }
}
