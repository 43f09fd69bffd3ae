//! What a handler is given.

use std::{
    error::Error,
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
    /// If the message is not in this worker's hands any more, or the progress is larger than a body may be.
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
    Error(Box<dyn Error + Send + Sync>),
    /// It panicked.
    Panicked(Panicked),
}

impl Failure {
    /// Whether the handler says that it would fail again: with a [`GiveUp`].
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Error(error) if error.is::<GiveUp>())
    }
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

/// An error of a handler after which its message is not tried again, whatever [`Retry`](super::Retry) says: a body that
/// makes no sense, an account that is closed.
///
/// ```
/// use ebbtide_mailbox::worker::{GiveUp, HandlerResult};
///
/// fn check(body: &[u8]) -> HandlerResult {
///     if body.is_empty() {
///         return Err(GiveUp::because("an order without items").into());
///     }
///     Ok(None)
/// }
/// # assert_eq!(check(b"").unwrap_err().to_string(), "an order without items");
/// ```
pub struct GiveUp(Box<dyn Error + Send + Sync>);

impl GiveUp {
    /// For this reason, which is kept with the dead letter.
    #[must_use]
    pub fn because(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GiveUp").field(&self.0).finish()
    }
}

impl Error for GiveUp {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
