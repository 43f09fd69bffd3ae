//! The order in which components are stopped.

use std::fmt;

/// When a component is stopped: the highest first, and those of one priority side by side, in one *phase*.
///
/// The named ones are the order of a whole program; any number in between can be used as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// What brings requests in: servers, consumers.
    pub const SERVERS: Self = Self(400);
    /// What works on them: worker loops, groups.
    pub const WORKERS: Self = Self(300);
    /// What goes on after its deadline: late runners.
    pub const LATE: Self = Self(200);
    /// What others have their work done by: pools. They are drained while the loops still run, so that results arrive.
    pub const POOLS: Self = Self(100);
    /// What everything runs on: loops, runtimes.
    pub const LOOPS: Self = Self(0);
    /// What everything uses: connections, files, logs.
    pub const RESOURCES: Self = Self(-100);

    const NAMED: [(Self, &'static str); 6] = [
        (Self::SERVERS, "servers"),
        (Self::WORKERS, "workers"),
        (Self::LATE, "late runners"),
        (Self::POOLS, "pools"),
        (Self::LOOPS, "loops"),
        (Self::RESOURCES, "resources"),
    ];
}

impl From<i32> for Priority {
    fn from(priority: i32) -> Self {
        Self(priority)
    }
}

/// The number, and the name where it has one: `100 (pools)`.
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        match Self::NAMED.iter().find(|(named, _)| named == self) {
            Some((_, name)) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}
