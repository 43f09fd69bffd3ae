//! How nodes end, and what that means for those that depend on them.

use std::{cmp::Reverse, mem};

use ebbtide_lifecycle::{contain, time::Timer};

use super::{Fault, Going};
use crate::{
    core::state,
    graph::Condition,
    inputs::Sources,
    memory::{Alarm, What},
    op::Called,
    reach::Reach,
    run::Policy,
};

impl<R, T: Timer + Clone, M: Reach> Going<R, T, M> {
    /// A node has ended, here or on the pool, or is to be tried again.
    #[inline]
    pub(super) fn ends(&mut self, node: u32, called: Called) {
        match called {
            Called::Stored => self.ends_well(node),
            Called::Failed(failure) => self.fails(node, Fault::Failed(failure)),
            Called::Panicked(panic) => self.fails(node, Fault::Panicked(panic)),
            Called::Late => unreachable!("what the run itself polls is not late"),
        }
    }

    #[inline]
    pub(super) fn ends_well(&mut self, node: u32) {
        if !self.works.plan.traits(node).is_plain {
            self.let_go(node);
        }
        self.settle(node, state::OK, None);
    }

    /// A node that is not plain lets go of its inputs and of its class.
    pub(super) fn let_go(&mut self, node: u32) {
        let info = self.works.plan.info(node);
        if info.retry.is_some() {
            self.turn_of(node, |op, turn| op.release_inputs(turn));
        }
        self.works.plan.leave_class(node);
    }

    /// A node has come to its end: tells those that depend on it.
    #[inline]
    pub(super) fn settle(&mut self, node: u32, to: u8, spoiler: Option<u32>) {
        self.spoils |= spoiler.is_some();
        let memory = self.memory.as_mut().expect("there until the run has ended");
        let (core, ready) = (&memory.core, &mut memory.ready);
        core.has_ended(node, || *self.last_end.insert(core.nanos(self.works.timer.now())));
        core.set(node, to);
        core.tell_successors(core.plan.actions.step(node), spoiler, |next| ready.push(next));
        core.count_ended(1);
    }

    /// A node is not run. If its conditions have not been looked at, they let go of their inputs, too.
    pub(super) fn skip(&mut self, node: u32, spoiler: u32, with_conditions: bool) {
        if with_conditions {
            for condition in self.core().plan.actions.conditions(node) {
                if let Condition::Input(source) = condition {
                    self.turn_of(node, |_, turn| source.release(turn));
                }
            }
        }
        self.turn_of(node, |op, turn| op.release_inputs(turn));
        self.settle(node, state::SKIPPED, Some(spoiler));
    }

    /// A node has failed: it is tried again, or that was it.
    pub(super) fn fails(&mut self, node: u32, fault: Fault) {
        let again = match (&fault, self.works.plan.info(node).retry) {
            (Fault::Failed(_), Some(retry)) if !self.core().is_ending() => {
                retry.after(self.core().attempts(node))
            }
            _ => None,
        };
        let Some(pause) = again else {
            self.let_go(node);
            return self.fails_for_good(node, fault);
        };
        drop(contain(|| drop(fault)));
        if !self.has_time_left(node) {
            self.let_go(node);
            return self.fails_for_good(node, Fault::TimedOut(self.timeout_of(node)));
        }
        self.works.plan.leave_class(node);
        self.core().set(node, state::PAUSED);
        self.waits_for += 1;
        if let Some(at) = self.works.timer.now().checked_add(pause) {
            self.memory().alarms.push(Reverse(Alarm { at, node, what: What::Retry }));
        }
    }

    /// Whether a node that has failed may be tried again as far as its timeout is concerned.
    fn has_time_left(&mut self, node: u32) -> bool {
        if self.has_timeout(node) {
            let begun = self.begun(node);
            self.limit(node, begun);
        }
        !self.has_no_time_left(node)
    }

    pub(super) fn fails_for_good(&mut self, node: u32, fault: Fault) {
        let to = match fault {
            Fault::Panicked(_) => state::PANICKED,
            Fault::TimedOut(_) => state::TIMED_OUT,
            Fault::Failed(_) | Fault::NotRun => state::FAILED,
        };
        let core = self.core();
        if let Some(fallback) = core.plan.actions.fallback(node)
            && contain(|| self.turn_of(node, |_, turn| fallback(turn))).is_ok()
        {
            self.faults.push((node, fault));
            return self.settle(node, state::FELL_BACK, None);
        }
        self.faults.push((node, fault));
        self.settle(node, to, Some(node));
        if self.options.policy == Policy::FailFast {
            self.end_early();
        }
    }

    /// Nothing further begins: what has not begun is taken back.
    pub(super) fn end_early(&mut self) {
        if self.core().is_ending() {
            return;
        }
        self.core().end();
        for node in 0..self.works.plan.outline.nodes.len() as u32 {
            self.take_back(node);
        }
        for node in mem::take(&mut self.memory().for_pool) {
            self.works.plan.leave_class(node);
        }
        self.memory().ready.clear();
        self.memory().alarms.retain(|alarm| alarm.0.what != What::Retry);
    }

    /// Takes a node back that has not begun.
    pub(super) fn take_back(&mut self, node: u32) {
        let class = self.works.plan.info(node).class.as_ref();
        let core = self.core();
        match core.state(node) {
            state::IN_LINE if class.is_some_and(|class| class.withdraw(&core.inbox, node)) => {
                core.set(node, state::CANCELLED);
                self.waits_for -= 1;
            }
            state::PAUSED => {
                core.set(node, state::CANCELLED);
                self.turn_of(node, |op, turn| op.release_inputs(turn));
                self.waits_for -= 1;
            }
            state::QUEUED if core.exchange(node, state::QUEUED, state::CANCELLED) => {
                core.change_on_pool(-1);
                core.plan.leave_class(node);
            }
            _ => {}
        }
    }
}
