//! Values, a column at a time.

use std::{borrow::Cow, sync::Arc};

use super::{
    error::EvalError,
    lane::{Arg, Lane, Strings, Values},
    tree::{Arith, Value},
};
use crate::{
    request::Vars,
    rows::{ID, Kind, Rows},
};

/// What expressions look at.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) rows: &'a Rows,
    pub(super) vars: &'a Vars,
}

impl<'a> Scope<'a> {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn value(&self, value: &Value) -> Result<Lane<'a>, EvalError> {
        match value {
            Value::Const(constant) => Ok(Lane::constant(constant)),
            Value::Var(name) => Ok(self.vars.get(name).map_or(NULL, Lane::constant)),
            Value::Column(name) => self.column(name, value),
            Value::Neg(inner) => self.unary(value, inner, i64::checked_neg, |number| -number),
            Value::Abs(inner) => self.unary(value, inner, i64::checked_abs, f64::abs),
            Value::Binary(arith, a, b) => {
                let (a, b) = (self.number(a, value)?, self.number(b, value)?);
                self.binary(*arith, a, b, value)
            }
            Value::Coalesce(parts) => self.coalesce(parts, value),
        }
    }

    fn column(&self, name: &str, value: &Value) -> Result<Lane<'a>, EvalError> {
        if name == ID {
            return Ok(Lane::ints(self.rows.table_ids(), self.rows.selection()));
        }
        match self.rows.table_column(name) {
            Ok(column) => Ok(Lane::column(column, self.rows.selection())),
            // A source that found nothing does not know which columns it would have had.
            Err(_) if self.rows.is_empty() => Ok(NULL),
            Err(unknown) => Err(EvalError::unknown(value, unknown)),
        }
    }

    /// The value of a part that has to be a number.
    fn number(&self, part: &Value, whole: &Value) -> Result<Lane<'a>, EvalError> {
        let lane = self.value(part)?;
        match lane.kind() {
            Kind::Null | Kind::Int | Kind::Float => Ok(lane),
            kind => Err(EvalError::kind(whole, "numbers", format!("{part} is {kind}"))),
        }
    }

    fn unary(
        &self,
        value: &Value,
        inner: &Value,
        whole: fn(i64) -> Option<i64>,
        number: fn(f64) -> f64,
    ) -> Result<Lane<'a>, EvalError> {
        let lane = self.number(inner, value)?;
        let values = match &lane.values {
            Values::Int(arg) => {
                self.no_row(
                    &lane,
                    |row| whole(arg.at(row)).is_none(),
                    |row| EvalError::overflow(value, row),
                )?;
                Values::Int(arg.map(|number| whole(number).unwrap_or_default()))
            }
            Values::Float(arg) => Values::Float(arg.map(number)),
            _ => Values::Null,
        };
        Ok(Lane { values, nulls: lane.nulls })
    }

    fn binary(&self, arith: Arith, a: Lane<'a>, b: Lane<'a>, value: &Value) -> Result<Lane<'a>, EvalError> {
        let Lane { values: left, nulls: left_nulls } = a;
        let Lane { values: right, nulls: right_nulls } = b;
        let nulls = either(left_nulls, right_nulls);
        let values = match (left, right) {
            (Values::Null, _) | (_, Values::Null) => return Ok(NULL),
            (Values::Int(a), Values::Int(b)) if arith != Arith::Div => {
                let (result, overflows) = whole(arith, &a, &b);
                let lane = Lane { values: Values::Int(result), nulls };
                if overflows {
                    let overflows = |row| checked(arith, a.at(row), b.at(row)).is_none();
                    self.no_row(&lane, overflows, |row| EvalError::overflow(value, row))?;
                }
                return Ok(lane);
            }
            (a, b) => match (as_floats(a), as_floats(b)) {
                (Some(a), Some(b)) => numbers(arith, &a, &b),
                // Others than numbers were refused before.
                _ => return Ok(NULL),
            },
        };
        let is_finite = match &values {
            Arg::One(value) => value.is_finite(),
            // Without an early end, so that many are looked at at once.
            Arg::Many(values) => values.iter().fold(true, |all, value| all & value.is_finite()),
        };
        let lane = Lane { values: Values::Float(values), nulls };
        if !is_finite && let Values::Float(values) = &lane.values {
            let is_infinite = |row: usize| !values.at(row).is_finite();
            self.no_row(&lane, is_infinite, |row| EvalError::not_finite(value, row))?;
        }
        Ok(lane)
    }

    /// There is no row with a value for which it is so.
    fn no_row(
        &self,
        lane: &Lane<'_>,
        is_so: impl Fn(usize) -> bool,
        error: impl Fn(i64) -> EvalError,
    ) -> Result<(), EvalError> {
        let bad = (0..self.len()).find(|row| !lane.is_null(*row) && is_so(*row));
        bad.map_or(Ok(()), |row| Err(error(self.rows.id(row))))
    }

    fn coalesce(&self, parts: &[Value], value: &Value) -> Result<Lane<'a>, EvalError> {
        let lanes: Vec<Lane<'a>> = parts.iter().map(|part| self.value(part)).collect::<Result<_, _>>()?;
        let mut kind = Kind::Null;
        for (lane, part) in lanes.iter().zip(parts) {
            let message = || format!("{part} is {}, and what is before it {kind}", lane.kind());
            kind = kind
                .with(lane.kind())
                .ok_or_else(|| EvalError::kind(value, "values of one kind", message()))?;
        }
        let lanes = lanes.into_iter();
        Ok(match kind {
            Kind::Null => NULL,
            Kind::Bool => self.first_of(lanes, as_bools, Values::Bool),
            Kind::Int => self.first_of(lanes, as_ints, Values::Int),
            Kind::Float => self.first_of(lanes, as_floats, Values::Float),
            Kind::Text => self.first_text_of(&lanes.collect::<Vec<_>>()),
        })
    }

    /// For each row the first value that is not null. Only where one is null the next is looked at.
    fn first_of<T: Copy + 'a>(
        &self,
        lanes: impl Iterator<Item = Lane<'a>>,
        typed: impl Fn(Values<'a>) -> Option<Arg<'a, T>>,
        values: impl Fn(Arg<'a, T>) -> Values<'a>,
    ) -> Lane<'a> {
        let mut lanes = lanes.filter_map(|lane| Some((typed(lane.values)?, lane.nulls)));
        let (first, nulls) = match lanes.next() {
            None => return NULL,
            Some((first, None)) => return Lane { values: values(first), nulls: None },
            Some((first, Some(nulls))) => (first, nulls),
        };
        let (mut all, mut missing) = (first.into_vec(self.len()), nulls.into_owned());
        for (more, nulls) in lanes {
            for (row, is_missing) in missing.iter_mut().enumerate().filter(|(_, is_missing)| **is_missing) {
                if !nulls.as_ref().is_some_and(|nulls| nulls[row]) {
                    all[row] = more.at(row);
                    *is_missing = false;
                }
            }
        }
        let nulls = missing.contains(&true).then_some(Cow::Owned(missing));
        Lane { values: values(Arg::Many(Cow::Owned(all))), nulls }
    }

    fn first_text_of(&self, lanes: &[Lane<'a>]) -> Lane<'a> {
        let found = |row: usize| match lanes.iter().find(|lane| !lane.is_null(row)).map(|lane| &lane.values) {
            Some(Values::Text(texts)) => texts.shared(row).cloned(),
            _ => None,
        };
        let texts: Vec<Option<Arc<str>>> = (0..self.len()).map(found).collect();
        let nulls: Vec<bool> = texts.iter().map(Option::is_none).collect();
        let texts = texts.into_iter().map(Option::unwrap_or_default).collect();
        let nulls = nulls.contains(&true).then_some(Cow::Owned(nulls));
        Lane { values: Values::Text(Strings::Own(texts)), nulls }
    }
}

const NULL: Lane<'static> = Lane { values: Values::Null, nulls: None };

fn as_bools(values: Values<'_>) -> Option<Arg<'_, bool>> {
    match values {
        Values::Bool(arg) => Some(arg),
        _ => None,
    }
}

fn as_ints(values: Values<'_>) -> Option<Arg<'_, i64>> {
    match values {
        Values::Int(arg) => Some(arg),
        _ => None,
    }
}

/// Of all numbers, whole or not.
pub(super) fn as_floats(values: Values<'_>) -> Option<Arg<'_, f64>> {
    match values {
        Values::Float(arg) => Some(arg),
        Values::Int(arg) => Some(arg.map(|number| number as f64)),
        _ => None,
    }
}

/// What is null in one is null in both.
pub(super) fn either<'a>(a: Option<Cow<'a, [bool]>>, b: Option<Cow<'a, [bool]>>) -> Option<Cow<'a, [bool]>> {
    match (a, b) {
        (None, nulls) | (nulls, None) => nulls,
        (Some(a), Some(b)) => Some(a.iter().zip(b.iter()).map(|(a, b)| a | b).collect()),
    }
}

fn numbers(arith: Arith, a: &Arg<'_, f64>, b: &Arg<'_, f64>) -> Arg<'static, f64> {
    match arith {
        Arith::Add => a.zip(b, |a, b| a + b),
        Arith::Sub => a.zip(b, |a, b| a - b),
        Arith::Mul => a.zip(b, |a, b| a * b),
        Arith::Div => a.zip(b, |a, b| a / b),
        Arith::Min => a.zip(b, |a, b| if b < a { b } else { a }),
        Arith::Max => a.zip(b, |a, b| if b > a { b } else { a }),
    }
}

/// The results, and whether one is wrong because it does not fit.
fn whole(arith: Arith, a: &Arg<'_, i64>, b: &Arg<'_, i64>) -> (Arg<'static, i64>, bool) {
    let mut overflows = false;
    let mut note = |(result, overflow): (i64, bool)| {
        overflows |= overflow;
        result
    };
    let result = match arith {
        Arith::Add => a.zip(b, |a, b| note(a.overflowing_add(b))),
        Arith::Sub => a.zip(b, |a, b| note(a.overflowing_sub(b))),
        Arith::Mul => a.zip(b, |a, b| note(a.overflowing_mul(b))),
        Arith::Min => a.zip(b, i64::min),
        // Whole numbers are not divided as such.
        Arith::Max | Arith::Div => a.zip(b, i64::max),
    };
    (result, overflows)
}

fn checked(arith: Arith, a: i64, b: i64) -> Option<i64> {
    match arith {
        Arith::Add => a.checked_add(b),
        Arith::Sub => a.checked_sub(b),
        Arith::Mul => a.checked_mul(b),
        Arith::Min | Arith::Max | Arith::Div => Some(a),
    }
}
