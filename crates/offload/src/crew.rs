//! The threads of a lane: who there is, who sleeps, and who is to be woken next.
//!
//! **Nobody sleeps while there is something that nobody runs**: neither in the queue nor in another one's share.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::Outcome;
use slab::Slab;

use crate::{
    queue::{Entry, Share},
    sync::{Mutex, lock, thread::Thread},
    work::Tag,
};

pub(crate) struct Crew {
    members: Slab<Member>,
    /// Those who sleep, the last to lie down at the end: he is woken first, because his cache is warmest.
    asleep: Vec<usize>,
    /// Somebody has been woken and has not looked into the queue yet. He wakes the next if there is more than he
    /// takes; until then nobody else is woken. That is how a burst of jobs wakes no herd.
    summoned: bool,
    /// Somebody has nothing to do and does not sleep yet: he needs no waking, only to be beckoned.
    lingering: bool,
    /// How many have been hired and have not looked into the queue yet.
    starting: usize,
    kind: Kind,
}

/// How many threads there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// So many, always.
    Fixed(usize),
    /// One at least, and as many as there are jobs up to `max`. One more than the first leaves after it has slept for
    /// `keep_alive`.
    Elastic { max: usize, keep_alive: Duration },
}

#[derive(Default)]
pub(crate) struct Member {
    /// There once it has begun.
    thread: Option<Thread>,
    /// It has looked into the queue.
    looked: bool,
    pub(crate) desk: Arc<Mutex<Desk>>,
}

/// What a thread has taken and not brought back. Its own, but for those who ask, and for those who have nothing
/// to do and help it. Locked after the pool's own lock, or alone.
#[derive(Default)]
pub(crate) struct Desk {
    /// What it runs, and since when; behind that, what that waits for and runs itself.
    pub(crate) running: Vec<(Tag, Instant)>,
    /// What it runs next.
    pub(crate) share: VecDeque<Entry>,
    /// How what it ran has ended, until that is booked.
    pub(crate) ended: Vec<Outcome>,
}

impl Crew {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            members: Slab::new(),
            asleep: Vec::new(),
            summoned: false,
            lingering: false,
            starting: 0,
            kind,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn asleep(&self) -> usize {
        self.asleep.len()
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Makes a place for a thread that is about to be started, and gives its number and its desk.
    pub(crate) fn hire(&mut self) -> (usize, Arc<Mutex<Desk>>) {
        self.starting += 1;
        let entry = self.members.vacant_entry();
        let (number, member) = (entry.key(), Member::default());
        let desk = member.desk.clone();
        entry.insert(member);
        (number, desk)
    }

    /// How many have begun, and looked into the queue.
    pub(crate) fn begun(&self) -> usize {
        self.members.len() - self.starting
    }

    /// Takes a thread off the list that leaves, or that could not be started.
    pub(crate) fn dismiss(&mut self, number: usize) {
        if self.members.try_remove(number).is_some_and(|member| !member.looked) {
            self.starting -= 1;
        }
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.members.iter()
    }

    /// The thread has begun.
    pub(crate) fn begins(&mut self, number: usize, thread: Thread) -> Kind {
        if let Some(member) = self.members.get_mut(number) {
            member.thread = Some(thread);
        }
        self.kind
    }

    /// The thread goes to sleep.
    pub(crate) fn sleeps(&mut self, number: usize) {
        self.asleep.push(number);
    }

    /// Whether nobody has woken the thread.
    pub(crate) fn is_asleep(&self, number: usize) -> bool {
        self.asleep.contains(&number)
    }

    /// The thread has woken by itself.
    pub(crate) fn rises(&mut self, number: usize) {
        self.asleep.retain(|asleep| *asleep != number);
    }

    /// A thread has looked into the queue: perhaps the one that was woken.
    #[inline]
    pub(crate) fn has_looked(&mut self, number: usize) {
        self.summoned = false;
        if let Some(member) = self.members.get_mut(number).filter(|member| !member.looked) {
            member.looked = true;
            self.starting -= 1;
        }
    }

    /// Whether a thread may stay awake for a while with nothing to do: one does, of those that are always there.
    pub(crate) fn may_linger(&self) -> bool {
        !self.lingering && matches!(self.kind, Kind::Fixed(_))
    }

    /// The thread stays awake.
    pub(crate) fn lingers(&mut self) {
        self.lingering = true;
    }

    /// Whoever stayed awake looks into the queue.
    pub(crate) fn ends_lingering(&mut self) {
        self.lingering = false;
    }

    /// Takes over some of what another one has taken and not begun.
    pub(crate) fn help_others(&self, own: &mut VecDeque<Entry>, number: usize) {
        for (_, member) in self.members.iter().filter(|(other, _)| *other != number) {
            let share = &mut lock(&member.desk).share;
            if let Some(last) = share.back_mut().filter(|last| last.parts.len() > 1) {
                // Of a batch, its second half.
                let first = last.split_front(last.parts.len() / 2);
                own.extend(share.pop_back());
                return share.push_back(first);
            }
            if !share.is_empty() {
                return own.extend(share.drain(share.len() / 2..));
            }
        }
    }

    /// Whether somebody could be called, and another one has something that he has not begun.
    pub(crate) fn others_have_more(&self, number: usize) -> bool {
        let others = self.members.iter().filter(|(other, _)| *other != number);
        !self.asleep.is_empty() && others.into_iter().any(|(_, member)| !lock(&member.desk).share.is_empty())
    }

    /// How much a thread takes at a time.
    pub(crate) fn share(&self) -> Share {
        match self.kind {
            Kind::Fixed(threads) => Share::OneOf(threads),
            // Each job has a thread of its own.
            Kind::Elastic { .. } => Share::One,
        }
    }

    /// Who is to be woken because there is something in the queue.
    #[inline]
    pub(crate) fn summon(&mut self) -> Option<Call> {
        if self.lingering {
            return Some(Call::Beckon);
        }
        // On an elastic lane each job has a thread of its own, and none waits for another one to look first.
        if self.summoned && matches!(self.kind, Kind::Fixed(_)) {
            return None;
        }
        let number = self.asleep.pop()?;
        self.summoned = true;
        self.members.get(number)?.thread.clone().map(Call::Wake)
    }

    /// Whether somebody who sleeps is to be woken when something comes.
    #[inline]
    pub(crate) fn wants_a_call(&self) -> bool {
        !self.asleep.is_empty() && !self.is_attended()
    }

    /// Whether somebody stays awake for what comes, or has been woken and is about to look.
    #[inline]
    pub(crate) fn is_attended(&self) -> bool {
        self.lingering || self.summoned
    }

    /// Wakes all.
    pub(crate) fn summon_all(&mut self) -> Vec<Call> {
        let members = &self.members;
        let wake = |number| members.get(number)?.thread.clone().map(Call::Wake);
        self.asleep.drain(..).filter_map(wake).chain(self.lingering.then_some(Call::Beckon)).collect()
    }

    /// Whether one more thread is to be started for `queued` jobs: on an elastic lane where nobody sleeps, and more
    /// are queued than threads have been started and not begun.
    pub(crate) fn wants_one_more(&self, queued: usize) -> bool {
        match self.kind {
            Kind::Fixed(_) => false,
            Kind::Elastic { max, .. } => {
                self.asleep.is_empty() && queued > self.starting && self.members.len() < max
            }
        }
    }
}

/// How to call a thread to the queue.
pub(crate) enum Call {
    /// It sleeps.
    Wake(Thread),
    /// It lingers.
    Beckon,
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::job::Job;

    #[test]
    fn a_thread_that_has_not_begun_lets_no_other_one_leave() {
        let mut crew = Crew::new(Kind::Elastic { max: 2, keep_alive: Duration::ZERO });
        let (first, _) = crew.hire();
        crew.begins(first, std::thread::current());
        crew.has_looked(first);
        let (second, _) = crew.hire();
        assert_eq!((crew.len(), crew.begun()), (2, 1));
        crew.dismiss(second);
        assert_eq!((crew.len(), crew.begun()), (1, 1));
    }

    #[test]
    fn whoever_helps_one_knows_that_another_has_more() {
        let mut crew = Crew::new(Kind::Fixed(4));
        let entry = || {
            let tag = Tag { site: Location::caller(), name: None };
            Entry { work: Arc::new(Job::new(tag, || ())), parts: 0..1, inside: false }
        };
        let desks: Vec<_> = (0..4).map(|_| crew.hire()).collect();
        for (number, _) in &desks {
            crew.begins(*number, std::thread::current());
        }
        for (_, desk) in &desks[..2] {
            lock(desk).share.push_back(entry());
        }
        crew.sleeps(3);
        let mut share = VecDeque::new();
        crew.help_others(&mut share, 2);
        assert_eq!(share.len(), 1);
        assert!(crew.others_have_more(2));
        crew.help_others(&mut share, 2);
        assert!(!crew.others_have_more(2));
    }
}
