//! Signals that a program sends to itself.

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicUsize, Ordering},
};

use crate::shared::Shared;

/// Sends signals to the coordinators that were built with it. A clone is another handle to the same feed.
///
/// ```
/// use ebbtide_shutdown::{Coordinator, Feed, Reason, Signals};
///
/// let feed = Feed::new();
/// let coordinator = Coordinator::builder().signals(Signals::from_feed(&feed)).start()?;
/// feed.send(15);
/// let report = coordinator.run();
/// assert_eq!(report.reason(), &Reason::Signal(15));
/// # Ok::<(), ebbtide_shutdown::StartError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Feed {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    listeners: Mutex<Vec<Weak<Shared>>>,
    sent: AtomicUsize,
}

impl Feed {
    /// A feed that nobody listens to yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a signal. All that is done at once is done before this returns: after the first one a stop is on its way.
    pub fn send(&self, signal: i32) {
        let nth = self.inner.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let listeners = self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for shared in listeners.iter().filter_map(Weak::upgrade) {
            shared.signalled(signal, nth);
        }
    }

    pub(super) fn attach(&self, shared: &Arc<Shared>) {
        let mut listeners = self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Arc::downgrade(shared));
    }
}
