//! Whose time something lives in.

use std::time::Instant;

use super::{Clock, Hold, SystemClock, VirtualClock};

/// The system's time, or that of a virtual clock: what a component with threads of its own is told when it is built.
#[derive(Clone, Debug, Default)]
pub enum Tempo {
    /// The system's.
    #[default]
    Real,
    /// It moves by itself when everybody who takes part rests, and nobody holds it.
    Virtual(VirtualClock),
}

impl Tempo {
    /// Keeps virtual time from moving by itself; see [`VirtualClock::hold`]. There is nothing to hold in real time.
    #[must_use]
    pub fn hold(&self) -> Option<Hold> {
        match self {
            Self::Real => None,
            Self::Virtual(clock) => Some(clock.hold()),
        }
    }
}

impl Clock for Tempo {
    #[inline]
    fn now(&self) -> Instant {
        match self {
            Self::Real => SystemClock.now(),
            Self::Virtual(clock) => clock.now(),
        }
    }

    fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }
}
