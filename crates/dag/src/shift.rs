//! Nodes on the pool: a job of the pool runs one after the other, goes on with those that they make ready, and gives
//! half of them away when there are threads that have nothing to do for this run.

use std::{
    mem,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use ebbtide_offload::Pool;

use crate::{
    core::{Core, state},
    graph::Kind,
    op::{Call, Called},
    reach::{Reach, Threads},
};

/// How many nodes a job runs before it goes to the end of the pool's line: others want to be run, too.
const NODES_PER_JOB_MAX: usize = 256;

/// Which lane of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Cpu,
    Blocking,
}

/// Where the nodes of an engine are run that do not run on its runs' own threads.
pub(crate) struct Shop<R, M: Reach> {
    pub(crate) pool: Pool,
    /// How many jobs of one run there may be on the CPU lane.
    pub(crate) shifts_max: u32,
    pub(crate) now: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// Brings a job. It is given by who knows that it can go to another thread.
    bring: fn(&Arc<Self>, Shift<R, M>, Lane),
}

impl<R: Send + Sync + 'static> Shop<R, Threads> {
    pub(crate) fn new(pool: Pool, now: Arc<dyn Fn() -> Instant + Send + Sync>) -> Self {
        let shifts_max = pool.stats().cpu.threads as u32;
        let bring = |shop: &Arc<Self>, shift: Shift<R, Threads>, lane: Lane| {
            let name = shift.core.plan.name.clone();
            let lane = match lane {
                Lane::Cpu => shop.pool.cpu(),
                Lane::Blocking => shop.pool.blocking(),
            };
            // A shift that is refused is dropped, and says so to its run.
            drop(lane.named(name).spawn(move || shift.run()));
        };
        Self { pool, shifts_max, now, bring }
    }
}

impl<R, M: Reach> Shop<R, M> {
    /// Brings CPU nodes that have just become ready, all at once, as jobs for as many threads as there are.
    pub(crate) fn bring(self: &Arc<Self>, core: &Arc<Core<R, M>>, nodes: &mut Vec<u32>) {
        core.change_on_pool(nodes.len() as i32);
        for node in nodes.iter() {
            core.set(*node, state::QUEUED);
        }
        let free = self.shifts_max.saturating_sub(core.shifts.load(Ordering::Relaxed)).max(1);
        let size = nodes.len().div_ceil(free as usize);
        for part in nodes.chunks(size) {
            self.bring_shift(core, part.to_vec(), Lane::Cpu);
        }
        nodes.clear();
    }

    /// Brings a blocking node, which gets a job of its own.
    pub(crate) fn bring_blocking(self: &Arc<Self>, core: &Arc<Core<R, M>>, node: u32) {
        core.change_on_pool(1);
        core.set(node, state::QUEUED);
        self.bring_shift(core, vec![node], Lane::Blocking);
    }

    fn bring_shift(self: &Arc<Self>, core: &Arc<Core<R, M>>, nodes: Vec<u32>, lane: Lane) {
        if lane == Lane::Cpu {
            core.shifts.fetch_add(1, Ordering::Relaxed);
        }
        let (core, shop) = (core.clone(), self.clone());
        let shift = Shift { core, shop, lane, nodes, for_run: Vec::new(), ended: 0, off_pool: 0 };
        (self.bring)(self, shift, lane);
    }
}

/// A job of the pool that runs nodes of one run.
pub(crate) struct Shift<R, M: Reach> {
    core: Arc<Core<R, M>>,
    shop: Arc<Shop<R, M>>,
    lane: Lane,
    /// To be run; the last one first.
    nodes: Vec<u32>,
    /// Nodes that are ready and have to be seen to by the run itself.
    for_run: Vec<u32>,
    /// How many nodes have ended that the run does not know of yet.
    ended: u32,
    /// How many nodes the pool has less than the run knows.
    off_pool: i32,
}

impl<R, M: Reach> Shift<R, M> {
    fn run(mut self) {
        for run in 0.. {
            if self.nodes.len() > 1 {
                self.give_away();
            }
            if run == NODES_PER_JOB_MAX && self.lane == Lane::Cpu && !self.nodes.is_empty() {
                let rest = mem::take(&mut self.nodes);
                self.shop.bring_shift(&self.core, rest, Lane::Cpu);
            }
            let Some(node) = self.nodes.pop() else { break };
            self.run_node(node);
            if !self.for_run.is_empty() {
                self.tell();
            }
        }
    }

    /// Gives half of the nodes to another thread, if this run has fewer jobs than there are threads.
    fn give_away(&mut self) {
        if self.core.shifts.load(Ordering::Relaxed) < self.shop.shifts_max {
            // What has waited longest, and has the shorter way to go.
            let rest = self.nodes.split_off(self.nodes.len() / 2);
            let given = mem::replace(&mut self.nodes, rest);
            self.shop.bring_shift(&self.core, given, Lane::Cpu);
        }
    }

    fn run_node(&mut self, node: u32) {
        let core = &self.core;
        // Nothing begins when the deadline has come: the run is about to end, and takes the node back.
        if core.deadline().instant().is_some_and(|at| (self.shop.now)() >= at) {
            return;
        }
        if !core.exchange(node, state::QUEUED, state::RUNNING) {
            return;
        }
        if core.is_ending() {
            if core.exchange(node, state::RUNNING, state::CANCELLED) {
                self.off_pool += 1;
            } else {
                core.late_ends(node, false);
            }
            return;
        }
        core.begins(node, || (self.shop.now)());
        let traits = core.plan.traits(node);
        let again = !traits.is_plain && core.plan.info(node).retry.is_some();
        let call = Call {
            // SAFETY: the exchange above is won by one thread, once for each time that the node is queued; all inputs
            // had ended when it was; those that depend on it are told after it was stored.
            turn: unsafe { core.slots.turn() },
            cx: core.cx(node, core.count_attempt(node)),
            again,
            claim: &|| core.claim(node),
        };
        let op = core.plan.actions.op(node);
        let called = op.call(call);
        let well = matches!(called, Called::Stored | Called::Late);
        let is_late = match called {
            Called::Stored if traits.is_plain => return self.goes_on(node),
            Called::Late => true,
            Called::Stored => {
                core.inbox.put(|post| post.ended.push((node, Called::Stored)));
                false
            }
            bad => {
                let claimed = core.claim(node);
                if claimed {
                    core.inbox.put(|post| post.ended.push((node, bad)));
                }
                !claimed
            }
        };
        if is_late {
            if again {
                // SAFETY: it is still the node's turn: its run has given it up, and left its inputs to it.
                op.release_inputs(unsafe { core.slots.turn() });
            }
            core.late_ends(node, well);
        }
    }

    /// A node has ended well: those that it makes ready are next.
    #[inline]
    fn goes_on(&mut self, node: u32) {
        let Self { core, shop, nodes, for_run, lane, .. } = self;
        core.has_ended(node, || (shop.now)());
        core.set(node, state::OK);
        let before = nodes.len();
        core.tell_successors(node, None, |next| {
            let traits = core.plan.traits(next);
            let here = traits.kind == Kind::Cpu && traits.is_plain && *lane == Lane::Cpu;
            if here && core.spoiler(next).is_none() { nodes.push(next) } else { for_run.push(next) }
        });
        match nodes.len() - before {
            0 => self.off_pool += 1,
            1 => {}
            more => {
                core.change_on_pool(more as i32 - 1);
            }
        }
        for next in &nodes[before..] {
            core.set(*next, state::QUEUED);
        }
        self.ended += 1;
    }

    /// Tells the run what it does not know yet.
    fn tell(&mut self) {
        let (ended, off_pool) = (mem::take(&mut self.ended), mem::take(&mut self.off_pool));
        let core = &self.core;
        if !self.for_run.is_empty() {
            let for_run = &mut self.for_run;
            core.inbox.put(|post| post.ready.append(for_run));
        }
        let all_ended = ended > 0 && core.count_ended(ended) == 0;
        // Last: when the pool has no more nodes of a run, its threads do not touch their slots any more.
        let none_left = off_pool > 0 && core.change_on_pool(-off_pool) == 0;
        if all_ended || none_left {
            core.inbox.nudge();
        }
    }
}

/// The job ends, or was never run: then its nodes are told to the run.
impl<R, M: Reach> Drop for Shift<R, M> {
    fn drop(&mut self) {
        if self.lane == Lane::Cpu {
            self.core.shifts.fetch_sub(1, Ordering::Relaxed);
        }
        let refused = mem::take(&mut self.nodes);
        if !refused.is_empty() {
            self.core.inbox.put(|post| post.refused.extend(refused));
        }
        self.tell();
    }
}
