//! Whose time a pool lives in.

use std::time::Instant;

use ebbtide_lifecycle::time::{Clock, SystemClock, VirtualClock};

/// Whose time the pool lives in.
pub(crate) enum Time {
    Real,
    /// Jobs in flight hold it.
    Virtual(VirtualClock),
}

impl Time {
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Real => SystemClock.now(),
            Self::Virtual(clock) => clock.now(),
        }
    }
}
