//! What a loop does between two turns: it looks at I/O, and when nothing is ready it sleeps, until the next timer or
//! until something comes in.

use std::{
    cell::RefCell,
    sync::Arc,
    task::Waker,
    thread,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::{Clock, Participant, Rest, SystemClock, VirtualClock};

use crate::{
    core::{Core, Time},
    io::{Driver, Limit},
    shared::Shared,
};

impl Core {
    /// Looks at I/O without waiting.
    fn look_at_io(&self) {
        if let Some(driver) = self.shared().driver().filter(|driver| driver.has_sources()) {
            let mut due = self.due.take();
            wait_for_io(driver, Limit::Now, &mut due);
            self.wake_all(due);
        }
    }

    /// Between two turns: looks at I/O, and sleeps if there is nothing to do until then: until a timer is due,
    /// something comes in, I/O is ready, or `until`.
    pub(crate) fn pause(&self, until: Option<Instant>) {
        if !self.is_quiet() || self.main_ready.get() {
            return self.look_at_io();
        }
        self.publish();
        match &self.time {
            Time::Real => self.doze(self.next_look(until)),
            Time::Virtual { clock, participant } => self.rest(clock, participant, until),
        }
    }

    /// When to look at the timers next, or `until` if that is earlier.
    fn next_look(&self, until: Option<Instant>) -> Option<Instant> {
        // Those whom the end of the turn has woken may have planned more.
        self.settle_planned();
        let wheel = self.wheel.borrow();
        let look = match self.time {
            Time::Real => wheel.next_look_of_many(),
            Time::Virtual { .. } => wheel.next_look(),
        };
        drop(wheel);
        let look = look.and_then(|nanos| self.shared().instant(nanos));
        [look, until].into_iter().flatten().min()
    }

    /// Stays awake for a while, if something is likely to come soon; else sleeps.
    fn doze(&self, until: Option<Instant>) {
        if let Some(linger) = self.patience.linger(|| SystemClock.now()) {
            let end = until.map_or(linger, |until| until.min(linger));
            while SystemClock.now() < end {
                // Whoever is to bring it may need this CPU.
                thread::yield_now();
                self.look_at_io();
                if !self.is_quiet() || self.main_ready.get() {
                    return;
                }
            }
            self.patience.in_vain();
        }
        let asleep = SystemClock.now();
        let was_brought = self.park(until) || !self.shared().inbox.is_empty();
        self.patience.slept(SystemClock.now() - asleep, was_brought);
    }

    /// Sleeps. Gives whether I/O has ended that.
    fn park(&self, until: Option<Instant>) -> bool {
        if !self.shared().inbox.arm() {
            self.look_at_io();
            return false;
        }
        let mut due = self.due.take();
        match (self.shared().driver(), until) {
            (Some(driver), None) => wait_for_io(driver, Limit::Never, &mut due),
            (None, None) => thread::park(),
            // The driver keeps the time better than the system keeps that of a parked thread.
            (_, Some(until)) => match self.shared().driver_or_new() {
                Ok(driver) => wait_for_io(driver, Limit::Until(until), &mut due),
                Err(_) => thread::park_timeout(until.saturating_duration_since(SystemClock.now())),
            },
        }
        self.shared().inbox.disarm();
        let by_io = !due.is_empty();
        self.wake_all(due);
        by_io
    }

    fn rest(&self, clock: &VirtualClock, participant: &RefCell<Participant>, until: Option<Instant>) {
        loop {
            let look = participant.borrow_mut().look();
            self.look_at_io();
            let look_again = self.next_look(until);
            if !self.is_quiet() || look_again.is_some_and(|at| self.now() >= at) {
                return participant.borrow_mut().run();
            }
            // What is waited for comes in real time. Until then time stands still, unless it is advanced by hand, or
            // this loop is to end by some time.
            let awaited = || self.shared().driver().is_some_and(|driver| driver.is_awaited());
            let _hold = (until.is_none() && awaited()).then(|| clock.hold());
            let rest = participant.borrow_mut().rest(look, look_again);
            if rest == Rest::Wait {
                self.park(None);
            }
        }
    }
}

/// Waits for I/O, and puts those who are to be woken into `due`.
fn wait_for_io(driver: &Driver, limit: Limit, due: &mut Vec<Waker>) {
    if driver.wait(limit, due).is_err() {
        // The system refuses a wait only if somebody has closed the loop's own descriptors. Then nothing wakes the
        // loop any more but its looking: it goes on slowly rather than lose what it has accepted.
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// Wakes a loop that rests in virtual time, so that it looks again.
pub(crate) struct Asked(pub(crate) Arc<Shared>);

impl std::task::Wake for Asked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
