//! Room for so many clients at a time. One who has no place waits, and somebody who has had his time leaves for him.

use std::{
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// How many clients are served at a time, each by a thread. A probe takes well under a millisecond; more of them
/// than this are not probes, and must not take the program's memory.
const PLACES_MAX: usize = 16;

#[derive(Default)]
pub(super) struct Places {
    room: Mutex<Room>,
    /// Notified when a place is left, and when no more are given.
    changed: Condvar,
}

#[derive(Default)]
struct Room {
    taken: usize,
    /// Whether somebody waits for whom nobody has given way yet.
    wanted: bool,
    closed: bool,
}

impl Places {
    /// Takes a place, and waits until there is one. Nothing once they are closed.
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let is_full = |room: &mut Room| room.taken == PLACES_MAX && !room.closed;
        let mut room = self.room();
        room.wanted = is_full(&mut room);
        let mut room = self.changed.wait_while(room, is_full).unwrap_or_else(PoisonError::into_inner);
        room.wanted = false;
        if room.closed {
            return None;
        }
        room.taken += 1;
        Some(Place { places: self.clone() })
    }

    /// Gives no place any more, also to one who waits.
    pub(super) fn close(&self) {
        self.room().closed = true;
        self.changed.notify_all();
    }

    /// Waits until all have left.
    pub(super) fn wait_until_empty(&self) {
        let empty = self.changed.wait_while(self.room(), |room| room.taken > 0);
        drop(empty.unwrap_or_else(PoisonError::into_inner));
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        // Nothing that can panic runs under the lock.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Left when it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
}

impl Place {
    /// Whether its client has to leave for one who waits: of several who ask, it is the first.
    pub(super) fn gives_way(&self) -> bool {
        mem::take(&mut self.places.room().wanted)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.room().taken -= 1;
        self.places.changed.notify_all();
    }
}
