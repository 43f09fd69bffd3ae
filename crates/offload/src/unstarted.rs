//! Jobs that a pool has given back.

use std::{fmt, ops::Range, sync::Arc};

use ebbtide_lifecycle::blame::Origin;

use crate::work::{Lost, Work, as_part_of};

/// A job that was accepted, and given back before it began; or several that were brought together.
///
/// [Run](Unstarted::run) it, and whoever awaits it gets its result; drop it, and he gets
/// [`OffloadError::Discarded`](crate::OffloadError::Discarded).
#[must_use = "dropping it discards the job"]
pub struct Unstarted {
    work: Arc<dyn Work>,
    parts: Range<usize>,
}

impl Unstarted {
    pub(crate) fn new(work: Arc<dyn Work>, parts: Range<usize>) -> Self {
        Self { work, parts }
    }

    /// Where the job was brought, and what it is called.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.work.tag().origin()
    }

    /// How many jobs it still is: none once those who wait have gone.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.work.unstarted(self.parts.clone())
    }

    /// Runs it on the calling thread.
    pub fn run(self) {
        // The pool has booked it as handed back already.
        as_part_of(self.work.clone(), || self.work.run(self.parts.clone(), None, &mut Vec::new()));
    }
}

impl Drop for Unstarted {
    fn drop(&mut self) {
        self.work.discard(self.parts.clone(), Lost::Discarded);
    }
}

impl fmt::Debug for Unstarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unstarted").field("origin", &self.origin()).field("jobs", &self.jobs()).finish()
    }
}
