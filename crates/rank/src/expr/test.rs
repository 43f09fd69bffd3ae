//! Conditions, a column at a time.

use super::{
    error::EvalError,
    eval::{Scope, as_floats, either},
    lane::{Arg, Strings, Values},
    tree::{Cmp, Pattern, Set, Test, Value},
};

impl Scope<'_> {
    /// Whether it holds, for each row.
    pub(super) fn test(&self, test: &Test) -> Result<Vec<bool>, EvalError> {
        match test {
            Test::Is(value) => self.is(value),
            Test::Cmp(cmp, a, b) => self.compare(*cmp, a, b, test),
            Test::In(value, set) => self.is_in(value, set, test),
            Test::Null(value) => {
                let lane = self.value(value)?;
                Ok((0..self.len()).map(|row| lane.is_null(row)).collect())
            }
            Test::Not(inner) => {
                let mut mask = self.test(inner)?;
                mask.iter_mut().for_each(|holds| *holds = !*holds);
                Ok(mask)
            }
            Test::All(tests) => self.chain(tests, |a, b| a & b),
            Test::Any(tests) => self.chain(tests, |a, b| a | b),
            Test::Match(value, pattern) => self.matches(value, pattern, test),
        }
    }

    /// Each is evaluated for all rows, also where it does not matter any more.
    fn chain(&self, tests: &[Test], join: fn(bool, bool) -> bool) -> Result<Vec<bool>, EvalError> {
        let mut masks = tests.iter().map(|test| self.test(test));
        let Some(first) = masks.next() else { return Ok(vec![true; self.len()]) };
        let mut all = first?;
        for mask in masks {
            all.iter_mut().zip(mask?).for_each(|(all, holds)| *all = join(*all, holds));
        }
        Ok(all)
    }

    fn is(&self, value: &Value) -> Result<Vec<bool>, EvalError> {
        let lane = self.value(value)?;
        match lane.values {
            Values::Null => Ok(vec![false; self.len()]),
            Values::Bool(holds) => Ok(self.mask(holds, lane.nulls.as_deref())),
            _ => Err(EvalError::kind(value, "true or false", format!("{value} is {}", lane.kind()))),
        }
    }

    fn compare(&self, cmp: Cmp, a: &Value, b: &Value, test: &Test) -> Result<Vec<bool>, EvalError> {
        let (left, right) = (self.value(a)?, self.value(b)?);
        let kinds = (left.kind(), right.kind());
        let nulls = either(left.nulls, right.nulls);
        let holds = match (left.values, right.values) {
            (Values::Null, _) | (_, Values::Null) => return Ok(vec![false; self.len()]),
            (Values::Int(a), Values::Int(b)) => ordered(cmp, &a, &b),
            (Values::Bool(a), Values::Bool(b)) => ordered(cmp, &a, &b),
            (Values::Text(a), Values::Text(b)) => self.ordered_texts(cmp, &a, &b),
            (left, right) => match (as_floats(left), as_floats(right)) {
                (Some(left), Some(right)) => ordered(cmp, &left, &right),
                _ => {
                    let message = format!("{a} is {}, and {b} is {}", kinds.0, kinds.1);
                    return Err(EvalError::kind(test, "two values of one kind", message));
                }
            },
        };
        Ok(self.mask(holds, nulls.as_deref()))
    }

    fn ordered_texts(&self, cmp: Cmp, a: &Strings<'_>, b: &Strings<'_>) -> Arg<'static, bool> {
        match (a, b) {
            (a, Strings::One(b)) => a.test(|a| holds(cmp, a, &**b)),
            (Strings::One(a), b) => b.test(|b| holds(cmp, &**a, b)),
            (a, b) => Arg::Many((0..self.len()).map(|row| holds(cmp, a.at(row), b.at(row))).collect()),
        }
    }

    fn is_in(&self, value: &Value, set: &Set, test: &Test) -> Result<Vec<bool>, EvalError> {
        let lane = self.value(value)?;
        let has_float =
            |number: f64| set.floats.binary_search_by(|known| known.total_cmp(&(number + 0.0))).is_ok();
        let found = match &lane.values {
            Values::Null => return Ok(vec![false; self.len()]),
            Values::Bool(arg) if !set.bools.is_empty() => arg.map(|value| set.bools.contains(&value)),
            Values::Int(arg) if set.has_numbers() => {
                arg.map(|number| set.ints.binary_search(&number).is_ok() || has_float(number as f64))
            }
            Values::Float(arg) if set.has_numbers() => {
                arg.map(|number| has_float(number) || set.ints.iter().any(|known| *known as f64 == number))
            }
            Values::Text(texts) if !set.texts.is_empty() => {
                texts.test(|text| set.texts.binary_search_by(|known| (**known).cmp(text)).is_ok())
            }
            _ => {
                let message = format!("{value} is {}, and the list is not", lane.kind());
                return Err(EvalError::kind(test, "two values of one kind", message));
            }
        };
        Ok(self.mask(found, lane.nulls.as_deref()))
    }

    fn matches(&self, value: &Value, pattern: &Pattern, test: &Test) -> Result<Vec<bool>, EvalError> {
        let lane = self.value(value)?;
        match &lane.values {
            Values::Null => Ok(vec![false; self.len()]),
            Values::Text(texts) => {
                Ok(self.mask(texts.test(|text| pattern.0.is_match(text)), lane.nulls.as_deref()))
            }
            _ => Err(EvalError::kind(test, "text", format!("{value} is {}", lane.kind()))),
        }
    }

    /// What holds and is not null.
    fn mask(&self, holds: Arg<'_, bool>, nulls: Option<&[bool]>) -> Vec<bool> {
        let mut mask = holds.into_vec(self.len());
        if let Some(nulls) = nulls {
            mask.iter_mut().zip(nulls).for_each(|(holds, is_null)| *holds &= !is_null);
        }
        mask
    }
}

fn holds<T: PartialOrd + ?Sized>(cmp: Cmp, a: &T, b: &T) -> bool {
    match cmp {
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
    }
}

/// Decided once, and not for each row.
fn ordered<T: PartialOrd + Copy>(cmp: Cmp, a: &Arg<'_, T>, b: &Arg<'_, T>) -> Arg<'static, bool> {
    match cmp {
        Cmp::Eq => a.zip(b, |a, b| a == b),
        Cmp::Ne => a.zip(b, |a, b| a != b),
        Cmp::Lt => a.zip(b, |a, b| a < b),
        Cmp::Le => a.zip(b, |a, b| a <= b),
        Cmp::Gt => a.zip(b, |a, b| a > b),
        Cmp::Ge => a.zip(b, |a, b| a >= b),
    }
}
