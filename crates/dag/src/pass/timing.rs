//! Nodes that have had their time, and the one sleep that waits for the first of them.

use std::{
    cmp::Reverse,
    mem,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::Timer;

use super::{Fault, Going};
use crate::{
    core::state,
    graph::Kind,
    memory::{Alarm, What},
    reach::Reach,
};

impl<R, T: Timer + Clone, M: Reach> Going<R, T, M> {
    /// Some time has come.
    pub(super) fn look_at_time(&mut self) {
        let now = self.works.timer.now();
        while let Some(Reverse(alarm)) = self.memory().alarms.peek().copied() {
            if alarm.at > now {
                break;
            }
            self.memory().alarms.pop();
            let Alarm { node, what, .. } = alarm;
            match what {
                // It may have ended long ago.
                What::Timeout => match self.core().state(node) {
                    state::RUNNING => self.times_out(node),
                    state::PAUSED => self.times_out_paused(node),
                    _ => {}
                },
                What::Retry if self.has_had_its_time(node, now) => self.times_out_paused(node),
                What::Retry => {
                    self.waits_for -= 1;
                    self.enter(node);
                }
                What::Watch => self.watch(now),
            }
        }
        if self.deadline.is_expired(now) && !self.core().is_ending() {
            self.deadline_comes();
        }
    }

    pub(super) fn timeout_of(&self, node: u32) -> Duration {
        self.works.plan.info(node).timeout.or(self.options.node_timeout).unwrap_or(Duration::MAX)
    }

    /// Whether a node on the pool, or one that was there, has had its time.
    pub(super) fn has_had_its_time(&self, node: u32, now: Instant) -> bool {
        let core = self.core();
        let begun = core.begun(node);
        !begun.is_zero()
            && now.saturating_duration_since(core.start).saturating_sub(begun) >= self.timeout_of(node)
    }

    /// An async node has had its time.
    pub(super) fn times_out(&mut self, node: u32) {
        self.give_up_on_task(node);
        self.waits_for -= 1;
        self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
    }

    /// A node that was to be tried again has had its time.
    pub(super) fn times_out_paused(&mut self, node: u32) {
        self.memory().alarms.retain(|alarm| alarm.0.node != node || alarm.0.what != What::Retry);
        self.waits_for -= 1;
        self.turn_of(node, |op, turn| op.release_inputs(turn));
        self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
    }

    /// Looks at the nodes on the pool: those that have had their time are given up on.
    pub(super) fn watch(&mut self, now: Instant) {
        self.watches = false;
        for node in 0..self.works.plan.nodes.len() as u32 {
            let info = self.works.plan.info(node);
            if !matches!(info.kind, Kind::Cpu | Kind::Blocking) || self.core().state(node) != state::RUNNING {
                continue;
            }
            if self.has_had_its_time(node, now) && self.give_up_on_pool(node, state::STORING) {
                self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
            }
        }
    }

    /// Brings CPU nodes that have become ready to the pool.
    pub(super) fn bring_to_pool(&mut self) {
        let memory = self.memory.as_mut().expect("there until the run has ended");
        if !memory.for_pool.is_empty() {
            let pool = self.works.pool.as_ref().expect("an engine with CPU nodes has a pool");
            pool.bring(&memory.core, &mut memory.for_pool);
        }
    }

    /// Sees to it that the run is woken in time.
    pub(super) fn set_alarms(&mut self) {
        if self.has_ended() {
            return;
        }
        let on_pool = self.core().watches && self.core().on_pool() > 0 && !self.watches;
        if !self.memory().to_be_timed.is_empty() || on_pool {
            // One reading for all, at the end: none of them is given up on too early.
            let now = self.works.timer.now();
            let mut to_be_timed = mem::take(&mut self.memory().to_be_timed);
            for node in to_be_timed.drain(..) {
                // It may have ended meanwhile, or be paused.
                let may_end = matches!(self.core().state(node), state::RUNNING | state::PAUSED);
                if may_end && let Some(at) = now.checked_add(self.timeout_of(node)) {
                    self.memory().alarms.push(Reverse(Alarm { at, node, what: What::Timeout }));
                }
            }
            self.memory().to_be_timed = to_be_timed;
            if on_pool {
                self.set_watch(now);
            }
        }
        self.set_sleep();
    }

    /// Sets an alarm for when the first node on the pool may have had its time.
    pub(super) fn set_watch(&mut self, now: Instant) {
        let shortest = [self.works.shortest_on_pool, self.options.node_timeout].into_iter().flatten().min();
        let Some(shortest) = shortest else { return };
        let core = self.core();
        // Those that run know when they began; who begins later has at least the shortest time.
        let ends = (0..self.works.plan.nodes.len() as u32)
            .filter(|node| {
                let on_pool = matches!(self.works.plan.info(*node).kind, Kind::Cpu | Kind::Blocking);
                on_pool && core.state(*node) == state::RUNNING
            })
            .filter_map(|node| core.start.checked_add(core.begun(node))?.checked_add(self.timeout_of(node)))
            .min();
        let Some(later) = now.checked_add(shortest) else { return };
        let at = ends.map_or(later, |end| end.min(later)).max(now);
        self.memory().alarms.push(Reverse(Alarm { at, node: 0, what: What::Watch }));
        self.watches = true;
    }

    /// Sleeps until the first time that something is to be looked at.
    pub(super) fn set_sleep(&mut self) {
        loop {
            let first = self.memory().alarms.peek().map(|alarm| alarm.0.at);
            let deadline = self.deadline.instant().filter(|_| !self.core().is_ending());
            let Some(first) = first.into_iter().chain(deadline).min() else { return };
            if self.memory().sleeps_until.is_some_and(|until| until <= first) {
                return;
            }
            let works = self.works.clone();
            if !self.memory().sleep_until(&works.timer, first) {
                return;
            }
            self.look_at_time();
            if self.has_ended() || !self.memory().ready.is_empty() {
                return;
            }
        }
    }
}
