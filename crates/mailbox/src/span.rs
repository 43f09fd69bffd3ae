//! How long a message stays out of sight.

use std::{fmt, time::Duration};

/// A time within which a message is not delivered: for as long as whoever received it works on it, until it is tried
/// again, or from when it is sent. Up to twelve hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

impl Span {
    /// The longest there is.
    pub const MAX: Self = Self(Duration::from_secs(43_200));
    /// At once.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// As long as `duration`.
    ///
    /// # Errors
    /// [`OutOfRange`] if that is more than [twelve hours](Span::MAX).
    pub const fn new(duration: Duration) -> Result<Self, OutOfRange> {
        if duration.as_nanos() > Self::MAX.0.as_nanos() {
            return Err(OutOfRange {
                what: "a time out of sight",
                given: Given::Time(duration),
                least: 0,
                most: 43_200,
            });
        }
        Ok(Self(duration))
    }

    /// So many seconds, for those that are known when the program is built.
    ///
    /// # Panics
    /// If that is more than [twelve hours](Span::MAX).
    #[must_use]
    pub const fn secs(seconds: u32) -> Self {
        assert!(seconds <= 43_200, "a time out of sight is twelve hours at most");
        Self(Duration::from_secs(seconds as u64))
    }

    /// How long it is.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }
}

/// A number that a mailbox does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    pub(crate) what: &'static str,
    pub(crate) given: Given,
    pub(crate) least: u32,
    pub(crate) most: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Count(usize),
    Time(Duration),
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, least, most, .. } = self;
        match self.given {
            Given::Count(count) => write!(f, "{what} of {count}: it is between {least} and {most}"),
            Given::Time(time) => write!(f, "{what} of {time:?}: it is between {least} and {most} seconds"),
        }
    }
}

impl std::error::Error for OutOfRange {}
