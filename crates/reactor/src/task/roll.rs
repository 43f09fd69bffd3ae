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
    /// Whoever sat last in a seat that has not been cleared stays there, dead or alive: see `clear_seats`.
    seats: RefCell<Vec<Option<TaskRef>>>,
    /// The numbers of empty seats; but those from the end of `seats` on do not exist any more.
    empty: RefCell<Vec<u32>>,
    /// So many of `empty`, from the first, are of seats that have been cleared.
    cleared: Cell<usize>,
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
        let mut empty = self.empty.borrow_mut();
        let place = &task.header().place.0;
        while let Some(number) = empty.pop() {
            self.cleared.set(self.cleared.get().min(empty.len()));
            if let Some(seat) = seats.get_mut(number as usize) {
                place.set(number);
                *seat = Some(task);
                return;
            }
        }
        place.set(u32::try_from(seats.len()).expect("fewer than 2^32 tasks fit into memory"));
        seats.push(Some(task));
    }

    /// Takes a task off the roll that is on it. Its seat is cleared only when somebody looks at the seats: of a
    /// crowd that ends in no order each seat is a line of memory that would have to be fetched.
    #[inline]
    pub(crate) fn strike(&self, task: TaskRef) {
        self.empty.borrow_mut().push(task.header().place.0.get());
        self.len.set(self.len.get() - 1);
        if self.len.get() == 0 {
            self.clear();
        }
    }

    /// Has nobody sit in the seats that are empty.
    fn clear_seats(&self) {
        let (mut seats, empty) = (self.seats.borrow_mut(), self.empty.borrow());
        for number in &empty[self.cleared.replace(empty.len())..] {
            if let Some(seat) = seats.get_mut(*number as usize) {
                *seat = None;
            }
        }
    }

    /// Forgets the seats, which are empty, and lets go of the room of a crowd.
    fn clear(&self) {
        let (mut seats, mut empty) = (self.seats.borrow_mut(), self.empty.borrow_mut());
        seats.clear();
        empty.clear();
        self.cleared.set(0);
        if seats.capacity() > SEATS_KEPT_MAX {
            seats.shrink_to(SEATS_KEPT_MAX);
            empty.shrink_to(SEATS_KEPT_MAX);
        }
    }

    /// One of those that came last.
    pub(crate) fn last(&self) -> Option<TaskRef> {
        self.clear_seats();
        let mut seats = self.seats.borrow_mut();
        while let Some(None) = seats.last() {
            seats.pop();
        }
        seats.last().copied().flatten()
    }

    /// All tasks. Nothing may change the roll meanwhile.
    pub(crate) fn tasks(&self) -> Vec<TaskRef> {
        self.clear_seats();
        self.seats.borrow().iter().copied().flatten().collect()
    }
}
