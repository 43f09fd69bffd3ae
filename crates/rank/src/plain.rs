//! Flat objects of numbers, short words and the like, as rows mostly are: read in one go. Whatever else JSON can have
//! is left to a parser that knows all of it.

/// A value that is read at a glance.
pub(crate) enum Plain<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Without escapes.
    Text(&'t str),
}

/// Reads a text, as far as it is plain. Everything gives none as soon as it is not, and then means nothing.
pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
}

/// So many digits a whole number has at most: all such are less than the largest.
const INT_DIGITS_MAX: usize = 18;

/// So many digits a float can hold, whichever they are.
const FLOAT_DIGITS_MAX: usize = 15;

/// Powers of ten, each of which is a float exactly: a quotient of two floats that are exact is rounded once.
const TENS: [f64; FLOAT_DIGITS_MAX + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

impl<'t> Reader<'t> {
    pub(crate) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// An object, with its fields in order, as long as `each` takes them.
    pub(crate) fn object(&mut self, mut each: impl FnMut(&'t str, Plain<'t>) -> Option<()>) -> Option<()> {
        self.skip(b'{')?;
        loop {
            let name = self.string()?;
            self.skip(b':')?;
            each(name, self.value()?)?;
            if self.skip(b',').is_none() {
                return self.skip(b'}');
            }
        }
    }

    pub(crate) fn value(&mut self) -> Option<Plain<'t>> {
        match self.peek()? {
            b'"' => self.string().map(Plain::Text),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true", Plain::Bool(true)),
            b'f' => self.word("false", Plain::Bool(false)),
            b'n' => self.word("null", Plain::Null),
            _ => None,
        }
    }

    /// Nothing comes any more.
    pub(crate) fn end(&self) -> Option<()> {
        (self.at == self.text.len()).then_some(())
    }

    /// The next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        let mut next = self.byte()?;
        while next == b' ' {
            self.at += 1;
            next = self.byte()?;
        }
        Some(next)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str, means: Plain<'t>) -> Option<Plain<'t>> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())?;
        Some(means)
    }

    fn string(&mut self) -> Option<&'t str> {
        self.skip(b'"')?;
        let rest = self.text.get(self.at..)?;
        let len = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
        self.at += len;
        (self.byte()? == b'"').then(|| self.at += 1)?;
        rest.get(..len)
    }

    /// The digits here, behind others that make up `number`, and how many they are.
    fn digits(&mut self, mut number: u64, most: usize) -> Option<(u64, usize)> {
        let start = self.at;
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            number = number * 10 + u64::from(digit - b'0');
            self.at += 1;
            if self.at - start > most {
                return None;
            }
        }
        Some((number, self.at - start)).filter(|(_, count)| *count > 0)
    }

    fn number(&mut self) -> Option<Plain<'t>> {
        let is_negative = self.byte()? == b'-';
        self.at += usize::from(is_negative);
        let begins_with_zero = self.byte()? == b'0';
        let (whole, count) = self.digits(0, INT_DIGITS_MAX)?;
        if begins_with_zero && count > 1 {
            return None;
        }
        match self.byte() {
            Some(b'.') if count < FLOAT_DIGITS_MAX => {
                self.at += 1;
                let (all, places) = self.digits(whole, FLOAT_DIGITS_MAX - count)?;
                let float = all as f64 / TENS[places];
                let is_exact = !matches!(self.byte(), Some(b'e' | b'E'));
                is_exact.then_some(Plain::Float(if is_negative { -float } else { float }))
            }
            Some(b'.' | b'e' | b'E') => None,
            // There is no whole number that is less than zero by nothing.
            _ if is_negative && whole == 0 => None,
            _ => {
                let number = whole.cast_signed();
                Some(Plain::Int(if is_negative { -number } else { number }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn value(plain: &Plain<'_>) -> Value {
        match *plain {
            Plain::Null => Value::Null,
            Plain::Bool(value) => value.into(),
            Plain::Int(value) => value.into(),
            Plain::Float(value) => value.into(),
            Plain::Text(value) => value.into(),
        }
    }

    fn read(text: &str) -> Option<Value> {
        let mut reader = Reader::new(text);
        if !text.starts_with('{') {
            let read = value(&reader.value()?);
            return reader.end().map(|()| read);
        }
        let mut fields = serde_json::Map::new();
        reader.object(|name, plain| {
            fields.insert(name.to_owned(), value(&plain));
            Some(())
        })?;
        reader.end().map(|()| fields.into())
    }

    #[test]
    fn what_is_read_is_what_a_parser_reads() {
        for text in [
            "7",
            "-12",
            "0",
            "0.1",
            "-0.30",
            "123456.789",
            "0.922",
            "99999999999999.9",
            "999999999999999999",
            "null",
            "true",
            "false",
            "\"Größe\"",
            r#"{"id":7}"#,
            r#"{"id": 7, "score": 0.675, "title": "Slow Harbour", "premium": false, "country": null}"#,
        ] {
            let expected: Value = serde_json::from_str(text).expect("it is JSON");
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_a_parser() {
        for text in [
            "",
            "-",
            "01",
            "1.",
            ".5",
            "1e3",
            "1.5e3",
            "-0",
            "9999999999999999999",
            "0.1234567890123456",
            "tru",
            "nul",
            "\"a\\n\"",
            "\"a\nb\"",
            "\"a",
            "[1]",
            "{",
            "{}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":1,}",
            "{\"a\":{}}",
            "{\"a\":[1]}",
            "{\"a\":1}x",
            "7 8",
            "{\"a\":1 \"b\":2}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
