//! The sums of a ledger at one moment.

use std::{fmt, iter::Sum, ops::Add};

/// What became of all work: `accepted = completed + failed + handed_back + cancelled + abandoned + in_flight`.
///
/// The equation is claimed once nothing is being accepted or settled any more: at an idle gate, and at `Stopped`.
/// Before that the sums are read one after the other, while they move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Balance {
    /// Taken in.
    pub accepted: u64,
    /// Ran to its end.
    pub completed: u64,
    /// Ended with an error or a panic.
    pub failed: u64,
    /// Given back to whoever brought it, not run.
    pub handed_back: u64,
    /// Dropped before its end, because somebody wanted that.
    pub cancelled: u64,
    /// Given up on at a deadline.
    pub abandoned: u64,
    /// Still going on, by the count of the gate or list that holds it.
    pub in_flight: u64,
    /// Not taken in. Outside the sum.
    pub refused: u64,
    /// Completed with nobody waiting any more. Outside the sum: among the completed too.
    pub late: u64,
    /// Abandoned, and came to an end all the same. Outside the sum: among the abandoned too.
    pub returned_after: u64,
}

impl Balance {
    /// All that is known of the accepted work: the right side of the equation.
    #[must_use]
    pub const fn accounted(&self) -> u64 {
        self.completed + self.failed + self.handed_back + self.cancelled + self.abandoned + self.in_flight
    }

    /// Checks the equation.
    ///
    /// # Errors
    /// [`Unbalanced`], with all sums, if work was lost or counted twice.
    pub const fn check(&self) -> Result<(), Unbalanced> {
        if self.accepted == self.accounted() { Ok(()) } else { Err(Unbalanced { balance: *self }) }
    }

    /// Whether the equation holds.
    #[must_use]
    pub const fn is_balanced(&self) -> bool {
        self.check().is_ok()
    }
}

impl Add for Balance {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
            handed_back: self.handed_back + other.handed_back,
            cancelled: self.cancelled + other.cancelled,
            abandoned: self.abandoned + other.abandoned,
            in_flight: self.in_flight + other.in_flight,
            refused: self.refused + other.refused,
            late: self.late + other.late,
            returned_after: self.returned_after + other.returned_after,
        }
    }
}

impl Sum for Balance {
    fn sum<I: Iterator<Item = Self>>(balances: I) -> Self {
        balances.fold(Self::default(), Self::add)
    }
}

/// One line: the accepted, then every other sum that is not zero.
impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "accepted {}", self.accepted)?;
        for (name, sum) in [
            ("completed", self.completed),
            ("failed", self.failed),
            ("handed back", self.handed_back),
            ("cancelled", self.cancelled),
            ("abandoned", self.abandoned),
            ("in flight", self.in_flight),
            ("refused", self.refused),
            ("late", self.late),
            ("returned after", self.returned_after),
        ] {
            if sum != 0 {
                write!(f, ", {name} {sum}")?;
            }
        }
        Ok(())
    }
}

/// The sums of a ledger do not add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unbalanced {
    /// The sums.
    pub balance: Balance,
}

impl fmt::Display for Unbalanced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (accepted, accounted) = (self.balance.accepted, self.balance.accounted());
        if accepted > accounted {
            write!(f, "{} accepted without an outcome: {}", accepted - accounted, self.balance)
        } else {
            write!(f, "{} outcomes too many: {}", accounted - accepted, self.balance)
        }
    }
}

impl std::error::Error for Unbalanced {}
