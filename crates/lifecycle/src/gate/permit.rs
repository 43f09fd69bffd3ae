//! Proof of admission: as long as it exists, its work is in flight.

use std::{fmt, mem::ManuallyDrop};

use super::core::{Core, Held};
use crate::{ledger::Outcome, refusal::Refusal};

/// A permit that borrows its gate. Made by [`Gate::enter`](super::Gate::enter).
///
/// Dropping it returns it, on a panic too; at a gate with a ledger that counts as [`Outcome::Failed`], so say
/// how the work ended with [`settle`](Permit::settle).
#[must_use = "the work is in flight only while its permit is kept"]
pub struct Permit<'g> {
    core: &'g Core,
}

impl<'g> Permit<'g> {
    #[inline]
    pub(super) fn new(core: &'g Core) -> Self {
        Self { core }
    }

    /// Returns the permit, and says how its work ended.
    #[inline]
    pub fn settle(self, outcome: Outcome) {
        ManuallyDrop::new(self).core.leave(outcome);
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.core.leave(Outcome::Failed);
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// A permit that goes wherever its work goes. Made by [`Gate::enter_owned`](super::Gate::enter_owned).
///
/// Returned as [`Permit`] is. It keeps its gate alive.
#[must_use = "the work is in flight only while its permit is kept"]
pub struct OwnedPermit {
    held: Held,
}

impl OwnedPermit {
    #[inline]
    pub(super) fn new(held: Held) -> Self {
        Self { held }
    }

    /// Takes another permit on behalf of work that is inside: also at a closed gate, because what is in flight may
    /// need it in order to end.
    ///
    /// # Errors
    /// Refuses once the gate was abandoned, and while it is full.
    pub fn fork(&self) -> Result<Self, Refusal> {
        self.held.fork().map(Self::new)
    }

    /// Returns the permit, and says how its work ended.
    #[inline]
    pub fn settle(self, outcome: Outcome) {
        self.held.settle(outcome);
    }
}

impl fmt::Debug for OwnedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").finish_non_exhaustive()
    }
}
