//! Nodes on the pool: jobs that run one node of a run after the other, and go on with those that they make ready.
//!
//! Such a job is a shift. It runs what is on its own [stack](Stacks), then what it takes from the others, and leaves
//! when there is nothing on any. What is ready beyond the one node that it goes on with lies on its stack, where others
//! can take it: so a node that takes long holds up none.

use std::{mem, sync::Arc, time::Instant};

use ebbtide_lifecycle::contain;
use ebbtide_offload::Pool;

use crate::{
    core::{Core, state},
    graph::Kind,
    op::{Call, Called},
    reach::{Reach, Threads},
    stacks::{Room, Stacks},
};

/// How many nodes a job runs before it looks whether others wait for its thread, and goes behind them.
const NODES_PER_JOB_MAX: u32 = 256;

/// Where the nodes of an engine are run that do not run on its runs' own threads.
pub(crate) struct Shop<R, M: Reach> {
    pool: Pool,
    now: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// Brings a job. It is given by who knows that it can go to another thread.
    bring: fn(&Self, &Arc<str>, Job<R, M>),
}

/// What the pool is brought.
enum Job<R, M: Reach> {
    /// For whatever lies on a stack when it begins.
    Stack(Ticket<R, M>),
    Blocking(Shift<R, M>),
}

impl<R: Send + Sync + 'static> Shop<R, Threads> {
    pub(crate) fn new(pool: Pool, now: Arc<dyn Fn() -> Instant + Send + Sync>) -> Self {
        // What is refused is dropped, and says so to its run.
        let bring = |shop: &Self, name: &Arc<str>, job: Job<R, Threads>| match job {
            Job::Stack(ticket) => drop(shop.pool.cpu().named(name.clone()).spawn(move || ticket.run())),
            Job::Blocking(shift) => drop(shop.pool.blocking().named(name.clone()).spawn(move || shift.run())),
        };
        Self { pool, now, bring }
    }
}

impl<R, M: Reach> Shop<R, M> {
    /// How many threads there are for CPU nodes.
    pub(crate) fn threads(&self) -> usize {
        self.pool.stats().cpu.threads
    }

    /// Brings CPU nodes that have just become ready, all at once, the first to be run first: a part for each stack that
    /// is not manned, or all to one that is.
    pub(crate) fn bring(self: &Arc<Self>, core: &Arc<Core<R, M>>, nodes: &mut Vec<u32>) {
        nodes.reverse();
        core.change_on_pool(nodes.len() as i32);
        for node in nodes.iter() {
            core.set(*node, state::QUEUED);
        }
        while !nodes.is_empty() {
            let part = nodes.len().div_ceil(core.stacks.unmanned().max(1));
            let from = nodes.len() - part;
            match core.stacks.man(core, |stack| stack.extend_from_slice(&nodes[from..])) {
                Some(number) => {
                    nodes.truncate(from);
                    self.bring_ticket(core, number);
                }
                // If there is none that is manned either, the last shift has just left: then once more.
                None => {
                    core.stacks.put(nodes);
                }
            }
        }
    }

    /// Brings a job for a stack that was just manned.
    fn bring_ticket(self: &Arc<Self>, core: &Core<R, M>, number: usize) {
        let ticket = Ticket { shop: self.clone(), stacks: core.stacks.clone(), number, is_taken: false };
        (self.bring)(self, &core.plan.name, Job::Stack(ticket));
    }

    /// Brings a blocking node, which gets a job of its own.
    pub(crate) fn bring_blocking(self: &Arc<Self>, core: &Arc<Core<R, M>>, node: u32) {
        core.change_on_pool(1);
        core.set(node, state::QUEUED);
        let shift = Shift {
            core: Some(core.clone()),
            shop: self.clone(),
            stack: None,
            home: None,
            next: Some(node),
            room: Room::default(),
            ended: 0,
            off_pool: 0,
        };
        (self.bring)(self, &core.plan.name, Job::Blocking(shift));
    }
}

/// A job of the pool that has not begun: for the run that is at its stack then, if there is one. It may be a later one
/// on the same memory: whoever brought a job for that finds that its work is being done.
struct Ticket<R, M: Reach> {
    shop: Arc<Shop<R, M>>,
    stacks: Arc<Stacks<R, M>>,
    number: usize,
    /// The pool runs it.
    is_taken: bool,
}

impl<R, M: Reach> Ticket<R, M> {
    fn run(mut self) {
        self.is_taken = true;
        if let Some(shift) = self.begin() {
            shift.run();
        }
    }

    fn begin(&self) -> Option<Shift<R, M>> {
        let mut stack = self.stacks.lock(self.number);
        let (core, room) = (Some(stack.run.take()?), mem::take(&mut stack.room));
        let (shop, number) = (self.shop.clone(), Some(self.number));
        Some(Shift { core, shop, stack: number, home: number, next: None, room, ended: 0, off_pool: 0 })
    }
}

/// If it was never run, the nodes on its stack are told to the run.
impl<R, M: Reach> Drop for Ticket<R, M> {
    fn drop(&mut self) {
        if !self.is_taken {
            drop(self.begin());
        }
    }
}

/// A job of the pool that runs nodes of one run.
pub(crate) struct Shift<R, M: Reach> {
    /// There until the job ends.
    core: Option<Arc<Core<R, M>>>,
    shop: Arc<Shop<R, M>>,
    /// The stack that it mans; none on the blocking lane, or when it has left that.
    stack: Option<usize>,
    /// The stack that it has its room from.
    home: Option<usize>,
    /// The node that it goes on with.
    next: Option<u32>,
    room: Room,
    /// How many nodes have ended that the run does not know of yet.
    ended: u32,
    /// How many nodes the pool has less than the run knows.
    off_pool: i32,
}

impl<R, M: Reach> Shift<R, M> {
    fn core(&self) -> &Arc<Core<R, M>> {
        self.core.as_ref().expect("there until the job ends")
    }

    fn run(mut self) {
        let mut run = 0;
        while let Some(node) = self.take_next() {
            if run == NODES_PER_JOB_MAX && self.stack.is_some() {
                if self.shop.pool.stats().cpu.queued > 0 {
                    self.next = Some(node);
                    return self.hand_over();
                }
                run = 0;
            }
            run += 1;
            // If the run gives up on this node, nothing else may be in its way.
            if self.core().may_give_up && (self.ended > 0 || self.off_pool > 0) {
                self.tell();
            }
            self.run_node(node);
            // What is for the run is told before the next node. If there is none, the end of the shift tells it.
            if !self.room.for_run.is_empty() {
                self.next = self.take_next();
                if self.next.is_some() {
                    self.tell();
                }
            }
        }
    }

    /// Another job takes over from this one, when those that wait have had their turn.
    fn hand_over(mut self) {
        let (Some(number), Some(core)) = (self.stack.take(), self.core.clone()) else { return };
        let mut stack = core.stacks.lock(number);
        stack.nodes.extend(self.next.take());
        stack.run = Some(core.clone());
        drop(stack);
        self.shop.bring_ticket(&core, number);
    }

    /// The node to go on with. None if there is nothing left: then it does not man its stack any more.
    fn take_next(&mut self) -> Option<u32> {
        if self.next.is_some() {
            return self.next.take();
        }
        let core = self.core.as_ref().expect("there until the job ends");
        let node = core.stacks.next(self.stack?, &mut self.room.ready);
        if node.is_none() {
            self.stack = None;
        }
        node
    }

    fn run_node(&mut self, node: u32) {
        let core = self.core.as_ref().expect("there until the job ends");
        // Nothing begins when the deadline has come: the run is about to end.
        if core.deadline().instant().is_some_and(|at| (self.shop.now)() >= at) {
            if core.exchange(node, state::QUEUED, state::CANCELLED) {
                core.plan.leave_class(node);
                self.off_pool += 1;
            }
            return;
        }
        if !core.exchange(node, state::QUEUED, state::RUNNING) {
            return;
        }
        if core.is_ending() {
            if core.exchange(node, state::RUNNING, state::CANCELLED) {
                core.plan.leave_class(node);
                self.off_pool += 1;
            } else {
                core.late_ends(node, false);
            }
            return;
        }
        core.begins(node, || core.nanos((self.shop.now)()));
        let traits = core.plan.traits(node);
        let again = !traits.is_plain && core.plan.info(node).retry.is_some();
        let call = Call {
            // SAFETY: the exchange above is won by one thread, once for each time that the node is queued; all inputs
            // had ended when it was; those that depend on it are told after it was stored.
            turn: unsafe { core.slots.turn() },
            cx: core.cx(node, core.count_attempt(node)),
            again,
            claim: Some(&|| core.claim(node)),
        };
        let op = core.plan.actions.op(node);
        let called = op.call(call);
        let well = matches!(called, Called::Stored | Called::Late);
        let is_late = match called {
            Called::Stored if traits.is_plain => return self.goes_on(node),
            Called::Late => true,
            ended => {
                let claimed = well || core.claim(node);
                if claimed {
                    Self::tell_end(core, node, ended);
                } else {
                    drop(contain(|| drop(ended)));
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

    /// Leaves it to the run to see to the end of a node. If that is over, the node lets go of its class itself.
    fn tell_end(core: &Core<R, M>, node: u32, called: Called) {
        let mut called = Some(called);
        let is_told = core.inbox.put(|post| post.ended.extend(called.take().map(|called| (node, called))));
        if !is_told {
            core.plan.leave_class(node);
            drop(contain(|| drop(called)));
        }
    }

    /// A node has ended well: those that it makes ready are next.
    #[inline]
    fn goes_on(&mut self, node: u32) {
        let Self { core, shop, room: Room { ready, for_run }, stack, .. } = self;
        let core = core.as_ref().expect("there until the job ends");
        core.has_ended(node, || core.nanos((shop.now)()));
        core.set(node, state::OK);
        self.ended += 1;
        core.tell_successors(core.plan.actions.step(node), None, |next| {
            let traits = core.plan.traits(next);
            let here = traits.kind == Kind::Cpu && traits.is_plain && !core.has_no_time && stack.is_some();
            if here && core.spoiler(next).is_none() { ready.push(next) } else { for_run.push(next) }
        });
        match ready.len() {
            0 => self.off_pool += 1,
            1 => {}
            more => {
                core.change_on_pool(more as i32 - 1);
            }
        }
        for next in ready.iter() {
            core.set(*next, state::QUEUED);
        }
        // The first has the longest way to go: it is next, and the others lie on the stack in their order.
        ready.reverse();
        self.next = ready.pop();
        if !ready.is_empty()
            && let Some(stack) = *stack
        {
            core.stacks.lock(stack).nodes.append(ready);
            if core.stacks.unmanned() > 0
                && let Some(other) = core.stacks.man(core, |_| ())
            {
                // It finds its work on this one's stack.
                shop.bring_ticket(core, other);
            }
        }
    }

    /// Tells the run what it has to see to, but for waking it. Gives whether it is to be woken.
    fn tell_nodes(&mut self) -> bool {
        if self.room.for_run.is_empty() {
            return false;
        }
        let core = self.core.as_ref().expect("there until the job ends");
        let for_run = &mut self.room.for_run;
        core.inbox.put_quietly(|post| post.ready.append(for_run));
        // If the run is over, nobody does.
        for_run.clear();
        true
    }

    /// Tells the run how far it has come, but for waking it. Gives whether it is to be woken.
    fn tell_counts(&mut self) -> bool {
        let (ended, off_pool) = (mem::take(&mut self.ended), mem::take(&mut self.off_pool));
        let core = self.core.as_ref().expect("there until the job ends");
        let all_ended = ended > 0 && core.count_ended(ended) == 0;
        // Last: when the pool has no more nodes of a run, its threads do not touch their slots any more.
        let none_left = off_pool > 0 && core.change_on_pool(-off_pool) == 0;
        all_ended || none_left
    }

    /// Tells the run what it does not know yet.
    fn tell(&mut self) {
        if self.tell_nodes() | self.tell_counts() {
            self.core().inbox.nudge();
        }
    }
}

/// The job ends, or has not begun: then its nodes are told to the run.
impl<R, M: Reach> Drop for Shift<R, M> {
    fn drop(&mut self) {
        let mut refused: Vec<u32> = self.next.take().into_iter().collect();
        let (core, inbox) = (self.core().clone(), self.core().inbox.clone());
        if let Some(stack) = self.stack.take() {
            refused.extend(core.stacks.desert(stack));
        }
        let mut nudge = !refused.is_empty();
        if nudge {
            core.inbox.put_quietly(|post| post.refused.extend(refused));
        }
        nudge |= self.tell_nodes();
        if let Some(home) = self.home {
            core.stacks.lock(home).room = mem::take(&mut self.room);
        }
        nudge |= self.tell_counts();
        // The run uses its memory again if nobody else has it when it ends: so this lets go of it first. What of the
        // run is dropped with it is foreign, and may panic.
        drop(contain(|| drop((core, self.core.take()))));
        if nudge {
            inbox.nudge();
        }
    }
}
