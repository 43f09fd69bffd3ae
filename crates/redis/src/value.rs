//! What the server answers.

use std::fmt;

use bytes::Bytes;

/// An answer of the server, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing.
    Nil,
    /// A number.
    Int(i64),
    /// A string of bytes, or a word such as `OK`. It keeps all that was read with it in memory: copy what is to be kept
    /// for long.
    Bytes(Bytes),
    /// Several.
    Array(Vec<Value>),
    /// A part of an answer that went wrong. One that went wrong as a whole is an [`Error`](crate::Error).
    Refusal(ServerError),
}

/// What the server says went wrong: a word such as `WRONGTYPE`, and more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    text: String,
}

impl Value {
    /// The number; also one that is written as a string.
    #[must_use]
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The string of bytes.
    #[must_use]
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The parts.
    #[must_use]
    pub fn array(self) -> Option<Vec<Value>> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }
}

impl ServerError {
    pub(crate) fn new(text: String) -> Self {
        Self { text }
    }

    /// The first word, by which a program tells one error from another.
    #[must_use]
    pub fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// All of it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}
