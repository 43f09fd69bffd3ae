//! What waits to be run in a lane: in line, and, where there is a limit, before the line.

use std::{
    collections::VecDeque,
    mem,
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use crate::work::Work;

/// A thread takes so many jobs at once at most.
const SHARE_MAX: usize = 32;

/// So many entries are looked at for one that is to be taken out of a line without a limit.
const SEARCH_MAX: usize = 64;

/// A line has so many gaps at most, or as many as it has entries: so what was withdrawn takes no room for good.
const GAPS_MAX: usize = 32;

/// Work, and which of its parts have not been taken yet.
pub(crate) struct Entry {
    pub(crate) work: Arc<dyn Work>,
    pub(crate) parts: Range<usize>,
    /// Work that runs in the pool has brought it.
    pub(crate) inside: bool,
}

impl Entry {
    /// The first `len` of its parts.
    pub(crate) fn split_front(&mut self, len: usize) -> Self {
        let parts = self.parts.start..self.parts.start + len;
        self.parts.start = parts.end;
        Self { work: self.work.clone(), parts, inside: self.inside }
    }

    /// The last `len` of its parts.
    fn split_back(&mut self, len: usize) -> Self {
        let parts = self.parts.end - len..self.parts.end;
        self.parts.end = parts.start;
        Self { work: self.work.clone(), parts, inside: self.inside }
    }
}

/// How much a thread takes at a time.
#[derive(Clone, Copy)]
pub(crate) enum Share {
    One,
    /// One of so many threads takes more than one where there is much more than one for each, so that it does
    /// not have to come back for every single one.
    OneOf(usize),
}

pub(crate) struct Queue {
    line: Line,
    /// How many parts are to be in the line; none if there is no limit.
    limit: Option<usize>,
    /// Those that wait for room in the line: they are not accepted yet.
    waiting: Line,
}

impl Queue {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self { line: Line::new(limit.is_some()), limit, waiting: Line::new(true) }
    }

    pub(crate) fn len(&self) -> usize {
        self.line.parts
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.line.parts == 0
    }

    /// How many wait for room.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.parts
    }

    /// Whether there is room for so many more, and nobody waits for it. If they are `patient`, and more than there
    /// ever is room for, they fit when the line is empty.
    #[inline]
    pub(crate) fn has_room(&self, parts: usize, patient: bool) -> bool {
        let Some(limit) = self.limit else { return true };
        self.waiting.parts == 0 && (self.line.parts + parts <= limit || (patient && self.line.parts == 0))
    }

    /// Puts accepted work at the end of the line.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        self.line.push(entry);
    }

    /// Puts work behind all that wait for room.
    pub(crate) fn wait(&mut self, entry: Entry) {
        self.waiting.push(entry);
    }

    /// Takes out work that waits for room.
    pub(crate) fn take_out_of_waiting(&mut self, work: &Arc<dyn Work>) -> Option<Entry> {
        let place = self.waiting.find(work)?;
        self.waiting.take_out(place)
    }

    /// Takes out the last part of work that waits for room.
    pub(crate) fn take_last_out_of_waiting(&mut self, work: &Arc<dyn Work>) -> Option<Entry> {
        let place = self.waiting.find(work)?;
        self.waiting.take_last_of(place)
    }

    /// The next one that waits for room, if there is room for it.
    #[inline]
    pub(crate) fn next_to_fit(&mut self) -> Option<Entry> {
        if self.waiting.parts == 0 {
            return None;
        }
        let next = self.waiting.front()?.parts.len();
        let fits = self.limit.is_none_or(|limit| self.len() + next <= limit || self.is_empty());
        if fits { self.waiting.pop_front() } else { None }
    }

    /// Moves what a thread runs next to `share`.
    #[inline]
    pub(crate) fn take_share(&mut self, size: Share, share: &mut VecDeque<Entry>) {
        let mut wanted = match size {
            Share::One => 1,
            Share::OneOf(threads) => (self.len() / (4 * threads)).clamp(1, SHARE_MAX),
        };
        while wanted > 0 {
            let Some(front) = self.line.front() else { return };
            let taken = front.parts.len().min(wanted);
            wanted -= taken;
            if taken == front.parts.len() {
                share.extend(self.line.pop_front());
            } else {
                share.push_back(front.split_front(taken));
                self.line.parts -= taken;
            }
        }
    }

    /// Takes everything out of the line.
    pub(crate) fn take_line(&mut self) -> impl Iterator<Item = Entry> {
        self.line.take_all().into_iter().flatten()
    }

    /// Takes out those that wait for room, of those that are `wanted`.
    pub(crate) fn take_waiting(&mut self, wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let mut taken = Vec::new();
        for entry in self.waiting.take_all().into_iter().flatten() {
            if wanted(&entry) {
                taken.push(entry);
            } else {
                self.waiting.push(entry);
            }
        }
        taken
    }

    /// Takes out work that is in the line; of one without a limit, where nobody waits for its room, only if it is
    /// near the end.
    pub(crate) fn take_out_of_line(&mut self, work: &Arc<dyn Work>) -> Option<Entry> {
        let place = self.line.find(work)?;
        self.line.take_out(place)
    }

    /// Takes out the last part of work that is in the line, as far as that is [found](Queue::take_out_of_line).
    pub(crate) fn take_last_out_of_line(&mut self, work: &Arc<dyn Work>) -> Option<Entry> {
        let place = self.line.find(work)?;
        self.line.take_last_of(place)
    }

    pub(crate) fn line(&self) -> impl Iterator<Item = &Entry> {
        self.line.entries.iter().flatten()
    }
}

/// Entries, the oldest first. One that is taken out of the middle leaves a gap, so that the others keep their
/// places, and nothing is moved or looked for under the pool's lock when many are withdrawn.
struct Line {
    entries: VecDeque<Option<Entry>>,
    /// The number of the first. Those behind it have the numbers that follow.
    first: u64,
    /// How many parts there are.
    parts: usize,
    gaps: usize,
    /// Whether each entry's work is told its number, so that it is found at once.
    numbered: bool,
}

impl Line {
    fn new(numbered: bool) -> Self {
        Self { entries: VecDeque::new(), first: 0, parts: 0, gaps: 0, numbered }
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        if self.numbered {
            entry.work.number().store(self.first + self.entries.len() as u64, Ordering::Relaxed);
        }
        self.parts += entry.parts.len();
        self.entries.push_back(Some(entry));
    }

    /// The first entry, with no gap before it.
    #[inline]
    fn front(&mut self) -> Option<&mut Entry> {
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
            self.gaps -= 1;
        }
        self.entries.front_mut()?.as_mut()
    }

    /// Takes the first entry, which has no gap before it.
    #[inline]
    fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()??;
        self.first += 1;
        self.parts -= entry.parts.len();
        Some(entry)
    }

    /// The place of work. Where it has no number it is looked for from the end, and not for long.
    fn find(&self, work: &Arc<dyn Work>) -> Option<usize> {
        let is_it = |place: &usize| {
            let entry = self.entries.get(*place).and_then(Option::as_ref);
            entry.is_some_and(|entry| Arc::ptr_eq(&entry.work, work))
        };
        if self.numbered {
            let number = work.number().load(Ordering::Relaxed).checked_sub(self.first)?;
            return usize::try_from(number).ok().filter(is_it);
        }
        let first = self.entries.len().saturating_sub(SEARCH_MAX);
        (first..self.entries.len()).rev().find(is_it)
    }

    fn take_out(&mut self, place: usize) -> Option<Entry> {
        let entry = self.entries.get_mut(place)?.take()?;
        self.parts -= entry.parts.len();
        self.gaps += 1;
        while let Some(None) = self.entries.back() {
            self.entries.pop_back();
            self.gaps -= 1;
        }
        if self.gaps > GAPS_MAX && self.gaps > self.entries.len() / 2 {
            self.close_gaps();
        }
        Some(entry)
    }

    /// Takes out the last part of an entry.
    fn take_last_of(&mut self, place: usize) -> Option<Entry> {
        let entry = self.entries.get_mut(place)?.as_mut()?;
        if entry.parts.len() == 1 {
            return self.take_out(place);
        }
        self.parts -= 1;
        Some(entry.split_back(1))
    }

    /// Moves the others up. Each was told its number, and is told the one that it has then.
    #[cold]
    fn close_gaps(&mut self) {
        for entry in self.take_all().into_iter().flatten() {
            self.push(entry);
        }
    }

    fn take_all(&mut self) -> VecDeque<Option<Entry>> {
        (self.parts, self.gaps) = (0, 0);
        mem::take(&mut self.entries)
    }
}

#[cfg(test)]
mod tests;
