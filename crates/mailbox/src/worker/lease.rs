//! Keeping a message out of sight of others while it is worked on.

use std::{
    future::pending,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::Timer;

use crate::{
    error::SettleError,
    mailbox::Mailbox,
    message::{Receipt, Settlement},
    span::Span,
};

/// For how long a message is kept out of sight whose handler takes longer than its visibility.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leases {
    /// As long as the handler runs. One that hangs keeps its message for good, or until the process ends. One that
    /// blocks its thread loses it when its time is over: leases are extended by the worker, on the same thread.
    #[default]
    WhileRunning,
    /// As long as it [says](super::Job::beat) at least this often that it goes on.
    WhileBeating(Duration),
    /// Not longer: if the handler takes longer than that, the message is delivered again.
    Never,
}

/// How often in the time that there is a lease is extended: two may be lost on the way.
const EXTENSIONS: u32 = 3;

/// A message that is out of sight, and until when it is.
pub(super) struct Lease {
    pub(super) receipt: Receipt,
    pub(super) visibility: Span,
    pub(super) until: Instant,
}

/// Extends a lease again and again. Ends when there is nothing to extend any more; else it is dropped, before the
/// message is settled.
pub(super) async fn keep<T: Timer>(
    leases: Leases,
    beats: &AtomicU64,
    mailbox: &dyn Mailbox,
    lease: Lease,
    timer: &T,
) -> Result<(), SettleError> {
    let Lease { receipt, visibility, until } = lease;
    let every = visibility.duration() / EXTENSIONS;
    let patience = match leases {
        _ if every.is_zero() => return pending().await,
        Leases::Never => return pending().await,
        Leases::WhileRunning => None,
        Leases::WhileBeating(patience) => Some(patience),
    };
    let mut seen = (beats.load(Ordering::Relaxed), timer.now());
    // By what is left of its time: it may have waited in hand for the most of it.
    let mut next = until - every * (EXTENSIONS - 1);
    loop {
        timer.sleep_until(next).await;
        let (count, now) = (beats.load(Ordering::Relaxed), timer.now());
        if count != seen.0 {
            seen = (count, now);
        } else if patience.is_some_and(|patience| now.saturating_duration_since(seen.1) >= patience) {
            return pending().await;
        }
        match mailbox.settle(receipt, Settlement::Extend(visibility)).await {
            Ok(()) => {}
            Err(SettleError::ReceiptExpired) => return Err(SettleError::ReceiptExpired),
            // Tried again at the next turn: there is time for one more.
            Err(_) => {}
        }
        next = timer.now() + every;
    }
}
