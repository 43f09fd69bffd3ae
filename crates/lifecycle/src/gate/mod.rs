//! Admission: what comes in is counted, and once the gate is closed nothing comes in.

mod core;
mod permit;
mod word;

use std::fmt;

pub use self::permit::{OwnedPermit, Permit};
use self::{core::Handle, word::PERMITS_MAX};
use crate::{
    balance::Balance,
    ledger::Ledger,
    refusal::Refusal,
    wait::{Bell, Wait, Watch},
};

/// Lets work in, counts what is inside, and tells when it is empty.
///
/// A clone is another handle to the same gate; so is every wait for it. There can be four million of them.
///
/// ```
/// use ebbtide_lifecycle::{Gate, Refusal};
///
/// let gate = Gate::new();
/// let permit = gate.enter()?;
/// gate.close();
/// assert_eq!(gate.enter().unwrap_err(), Refusal::Closed);
/// assert_eq!(gate.in_flight(), 1);
///
/// drop(permit);
/// gate.idle().wait(); // or `.await`
/// # Ok::<(), Refusal>(())
/// ```
///
/// # Comparison
/// tokio-util's `TaskTracker` counts unconditionally: a task that is tracked while another thread closes and waits
/// may start after the wait has returned. Here entering and closing are one atomic word, so what a closed gate let
/// in is all there will ever be. Semaphores bound work but cannot say that it has ended.
#[derive(Clone)]
pub struct Gate {
    handle: Handle,
}

/// What a gate admits, and what it keeps of it.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Whether it is closed at first, as that of something that is not running yet.
    pub closed: bool,
    /// How many permits may be out at a time. [`Gate::LIMIT_MAX`] at most, and if not said.
    pub limit: Option<usize>,
    /// Where each permit's acceptance and outcome are counted. A gate without one only counts what is inside.
    pub ledger: Option<Ledger>,
}

impl Gate {
    /// The most permits that can be out at a time. One more is refused as [`Refusal::Full`]; the count cannot
    /// wrap.
    pub const LIMIT_MAX: usize = PERMITS_MAX as usize;

    /// An open gate without a limit of its own or a ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Terms::default())
    }

    /// A gate under `terms`.
    #[must_use]
    pub fn with(terms: Terms) -> Self {
        let limit = terms.limit.unwrap_or(Self::LIMIT_MAX).min(Self::LIMIT_MAX) as u64;
        Self { handle: Handle::new(terms.closed, limit, terms.ledger) }
    }

    /// Takes a permit for a piece of work that does not outlive this handle.
    ///
    /// # Errors
    /// Refuses once the gate is closed, and while it is full: the work must then not be done.
    #[inline]
    pub fn enter(&self) -> Result<Permit<'_>, Refusal> {
        self.handle.enter().map(|()| Permit::new(&self.handle))
    }

    /// Takes a permit that can go anywhere: into a task, a job, another thread. It keeps the gate alive.
    ///
    /// # Errors
    /// As [`enter`](Gate::enter).
    #[inline]
    pub fn enter_owned(&self) -> Result<OwnedPermit, Refusal> {
        self.handle.hold().map(OwnedPermit::new)
    }

    /// Lets nothing in from outside, until it is [opened](Gate::open) again. Gives whether it was open until
    /// this call.
    pub fn close(&self) -> bool {
        self.handle.close()
    }

    /// Lets nothing in from outside, for good: what a stop does first. Gives whether it was open until this call.
    ///
    /// A start that opens the gate while a stop closes it cannot open it behind the stop's back.
    pub fn seal(&self) -> bool {
        self.handle.seal()
    }

    /// Lets work in (again). Gives whether the gate is open now: one that was [sealed](Gate::seal) stays closed.
    pub fn open(&self) -> bool {
        self.handle.open()
    }

    /// Seals the gate and gives up on the permits that are out: counts them as abandoned, and says how many there
    /// are. When one of them comes back later, it is counted as returned after, whatever its outcome.
    ///
    /// Abandoning twice gives 0 the second time; so does abandoning an idle gate, which is merely sealed by it.
    ///
    /// A permit that is being settled at this very moment is settled first: this may have to wait for the
    /// thread that does it. When this returns, the ledger balances.
    pub fn abandon(&self) -> usize {
        self.handle.abandon() as usize
    }

    /// Whether permits were given up on by [`abandon`](Gate::abandon).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.handle.word().is_abandoned()
    }

    /// Whether new work is refused.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.handle.word().is_closed()
    }

    /// How many permits are out, of those that were not abandoned.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.handle.word().in_flight() as usize
    }

    /// How many permits are out, abandoned or not.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.handle.word().permits() as usize
    }

    /// Whether no permit is out, abandoned or not. Stays so only if the gate is closed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.handle.word().is_idle()
    }

    /// Waits until no permit is out.
    ///
    /// On an open gate an idle moment may pass between two looks; the wait then goes on. Close the gate first, or
    /// wait until it is [drained](Gate::drained), for an answer that stays true.
    pub fn idle(&self) -> Wait<Idle> {
        Wait::new(Idle { gate: self.clone() })
    }

    /// Waits until the gate is closed and nothing is in flight: every permit is back, or was abandoned.
    pub fn drained(&self) -> Wait<Drained> {
        Wait::new(Drained { gate: self.clone() })
    }

    /// The sums of its ledger, with what is in flight by its own count; nothing without a ledger.
    #[must_use]
    pub fn balance(&self) -> Option<Balance> {
        self.handle.ledger().map(|ledger| ledger.balance(self.in_flight() as u64))
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("closed", &self.is_closed())
            .field("in_flight", &self.in_flight())
            .field("outstanding", &self.outstanding())
            .finish()
    }
}

/// What [`Gate::idle`] waits for.
#[derive(Debug)]
pub struct Idle {
    gate: Gate,
}

impl Watch for Idle {
    type Seen = ();

    fn look(&self) -> Option<()> {
        self.gate.is_idle().then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.gate.handle.settled
    }

    fn announce(&self) {
        self.gate.handle.announce();
    }
}

/// What [`Gate::drained`] waits for.
#[derive(Debug)]
pub struct Drained {
    gate: Gate,
}

impl Watch for Drained {
    type Seen = ();

    fn look(&self) -> Option<()> {
        self.gate.handle.word().is_drained().then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.gate.handle.settled
    }

    fn announce(&self) {
        self.gate.handle.announce();
    }
}
