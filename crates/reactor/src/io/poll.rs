//! The operating system's way to wait for many sources at once.

use std::time::Instant;

#[cfg(all(target_os = "linux", not(ebbtide_portable)))]
pub(crate) use super::epoll::{BorrowedSource, Poll, RawSource, Waiting};
#[cfg(any(not(target_os = "linux"), ebbtide_portable))]
pub(crate) use super::portable::{BorrowedSource, Poll, RawSource, Waiting};

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// Not at all.
    Now,
    Until(Instant),
    Never,
}
