//! Why an expression has no value.

use std::{error::Error, fmt, sync::Arc};

use ebbtide_dag::json::nearest;

/// Why an expression or a predicate has no value for some rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvalError {
    /// The rows have no such column.
    Unknown {
        /// The part that looks at it.
        expression: String,
        /// What it is called, and what may have been meant.
        column: UnknownColumn,
    },
    /// A value is not of the kind that is needed.
    Kind {
        /// The part that needs it.
        expression: String,
        /// What that needs.
        needed: &'static str,
        /// What it got.
        found: String,
    },
    /// A number is infinite, or none at all, as when something is divided by zero.
    NotFinite {
        /// The part whose result it is.
        expression: String,
        /// The id of the first row for which it is so.
        row: i64,
    },
    /// A whole number does not fit into 64 bits.
    Overflow {
        /// The part whose result it is.
        expression: String,
        /// The id of the first row for which it is so.
        row: i64,
    },
    /// The ids of rows cannot be computed.
    Reserved {
        /// `id`
        column: Arc<str>,
    },
}

/// A column that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn {
    /// What was asked for.
    pub column: Arc<str>,
    /// The one of a similar name, if there is one.
    pub nearest: Option<Arc<str>>,
    /// Those that are there.
    pub known: Vec<Arc<str>>,
}

impl EvalError {
    pub(super) fn unknown(part: &impl fmt::Display, column: UnknownColumn) -> Self {
        Self::Unknown { expression: part.to_string(), column }
    }

    pub(super) fn kind(part: &impl fmt::Display, needed: &'static str, found: String) -> Self {
        Self::Kind { expression: part.to_string(), needed, found }
    }

    pub(super) fn not_finite(part: &impl fmt::Display, row: i64) -> Self {
        Self::NotFinite { expression: part.to_string(), row }
    }

    pub(super) fn overflow(part: &impl fmt::Display, row: i64) -> Self {
        Self::Overflow { expression: part.to_string(), row }
    }

    pub(crate) const fn reserved(column: Arc<str>) -> Self {
        Self::Reserved { column }
    }
}

impl UnknownColumn {
    pub(crate) fn among<'n>(column: &str, known: impl Iterator<Item = &'n Arc<str>>) -> Self {
        let known: Vec<Arc<str>> = known.cloned().collect();
        let nearest = nearest(column, known.iter().map(|name| &**name)).map(Arc::from);
        Self { column: column.into(), nearest, known }
    }
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no column \"{}\"", self.column)?;
        match (&self.nearest, &*self.known) {
            (Some(nearest), _) => write!(f, " (did you mean \"{nearest}\"?)"),
            (None, []) => f.write_str(" (there are none)"),
            (None, known) => write!(f, " (there are \"{}\")", known.join("\", \"")),
        }
    }
}

impl Error for UnknownColumn {}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { column, .. } => column.fmt(f),
            Self::Kind { expression, needed, found } => {
                write!(f, "`{expression}` needs {needed}, but {found}")
            }
            Self::NotFinite { expression, row } => {
                write!(f, "`{expression}` is not a finite number for the row with id {row}")
            }
            Self::Overflow { expression, row } => {
                write!(f, "`{expression}` does not fit into 64 bits for the row with id {row}")
            }
            Self::Reserved { column } => write!(f, "\"{column}\" cannot be computed: choose another column"),
        }
    }
}

impl Error for EvalError {}
