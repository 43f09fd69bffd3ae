//! For tests: a seed that says who is run next, and a hook that is told of each step.
//!
//! Without the feature `testing` there is `undirected` in its place, which does nothing.

use std::{cell::Cell, fmt, ptr::NonNull};

use ebbtide_lifecycle::contain;

use crate::{
    inbox::{Link, Sort},
    run_queue::RunQueue,
};

/// Among so many of those that are ready the next one is chosen. Each choice walks through them.
const CHOICE_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Direction {
    /// What choices are made by; none if tasks are run in the order in which they became ready.
    order: Option<u64>,
    hook: Option<Hook>,
    /// How many steps there were.
    steps: Cell<u64>,
}

type Hook = Box<dyn Fn(&LoopStep) + Send>;

/// A step of a loop: something is about to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopStep {
    /// Counted from one.
    pub number: u64,
    /// What is run.
    pub of: StepOf,
}

/// What is run in a [`LoopStep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepOf {
    /// A post.
    Post,
    /// A poll of a task.
    Task,
    /// A poll of the future of [`block_on`](crate::Runtime::block_on).
    Main,
}

impl Direction {
    pub(crate) fn ordered_by(self, seed: u64) -> Self {
        Self { order: Some(seed), ..self }
    }

    pub(crate) fn told_to(self, hook: impl Fn(&LoopStep) + Send + 'static) -> Self {
        Self { hook: Some(Box::new(hook)), ..self }
    }

    /// Any of the tasks that are ready, or the first of the posts, which keep their order. Errands come first: when
    /// they come depends on other threads, and is not to change what is chosen.
    pub(crate) fn next(&self, queue: &RunQueue) -> Option<NonNull<Link>> {
        let Some(order) = self.order else { return queue.pop() };
        let (mut places, mut first_post) = (Vec::new(), None);
        for (place, sort) in queue.sorts(CHOICE_MAX).enumerate() {
            match sort {
                Sort::Errand => return queue.take_at(place),
                Sort::Task => places.push(place),
                Sort::Post => drop(first_post.get_or_insert(place)),
            }
        }
        places.extend(first_post);
        let choice = draw(order, self.steps.get()) as usize % places.len().max(1);
        places.get(choice).and_then(|place| queue.take_at(*place))
    }

    /// Errands are none: when they come depends on other threads.
    pub(crate) fn step(&self, sort: Sort) {
        match sort {
            Sort::Post => self.tell(StepOf::Post),
            Sort::Task => self.tell(StepOf::Task),
            Sort::Errand => {}
        }
    }

    /// Polls the future of `block_on`.
    pub(crate) fn main<T>(&self, poll: impl FnOnce() -> T) -> T {
        self.tell(StepOf::Main);
        poll()
    }

    fn tell(&self, of: StepOf) {
        let number = self.steps.get() + 1;
        self.steps.set(number);
        let Some(hook) = &self.hook else { return };
        // It has said itself what it panicked with.
        drop(contain(|| hook(&LoopStep { number, of })));
    }
}

/// The number of a step. It depends on nothing that was drawn before, so that a course that has gone astray for a step,
/// because of a thread that was late, finds back. The generator is `SplitMix64`, by Steele, Lea and Flood.
fn draw(seed: u64, step: u64) -> u64 {
    let state = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl fmt::Debug for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direction")
            .field("order", &self.order)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}
