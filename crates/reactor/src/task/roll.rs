//! The roll of a loop: all its tasks that are not done, in a list through the tasks themselves.

use std::cell::Cell;

use super::header::TaskRef;

/// A task's place in the roll. On the loop's thread only.
#[derive(Debug, Default)]
pub(super) struct Place {
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

    /// Adds a task that is not on the roll.
    #[inline]
    pub(crate) fn enrol(&self, task: TaskRef) {
        let place = &task.header().place;
        let next = self.newest.replace(Some(task));
        place.next.set(next);
        if let Some(next) = next {
            next.header().place.previous.set(Some(task));
        }
        self.len.set(self.len.get() + 1);
    }

    /// Takes a task off the roll that is on it.
    #[inline]
    pub(crate) fn strike(&self, task: TaskRef) {
        let place = &task.header().place;
        let (previous, next) = (place.previous.get(), place.next.get());
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
