//! Who is in flight: where it was submitted, since when, and what it does.
//!
//! The question is asked once, when a stop runs out of time; the answer has to be ready always. So the record of a
//! piece of work is a few plain stores into memory that exists already, and all sorting and naming is left to the
//! asker.
//!
//! | who | how it keeps the record |
//! |---|---|
//! | a request, a delivery, a run | a [`Seat`] of its own in a [`Roster`], for as long as it is in flight |
//! | a loop, a worker of a pool | one seat for good, in which it [shows](Roster::show) what it runs at the moment |
//! | a parked task, a queued job | its own memory holds an [`Origin`] or a location; its list gives [`Straggler`]s |

mod roster;
mod stragglers;

use std::{fmt, panic::Location, sync::Arc};

pub use self::{
    roster::{Moment, Roster, Seat},
    stragglers::{Group, Straggler, Stragglers},
};

/// Where a piece of work was submitted, and what it is called.
///
/// Entry points are plain functions with `#[track_caller]`: on an `async fn` that attribute does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    site: &'static Location<'static>,
    name: Option<Arc<str>>,
}

impl Origin {
    /// The caller's location, without a name yet.
    #[must_use]
    #[track_caller]
    pub fn here() -> Self {
        Self { site: Location::caller(), name: None }
    }

    /// The same place, with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where it was submitted.
    #[must_use]
    pub const fn site(&self) -> &'static Location<'static> {
        self.site
    }

    /// What it is called, if it was given a name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl From<&'static Location<'static>> for Origin {
    fn from(site: &'static Location<'static>) -> Self {
        Self { site, name: None }
    }
}

/// `"name" at file:line:column`, or the place alone.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "\"{name}\" at {}", self.site),
            None => self.site.fmt(f),
        }
    }
}

/// What a piece of work does while it is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Activity {
    /// Accepted, not begun.
    Queued = 1,
    /// On a thread at this moment.
    Running = 2,
    /// Begun, waiting for something.
    Parked = 3,
}

impl Activity {
    const fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            1 => Some(Self::Queued),
            2 => Some(Self::Running),
            3 => Some(Self::Parked),
            _ => None,
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Parked => "parked",
        })
    }
}
