//! The answer to "what is it waiting for?", for people and for programs.

use std::{collections::HashMap, fmt, panic::Location, sync::Arc, time::Duration};

use super::{Activity, Origin};

/// How many groups a report prints: the oldest tell what is wrong, thousands more would hide it.
const GROUPS_SHOWN_MAX: usize = 20;

/// One piece of work that is still in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Straggler {
    /// Who submitted it.
    pub origin: Origin,
    /// What it does.
    pub activity: Activity,
    /// For how long.
    pub age: Duration,
    /// The thread that it occupies, where that is known.
    pub thread: Option<Arc<str>>,
}

impl Straggler {
    /// Work from `origin` that has been at `activity` for `age`.
    #[must_use]
    pub const fn new(origin: Origin, activity: Activity, age: Duration) -> Self {
        Self { origin, activity, age, thread: None }
    }

    /// The same, on the thread of that name.
    #[must_use]
    pub fn on(mut self, thread: impl Into<Arc<str>>) -> Self {
        self.thread = Some(thread.into());
        self
    }
}

/// `"name" at file:line:column, running for 1.5s on thread`.
impl fmt::Display for Straggler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} for {:.1?}", self.origin, self.activity, self.age)?;
        match &self.thread {
            Some(thread) => write!(f, " on {thread}"),
            None => Ok(()),
        }
    }
}

/// All that is still in flight, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stragglers {
    /// Sorted by age, oldest first.
    list: Vec<Straggler>,
    untracked: usize,
}

/// Stragglers that were submitted at the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group<'a> {
    /// The place.
    pub site: &'static Location<'static>,
    /// The oldest of them.
    pub oldest: &'a Straggler,
    /// How many there are.
    pub count: usize,
}

impl Stragglers {
    /// Nobody.
    #[must_use]
    pub const fn none() -> Self {
        Self { list: Vec::new(), untracked: 0 }
    }

    /// So many more are in flight of which no record is kept.
    #[must_use]
    pub fn and_untracked(mut self, count: usize) -> Self {
        self.untracked += count;
        self
    }

    /// Those of both.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.untracked += other.untracked;
        self.list.extend(other.list);
        self.sort();
        self
    }

    /// How many there are, those without a record included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len() + self.untracked
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many are in flight of which no record is kept.
    #[must_use]
    pub const fn untracked(&self) -> usize {
        self.untracked
    }

    /// Each that has a record, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Straggler> {
        self.list.iter()
    }

    /// By place of submission; the group with the oldest first.
    #[must_use]
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups = Vec::<Group<'_>>::new();
        let mut by_site = HashMap::new();
        for straggler in &self.list {
            let site = straggler.origin.site();
            let index = *by_site.entry(site).or_insert(groups.len());
            match groups.get_mut(index) {
                Some(group) => group.count += 1,
                None => groups.push(Group { site, oldest: straggler, count: 1 }),
            }
        }
        groups
    }

    fn sort(&mut self) {
        self.list.sort_by_key(|straggler| std::cmp::Reverse(straggler.age));
    }
}

impl FromIterator<Straggler> for Stragglers {
    fn from_iter<I: IntoIterator<Item = Straggler>>(stragglers: I) -> Self {
        let mut all = Self { list: stragglers.into_iter().collect(), untracked: 0 };
        all.sort();
        all
    }
}

impl<'a> IntoIterator for &'a Stragglers {
    type Item = &'a Straggler;
    type IntoIter = std::slice::Iter<'a, Straggler>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A line with the count, then a line for each group: how many, and the oldest of them.
impl fmt::Display for Stragglers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in flight", self.len())?;
        let groups = self.groups();
        for group in groups.iter().take(GROUPS_SHOWN_MAX) {
            write!(f, "\n  {} × {}", group.count, group.oldest)?;
        }
        if let Some(more) = groups.len().checked_sub(GROUPS_SHOWN_MAX).filter(|more| *more > 0) {
            write!(f, "\n  and from {more} more places")?;
        }
        if self.untracked > 0 {
            write!(f, "\n  {} without a record", self.untracked)?;
        }
        Ok(())
    }
}
