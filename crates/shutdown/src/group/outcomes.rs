//! What became of the members of a group.

use std::{error::Error, fmt, io, panic::Location, slice, sync::Arc, time::Duration};

use ebbtide_lifecycle::Reason;

/// How each member of a group ended, in the order in which they were added. A clone shares them.
#[derive(Clone, Debug)]
pub struct Outcomes {
    fates: Arc<[Fate]>,
    reason: Option<Reason>,
}

/// What became of one member.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fate {
    /// The member's name.
    pub name: Arc<str>,
    /// Where it was added to the group.
    pub site: &'static Location<'static>,
    /// How it ended.
    pub ending: Ending,
    /// How long it ran: until its end, or until it was left behind. Zero if it never did.
    pub ran: Duration,
    /// How long after its deadline it ended, if it ended after it, but soon enough to be seen.
    pub late: Option<Duration>,
    /// What its `shutdown` panicked with, if it did.
    pub shutdown_panic: Option<Arc<str>>,
}

/// How a member ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ending {
    /// By itself, before anybody told it to stop.
    Finished,
    /// It was told to stop, and did.
    Stopped,
    /// With an error, told or not.
    Failed {
        /// What the error says.
        text: Arc<str>,
        /// The error.
        error: Arc<dyn Error + Send + Sync>,
    },
    /// With a panic, told or not; this is its message.
    Panicked(Arc<str>),
    /// Not at all: it goes on, although its deadline has passed.
    LeftBehind {
        /// How long ago it had been told, when it was given up on.
        told_for: Duration,
    },
    /// The stop came before it had begun, and it never will.
    NeverRan,
    /// There was no thread to run it on.
    NotStarted(Arc<io::Error>),
}

impl Outcomes {
    pub(super) fn new(fates: impl IntoIterator<Item = Fate>, reason: Option<Reason>) -> Self {
        Self { fates: fates.into_iter().collect(), reason }
    }

    /// Whether every member ended, in time and without an error or a panic.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.fates.iter().all(Fate::is_clean)
    }

    /// Why the group was stopped. Nothing if all members ended by themselves.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        self.reason.as_ref()
    }

    /// What became of the member of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Fate> {
        self.iter().find(|fate| &*fate.name == name)
    }

    /// Each member, in the order in which they were added.
    pub fn iter(&self) -> slice::Iter<'_, Fate> {
        self.fates.iter()
    }
}

impl<'a> IntoIterator for &'a Outcomes {
    type Item = &'a Fate;
    type IntoIter = slice::Iter<'a, Fate>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A line with the reason, then one for each member.
impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "the group was stopped: {reason}")?,
            None => f.write_str("the group ended by itself")?,
        }
        self.iter().try_for_each(|fate| write!(f, "\n  {fate}"))
    }
}

impl Fate {
    /// Whether it ended in time, and neither it nor its `shutdown` failed. A member that never ran because of a stop
    /// is clean.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let ended = matches!(self.ending, Ending::Finished | Ending::Stopped | Ending::NeverRan);
        ended && self.late.is_none() && self.shutdown_panic.is_none()
    }
}

impl Fate {
    /// Whether it failed or panicked, or its `shutdown` did; being late is no failure.
    pub(crate) fn has_failed(&self) -> bool {
        let failed =
            matches!(self.ending, Ending::Failed { .. } | Ending::Panicked(_) | Ending::NotStarted(_));
        failed || self.shutdown_panic.is_some()
    }
}

/// `name: stopped after 1.5s`.
impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, ran) = (&self.name, self.ran);
        match &self.ending {
            Ending::Finished => write!(f, "{name}: finished by itself after {ran:.1?}")?,
            Ending::Stopped => write!(f, "{name}: stopped after {ran:.1?}")?,
            Ending::Failed { text, .. } => write!(f, "{name}: failed after {ran:.1?}: {text}")?,
            Ending::Panicked(message) => write!(f, "{name}: panicked after {ran:.1?}: {message}")?,
            Ending::LeftBehind { told_for } => {
                write!(f, "{name}: left behind, still running {told_for:.1?} after it was told to stop")?;
                write!(f, " (added at {})", self.site)?;
            }
            Ending::NeverRan => write!(f, "{name}: never ran, the stop came first")?,
            Ending::NotStarted(error) => write!(f, "{name}: not started: {error}")?,
        }
        if let Some(late) = self.late {
            write!(f, ", {late:.1?} after its deadline")?;
        }
        match &self.shutdown_panic {
            Some(message) => write!(f, "; its shutdown panicked: {message}"),
            None => Ok(()),
        }
    }
}

/// What a group that runs as a [`Runnable`](ebbtide_lifecycle::Runnable) gives as its error: a member failed, or was
/// left behind.
#[derive(Clone, Debug)]
pub struct Unclean {
    /// What became of all members.
    pub outcomes: Outcomes,
}

/// One line, with those that did not end cleanly.
impl fmt::Display for Unclean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unclean = self.outcomes.iter().filter(|fate| !fate.is_clean());
        for (number, fate) in unclean.enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(f, "{separator}{fate}")?;
        }
        Ok(())
    }
}

impl Error for Unclean {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.outcomes.iter().find_map(|fate| match &fate.ending {
            Ending::Failed { error, .. } => Some(&**error as &(dyn Error + 'static)),
            Ending::NotStarted(error) => Some(&**error as &(dyn Error + 'static)),
            _ => None,
        })
    }
}
