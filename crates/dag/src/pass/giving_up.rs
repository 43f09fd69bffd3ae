//! Giving up on what is under way: at a deadline, when a run is cancelled, and on single nodes that are late.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use ebbtide_lifecycle::time::Timer;

use super::Going;
use crate::{
    class::Place,
    core::state,
    error::RunError,
    graph::{Kind, OnTimeout},
    reach::{Kept, Reach},
};

impl<R, T: Timer + Clone, M: Reach> Going<R, T, M> {
    /// An async node that runs is late: it goes on elsewhere, or is dropped.
    pub(super) fn give_up_on_task(&mut self, node: u32) {
        let works = self.works.clone();
        let info = works.plan.info(node);
        if info.retry.is_some() {
            self.turn_of(node, |op, turn| op.release_inputs(turn));
        }
        let place = info.class.clone().map(Place);
        match (info.on_timeout, &works.runners) {
            (None | Some(OnTimeout::Detach), Some(runners)) => {
                let berths = &mut self.memory().berths;
                let number = berths.of(node).expect("a node that runs has its future");
                let block = berths.move_out(number);
                // SAFETY: the node has occupied the berth, so its future is in the block.
                let mut runner = unsafe { works.plan.actions.op(node).detach(block) };
                if let Some(place) = place {
                    runner = M::keep_place(runner, Kept(place));
                }
                runners.adopt(runner, works.plan.origin(node));
                self.late.push(node);
            }
            _ => self.drop_future(node),
        }
    }

    /// Drops the future of an async node that runs.
    fn drop_future(&mut self, node: u32) {
        let memory = self.memory();
        let number = memory.berths.of(node).expect("a node that runs has its future");
        let room = memory.berths.berth(number).room();
        memory.berths.vacate(number);
        // SAFETY: the node has occupied the berth until now, and nobody else has come there.
        unsafe { memory.core.plan.actions.op(node).cancel(room) };
    }

    /// Gives up on a node that a thread of the pool runs.
    pub(super) fn give_up_on_pool(&mut self, node: u32, to: u8) -> bool {
        let (works, core) = (&self.works, self.core());
        let given_up = core.give_up(node, to, || {
            // A stop that has given up counts nothing more; the place in the class is kept all the same.
            let fork = self.admission.as_ref().map(|run| run.fork(&works.plan.origin(node)));
            let admission = fork.and_then(Result::ok);
            works.ticket(admission, works.plan.info(node).class.clone().map(Place))
        });
        if given_up {
            core.change_on_pool(-1);
            self.late.push(node);
        }
        given_up
    }

    /// The request's deadline has come: gives up on all that is under way.
    pub(super) fn deadline_comes(&mut self) {
        let (mut running, mut not_started) = (Vec::new(), Vec::new());
        let core = self.core();
        for (node, info) in core.plan.outline.nodes.iter().enumerate() {
            match core.state(node as u32) {
                // What is cancelled already was on the pool, which has seen that the deadline had come.
                state::WAITING | state::IN_LINE | state::PAUSED | state::QUEUED | state::CANCELLED => {
                    not_started.push(info.name.clone());
                }
                state::RUNNING | state::STORING => running.push(info.name.clone()),
                _ => {}
            }
        }
        self.give_up(RunError::Deadline { running, not_started });
    }

    /// The run ends because of `verdict`: nothing further begins, and what is under way is given up on.
    pub(super) fn give_up(&mut self, verdict: RunError) {
        let cancels = matches!(verdict, RunError::Cancelled { .. });
        self.has_given_up = true;
        // The first error wins.
        if !self.must_fail() {
            self.verdict.get_or_insert(verdict);
        }
        self.end_early();
        for node in 0..self.works.plan.outline.nodes.len() as u32 {
            if self.core().state(node) != state::RUNNING {
                continue;
            }
            let to = if cancels { state::CANCELLED } else { state::TIMED_OUT };
            let kind = self.works.plan.info(node).kind;
            match kind {
                // Foreign code has panicked in the midst of its start or of its end: there is nothing to give up on.
                Kind::Async if self.memory().berths.of(node).is_none() => self.core().set(node, to),
                Kind::Async => {
                    if cancels {
                        self.cancel_task(node);
                    } else {
                        self.give_up_on_task(node);
                    }
                    self.waits_for -= 1;
                    self.core().set(node, to);
                }
                Kind::Cpu | Kind::Blocking => {
                    self.give_up_on_pool(node, to);
                }
                Kind::Inline => {}
            }
        }
    }

    pub(super) fn cancel_task(&mut self, node: u32) {
        self.drop_future(node);
        self.let_go(node);
    }

    pub(super) fn look_at_token(&mut self) {
        let Some((wait, rearmed, waker)) = &mut self.token else { return };
        rearmed.rearm();
        let polled = Future::poll(Pin::new(wait), &mut Context::from_waker(waker));
        if let Poll::Ready(reason) = polled {
            self.token = None;
            self.give_up(RunError::Cancelled { reason });
        }
    }
}
