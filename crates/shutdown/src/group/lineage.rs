//! Which groups the current thread works for: one that waited for its own group would wait for itself.

use std::{
    cell::RefCell,
    mem,
    sync::atomic::{AtomicU64, Ordering},
};

thread_local! {
    /// The groups that cannot end before this thread goes on: that of the member which it runs, and those around it.
    static WITHIN: RefCell<Lineage> = const { RefCell::new(Vec::new()) };
}

/// Groups by number, the outermost first.
pub(super) type Lineage = Vec<u64>;

/// A number that no other group of the process has.
pub(super) fn number() -> u64 {
    static ISSUED: AtomicU64 = AtomicU64::new(0);
    ISSUED.fetch_add(1, Ordering::Relaxed)
}

/// Whether the current thread works for `group`. A thread that is being taken down works for nobody.
pub(super) fn is_within(group: u64) -> bool {
    WITHIN.try_with(|within| within.borrow().contains(&group)).unwrap_or(false)
}

/// The groups that the current thread works for.
pub(super) fn current() -> Lineage {
    WITHIN.try_with(|within| within.borrow().clone()).unwrap_or_default()
}

/// Those, and `group`.
pub(super) fn and(group: u64) -> Lineage {
    let mut lineage = current();
    lineage.push(group);
    lineage
}

/// The current thread works for other groups until this is dropped.
#[must_use]
pub(super) struct Within {
    before: Lineage,
}

pub(super) fn enter(lineage: Lineage) -> Within {
    let before = WITHIN.try_with(|within| mem::replace(&mut *within.borrow_mut(), lineage));
    Within { before: before.unwrap_or_default() }
}

impl Drop for Within {
    fn drop(&mut self) {
        let before = mem::take(&mut self.before);
        let _ = WITHIN.try_with(|within| *within.borrow_mut() = before);
    }
}
