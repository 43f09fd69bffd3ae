//! Resources of which only so many nodes may use at a time, in all runs of all engines together.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::inbox::{Inbox, RunNumber};

/// A resource that a limited number of nodes may use at a time: connections, memory, a device. A clone is another
/// handle to the same resource; nodes of any plan can be [of this class](crate::NodeTerms::class).
///
/// Nodes wait for their turn in the order in which they became ready.
#[derive(Clone)]
pub struct Class {
    desk: Arc<Desk>,
}

struct Desk {
    name: Arc<str>,
    limit: usize,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    used: usize,
    waiting: VecDeque<Waiting>,
}

/// A node that waits for its turn.
struct Waiting {
    inbox: Arc<Inbox>,
    run: RunNumber,
    node: u32,
}

impl Class {
    /// A resource that `limit` nodes may use at a time; one if that is zero.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, limit: usize) -> Self {
        let (name, limit) = (name.into(), limit.max(1));
        Self { desk: Arc::new(Desk { name, limit, line: Mutex::default() }) }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.desk.name
    }

    /// How many nodes may use it at a time.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.desk.limit
    }

    /// How many nodes use it, and how many wait for it.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let line = self.lock();
        (line.used, line.waiting.len())
    }

    /// Takes a place for a node, or puts it in line: then its inbox is told when it has one.
    pub(crate) fn enter(&self, inbox: &Arc<Inbox>, run: RunNumber, node: u32) -> bool {
        let mut line = self.lock();
        if line.used < self.desk.limit {
            line.used += 1;
            return true;
        }
        line.waiting.push_back(Waiting { inbox: inbox.clone(), run, node });
        false
    }

    /// Gives a place back, to the next in line.
    pub(crate) fn leave(&self) {
        loop {
            let mut line = self.lock();
            let Some(Waiting { inbox, run, node }) = line.waiting.pop_front() else {
                line.used -= 1;
                return;
            };
            drop(line);
            if inbox.grant(run, node) {
                return;
            }
            // Its run is over. The next one, then.
        }
    }

    /// Takes a node out of the line. Gives false if it is not there any more.
    pub(crate) fn withdraw(&self, inbox: &Arc<Inbox>, node: u32) -> bool {
        let mut line = self.lock();
        let is_it = |waiting: &Waiting| waiting.node == node && Arc::ptr_eq(&waiting.inbox, inbox);
        let at = line.waiting.iter().position(is_it);
        let left = at.and_then(|at| line.waiting.remove(at));
        drop(line);
        left.is_some()
    }

    /// Takes the nodes of a run out of the line.
    pub(crate) fn forget(&self, inbox: &Arc<Inbox>) {
        self.lock().waiting.retain(|waiting| !Arc::ptr_eq(&waiting.inbox, inbox));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Line> {
        // Nothing that can panic runs under the lock.
        self.desk.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(pub(crate) Class);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, waiting) = self.load();
        f.debug_struct("Class")
            .field("name", &self.desk.name)
            .field("limit", &self.desk.limit)
            .field("used", &used)
            .field("waiting", &waiting)
            .finish()
    }
}
