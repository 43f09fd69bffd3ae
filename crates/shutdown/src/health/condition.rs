//! What has to hold before the program is ready.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use super::{Chart, Finding};

/// Why a condition does not hold of which nothing was said.
static NOT_YET: LazyLock<Arc<str>> = LazyLock::new(|| "not yet".into());

/// Something that has to hold before the program is ready; made by [`Health::condition`](super::Health::condition).
///
/// Dropping it takes it away: the program is ready without it.
#[must_use = "dropped, it is no condition any more"]
pub struct Condition {
    chart: Arc<Chart>,
    number: u64,
    /// It stays when this is dropped.
    is_kept: bool,
}

/// How a condition stands.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    name: Arc<str>,
    /// Why it does not hold; nothing while it does.
    unmet: Option<Arc<str>>,
}

impl Condition {
    pub(super) fn new(chart: &Arc<Chart>, name: Arc<str>) -> Self {
        let mut records = chart.lock();
        let number = records.issue();
        records.conditions.insert(number, Standing { name, unmet: Some(NOT_YET.clone()) });
        drop(records);
        Self { chart: chart.clone(), number, is_kept: false }
    }

    /// Leaves it as it is, for good.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }

    /// Says that it holds.
    pub fn met(&self) {
        self.stand(None);
    }

    /// Says that it does not hold, and why.
    pub fn unmet(&self, reason: impl Into<Arc<str>>) {
        self.stand(Some(reason.into()));
    }

    fn stand(&self, unmet: Option<Arc<str>>) {
        let mut records = self.chart.lock();
        let standing = records.conditions.get_mut(&self.number).expect("it is there until the drop");
        let improves = unmet.is_none() && !standing.is_met();
        standing.unmet = unmet;
        drop(records);
        if improves {
            self.chart.improved.ring();
        }
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        self.chart.lock().conditions.remove(&self.number);
        self.chart.improved.ring();
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = self.chart.lock().conditions[&self.number].clone();
        f.debug_tuple("Condition").field(&standing).finish()
    }
}

impl Standing {
    pub(super) fn is_met(&self) -> bool {
        self.unmet.is_none()
    }

    pub(super) fn finding(&self) -> Option<Finding> {
        let reason = self.unmet.clone()?;
        Some(Finding { name: self.name.clone(), reason })
    }
}
