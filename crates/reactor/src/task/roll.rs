//! The roll of a loop: all its tasks that are not done, in a list through the tasks themselves.

use std::cell::Cell;

use super::cell::TaskRef;

/// A task's place in the roll. On the loop's thread only.
#[derive(Debug, Default)]
pub(super) struct Place {
    enrolled: Cell<bool>,
    previous: Cell<Option<TaskRef>>,
    next: Cell<Option<TaskRef>>,
}

/// The tasks of a loop, the newest first. On its thread only.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    newest: Cell<Option<TaskRef>>,
    len: Cell<usize>,
}

impl Roll {
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Adds a task. Gives false if it is on the roll already.
    #[inline]
    pub(crate) fn enrol(&self, task: TaskRef) -> bool {
        let place = &task.header().place;
        if place.enrolled.replace(true) {
            return false;
        }
        let next = self.newest.replace(Some(task));
        place.next.set(next);
        if let Some(next) = next {
            next.header().place.previous.set(Some(task));
        }
        self.len.set(self.len.get() + 1);
        true
    }

    /// Takes a task off the roll, if it is on it.
    #[inline]
    pub(crate) fn strike(&self, task: TaskRef) {
        let place = &task.header().place;
        if !place.enrolled.replace(false) {
            return;
        }
        let (previous, next) = (place.previous.take(), place.next.take());
        match previous {
            Some(previous) => previous.header().place.next.set(next),
            None => self.newest.set(next),
        }
        if let Some(next) = next {
            next.header().place.previous.set(previous);
        }
        self.len.set(self.len.get() - 1);
    }

    pub(crate) fn newest(&self) -> Option<TaskRef> {
        self.newest.get()
    }

    /// All tasks, the newest first. Nothing may change the roll meanwhile.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskRef> {
        std::iter::successors(self.newest.get(), |task| task.header().place.next.get())
    }
}
