//! The few choices that a loop has.

use std::{fmt, num::NonZeroU32, sync::Arc};

use ebbtide_lifecycle::time::VirtualClock;

use crate::{
    core::Core,
    direction::Direction,
    event_loop::EventLoop,
    hook::{PanicHook, PanicReport},
    runtime::Runtime,
    shared::Shared,
};

/// How many tasks and posts are run before the clock and the inbox are looked at again. An odd number, so that
/// it does not fall in step with what is run.
const TURN_BUDGET: u32 = 61;

/// Makes a [`Runtime`] or an [`EventLoop`].
#[derive(Debug)]
pub struct Builder {
    name: Arc<str>,
    budget: u32,
    hook: PanicHook,
    clock: Option<VirtualClock>,
    direction: Direction,
}

impl Builder {
    /// A loop as it is by default.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: "ebbtide".into(),
            budget: TURN_BUDGET,
            hook: PanicHook::default(),
            clock: None,
            direction: Direction::default(),
        }
    }

    /// What the loop, and its thread if it has one, is called in reports. A NUL, which no thread can have in
    /// its name, is left out.
    #[must_use]
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.name = name.as_ref().replace('\0', "").into();
        self
    }

    /// How many tasks and posts are run before the clock and the inbox are looked at again. More is a little
    /// faster, less reacts a little earlier.
    #[must_use]
    pub fn turn_budget(mut self, budget: NonZeroU32) -> Self {
        self.budget = budget.get();
        self
    }

    /// What is told of panics that no handle is there to get. They are printed unless this is said.
    #[must_use]
    pub fn panic_hook(mut self, hook: impl Fn(&PanicReport<'_>) + Send + Sync + 'static) -> Self {
        self.hook = PanicHook::new(hook);
        self
    }

    /// Has the loop live in virtual time: it takes part in `clock`, which jumps to the next timer when nothing
    /// else is ready and nobody holds it. A loop on which I/O is waited for holds it, until it is told to stop
    /// by some time: that comes in real time. A poll of a stream that was given up counts as waiting until the
    /// stream is used again, or dropped.
    #[must_use]
    pub fn clock(mut self, clock: &VirtualClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Has a seed say which of the tasks that are ready is run next; for tests. Posts are run in the order in which
    /// they were accepted, as always. The same seed gives the same order, as far as the same tasks are ready.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn task_order(mut self, seed: u64) -> Self {
        self.direction = self.direction.ordered_by(seed);
        self
    }

    /// Has `hook` called before each step, on the loop's thread; for tests. It may do whatever work on the loop may:
    /// post, spawn, stop. What it panics with goes no further.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn before_each_step(mut self, hook: impl Fn(&crate::LoopStep) + Send + 'static) -> Self {
        self.direction = self.direction.told_to(hook);
        self
    }

    /// A runtime that is driven by the calling thread.
    #[must_use]
    pub fn runtime(self) -> Runtime {
        let (shared, plan) = self.split(false);
        Runtime::with_core(plan.core(shared))
    }

    /// A loop with a thread of its own, not started yet.
    #[must_use]
    pub fn event_loop(self) -> EventLoop {
        let (shared, plan) = self.split(true);
        EventLoop::with_plan(shared, plan)
    }

    fn split(self, shut: bool) -> (Arc<Shared>, Plan) {
        let shared = Shared::new(self.name, self.hook, self.clock.clone(), shut);
        (Arc::new(shared), Plan { budget: self.budget, clock: self.clock, direction: self.direction })
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

/// What a loop's own thread needs in order to make it.
pub(crate) struct Plan {
    budget: u32,
    clock: Option<VirtualClock>,
    direction: Direction,
}

impl Plan {
    pub(crate) fn core(self, shared: Arc<Shared>) -> Core {
        Core::new(shared, self.clock, self.budget, self.direction)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("budget", &self.budget).finish_non_exhaustive()
    }
}
