//! Answers out of bytes: RESP2, the protocol that a connection begins with.
//!
//! ```text
//! +OK⏎   -WRONGTYPE …⏎   :42⏎   $5⏎hello⏎   $-1⏎   *2⏎:1⏎:2⏎   *-1⏎      where ⏎ is \r\n
//! ```
//!
//! What has been looked at is not looked at again when more of an answer comes, so that a long one costs no more in
//! many pieces than in one.

use std::{fmt, io, ops::Range, slice, str};

use bytes::{Bytes, BytesMut};

use crate::value::{ServerError, Value};

/// What answers, and their parts, begin with.
const KINDS: &[u8] = b"+-:$*";

/// A string is no longer than this: a server's own limit, unless it is told otherwise.
const STRING_MAX: usize = 512 << 20;

/// A line is no longer than this. Those that are not numbers are short words, or tell of an error.
const LINE_MAX: usize = 64 << 10;

/// Arrays are not nested deeper than this. Those of servers are three or four deep.
const DEPTH_MAX: usize = 64;

/// Takes bytes, in pieces of any size, and gives answers.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    input: BytesMut,
    /// Up to here the input is in the tokens.
    at: usize,
    /// What there is of an answer that is not complete.
    tokens: Vec<Token>,
    /// How many parts each array lacks that is not complete, the outermost first.
    open: Vec<usize>,
}

/// A part of an answer; strings are where they are in the input.
#[derive(Clone, Debug)]
enum Token {
    Nil,
    Int(i64),
    String(Range<usize>),
    Refusal(Range<usize>),
    /// So many parts follow.
    Array(usize),
}

/// Bytes that are no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    Kind(u8),
    Number,
    LongString,
    LongLine,
    Unended,
    Deep,
}

impl Decoder {
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// The next answer, if all of it is there. After an error there is none any more.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Malformed> {
        while let Some((token, end)) = self.token()? {
            self.at = end;
            let parts = if let Token::Array(parts) = token { parts } else { 0 };
            self.tokens.push(token);
            if parts > 0 {
                if self.open.len() == DEPTH_MAX {
                    return Err(Malformed::Deep);
                }
                self.open.push(parts);
            } else if self.closes() {
                return Ok(Some(self.take()));
            }
        }
        Ok(None)
    }

    /// A part has ended, and with it every array that it is the last of. Gives whether nothing is open any more.
    fn closes(&mut self) -> bool {
        while let Some(missing) = self.open.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return false;
            }
            self.open.pop();
        }
        true
    }

    fn take(&mut self) -> Value {
        let bytes = self.input.split_to(self.at).freeze();
        self.at = 0;
        let value = build(&mut self.tokens.iter(), &bytes);
        self.tokens.clear();
        value
    }

    /// What comes next, and where it ends. None if not all of it is there.
    fn token(&self) -> Result<Option<(Token, usize)>, Malformed> {
        let rest = &self.input[self.at..];
        let Some((kind, rest)) = rest.split_first() else { return Ok(None) };
        if !KINDS.contains(kind) {
            return Err(Malformed::Kind(*kind));
        }
        let Some(length) = rest.iter().take(LINE_MAX).position(|byte| *byte == b'\r') else {
            return if rest.len() < LINE_MAX { Ok(None) } else { Err(Malformed::LongLine) };
        };
        let line = &rest[..length];
        let begin = self.at + 1;
        let Some(end) = self.end_of_line(begin + length)? else { return Ok(None) };
        let token = match kind {
            b'$' => return self.string(line, end),
            b'*' => length_of(line)?.map_or(Token::Nil, Token::Array),
            b':' => Token::Int(number(line)?),
            b'+' => Token::String(begin..begin + length),
            _ => Token::Refusal(begin..begin + length),
        };
        Ok(Some((token, end)))
    }

    /// A string that begins at `begin`, as long as `line` says.
    fn string(&self, line: &[u8], begin: usize) -> Result<Option<(Token, usize)>, Malformed> {
        let Some(length) = length_of(line)? else { return Ok(Some((Token::Nil, begin))) };
        if length > STRING_MAX {
            return Err(Malformed::LongString);
        }
        let string = begin..begin + length;
        Ok(self.end_of_line(string.end)?.map(|end| (Token::String(string), end)))
    }

    /// Where a line ends of which the end begins at `at`. None if that is not there yet.
    fn end_of_line(&self, at: usize) -> Result<Option<usize>, Malformed> {
        match self.input.get(at..at + 2) {
            Some(b"\r\n") => Ok(Some(at + 2)),
            Some(_) => Err(Malformed::Unended),
            None => Ok(None),
        }
    }
}

/// The first of the tokens, with its parts.
fn build(tokens: &mut slice::Iter<'_, Token>, bytes: &Bytes) -> Value {
    match tokens.next().expect("an answer is taken when all of it is there") {
        Token::Nil => Value::Nil,
        Token::Int(number) => Value::Int(*number),
        Token::String(at) => Value::Bytes(bytes.slice(at.clone())),
        Token::Refusal(at) => {
            Value::Refusal(ServerError::new(String::from_utf8_lossy(&bytes[at.clone()]).into_owned()))
        }
        Token::Array(parts) => Value::Array((0..*parts).map(|_| build(tokens, bytes)).collect()),
    }
}

/// How long something is. None if it is not there at all.
fn length_of(line: &[u8]) -> Result<Option<usize>, Malformed> {
    match number(line)? {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| Malformed::Number),
    }
}

fn number(line: &[u8]) -> Result<i64, Malformed> {
    // Almost all are short, and without a sign.
    if (1..=9).contains(&line.len()) && line.iter().all(u8::is_ascii_digit) {
        return Ok(line.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')));
    }
    str::from_utf8(line).ok().and_then(|line| line.parse().ok()).ok_or(Malformed::Number)
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(byte) => {
                write!(
                    f,
                    "an answer begins with '{}': it is no Redis server, or does not speak RESP2",
                    byte.escape_ascii()
                )
            }
            Self::Number => f.write_str("an answer has something else where a number has to be"),
            Self::LongString => write!(f, "an answer has a string of more than {STRING_MAX} bytes"),
            Self::LongLine => write!(f, "an answer has a line of more than {LINE_MAX} bytes"),
            Self::Unended => f.write_str("a string in an answer does not end where it has to"),
            Self::Deep => write!(f, "an answer is nested deeper than {DEPTH_MAX} arrays"),
        }
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for io::Error {
    fn from(malformed: Malformed) -> Self {
        Self::new(io::ErrorKind::InvalidData, malformed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn write(value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Nil => out.extend(b"$-1\r\n"),
            Value::Int(number) => out.extend(format!(":{number}\r\n").bytes()),
            Value::Bytes(bytes) => {
                out.extend(format!("${}\r\n", bytes.len()).bytes());
                out.extend(bytes);
                out.extend(b"\r\n");
            }
            Value::Refusal(error) => out.extend(format!("-{error}\r\n").bytes()),
            Value::Array(values) => {
                out.extend(format!("*{}\r\n", values.len()).bytes());
                values.iter().for_each(|value| write(value, out));
            }
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<i64>().prop_map(Value::Int),
            vec(any::<u8>(), 0..20).prop_map(|bytes| Value::Bytes(bytes.into())),
            "[A-Z]{1,8} [a-z ]{0,8}".prop_map(|text| Value::Refusal(ServerError::new(text))),
        ];
        leaf.prop_recursive(4, 32, 5, |part| vec(part, 0..5).prop_map(Value::Array))
    }

    /// Any, and those more often that mean something.
    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![any::<u8>(), proptest::sample::select(&b"*$:+-\r\n0123456789"[..])]
    }

    /// All answers in these pieces.
    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Value>, Malformed> {
        let (mut decoder, mut answers) = (Decoder::default(), Vec::new());
        for piece in pieces {
            decoder.extend(piece);
            while let Some(answer) = decoder.next()? {
                answers.push(answer);
            }
        }
        Ok(answers)
    }

    proptest! {
        #[test]
        fn answers_are_what_was_sent_in_whatever_pieces_they_come(
            values in vec(value(), 0..6), size in 1_usize..40
        ) {
            let mut bytes = Vec::new();
            values.iter().for_each(|value| write(value, &mut bytes));
            prop_assert_eq!(decode([&*bytes]), Ok(values.clone()));
            prop_assert_eq!(decode(bytes.chunks(size)), Ok(values));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in vec(byte(), 0..60)) {
            drop(decode([&*bytes]));
        }
    }

    #[test]
    fn words_and_arrays_that_are_not_there_are_read_too() {
        let said = b"+OK\r\n*-1\r\n*0\r\n$0\r\n\r\n:-7\r\n";
        let ok = [Value::Bytes("OK".into()), Value::Nil, Value::Array(vec![]), Value::Bytes("".into())];
        assert_eq!(decode([&said[..]]), Ok([&ok[..], &[Value::Int(-7)]].concat()));
    }

    #[test]
    fn what_is_no_answer_is_told_and_why() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 1);
        let long = format!("+{}", "x".repeat(LINE_MAX));
        for (bytes, why) in [
            ("HTTP/1.1 400 Bad Request", Malformed::Kind(b'H')),
            (":seven\r\n", Malformed::Number),
            ("$-2\r\n", Malformed::Number),
            ("*99999999999999999999\r\n", Malformed::Number),
            ("$999999999\r\n", Malformed::LongString),
            ("$3\r\nhello\r\n", Malformed::Unended),
            (":1\rx", Malformed::Unended),
            (&*deep, Malformed::Deep),
            (&*long, Malformed::LongLine),
        ] {
            assert_eq!(decode([bytes.as_bytes()]), Err(why), "{bytes:.40}");
        }
    }
}
