//! What expressions and predicates are made of, and how they are written.

use std::{fmt, sync::Arc};

use regex::Regex;

use crate::rows::Scalar;

/// What gives a value for each row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Const(Scalar),
    Column(Arc<str>),
    /// A parameter of the request.
    Var(Arc<str>),
    Neg(Box<Value>),
    Abs(Box<Value>),
    Binary(Arith, Box<Value>, Box<Value>),
    /// The first that is not null. There is one at least.
    Coalesce(Vec<Value>),
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// What is true or not for each row. Where a value is null that is looked at, it is not.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// The value itself, which is true or false.
    Is(Value),
    Cmp(Cmp, Value, Value),
    In(Value, Set),
    Null(Value),
    /// Two or more.
    All(Vec<Test>),
    /// Two or more.
    Any(Vec<Test>),
    Not(Box<Test>),
    Match(Value, Pattern),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// The values that one is looked for in, all of one kind, sorted; numbers may be whole or not.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Set {
    pub(super) ints: Vec<i64>,
    pub(super) floats: Vec<f64>,
    pub(super) texts: Vec<Arc<str>>,
    pub(super) bools: Vec<bool>,
}

/// A regular expression, compiled when the plan is made.
#[derive(Clone, Debug)]
pub(super) struct Pattern(pub(super) Regex);

impl Set {
    /// None if the values are of several kinds, or one is null.
    pub(super) fn of(values: &[Scalar]) -> Option<Self> {
        let mut set = Self::default();
        for value in values {
            match value {
                Scalar::Null => return None,
                Scalar::Bool(value) => set.bools.push(*value),
                Scalar::Int(value) => set.ints.push(*value),
                Scalar::Float(value) => set.floats.push(*value),
                Scalar::Text(value) => set.texts.push(value.clone()),
            }
        }
        set.ints.sort_unstable();
        set.floats.sort_unstable_by(f64::total_cmp);
        set.texts.sort_unstable();
        set.bools.sort_unstable();
        let kinds = [!set.texts.is_empty(), !set.bools.is_empty(), set.has_numbers()];
        (kinds.into_iter().filter(|is_there| *is_there).count() == 1).then_some(set)
    }

    pub(super) fn has_numbers(&self) -> bool {
        !self.ints.is_empty() || !self.floats.is_empty()
    }

    fn values(&self) -> impl Iterator<Item = Scalar> {
        let bools = self.bools.iter().map(|value| Scalar::Bool(*value));
        let ints = self.ints.iter().map(|value| Scalar::Int(*value));
        let floats = self.floats.iter().map(|value| Scalar::Float(*value));
        let texts = self.texts.iter().map(|value| Scalar::Text(value.clone()));
        bools.chain(ints).chain(floats).chain(texts)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Arith {
    const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

impl Cmp {
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }
}

/// Words that mean something else than a column.
pub(super) const KEYWORDS: [&str; 8] = ["and", "or", "not", "in", "is", "null", "true", "false"];

/// A name, in backticks if it would be read as something else.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = self.0.starts_with(super::token::begins_name)
            && self.0.chars().all(super::token::continues_name)
            && !KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(self.0));
        if is_plain { f.write_str(self.0) } else { write!(f, "`{}`", self.0) }
    }
}

impl Value {
    /// How tightly it holds together: what is looser than its surroundings is put in parentheses.
    const fn tightness(&self) -> u8 {
        match self {
            Self::Binary(Arith::Add | Arith::Sub, ..) => 1,
            Self::Binary(Arith::Mul | Arith::Div, ..) => 2,
            Self::Neg(_) => 3,
            _ => 4,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, surroundings: u8) -> fmt::Result {
        if self.tightness() < surroundings { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(value) => value.fmt(f),
            Self::Column(name) => Name(name).fmt(f),
            Self::Var(name) => write!(f, "${}", Name(name)),
            // A minus before a number would be read as a part of it.
            Self::Neg(value) if matches!(**value, Self::Const(_)) => write!(f, "-({value})"),
            Self::Neg(value) => {
                f.write_str("-")?;
                value.write(f, 3)
            }
            Self::Abs(value) => write!(f, "abs({value})"),
            Self::Binary(arith @ (Arith::Min | Arith::Max), a, b) => write!(f, "{}({a}, {b})", arith.sign()),
            Self::Binary(arith, a, b) => {
                a.write(f, self.tightness())?;
                write!(f, " {} ", arith.sign())?;
                b.write(f, self.tightness() + 1)
            }
            Self::Coalesce(values) => {
                f.write_str("coalesce(")?;
                separated(f, values.iter(), ", ")?;
                f.write_str(")")
            }
        }
    }
}

impl Test {
    const fn tightness(&self) -> u8 {
        match self {
            Self::Any(_) => 1,
            Self::All(_) => 2,
            Self::Not(_) => 3,
            _ => 4,
        }
    }
}

/// A part of a test that has to be tighter than its surroundings.
struct Part<'t>(&'t Test, u8);

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(test, surroundings) = self;
        if test.tightness() <= *surroundings { write!(f, "({test})") } else { write!(f, "{test}") }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(value) => value.fmt(f),
            Self::Cmp(cmp, a, b) => write!(f, "{a} {} {b}", cmp.sign()),
            Self::In(value, set) => {
                write!(f, "{value} in (")?;
                separated(f, set.values(), ", ")?;
                f.write_str(")")
            }
            Self::Null(value) => write!(f, "{value} is null"),
            Self::All(tests) => separated(f, tests.iter().map(|test| Part(test, 2)), " and "),
            Self::Any(tests) => separated(f, tests.iter().map(|test| Part(test, 1)), " or "),
            Self::Not(test) => write!(f, "not {}", Part(test, 2)),
            Self::Match(value, pattern) => write!(f, "{value} ~ {}", Scalar::from(pattern.0.as_str())),
        }
    }
}

fn separated<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = T>,
    separator: &str,
) -> fmt::Result {
    for (nth, item) in items.enumerate() {
        if nth > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}
