//! Nodes that have nothing to be seen to before or after them, one after the other.
//!
//! Most nodes are like that, and most end well. What they need is looked up once for all of them; whatever else
//! happens is left to the ways that know of everything.

use std::task::{Context, Poll};

use ebbtide_lifecycle::time::Timer;

use super::Going;
use crate::{
    core::state,
    graph::Kind,
    op::{Call, Called},
    reach::Reach,
};

/// What a node has come to that needs to be seen to.
enum Matter {
    Ended(u32, Called),
    Waits(u32),
}

impl<R, T: Timer + Clone, M: Reach> Going<R, T, M> {
    /// Runs nodes that are ready, for as long as the next one is plain and runs here.
    pub(super) fn run_plain(&mut self) {
        // Nothing but the run itself has nodes skipped, and ends itself: neither happens in between.
        if self.spoils || self.core().is_ending() || self.core().has_no_time {
            return;
        }
        while let Some(matter) = self.run_plain_until() {
            match matter {
                Matter::Ended(node, called) => return self.ends(node, called),
                Matter::Waits(node) => {
                    self.waits_for += 1;
                    self.time(node);
                }
            }
        }
    }

    #[inline]
    fn run_plain_until(&mut self) -> Option<Matter> {
        let (works, deadline) = (&*self.works, self.deadline.instant());
        let memory = &mut **self.memory.as_mut().expect("there until the run has ended");
        let (core, plan, ready) = (&*memory.core, &*works.plan, &mut memory.ready);
        let (mut matter, mut ended) = (None, 0);
        while self.may_begin > 0
            && let Some(node) = ready.first()
        {
            let step = plan.actions.step(node);
            if !step.traits.is_plain || matches!(step.traits.kind, Kind::Cpu | Kind::Blocking) {
                break;
            }
            if deadline.is_some_and(|at| works.timer.now() >= at) {
                break;
            }
            ready.pop();
            self.may_begin -= 1;
            core.set(node, state::RUNNING);
            let last_end = self.last_end.take();
            let call = Call {
                // SAFETY: as in `call`.
                turn: unsafe { core.slots.turn() },
                cx: core.cx(node, core.count_attempt(node)),
                again: false,
                claim: None,
            };
            // How it ended is looked at where it lies: seldom is it anything that has to be moved.
            if step.traits.kind == Kind::Inline {
                core.begins(node, || last_end.unwrap_or_else(|| core.nanos(works.timer.now())));
                let called = step.op().call(call);
                if !matches!(called, Called::Stored) {
                    matter = Some(Matter::Ended(node, called));
                    break;
                }
            } else {
                core.begins(node, || core.nanos(works.timer.now()));
                let number = memory.berths.vacant(step.traits.berth, &core.inbox);
                let berth = memory.berths.berth(number);
                let context = &mut Context::from_waker(berth.rearmed());
                // SAFETY: as in `start_task`.
                let started = unsafe { step.op().start(berth.room(), call, context) };
                if !matches!(started, Poll::Ready(Called::Stored)) {
                    matter = Some(match started {
                        Poll::Ready(called) => Matter::Ended(node, called),
                        Poll::Pending => {
                            memory.berths.occupy(number, node);
                            Matter::Waits(node)
                        }
                    });
                    break;
                }
            }
            core.has_ended(node, || *self.last_end.insert(core.nanos(works.timer.now())));
            core.set(node, state::OK);
            core.tell_successors(step, None, |next| ready.push(next));
            ended += 1;
        }
        if ended > 0 {
            core.count_ended(ended);
        }
        matter
    }
}
