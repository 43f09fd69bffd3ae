//! What a handler is given.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use ebbtide_lifecycle::{Panicked, Token};

use crate::{error::SettleError, mailbox::Mailbox, message::Delivery};

/// A message, and what can be done about it while it is worked on.
pub struct Job {
    pub(super) delivery: Delivery,
    pub(super) mailbox: Arc<dyn Mailbox>,
    pub(super) stopping: Token,
    pub(super) beats: Arc<AtomicU64>,
}

impl Job {
    /// What was sent.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.delivery.body
    }

    /// All that is known of it.
    #[must_use]
    pub const fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// What an earlier attempt has [saved](Job::save).
    #[must_use]
    pub const fn checkpoint(&self) -> Option<&Bytes> {
        self.delivery.checkpoint.as_ref()
    }

    /// Saves progress, for the next attempt to go on from, should there be one.
    ///
    /// # Errors
    /// If the message is not in this worker's hands any more.
    pub async fn save(&self, progress: impl Into<Bytes>) -> Result<(), SettleError> {
        self.beat();
        self.mailbox.checkpoint(self.delivery.receipt, progress.into()).await
    }

    /// Says that it goes on. With [`Leases::WhileBeating`](super::Leases::WhileBeating) a message is given up to others
    /// once this has not been said for too long.
    pub fn beat(&self) {
        // Relaxed: nothing but the number is told.
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Fires when the worker is told to stop. What is in hand may go on to its end; what takes long can save its
    /// progress and fail.
    #[must_use]
    pub const fn stopping(&self) -> &Token {
        &self.stopping
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("delivery", &self.delivery).finish_non_exhaustive()
    }
}

/// Why a handler failed.
pub enum Failure {
    /// It gave this error.
    Error(Box<dyn std::error::Error + Send + Sync>),
    /// It panicked.
    Panicked(Panicked),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Panicked(panicked) => panicked.fmt(f),
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
