//! What waits to be run in a lane: in line, and, where there is a limit, before the line.

use std::{collections::VecDeque, mem, ops::Range, sync::Arc};

use crate::work::Work;

/// A thread takes so many jobs at once at most.
const SHARE_MAX: usize = 32;

/// So many entries are looked at for one that is to be taken out of a line without a limit.
const SEARCH_MAX: usize = 64;

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
}

/// How much a thread takes at a time.
#[derive(Clone, Copy)]
pub(crate) enum Share {
    One,
    /// One of so many threads takes more than one where there is much more than one for each, so that it does
    /// not have to come back for every single one.
    OneOf(usize),
}

#[derive(Default)]
pub(crate) struct Queue {
    line: VecDeque<Entry>,
    /// How many parts are in the line.
    len: usize,
    /// How many are to be; none if there is no limit.
    limit: Option<usize>,
    /// Those that wait for room in the line: they are not accepted yet.
    waiting: VecDeque<Entry>,
}

impl Queue {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many wait for room.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.iter().map(|entry| entry.parts.len()).sum()
    }

    /// Whether there is room for so many more, and nobody waits for it. Where they are more than there ever is room
    /// for, they fit when the line is empty.
    #[inline]
    pub(crate) fn has_room(&self, parts: usize) -> bool {
        self.waiting.is_empty() && self.fits(parts)
    }

    #[inline]
    fn fits(&self, parts: usize) -> bool {
        self.limit.is_none_or(|limit| self.len + parts <= limit || self.len == 0)
    }

    /// Puts accepted work at the end of the line.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        self.len += entry.parts.len();
        self.line.push_back(entry);
    }

    /// Puts work behind all that wait for room.
    pub(crate) fn wait(&mut self, entry: Entry) {
        self.waiting.push_back(entry);
    }

    /// Takes out work that waits for room.
    pub(crate) fn take_out_of_waiting(&mut self, work: &Arc<dyn Work>) -> Option<Entry> {
        let place = self.waiting.iter().position(|entry| Arc::ptr_eq(&entry.work, work))?;
        self.waiting.remove(place)
    }

    /// The next one that waits for room, if there is room for it now.
    #[inline]
    pub(crate) fn next_to_fit(&mut self) -> Option<Entry> {
        let next = self.waiting.front()?;
        if self.fits(next.parts.len()) { self.waiting.pop_front() } else { None }
    }

    /// Moves what a thread runs next to `share`.
    #[inline]
    pub(crate) fn take_share(&mut self, size: Share, share: &mut VecDeque<Entry>) {
        let mut wanted = match size {
            Share::One => 1,
            Share::OneOf(threads) => (self.len / (4 * threads)).clamp(1, SHARE_MAX),
        };
        while wanted > 0 {
            let Some(front) = self.line.front_mut() else { return };
            let taken = front.parts.len().min(wanted);
            wanted -= taken;
            self.len -= taken;
            if taken == front.parts.len() {
                share.extend(self.line.pop_front());
            } else {
                share.push_back(front.split_front(taken));
            }
        }
    }

    /// Takes everything out of the line.
    pub(crate) fn take_line(&mut self) -> VecDeque<Entry> {
        self.len = 0;
        mem::take(&mut self.line)
    }

    /// Takes out those that wait for room, of those that are `wanted`.
    pub(crate) fn take_waiting(&mut self, wanted: impl Fn(&Entry) -> bool) -> VecDeque<Entry> {
        let (taken, left) = mem::take(&mut self.waiting).into_iter().partition(wanted);
        self.waiting = left;
        taken
    }

    /// Takes out work that is in the line. It is looked for from the end; in a line without a limit, where
    /// nobody waits for its room, not for long.
    pub(crate) fn take_out_of_line(&mut self, work: &Arc<dyn Work>) -> Option<Entry> {
        let first = if self.limit.is_some() { 0 } else { self.line.len().saturating_sub(SEARCH_MAX) };
        let place =
            (first..self.line.len()).rev().find(|place| Arc::ptr_eq(&self.line[*place].work, work))?;
        let entry = self.line.remove(place)?;
        self.len -= entry.parts.len();
        Some(entry)
    }

    pub(crate) fn line(&self) -> impl Iterator<Item = &Entry> {
        self.line.iter()
    }
}
