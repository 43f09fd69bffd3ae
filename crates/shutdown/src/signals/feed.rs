//! Signals that a program sends to itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
    listeners: Arc<Mutex<Vec<Listener>>>,
}

#[derive(Debug)]
struct Listener {
    shared: Weak<Shared>,
    /// How many it has got.
    signals: usize,
}

impl Feed {
    /// A feed that nobody listens to yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a signal. All that is done at once is done before this returns: after the first one a stop is on its way.
    ///
    /// Each coordinator counts those that were sent since it was built, and one that has stopped gets none.
    pub fn send(&self, signal: i32) {
        let count = |listener: &mut Listener| {
            listener.signals += 1;
            let going = listener.shared.upgrade().filter(|shared| shared.report.get().is_none());
            going.map(|shared| (shared, listener.signals))
        };
        // Counted under the lock, and told without it.
        let told: Vec<_> = self.listeners().iter_mut().filter_map(count).collect();
        for (shared, nth) in told {
            shared.signalled(signal, nth);
        }
    }

    pub(super) fn attach(&self, shared: &Arc<Shared>) {
        let mut listeners = self.listeners();
        listeners.retain(|listener| listener.shared.strong_count() > 0);
        listeners.push(Listener { shared: Arc::downgrade(shared), signals: 0 });
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        // Nothing that can panic runs under the lock.
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
