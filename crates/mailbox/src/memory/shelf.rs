//! The messages of one mailbox, and where each is.
//!
//! | a message that is … | becomes | when |
//! |---|---|---|
//! | sent | pending, or delayed | it is put in |
//! | delayed | pending | its time has come |
//! | pending | invisible | it is received |
//! | invisible | gone | it is acknowledged |
//! | invisible | pending, at the front | it is released |
//! | invisible | pending, or delayed | it failed |
//! | invisible | pending | its time out of sight is over |
//!
//! Nothing happens by itself: whoever looks first moves those whose time has come.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    time::{Duration, Instant},
};

use bytes::Bytes;
use slab::Slab;

use crate::{
    message::{Address, Counts, Delivery, Message, MessageId, Receipt, Settlement},
    span::Span,
};

/// All messages of a mailbox.
pub(super) struct Shelf {
    /// What its receipts are known by.
    mailbox: u64,
    entries: Slab<Entry>,
    /// The keys of those that can be received, the next first.
    pending: VecDeque<usize>,
    /// The keys of those that are delayed or invisible, by when that is over.
    timeline: BTreeMap<Due, usize>,
    /// How many of the timeline are invisible.
    invisible: usize,
    /// How many messages were ever put in.
    sent: u64,
    /// Numbers for deliveries and moments; each is used once.
    issued: u64,
}

/// When something is over: by time, then in the order in which it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    number: u64,
}

struct Entry {
    id: MessageId,
    body: Bytes,
    reply_to: Option<Address>,
    checkpoint: Option<Bytes>,
    since: Instant,
    delivery_count: u32,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Pending,
    Delayed(Due),
    Invisible { due: Due, delivery: u64 },
}

/// A receipt that is not, or no more, good for anything.
#[derive(Debug)]
pub(super) struct Expired;

impl Shelf {
    /// One without messages.
    pub(super) const fn new(mailbox: u64) -> Self {
        Self {
            mailbox,
            entries: Slab::new(),
            pending: VecDeque::new(),
            timeline: BTreeMap::new(),
            invisible: 0,
            sent: 0,
            issued: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn counts(&self) -> Counts {
        let (pending, invisible) = (self.pending.len() as u64, self.invisible as u64);
        Counts::new(pending, self.timeline.len() as u64 - invisible, invisible)
    }

    fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    pub(super) fn put(&mut self, message: Message, now: Instant) -> MessageId {
        self.sent += 1;
        let entry = self.entries.vacant_entry();
        let key = entry.key();
        // A key is used again; the number before it is not, for four billion messages. A receipt lasts longer: the
        // number of its delivery is never used again.
        let id = MessageId(self.sent << 32 | key as u64 & u64::from(u32::MAX));
        entry.insert(Entry {
            id,
            body: message.body,
            reply_to: message.reply_to,
            checkpoint: None,
            since: now,
            delivery_count: 0,
            place: Place::Pending,
        });
        self.lay(key, now, message.delay.duration());
        id
    }

    /// Puts a message where it belongs that is out of sight for `delay` from now.
    fn lay(&mut self, key: usize, now: Instant, delay: Duration) {
        // What has come back before is before it, whether somebody has looked since or not.
        self.catch_up(now);
        // Twelve hours more than now are within the range of an instant.
        let place = if delay.is_zero() { Place::Pending } else { Place::Delayed(self.due(now + delay)) };
        self.entries[key].place = place;
        match place {
            Place::Delayed(due) => drop(self.timeline.insert(due, key)),
            _ => self.pending.push_back(key),
        }
    }

    fn due(&mut self, at: Instant) -> Due {
        Due { at, number: self.issue() }
    }

    /// Makes all pending whose time has come.
    pub(super) fn catch_up(&mut self, now: Instant) {
        while let Some(first) = self.timeline.first_entry()
            && first.key().at <= now
        {
            let key = first.remove();
            let place = &mut self.entries[key].place;
            self.invisible -= usize::from(matches!(place, Place::Invisible { .. }));
            *place = Place::Pending;
            self.pending.push_back(key);
        }
    }

    /// When the next becomes pending by itself.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timeline.first_key_value().map(|(due, _)| due.at)
    }

    /// Takes up to `max` out of sight until `now + visibility`. With no visibility at all, each can be received again
    /// at once, and its receipt has expired.
    pub(super) fn take(&mut self, max: usize, visibility: Duration, now: Instant) -> Vec<Delivery> {
        self.catch_up(now);
        let count = max.min(self.pending.len());
        let mut taken = Vec::with_capacity(count);
        for _ in 0..count {
            let key = self.pending.pop_front().expect("so many are pending");
            let (due, delivery) = (self.due(now + visibility), self.issued);
            self.timeline.insert(due, key);
            self.invisible += 1;
            let entry = &mut self.entries[key];
            entry.place = Place::Invisible { due, delivery };
            entry.delivery_count = entry.delivery_count.saturating_add(1);
            let (mailbox, count) = (self.mailbox, entry.delivery_count);
            let receipt = Receipt { mailbox, id: entry.id, delivery, count };
            let age = now.saturating_duration_since(entry.since);
            let mut delivered = Delivery::new(entry.body.clone(), receipt, count, age);
            delivered.reply_to.clone_from(&entry.reply_to);
            delivered.checkpoint.clone_from(&entry.checkpoint);
            taken.push(delivered);
        }
        taken
    }

    /// The message of a receipt that is good.
    fn find(&self, receipt: Receipt, now: Instant) -> Result<(usize, Due), Expired> {
        let key = (receipt.id.0 & u64::from(u32::MAX)) as usize;
        let entry = self.entries.get(key).ok_or(Expired)?;
        let Place::Invisible { due, delivery } = entry.place else { return Err(Expired) };
        let (mailbox, count) = (self.mailbox, entry.delivery_count);
        let is_it = receipt == Receipt { mailbox, id: entry.id, delivery, count };
        if is_it && due.at > now { Ok((key, due)) } else { Err(Expired) }
    }

    /// What is left of the message is for the caller to drop, without a lock: it is foreign code.
    pub(super) fn settle(
        &mut self,
        receipt: Receipt,
        how: Settlement,
        now: Instant,
    ) -> Result<Option<Rest>, Expired> {
        let (key, due) = self.find(receipt, now)?;
        if let Settlement::Extend(span) = how {
            let at = now + span.duration();
            if at > due.at {
                let later = self.due(at);
                self.timeline.remove(&due);
                self.timeline.insert(later, key);
                self.entries[key].place = Place::Invisible { due: later, delivery: receipt.delivery };
            }
            return Ok(None);
        }
        self.timeline.remove(&due);
        self.invisible -= 1;
        match how {
            Settlement::Ack => return Ok(Some(Rest { _entry: self.entries.remove(key) })),
            Settlement::Nack(delay) => self.lay(key, now, delay.duration()),
            Settlement::Release => {
                let entry = &mut self.entries[key];
                entry.delivery_count -= 1;
                entry.place = Place::Pending;
                self.pending.push_front(key);
            }
            Settlement::Extend(_) => unreachable!("seen to above"),
        }
        Ok(None)
    }

    /// Puts `progress` in the place of what was saved before. What is in it afterwards, also if the receipt is no
    /// good, is for the caller to drop, without a lock.
    pub(super) fn save(
        &mut self,
        receipt: Receipt,
        progress: &mut Option<Bytes>,
        now: Instant,
    ) -> Result<(), Expired> {
        let (key, _) = self.find(receipt, now)?;
        mem::swap(&mut self.entries[key].checkpoint, progress);
        Ok(())
    }

    /// Takes everything out, for the caller to drop.
    pub(super) fn clear(&mut self) -> Self {
        // Numbers go on: receipts of before must not fit what comes after.
        let (sent, issued) = (self.sent, self.issued);
        mem::replace(self, Self { sent, issued, ..Self::new(self.mailbox) })
    }

    /// Takes out what nobody has in his hands, in the order in which it would have been received, each with how long
    /// it is still delayed.
    pub(super) fn take_unreceived(&mut self, now: Instant) -> Vec<Unreceived> {
        self.catch_up(now);
        let is_delayed = |key: &usize, shelf: &Self| matches!(shelf.entries[*key].place, Place::Delayed(_));
        let delayed: Vec<_> = self
            .timeline
            .iter()
            .filter(|(_, key)| is_delayed(key, self))
            .map(|(due, key)| (*due, *key))
            .collect();
        let mut keys: Vec<_> = self.pending.drain(..).map(|key| (Duration::ZERO, key)).collect();
        for (due, key) in delayed {
            self.timeline.remove(&due);
            keys.push((due.at.saturating_duration_since(now), key));
        }
        let take = |(delay, key)| Unreceived { entry: self.entries.remove(key), delay };
        keys.into_iter().map(take).collect()
    }
}

/// A message that was taken out before anybody has received it.
pub(super) struct Unreceived {
    entry: Entry,
    delay: Duration,
}

impl Unreceived {
    /// What was sent. Drops what was saved, which is foreign code: not under a lock.
    pub(super) fn into_message(self) -> Message {
        let Self { entry, delay } = self;
        let mut message = Message::new(entry.body).delayed(Span::new(delay).unwrap_or(Span::MAX));
        message.reply_to = entry.reply_to;
        message
    }
}

/// What is left of a message that is gone.
pub(super) struct Rest {
    _entry: Entry,
}
