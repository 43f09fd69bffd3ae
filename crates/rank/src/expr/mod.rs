//! Expressions, which give a value for each row, and predicates, which keep some rows.
//!
//! Both are written in a short form, or as trees in JSON:
//!
//! | short | tree |
//! |---|---|
//! | `1.5`, `'US'`, `true`, `null` | `{"op": "const_number", "value": 1.5}`, `const_string`, `const_bool`, `const_null` |
//! | `score`, `` `a name` `` | `{"op": "column", "name": "score"}`, `{"op": "key_ref", "key": "score"}` |
//! | `$boost`, a parameter of the request | `{"op": "param", "name": "boost"}` |
//! | `a + b`, `-`, `*`, `/` | `{"op": "add", "a": …, "b": …}`, `sub`, `mul`, `div` |
//! | `min(a, b)`, `max(a, b)` | `{"op": "min", "a": …, "b": …}`, `max` |
//! | `-a`, `abs(a)` | `{"op": "neg", "a": …}`, `abs` |
//! | `coalesce(a, b, …)` | `{"op": "coalesce", "a": …, "b": …}` |
//! | `a == b`, `!=`, `<`, `<=`, `>`, `>=` | `{"op": "cmp", "cmp": "==", "a": …, "b": …}`, or `eq`, `ne`, `lt`, `le`, `gt`, `ge` |
//! | `a in (1, 2)`, `not in` | `{"op": "in", "a": …, "list": [1, 2]}` |
//! | `a is null`, `is not null` | `{"op": "is_null", "a": …}`, `not_null` |
//! | `a ~ '^x'`, `!~` | `{"op": "regex", "a": …, "pattern": "^x"}` |
//! | `p and q`, `p or q`, `not p` | `{"op": "and", "a": …, "b": …}`, `or`, `{"op": "not", "a": …}` |
//!
//! In a tree, a string is a part in its short form.
//!
//! # Rules
//! - What is calculated with null is null. A comparison with null does not hold, whichever it is, so that its `not`
//!   does. `!=` is a comparison: `a != 1` leaves out where `a` is null. `not in` and `!~` are the `not` of `in` and of
//!   `~`, and keep it: where that is not wanted, `a is not null and a not in (1, 2)`.
//! - Whole numbers stay whole, but a division gives a number. A result that is not finite, or too large, is an error.
//! - Text, numbers and truths are not compared with each other: that is an error.
//! - All parts are evaluated for all rows: `x != 0 and 1 / x > 2` fails if an `x` is 0.
//! - A parameter that the request does not have is null.

mod error;
mod eval;
mod json;
mod lane;
mod pratt;
mod test;
mod token;
mod tree;

use std::{fmt, str::FromStr};

use ebbtide_dag::json::ExpressionError;

pub use self::error::{EvalError, UnknownColumn};
use self::{
    eval::Scope,
    tree::{Test, Value},
};
use crate::{
    request::Vars,
    rows::{Column, Rows},
};

/// Expressions are nested so deep at most: they are evaluated by recursion.
pub const DEPTH_MAX: usize = 128;

/// Gives a value for each row.
///
/// ```
/// use ebbtide_rank::Expr;
///
/// let expr: Expr = "score*0.5+(likes-1)".parse()?;
/// assert_eq!(expr.to_string(), "score * 0.5 + (likes - 1)");
/// let error = "score * ".parse::<Expr>().unwrap_err();
/// assert_eq!(error.to_string(), "expected a value, got the end at column 9");
/// # Ok::<(), ebbtide_dag::json::ExpressionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Expr(Value);

/// Holds for some rows.
///
/// ```
/// use ebbtide_rank::Pred;
///
/// let pred: Pred = "country == 'US' and (age >= 18 or age is null)".parse()?;
/// assert_eq!(pred.to_string(), "country == 'US' and (age >= 18 or age is null)");
/// # Ok::<(), ebbtide_dag::json::ExpressionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pred(Test);

impl Expr {
    /// Reads a tree, or a short form that is a JSON string.
    ///
    /// # Errors
    /// Says what cannot be read, and where.
    pub fn from_json(json: &serde_json::Value) -> Result<Self, ExpressionError> {
        json::value(json).map(Self)
    }

    /// The values for these rows, in their order.
    ///
    /// # Errors
    /// Says for which row there is no value, or which column is not there.
    pub fn evaluate(&self, rows: &Rows, vars: &Vars) -> Result<Column, EvalError> {
        Ok(Scope { rows, vars }.value(&self.0)?.into_column(rows.len()))
    }
}

impl Pred {
    /// Reads a tree, or a short form that is a JSON string.
    ///
    /// # Errors
    /// Says what cannot be read, and where.
    pub fn from_json(json: &serde_json::Value) -> Result<Self, ExpressionError> {
        json::test(json).map(Self)
    }

    /// Whether it holds, for each of these rows.
    ///
    /// # Errors
    /// Says for which row that cannot be said, or which column is not there.
    pub fn evaluate(&self, rows: &Rows, vars: &Vars) -> Result<Vec<bool>, EvalError> {
        Scope { rows, vars }.test(&self.0)
    }
}

impl FromStr for Expr {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        pratt::value(text).map(Self)
    }
}

impl FromStr for Pred {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        pratt::test(text).map(Self)
    }
}

/// In its short form.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// In its short form.
impl fmt::Display for Pred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
