//! The choices of a group.

use std::{collections::HashMap, fmt, io, panic::Location, sync::Arc, time::Duration};

use ebbtide_lifecycle::{
    Runnable,
    blame::Origin,
    time::{Tempo, VirtualClock},
};

use super::{
    Group,
    board::{Board, Slot},
    crew::{Crew, Terms},
};

/// What a group that stops by itself, because a member failed or its last handle was dropped, gives its members: that
/// of a whole program's stop.
const DEFAULT_BUDGET: Duration = Duration::from_secs(30);

/// What a [`GroupBuilder::spawn_with`] function has to run: a member, until its end.
pub type Job = Box<dyn FnOnce() + Send>;

/// What happens to the others when a member fails, panics or cannot be started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// They are told to stop at once, within the group's own budget.
    #[default]
    StopSiblings,
    /// They go on.
    LeaveSiblings,
}

/// Makes a [`Group`]; from [`Group::builder`].
#[must_use = "a builder does nothing until `build`"]
pub struct GroupBuilder {
    members: Vec<Slot>,
    terms: Terms,
}

impl GroupBuilder {
    pub(super) fn new() -> Self {
        let terms = Terms {
            budget: DEFAULT_BUDGET,
            policy: Policy::default(),
            spawner: None,
            stack_size: None,
            tempo: Tempo::Real,
        };
        Self { members: Vec::new(), terms }
    }

    /// Adds a member, which has as long to stop as the whole group.
    ///
    /// The caller's location is where the member is said to come from. The group drops it when it has ended, on the
    /// thread that ran it or on the one that told it to stop.
    #[track_caller]
    pub fn member(self, name: impl Into<Arc<str>>, runnable: impl Runnable + 'static) -> Self {
        self.add(Origin::here().named(name), None, Arc::new(runnable))
    }

    /// Adds a member that has no longer than `cap` to stop, within what the whole group has.
    #[track_caller]
    pub fn capped_member(
        self,
        name: impl Into<Arc<str>>,
        cap: Duration,
        runnable: impl Runnable + 'static,
    ) -> Self {
        self.add(Origin::here().named(name), Some(cap), Arc::new(runnable))
    }

    fn add(mut self, origin: Origin, cap: Option<Duration>, runnable: Arc<dyn Runnable>) -> Self {
        self.members.push(Slot::new(origin, cap, runnable));
        self
    }

    /// How long a stop may take that the group itself decides on: because a member failed, or because its last handle
    /// was dropped. 30 s if not said.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.terms.budget = budget;
        self
    }

    /// What happens to the others when a member fails.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.terms.policy = policy;
        self
    }

    /// Has `spawn` find a thread for each member: a pool's, a loop's, one with another priority. If not said, each
    /// member gets a thread of its own, with its name.
    ///
    /// It is called by [`Group::run`], for one member after the other, and must not run the job itself: the other
    /// members would wait for its end. A job that it refuses, or drops without running it, is a member that was
    /// [not started](super::Ending::NotStarted). One that it still keeps when the group stops does nothing when it is
    /// run.
    pub fn spawn_with(mut self, spawn: impl Fn(Job) -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.terms.spawner = Some(Box::new(spawn));
        self
    }

    /// The size of the stack of each thread that the group itself starts, in bytes. The system's choice if not said.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.terms.stack_size = Some(bytes);
        self
    }

    /// Has the group live in the time of `clock`: deadlines are its moments.
    ///
    /// The group's own threads take part in it while they wait. Members do not, unless they do so by themselves: one
    /// that is busy must hold the clock for as long as time must not move.
    pub fn clock(mut self, clock: &VirtualClock) -> Self {
        self.terms.tempo = Tempo::Virtual(clock.clone());
        self
    }

    /// The group, not running yet.
    ///
    /// # Errors
    /// [`DuplicateName`] if two members have the same name.
    pub fn build(self) -> Result<Group, DuplicateName> {
        let mut sites = HashMap::new();
        for member in &self.members {
            let again = member.site();
            if let Some(first) = sites.insert(member.name(), again) {
                return Err(DuplicateName { name: member.name().clone(), first, again });
            }
        }
        Ok(Group::new(Crew::new(Board::new(self.members), self.terms)))
    }
}

impl fmt::Debug for GroupBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.members.iter().map(Slot::name).collect();
        f.debug_struct("GroupBuilder").field("members", &names).finish_non_exhaustive()
    }
}

/// Two members of a group have the same name: nobody could tell them apart in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateName {
    /// The name.
    pub name: Arc<str>,
    /// Where the first of them was added.
    pub first: &'static Location<'static>,
    /// Where the second was.
    pub again: &'static Location<'static>,
}

impl fmt::Display for DuplicateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, first, again } = self;
        write!(f, "two members are called \"{name}\": the one added at {first}, and the one added at {again}")
    }
}

impl std::error::Error for DuplicateName {}
