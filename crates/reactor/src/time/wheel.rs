//! Who sleeps until when: a hierarchical wheel (G. Varghese and A. Lauck, 1987) whose entries keep their exact
//! time.
//!
//! Six levels of 64 slots. A slot of level 0 is one tick, one of the next level is 64 of them, and so on. An
//! entry lies on the level of the highest digit, to base 64, in which its tick differs from the current one;
//! when time comes to a slot of a higher level, its entries move down. Adding and removing take the same short
//! time however many there are; most timers are removed, not fired.
//!
//! A slot is a row of indices, not a list through the entries: with a hundred thousand of them none is in the
//! cache, and of a row many can be fetched at a time.
//!
//! A timer that is to fire so long *after now* can be planned without a reading of the clock: it lies aside
//! until the next one, which the loop makes at the end of each turn, and counts from there. That is never too
//! early, and too late by no more than the turn in which it was planned.

use std::{mem, task::Waker};

use crate::prefetch::prefetch;

/// A tick is 2^17 ns, about an eighth of a millisecond. It bounds how many neighbours a due entry is sorted out
/// from, not how exact its time is.
const TICK_BITS: u32 = 17;

/// Each level is one digit of the tick.
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;

/// Together they reach 104 days. What is further away waits in the last slot, and is sorted anew when time gets
/// there.
const LEVELS: usize = 6;

/// So many entries of a row are fetched from memory together.
const FETCHED: usize = 64;

/// So many bytes of a task that is woken are fetched: its head, and all or most of its future. Of a waker that is not
/// that of a task they are fetched for nothing.
const TASK: usize = 168;

/// So many entries of one tick are a crowd.
const CROWD: usize = 4;

/// For so long a crowd is waited for, in nanoseconds. To wake up costs as much as to fire dozens of entries.
const GATHERING: u64 = 330_000;

/// A row that is longer is not kept for its room when it has been emptied.
const ROW_KEPT_MAX: usize = 1024;

/// The row of entries that wait for a reading of the clock.
const PLANNED: u16 = u16::MAX;

/// No entry.
const NONE: u32 = u32::MAX;

/// A place in a [`Wheel`], until it is fired or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    index: u32,
    /// Which of the entries that lay at this index one after the other.
    generation: u32,
}

/// What is left of a wheel: the times that its entries had.
#[derive(Debug)]
pub(crate) struct Times {
    /// With the generation of each.
    times: Vec<(u32, u64)>,
}

impl Times {
    /// The time of an entry that was there.
    pub(crate) fn of(&self, key: Key) -> Option<u64> {
        let (generation, at) = self.times.get(key.index as usize)?;
        (*generation == key.generation).then_some(*at)
    }
}

/// Timers by their time, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Wheel {
    entries: Vec<Entry>,
    /// The first of the unused entries, in a list through `place`.
    unused: u32,
    /// From here on entries are unused as well, and in no list: since the wheel was last empty none of them was
    /// needed. So a crowd that comes after another lies in the order in which it came, as the first one did.
    fresh: u32,
    /// The entries of each slot, level by level.
    rows: Box<[Vec<u32>]>,
    /// Which slots of each level have entries.
    occupied: [u64; LEVELS],
    /// The planned entries.
    planned: Vec<u32>,
    /// Entries that are due together, with their order, by which they are sorted; kept for its room.
    batch: Vec<(u64, u32, Waker)>,
    /// How many entries were added.
    added: u32,
    /// The tick up to which entries have been fired, but for those of this very tick whose time is not there yet.
    tick: u64,
    /// The time up to which entries have been fired.
    advanced: u64,
    len: usize,
}

#[derive(Debug)]
struct Entry {
    /// Its exact time; of a planned one, how long after the next reading of the clock.
    at: u64,
    /// Who is woken, once somebody waits.
    waker: Option<Waker>,
    generation: u32,
    /// Which one it was to be added, among those of the same time.
    order: u32,
    /// Where it is in its row; of an unused one, the next unused one.
    place: u32,
    /// Its row, or [`PLANNED`].
    row: u16,
}

const fn row(level: usize, slot: usize) -> usize {
    level * SLOTS + slot
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            unused: NONE,
            fresh: 0,
            rows: vec![Vec::new(); LEVELS * SLOTS].into(),
            occupied: [0; LEVELS],
            planned: Vec::new(),
            batch: Vec::new(),
            added: 0,
            tick: 0,
            advanced: 0,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry that fires at `at`.
    ///
    /// # Panics
    /// With 2^32 - 1 entries at a time.
    pub(crate) fn insert(&mut self, at: u64, waker: Waker) -> Key {
        let key = self.add(at, Some(waker));
        self.place(key.index);
        key
    }

    /// Adds an entry that fires so long after the next [`settle`](Wheel::settle).
    ///
    /// # Panics
    /// As [`insert`](Wheel::insert).
    #[inline]
    pub(crate) fn plan(&mut self, after: u64) -> Key {
        let key = self.add(after, None);
        let entry = &mut self.entries[key.index as usize];
        (entry.place, entry.row) = (self.planned.len() as u32, PLANNED);
        self.planned.push(key.index);
        key
    }

    /// Whether entries wait for a reading of the clock.
    pub(crate) fn has_planned(&self) -> bool {
        !self.planned.is_empty()
    }

    /// The clock has been read: what was planned counts from `now`.
    pub(crate) fn settle(&mut self, now: u64) {
        let mut planned = mem::take(&mut self.planned);
        for index in planned.drain(..) {
            let entry = &mut self.entries[index as usize];
            entry.at = now.saturating_add(entry.at);
            self.place(index);
        }
        if planned.capacity() <= ROW_KEPT_MAX {
            self.planned = planned;
        }
    }

    #[inline]
    fn add(&mut self, at: u64, waker: Option<Waker>) -> Key {
        self.len += 1;
        self.added = self.added.wrapping_add(1);
        let order = self.added;
        let index = if self.unused == NONE { self.fresh } else { self.unused };
        if let Some(entry) = self.entries.get_mut(index as usize) {
            if self.unused == NONE {
                self.fresh += 1;
            } else {
                self.unused = entry.place;
            }
            (entry.at, entry.order, entry.waker) = (at, order, waker);
            return Key { index, generation: entry.generation };
        }
        assert!(index < NONE, "fewer than 2^32 timers fit into memory");
        self.entries.push(Entry { at, waker, generation: 0, order, place: 0, row: 0 });
        self.fresh = index + 1;
        Key { index, generation: 0 }
    }

    /// The time of an entry that is there and settled.
    pub(crate) fn time(&self, key: Key) -> u64 {
        self.entries[key.index as usize].at
    }

    /// Where the waker of an entry is kept; nothing if it has fired.
    #[inline]
    pub(crate) fn waker(&mut self, key: Key) -> Option<&mut Option<Waker>> {
        let entry = self.entries.get_mut(key.index as usize)?;
        (entry.generation == key.generation).then_some(&mut entry.waker)
    }

    /// Removes an entry, unless it has fired, and gives its waker.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<Waker> {
        self.waker(key)?;
        self.unlink(key.index);
        self.retire(key.index)
    }

    /// The times of all entries, and their wakers. They are settled.
    pub(crate) fn into_times_and_wakers(self) -> (Times, Vec<Waker>) {
        let times = self.entries.iter().map(|entry| (entry.generation, entry.at)).collect();
        (Times { times }, self.entries.into_iter().filter_map(|entry| entry.waker).collect())
    }

    /// Moves all wakers whose time has come by `now` to `due`, in the order of their times; those of one time
    /// in the order in which they were added.
    pub(crate) fn advance(&mut self, now: u64, due: &mut Vec<Waker>) {
        let target = now >> TICK_BITS;
        self.advanced = now;
        while let Some((level, slot, tick)) = self.next_slot().filter(|(_, _, tick)| *tick <= target) {
            self.tick = self.tick.max(tick);
            self.occupied[level] &= !(1 << slot);
            let mut indices = mem::take(&mut self.rows[row(level, slot)]);
            for indices in indices.chunks(FETCHED) {
                let entries = self.entries.as_ptr();
                for index in indices {
                    prefetch(entries.wrapping_add(*index as usize), size_of::<Entry>());
                }
                for index in indices.iter().copied() {
                    let Entry { at, order, .. } = self.entries[index as usize];
                    if at <= now {
                        let waker = self.retire(index);
                        self.batch.extend(waker.map(|waker| (at, order, waker)));
                    } else {
                        self.place(index);
                    }
                }
            }
            indices.clear();
            let emptied = &mut self.rows[row(level, slot)];
            // What is too far away may have come back to where it was.
            if emptied.is_empty() && indices.capacity() <= ROW_KEPT_MAX {
                *emptied = indices;
            }
            self.batch.sort_unstable_by_key(|(at, order, _)| (*at, *order));
            due.extend(self.batch.drain(..).map(|(_, _, waker)| waker));
            // What is left on the lowest level at the current tick is not due before `now` moves on.
            if level == 0 && tick == target {
                break;
            }
        }
        if self.next_slot().is_none_or(|(_, _, tick)| tick > target) {
            self.tick = target.max(self.tick);
        }
        for waker in due {
            prefetch(waker.data(), TASK);
        }
    }

    /// When to look at the wheel next: the exact time of the earliest entry, or an earlier time at which
    /// entries that are further away are to be sorted anew.
    pub(crate) fn next_look(&self) -> Option<u64> {
        let (level, slot, tick) = self.next_slot()?;
        let row = &self.rows[row(level, slot)];
        // A slot of the last level may hold what is further away than its own ticks, and than what lies behind it.
        if level == LEVELS - 1 || (level > 0 && row.len() > 1) {
            return Some(tick << TICK_BITS);
        }
        row.iter().map(|index| self.entries[*index as usize].at).min()
    }

    /// The same for a time in which it is not worth waking up for each of many entries: where a tick has a
    /// crowd of them, they are looked at together, with those of the ticks after it.
    pub(crate) fn next_look_of_many(&self) -> Option<u64> {
        match self.next_slot()? {
            (0, slot, tick) if self.rows[row(0, slot)].len() >= CROWD => {
                Some((tick << TICK_BITS).max(self.advanced).saturating_add(GATHERING))
            }
            _ => self.next_look(),
        }
    }

    /// The next slot with entries: its level, its number, and the tick at which it begins.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        // Entries of a lower level come before all of a higher one: they agree with the current tick in more
        // digits.
        let level = (0..LEVELS).find(|level| self.occupied[*level] != 0)?;
        let shift = level as u32 * DIGIT_BITS;
        let current = self.tick >> shift;
        // No slot behind the current one has entries; but the last level is a ring, and goes on at its beginning.
        let turned = self.occupied[level].rotate_right(current as u32 % SLOTS as u32);
        let begins = current + u64::from(turned.trailing_zeros());
        Some((level, begins as usize % SLOTS, (begins << shift).max(self.tick)))
    }

    /// Puts an entry into the slot where its time belongs, seen from the current tick.
    #[inline]
    fn place(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        let tick = (entry.at >> TICK_BITS).max(self.tick);
        let digit = (63 - ((tick ^ self.tick) | 1).leading_zeros()) / DIGIT_BITS;
        let level = (digit as usize).min(LEVELS - 1);
        let shift = level as u32 * DIGIT_BITS;
        // Only on the last level can it be further away than there are slots.
        let ahead = ((tick >> shift) - (self.tick >> shift)).min(SLOTS as u64 - 1);
        let slot = ((self.tick >> shift) + ahead) as usize % SLOTS;
        let row = row(level, slot);
        (entry.place, entry.row) = (self.rows[row].len() as u32, row as u16);
        self.rows[row].push(index);
        self.occupied[level] |= 1 << slot;
    }

    /// Takes an entry out of its row.
    fn unlink(&mut self, index: u32) {
        let Entry { place, row, .. } = self.entries[index as usize];
        let indices = if row == PLANNED { &mut self.planned } else { &mut self.rows[usize::from(row)] };
        indices.swap_remove(place as usize);
        if let Some(moved) = indices.get(place as usize) {
            self.entries[*moved as usize].place = place;
        } else if indices.is_empty() && row != PLANNED {
            let (level, slot) = (usize::from(row) / SLOTS, usize::from(row) % SLOTS);
            self.occupied[level] &= !(1 << slot);
        }
    }

    /// Makes an entry that is in no row an unused one.
    #[inline]
    fn retire(&mut self, index: u32) -> Option<Waker> {
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.place = self.unused;
        let waker = entry.waker.take();
        self.unused = index;
        self.len -= 1;
        if self.len == 0 {
            (self.unused, self.fresh) = (NONE, 0);
        }
        waker
    }
}

#[cfg(test)]
mod tests;
