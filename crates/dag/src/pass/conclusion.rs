//! The end of a run: its outputs, or why there are none; and letting go of everything.

use std::{mem, sync::Arc};

use ebbtide_lifecycle::{Outcome, Reason, contain, time::Timer};

use super::{Fault, Going};
use crate::{
    core::state,
    error::RunError,
    inbox::Post,
    reach::Reach,
    report::{Ending, Report},
    run::Policy,
    slot::Turn,
};

impl<R, T: Timer + Clone, M: Reach> Going<R, T, M> {
    /// The run has ended: gives its outputs, or why there are none.
    pub(crate) fn conclude<V>(
        &mut self,
        take: impl FnOnce(Turn<'_>) -> V,
    ) -> (Result<V, RunError>, Option<Report>) {
        let core = self.core().clone();
        let missing = core
            .plan
            .outputs
            .iter()
            .find(|edge| edge.required && !matches!(core.state(edge.node), state::OK | state::FELL_BACK));
        let verdict = self.verdict.take();
        let fails = verdict.is_some() || missing.is_some() || self.must_fail();
        let result = if fails {
            Err(verdict.unwrap_or_else(|| self.first_error(missing.map(|edge| edge.node))))
        } else {
            // SAFETY: all nodes have ended, and the outputs are taken once, by this.
            Ok(take(unsafe { core.slots.turn() }))
        };
        let report = self.options.reported.then(|| {
            let ending = Ending {
                faults: &self.faults,
                late: &self.late,
                error: result.as_ref().err(),
                took: self.works.timer.now().saturating_duration_since(core.start),
                deadline: self.deadline.remaining(core.start),
                node_timeout: self.options.node_timeout,
            };
            Report::of(&core, &ending)
        });
        if result.is_ok() {
            let (works, start) = (&self.works, core.start);
            works.went_well(|| works.timer.now().saturating_duration_since(start));
        }
        drop(core);
        let outcome = match &result {
            Ok(_) => Outcome::Completed,
            Err(RunError::Cancelled { .. }) => Outcome::Cancelled,
            Err(_) => Outcome::Failed,
        };
        self.leave(outcome);
        (result, report)
    }

    /// Whether a failed node alone makes the run fail.
    pub(super) fn must_fail(&self) -> bool {
        let core = self.core();
        let is_bad = |(node, _): &(u32, Fault)| core.state(*node) != state::FELL_BACK;
        self.options.policy == Policy::FailFast && self.faults.iter().any(is_bad)
    }

    /// What to say of a run that has failed: the first error, or if the run went on after that, why its output is
    /// missing.
    pub(super) fn first_error(&mut self, missing: Option<u32>) -> RunError {
        let core = self.core().clone();
        let name = |node: u32| core.plan.info(node).name.clone();
        let missing_because = missing.map(|node| core.spoiler(node).unwrap_or(node));
        let is_it = |node: u32| match (self.options.policy, missing_because) {
            (Policy::FinishIndependent, Some(because)) => node == because,
            _ => core.state(node) != state::FELL_BACK,
        };
        let at = self.faults.iter().position(|(node, _)| is_it(*node));
        let Some((node, fault)) = at.map(|at| &mut self.faults[at]) else {
            let node = missing.expect("a run without a fault lacks an output");
            return RunError::Skipped { node: name(node), by: name(core.spoiler(node).unwrap_or(node)) };
        };
        let (number, node) = (*node, name(*node));
        match mem::replace(fault, Fault::NotRun) {
            Fault::Failed(failure) => RunError::Failed { node, failure, attempts: core.attempts(number) },
            Fault::Panicked(panic) => RunError::Panicked { node, panic },
            Fault::TimedOut(after) => RunError::TimedOut { node, after },
            Fault::NotRun => RunError::NotRun { node },
        }
    }

    /// The run is dropped before its end.
    pub(crate) fn abandon(&mut self, outcome: Outcome) {
        if self.memory.is_some() {
            self.give_up(RunError::Cancelled { reason: Reason::requested("dropped") });
            self.leave(outcome);
        }
    }

    /// Lets go of everything. What is dropped here is the user's, and may panic.
    fn leave(&mut self, outcome: Outcome) {
        let Some(mut memory) = self.memory.take() else { return };
        self.works.ends(self.live);
        self.token = None;
        memory.clear();
        memory.core.inbox.close(&mut memory.post);
        self.give_places_back(&mut memory.post);
        if self.waits_for > 0 {
            for class in self.works.plan.outline.nodes.iter().filter_map(|info| info.class.as_ref()) {
                class.forget(&memory.core.inbox);
            }
        }
        let is_clean = outcome == Outcome::Completed && self.faults.is_empty();
        for fault in self.faults.drain(..) {
            drop(contain(|| drop(fault)));
        }
        if !self.works.plan.one_thread {
            memory.core.stacks.call_off();
        }
        // If a thread of the pool still has it, because a node goes on there or has just ended, it goes with that.
        if let Some(core) = Arc::get_mut(&mut memory.core) {
            drop(contain(|| core.forget(is_clean)));
            self.works.keep(memory);
        } else {
            drop(memory);
        }
        if let Some(admission) = self.admission.take() {
            admission.settle(outcome);
        }
    }

    /// Gives back the places of nodes that got them, or had them until they ended, and that nobody has seen to.
    fn give_places_back(&self, post: &mut Post) {
        for node in post.granted.drain(..) {
            self.works.plan.leave_class(node);
        }
        for (node, called) in post.ended.drain(..) {
            self.works.plan.leave_class(node);
            drop(contain(|| drop(called)));
        }
        post.clear();
    }
}
