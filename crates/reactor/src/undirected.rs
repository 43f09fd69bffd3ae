//! What `direction` is without the feature `testing`: nothing. Its calls cost none.

use std::ptr::NonNull;

use crate::{
    inbox::{Link, Sort},
    run_queue::RunQueue,
};

#[derive(Debug, Default)]
pub(crate) struct Direction {}

impl Direction {
    /// The one that became ready first.
    #[inline]
    pub(crate) fn next(&self, queue: &RunQueue) -> Option<NonNull<Link>> {
        queue.pop()
    }

    #[inline]
    pub(crate) fn step(&self, _: Sort) {}

    #[inline]
    pub(crate) fn main<T>(&self, poll: impl FnOnce() -> T) -> T {
        poll()
    }
}
