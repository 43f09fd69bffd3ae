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

/// A field of an object.
pub(crate) struct Field<'t> {
    /// All that stands between the value before it, or the beginning, and its own value.
    pub(crate) before: &'t str,
    pub(crate) name: &'t str,
    pub(crate) value: Plain<'t>,
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
    pub(crate) fn object(&mut self, mut each: impl FnMut(Field<'t>) -> Option<()>) -> Option<()> {
        let mut end = self.at;
        self.skip(b'{')?;
        loop {
            let name = self.string()?;
            self.skip(b':')?;
            self.peek()?;
            let before = self.text.get(end..self.at)?;
            let value = self.value()?;
            end = self.at;
            each(Field { before, name, value })?;
            if self.skip(b',').is_none() {
                return self.skip(b'}');
            }
        }
    }

    /// Just this text.
    #[inline]
    pub(crate) fn exactly(&mut self, expected: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        rest.starts_with(expected.as_bytes()).then(|| self.at += expected.len())
    }

    #[inline]
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
    #[inline]
    pub(crate) fn end(&self) -> Option<()> {
        (self.at == self.text.len()).then_some(())
    }

    /// The next byte that is not a space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let mut next = self.byte()?;
        while next == b' ' {
            self.at += 1;
            next = self.byte()?;
        }
        Some(next)
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str, means: Plain<'t>) -> Option<Plain<'t>> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())?;
        Some(means)
    }

    #[inline]
    fn string(&mut self) -> Option<&'t str> {
        self.skip(b'"')?;
        let rest = self.text.get(self.at..)?;
        let len = end_of_string(rest.as_bytes())?;
        self.at += len;
        (self.byte()? == b'"').then(|| self.at += 1)?;
        rest.get(..len)
    }

    /// The digits here, behind others that make up `number`, and how many they are.
    #[inline]
    fn digits(&mut self, mut number: u64, most: usize) -> Option<(u64, usize)> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let mut count = 0;
        for digit in rest.iter().map(|byte| byte.wrapping_sub(b'0')).take_while(|digit| *digit <= 9) {
            if count == most {
                return None;
            }
            number = number * 10 + u64::from(digit);
            count += 1;
        }
        self.at += count;
        (count > 0).then_some((number, count))
    }

    #[inline]
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

/// Where the first quote, backslash or control character is: what a string ends with, or has escaped.
#[inline]
pub(crate) fn end_of_string(bytes: &[u8]) -> Option<usize> {
    // Eight at a time. In each byte the highest bit says whether it is one, at least up to the first that is.
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGHEST: u64 = ONES << 7;
    let less_than = |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word & HIGHEST;
    let equal = |word: u64, byte: u8| less_than(word ^ (ONES * u64::from(byte)), 1);
    let (words, rest) = bytes.as_chunks();
    for (nth, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let ends = equal(word, b'"') | equal(word, b'\\') | less_than(word, b' ');
        if ends != 0 {
            return Some(nth * size_of::<u64>() + ends.trailing_zeros() as usize / 8);
        }
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
    rest.iter().position(ends).map(|at| bytes.len() - rest.len() + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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
        reader.object(|field| {
            fields.insert(field.name.to_owned(), value(&field.value));
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

    proptest! {
        #[test]
        fn a_string_ends_where_its_first_odd_byte_is(bytes: Vec<u8>) {
            let odd = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
            prop_assert_eq!(end_of_string(&bytes), odd);
        }
    }
}
