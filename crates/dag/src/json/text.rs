//! JSON that knows where it stands: values are read only as far as somebody asks, and each has its place in the text.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::lines::byte_at;

/// So much of a value is shown in a message.
const SHOWN_MAX: usize = 40;

/// A value, well formed, in the text of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'t> {
    /// Without white space around it.
    raw: &'t str,
    /// Where it starts.
    pub(super) at: usize,
}

/// A value with its name, in an object.
#[derive(Debug)]
pub(super) struct Field<'t> {
    pub(super) name: String,
    /// Where the name starts.
    pub(super) at: usize,
    pub(super) value: Found<'t>,
}

/// A value that is not what it should be.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) at: usize,
    pub(super) message: String,
}

impl<'t> Found<'t> {
    /// The value that is the whole text.
    pub(super) fn whole(text: &'t str) -> Result<Self, Misfit> {
        let whole = Self { raw: text, at: 0 };
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| whole.broken(&error))?;
        Ok(whole.part(raw))
    }

    pub(super) fn is_string(&self) -> bool {
        self.raw.starts_with('"')
    }

    /// What is between the quotes, if that is the string itself.
    pub(super) fn plain_string(&self) -> Option<&'t str> {
        let inner = self.raw.strip_prefix('"')?.strip_suffix('"')?;
        (!inner.contains('\\')).then_some(inner)
    }

    pub(super) fn string(&self) -> Result<String, Misfit> {
        if !self.is_string() {
            return Err(self.misfit("a string"));
        }
        serde_json::from_str(self.raw).map_err(|error| self.broken(&error))
    }

    pub(super) fn integer(&self, least: u64, most: u64) -> Result<u64, Misfit> {
        let number = self.raw.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.misfit(&format!("an integer of {least} to {most}")))
    }

    pub(super) fn list(&self) -> Result<Vec<Found<'t>>, Misfit> {
        if !self.raw.starts_with('[') {
            return Err(self.misfit("a list"));
        }
        let items: Vec<&RawValue> = serde_json::from_str(self.raw).map_err(|error| self.broken(&error))?;
        Ok(items.into_iter().map(|item| self.part(item)).collect())
    }

    /// All fields, also those that are given twice.
    pub(super) fn object(&self) -> Result<Vec<Field<'t>>, Misfit> {
        if !self.raw.starts_with('{') {
            return Err(self.misfit("an object"));
        }
        let mut reader = serde_json::Deserializer::from_str(self.raw);
        let pairs = reader.deserialize_map(Pairs).map_err(|error| self.broken(&error))?;
        let mut end = 0;
        let field = |(name, raw): (String, &'t RawValue)| {
            let value = self.part(raw);
            // Between the value before and the name there is nothing but space and a comma.
            let at = self.raw[end..].find('"').map_or(value.at, |quote| self.at + end + quote);
            end = value.at - self.at + raw.get().len();
            Field { name, at, value }
        };
        Ok(pairs.into_iter().map(field).collect())
    }

    pub(super) fn json(&self) -> Result<Value, Misfit> {
        serde_json::from_str(self.raw).map_err(|error| self.broken(&error))
    }

    /// Says what was expected, and what is there.
    pub(super) fn misfit(&self, expected: &str) -> Misfit {
        Misfit { at: self.at, message: format!("expected {expected}, got {}", self.shown()) }
    }

    /// Scalars as they are, unless they are long.
    fn shown(&self) -> String {
        match self.raw.as_bytes()[0] {
            b'{' => "an object".to_owned(),
            b'[' => "a list".to_owned(),
            _ if self.raw.len() > SHOWN_MAX => {
                format!("{}…", &self.raw[..self.raw.floor_char_boundary(SHOWN_MAX)])
            }
            _ => self.raw.to_owned(),
        }
    }

    fn part(&self, raw: &'t RawValue) -> Self {
        let raw = raw.get();
        Self { raw, at: self.at + (raw.as_ptr().addr() - self.raw.as_ptr().addr()) }
    }

    /// What `serde_json` has against it, at its place.
    fn broken(&self, error: &serde_json::Error) -> Misfit {
        let message = error.to_string();
        let message = message.rfind(" at line ").map_or(&*message, |end| &message[..end]);
        Misfit { at: self.at + byte_at(self.raw, error.line(), error.column()), message: message.to_owned() }
    }
}

/// Takes an object apart.
struct Pairs;

impl<'t> Visitor<'t> for Pairs {
    type Value = Vec<(String, &'t RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}
