//! How a loop comes to its end: what it still runs, what it drops, and in which order.

use std::{sync::atomic::Ordering, thread, time::Instant};

use crate::{core::Core, inbox::Sort, run_queue::RunQueue, time::Wheel};

impl Core {
    /// Turns until no task is left and everything that came in has run, or until what `until` says. Gives
    /// whether it got there.
    pub(crate) fn drive_until_empty(&self, until: impl Fn() -> Option<Instant>) -> bool {
        loop {
            self.turn();
            if self.tasks() == 0 && self.is_quiet() {
                return true;
            }
            // Nobody polls the future of a `block_on` that has returned: a wake-up of it that came late is nothing to
            // do.
            self.take_main_ready();
            let until = until();
            if until.is_some_and(|until| self.now() >= until) {
                return false;
            }
            self.pause(until);
        }
    }

    /// Ends the loop: runs the posts that were accepted, or abandons them, drops the tasks, and closes for good.
    pub(crate) fn end(&self, abandon: bool) {
        let _entered = self.enter();
        if abandon {
            self.shared().force();
        }
        self.run_posts();
        let before = self.balance();
        self.cancel_tasks();
        self.die();
        self.end_timers();
        self.end_io();
        self.shared().hide(self.stamp());
        let balance = self.balance();
        let cut_off = balance.cancelled + balance.abandoned - before.cancelled - before.abandoned;
        self.shared().cut_off.store(cut_off, Ordering::Release);
        if !balance.is_balanced() {
            self.shared().stats.unbalanced();
            debug_assert!(thread::panicking(), "the ledger of a loop balances: {balance}");
        }
    }

    /// Runs all posts that were accepted, in order, and nothing else: a task that wakes itself cannot hold it up.
    pub(crate) fn run_posts(&self) {
        let tasks = RunQueue::default();
        while !self.shared().is_forced() {
            self.take_in();
            let Some(link) = self.queue.pop() else { break };
            // SAFETY: the queue gave the link up; it lives until it is run.
            let kind = unsafe { link.as_ref() }.kind();
            if kind.sort == Sort::Post {
                self.direction.step(kind.sort);
                // SAFETY: `run` is of the link's own kind.
                unsafe { (kind.run)(link, self) };
            } else {
                // SAFETY: the link is in no list now, and lives as it did in the queue.
                unsafe { tasks.push(link) };
            }
        }
        while let Some(link) = tasks.pop() {
            // SAFETY: as above.
            unsafe { self.queue.push(link) };
        }
    }

    /// Ends everything without running it: posts are abandoned, tasks dropped.
    pub(crate) fn abandon_posts(&self) {
        self.take_in();
        while let Some(link) = self.queue.pop() {
            // SAFETY: the queue gave the link up; it lives until it is abandoned.
            let kind = unsafe { link.as_ref() }.kind();
            // SAFETY: `abandon` is of the link's own kind.
            unsafe { (kind.abandon)(link, self) };
            self.take_in();
        }
    }

    /// Wakes those who sleep by what is left of the timers, after saying that there are none any more: they go
    /// on to sleep by other means. The tasks of this loop are gone by then.
    pub(crate) fn end_timers(&self) {
        let mut wheel = self.wheel.replace(Wheel::new());
        wheel.settle(self.nanos_now());
        let (times, wakers) = wheel.into_times_and_wakers();
        self.shared().end_timers(times);
        self.wake_all(wakers);
    }

    /// Wakes those who wait for I/O of this loop: they get an error. The tasks of this loop are gone by then.
    pub(crate) fn end_io(&self) {
        if let Some(driver) = self.shared().end_io() {
            let mut due = self.due.take();
            driver.end(&mut due);
            self.wake_all(due);
        }
    }

    /// Closes the inner door and drops every task. Dropping one may wake others, or bring in what is then refused.
    pub(crate) fn cancel_tasks(&self) {
        self.cancelling.set(true);
        loop {
            self.abandon_posts();
            let Some(task) = self.roll.last() else { break };
            task.drop_future(self);
        }
    }

    /// Closes the inbox for everything, once nothing is in it.
    pub(crate) fn die(&self) {
        while !self.shared().inbox.die() {
            self.abandon_posts();
        }
        self.publish();
    }
}
