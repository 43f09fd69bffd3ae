//! One value, and what kind it is of.

use std::{fmt, sync::Arc};

use serde_json::Value;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Nothing but nulls: what else it could hold, nobody knows. It fits every other kind.
    Null,
    /// True and false.
    Bool,
    /// Whole numbers.
    Int,
    /// Numbers.
    Float,
    /// Strings.
    Text,
}

impl Kind {
    /// Whether one can calculate with it.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Float)
    }

    /// The kind of a column that holds values of both, if there is one: whole numbers go into a column of numbers.
    #[must_use]
    pub fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Null, kind) | (kind, Self::Null) => Some(kind),
            (a, b) if a == b => Some(a),
            (a, b) if a.is_number() && b.is_number() => Some(Self::Float),
            _ => None,
        }
    }
}

/// One word.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Text => "text",
        })
    }
}

/// A value, or none.
#[derive(Clone, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Scalar {
    /// No value.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A string.
    Text(Arc<str>),
}

impl Scalar {
    /// What kind it is of.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::Text(_) => Kind::Text,
        }
    }

    /// The value that JSON says. None for lists and objects.
    #[must_use]
    pub fn from_json(json: &Value) -> Option<Self> {
        Some(match json {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => number.as_i64().map_or_else(|| number.as_f64().into(), Self::Int),
            Value::String(text) => Self::Text(text.as_str().into()),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    /// What somebody probably means who can only write text, as in a Redis hash or on a command line: `7` is a whole
    /// number, `0.5` a number, `true` is true, and all else is text. So are numbers that would be written differently,
    /// such as `007`, and those that are not finite.
    #[must_use]
    pub fn guess(text: &str) -> Self {
        match text {
            "true" => return Self::Bool(true),
            "false" => return Self::Bool(false),
            _ => {}
        }
        let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
        let is_number = match digits {
            [b'0', next, ..] => matches!(next, b'.' | b'e' | b'E'),
            [first, ..] => first.is_ascii_digit(),
            [] => false,
        };
        if !is_number {
            return Self::Text(text.into());
        }
        if let Ok(whole) = text.parse() {
            return Self::Int(whole);
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Self::Float(number),
            _ => Self::Text(text.into()),
        }
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Scalar {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl<T: Into<Self>> From<Option<T>> for Scalar {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// As it is written in an expression.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            // With a point or an exponent, so that it is read as a number that need not be whole.
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_guessed_to_be_what_would_be_written_so() {
        let table = [
            ("7", Scalar::Int(7)),
            ("-7", Scalar::Int(-7)),
            ("0", Scalar::Int(0)),
            ("0.5", Scalar::Float(0.5)),
            ("1e3", Scalar::Float(1000.0)),
            ("9223372036854775808", Scalar::Float(9_223_372_036_854_775_808.0)),
            ("true", Scalar::Bool(true)),
            ("007", "007".into()),
            ("+7", "+7".into()),
            ("-", "-".into()),
            ("", "".into()),
            ("inf", "inf".into()),
            ("nan", "nan".into()),
            ("1e999", "1e999".into()),
            ("7 ", "7 ".into()),
            ("US", "US".into()),
        ];
        for (text, expected) in table {
            assert_eq!(Scalar::guess(text), expected, "{text:?}");
        }
    }
}
