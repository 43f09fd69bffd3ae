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
                What::Timeout => self.times_out(node),
                What::Retry => {
                    self.waits_for -= 1;
                    self.core().set(node, state::WAITING);
                    self.memory().ready.push(node);
                }
                What::Watch => self.watch(now),
            }
        }
        // If all nodes have ended by now, that was in time.
        if self.deadline.is_expired(now) && !self.has_given_up && self.core().left() > 0 {
            self.deadline_comes();
        }
    }

    /// A node that has begun to wait may take only so long from now on. Those that are tried again have been
    /// [limited](Going::limit).
    pub(super) fn time(&mut self, node: u32) {
        if self.has_timeout(node) && !self.is_tried_again(node) {
            self.memory().to_be_timed.push(node);
        }
    }

    pub(super) fn has_timeout(&self, node: u32) -> bool {
        self.works.plan.traits(node).has_timeout || self.options.node_timeout.is_some()
    }

    /// A node that may be tried again has begun at `begun`: from the first time on, all its attempts together may take
    /// only so long.
    pub(super) fn limit(&mut self, node: u32, begun: Instant) {
        let timeout = self.timeout_of(node);
        let memory = self.memory.as_mut().expect("there until the run has ended");
        let Some(ends_by @ None) = memory.ends_by.get_mut(node as usize) else { return };
        *ends_by = begun.checked_add(timeout);
        let alarm = |at| Reverse(Alarm { at, node, what: What::Timeout });
        memory.alarms.extend(ends_by.map(alarm));
    }

    /// Whether there is no time left for another attempt of a node.
    pub(super) fn has_no_time_left(&self, node: u32) -> bool {
        let memory = self.memory.as_ref().expect("there until the run has ended");
        let ends_by = memory.ends_by.get(node as usize).copied().flatten();
        ends_by.is_some_and(|at| self.works.timer.now() >= at)
    }

    /// When a node that runs here or on the pool has begun; now, if that was not noted.
    pub(super) fn begun(&self, node: u32) -> Instant {
        let begun = Some(self.core().begun(node)).filter(|begun| !begun.is_zero());
        begun.and_then(|begun| self.core().start.checked_add(begun)).unwrap_or_else(|| self.works.timer.now())
    }

    pub(super) fn timeout_of(&self, node: u32) -> Duration {
        self.works.plan.info(node).timeout.or(self.options.node_timeout).unwrap_or(Duration::MAX)
    }

    /// Whether a node on the pool has had its time.
    fn has_had_its_time(&self, node: u32, now: Instant) -> bool {
        let core = self.core();
        let begun = core.begun(node);
        !begun.is_zero()
            && now.saturating_duration_since(core.start).saturating_sub(begun) >= self.timeout_of(node)
    }

    /// A node has had its time, wherever it is; or it has ended long ago.
    fn times_out(&mut self, node: u32) {
        let is_async = self.works.plan.traits(node).kind == Kind::Async;
        match self.core().state(node) {
            state::RUNNING if is_async => {
                self.give_up_on_task(node);
                self.waits_for -= 1;
            }
            state::RUNNING if self.give_up_on_pool(node, state::STORING) => {}
            state::PAUSED => {
                self.memory().alarms.retain(|alarm| alarm.0.node != node || alarm.0.what != What::Retry);
                self.waits_for -= 1;
                self.turn_of(node, |op, turn| op.release_inputs(turn));
            }
            state::IN_LINE => {
                // If it has just got a place, that is given back when it hears of it.
                let class = self.works.plan.info(node).class.as_ref();
                if class.is_some_and(|class| class.withdraw(&self.core().inbox, node)) {
                    self.waits_for -= 1;
                }
                self.turn_of(node, |op, turn| op.release_inputs(turn));
            }
            state::QUEUED if self.core().exchange(node, state::QUEUED, state::STORING) => {
                self.core().change_on_pool(-1);
                self.works.plan.leave_class(node);
                self.turn_of(node, |op, turn| op.release_inputs(turn));
            }
            // It has got its place in its class in this very pass.
            state::WAITING if self.is_for_pool(node) => {
                self.memory().for_pool.retain(|other| *other != node);
                self.works.plan.leave_class(node);
                self.turn_of(node, |op, turn| op.release_inputs(turn));
            }
            // One that is ready to be tried again is seen to when it begins, and one that is about to end when it has
            // failed.
            _ => return,
        }
        self.core().set(node, state::STORING);
        self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
    }

    fn is_for_pool(&mut self, node: u32) -> bool {
        self.memory().for_pool.contains(&node)
    }

    /// Looks at the nodes on the pool: those that have had their time are given up on.
    fn watch(&mut self, now: Instant) {
        self.watches = false;
        for node in 0..self.works.plan.outline.nodes.len() as u32 {
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

    /// Sees to it that the run is woken in time. Gives whether the time to look has come already.
    pub(super) fn set_alarms(&mut self) -> bool {
        if self.has_ended() {
            return false;
        }
        let on_pool = self.core().watches && self.core().on_pool() > 0 && !self.watches;
        if !self.memory().to_be_timed.is_empty() || on_pool {
            // One reading for all, at the end: none of them is given up on too early.
            let now = self.works.timer.now();
            let mut to_be_timed = mem::take(&mut self.memory().to_be_timed);
            for node in to_be_timed.drain(..) {
                // It may have ended meanwhile.
                let may_end = matches!(self.core().state(node), state::IN_LINE..=state::RUNNING);
                if may_end && let Some(at) = now.checked_add(self.timeout_of(node)) {
                    self.memory().alarms.push(Reverse(Alarm { at, node, what: What::Timeout }));
                }
            }
            self.memory().to_be_timed = to_be_timed;
            if on_pool {
                self.set_watch(now);
            }
        }
        self.set_sleep()
    }

    /// Sets an alarm for when the first node on the pool may have had its time.
    fn set_watch(&mut self, now: Instant) {
        let shortest = [self.works.shortest_on_pool, self.options.node_timeout].into_iter().flatten().min();
        let Some(shortest) = shortest else { return };
        let core = self.core();
        // Those that run know when they began; who begins later has at least the shortest time.
        let ends = (0..self.works.plan.outline.nodes.len() as u32)
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

    /// Sleeps until the first time that something is to be looked at. Gives whether that has come already.
    fn set_sleep(&mut self) -> bool {
        let first = self.memory().alarms.peek().map(|alarm| alarm.0.at);
        let deadline = self.deadline.instant().filter(|_| !self.has_given_up);
        let Some(first) = first.into_iter().chain(deadline).min() else { return false };
        if self.memory().sleeps_until.is_some_and(|until| until <= first) {
            return false;
        }
        let works = self.works.clone();
        self.memory().sleep_until(&works.timer, first)
    }
}
