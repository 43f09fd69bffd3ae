//! The roll of a loop: all its tasks that are not done, each in a seat whose number it knows.
//!
//! A list through the tasks would write to the neighbours of each task that ends, and of a hundred thousand that
//! sleep none is in the cache.

use std::cell::{Cell, RefCell};

use super::header::TaskRef;

/// Room for so many seats is kept when all tasks are done.
const SEATS_KEPT_MAX: usize = 1024;

/// The number of a task's seat. On the loop's thread only.
#[derive(Debug, Default)]
pub(super) struct Place(Cell<u32>);

/// The tasks of a loop. On its thread only; nothing foreign is called while a seat is looked for.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    seats: RefCell<Vec<Option<TaskRef>>>,
    /// The numbers of empty seats; but those from the end of `seats` on do not exist any more.
    empty: RefCell<Vec<u32>>,
    len: Cell<usize>,
}

impl Roll {
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Adds a task that is not on the roll.
    ///
    /// # Panics
    /// With 2^32 tasks at a time.
    #[inline]
    pub(crate) fn enrol(&self, task: TaskRef) {
        self.len.set(self.len.get() + 1);
        let mut seats = self.seats.borrow_mut();
        let place = &task.header().place.0;
        while let Some(number) = self.empty.borrow_mut().pop() {
            if let Some(seat) = seats.get_mut(number as usize) {
                place.set(number);
                *seat = Some(task);
                return;
            }
        }
        place.set(u32::try_from(seats.len()).expect("fewer than 2^32 tasks fit into memory"));
        seats.push(Some(task));
    }

    /// Takes a task off the roll that is on it.
    #[inline]
    pub(crate) fn strike(&self, task: TaskRef) {
        let number = task.header().place.0.get();
        self.seats.borrow_mut()[number as usize] = None;
        self.empty.borrow_mut().push(number);
        self.len.set(self.len.get() - 1);
        if self.len.get() == 0 {
            self.clear();
        }
    }

    /// Forgets the seats, which are empty, and lets go of the room of a crowd.
    fn clear(&self) {
        let (mut seats, mut empty) = (self.seats.borrow_mut(), self.empty.borrow_mut());
        seats.clear();
        empty.clear();
        if seats.capacity() > SEATS_KEPT_MAX {
            seats.shrink_to(SEATS_KEPT_MAX);
            empty.shrink_to(SEATS_KEPT_MAX);
        }
    }

    /// One of those that came last.
    pub(crate) fn last(&self) -> Option<TaskRef> {
        let mut seats = self.seats.borrow_mut();
        while let Some(None) = seats.last() {
            seats.pop();
        }
        seats.last().copied().flatten()
    }

    /// All tasks. Nothing may change the roll meanwhile.
    pub(crate) fn tasks(&self) -> Vec<TaskRef> {
        self.seats.borrow().iter().copied().flatten().collect()
    }
}
