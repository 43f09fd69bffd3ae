//! The words of an expression.

use ebbtide_dag::json::ExpressionError;

use super::tree::KEYWORDS;
use crate::rows::Scalar;

/// A word, and the column of its first character, from 1 on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) word: Word,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A number or a string.
    Literal(Scalar),
    Name(String),
    /// `$name`
    Var(String),
    Keyword(&'static str),
    Sign(&'static str),
    End,
}

/// Longer ones before those that they begin with.
const SIGNS: [&str; 18] =
    ["==", "!=", "<=", ">=", "<>", "!~", "<", ">", "=", "~", "+", "-", "*", "/", "(", ")", ",", "%"];

pub(super) fn begins_name(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

pub(super) fn continues_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '.'
}

/// Takes a text apart. The last word is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut reader = Reader { rest: text, at: 1 };
    let mut tokens = Vec::new();
    loop {
        let space = reader.rest.find(|letter: char| !letter.is_whitespace()).unwrap_or(reader.rest.len());
        reader.skip(space);
        let at = reader.at;
        let word = reader.word()?;
        let is_end = word == Word::End;
        tokens.push(Token { at, word });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    /// The column of what is first in the rest.
    at: usize,
}

impl<'t> Reader<'t> {
    /// Takes so many bytes.
    fn skip(&mut self, len: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.at += taken.chars().count();
        taken
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let len = self.rest.find(|letter| !belongs(letter)).unwrap_or(self.rest.len());
        self.skip(len)
    }

    fn word(&mut self) -> Result<Word, ExpressionError> {
        let at = self.at;
        let Some(first) = self.rest.chars().next() else { return Ok(Word::End) };
        if first.is_ascii_digit()
            || (first == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            return self.number();
        }
        match first {
            '\'' | '"' => Ok(Word::Literal(Scalar::Text(self.quoted(first)?.into()))),
            '`' => Ok(Word::Name(self.quoted('`')?)),
            '$' => {
                self.skip(1);
                let name = match self.rest.chars().next() {
                    Some('`') => self.quoted('`')?,
                    _ => self.take_while(continues_name).to_owned(),
                };
                let error = || ExpressionError::new(at, "a name is missing after \"$\"");
                (!name.is_empty()).then_some(Word::Var(name)).ok_or_else(error)
            }
            first if begins_name(first) => {
                let name = self.take_while(continues_name);
                let keyword = KEYWORDS.iter().find(|keyword| keyword.eq_ignore_ascii_case(name));
                Ok(keyword.map_or_else(|| Word::Name(name.to_owned()), |keyword| Word::Keyword(keyword)))
            }
            first => match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
                Some(sign) => {
                    self.skip(sign.len());
                    Ok(Word::Sign(sign))
                }
                None => Err(ExpressionError::new(at, format!("unexpected {first:?}"))),
            },
        }
    }

    fn number(&mut self) -> Result<Word, ExpressionError> {
        let (at, text) = (self.at, self.rest);
        self.take_while(|letter| letter.is_ascii_digit());
        if self.rest.starts_with('.') {
            self.skip(1);
            self.take_while(|letter| letter.is_ascii_digit());
        }
        if let Some(exponent) = self.rest.strip_prefix(['e', 'E']) {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.starts_with(|letter: char| letter.is_ascii_digit()) {
                self.skip(self.rest.len() - digits.len());
                self.take_while(|letter| letter.is_ascii_digit());
            }
        }
        let text = &text[..text.len() - self.rest.len()];
        if self.rest.starts_with(continues_name) {
            return Err(ExpressionError::new(
                at,
                format!("{text:?} is followed by a letter: put a space or a sign between"),
            ));
        }
        if let Ok(whole) = text.parse() {
            return Ok(Word::Literal(Scalar::Int(whole)));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Word::Literal(Scalar::Float(number))),
            _ => Err(ExpressionError::new(at, format!("{text:?} is too large a number"))),
        }
    }

    /// What is between two quotes. A backslash makes the next character ordinary; before a letter it stays, as
    /// regular expressions need it.
    fn quoted(&mut self, quote: char) -> Result<String, ExpressionError> {
        let at = self.at;
        let mut text = String::new();
        let mut letters = self.rest.char_indices().skip(1);
        while let Some((place, letter)) = letters.next() {
            match letter {
                '\\' if quote != '`' => match letters.next() {
                    Some((_, next)) if next == quote || next == '\\' => text.push(next),
                    Some((_, next)) => text.extend(['\\', next]),
                    None => break,
                },
                letter if letter == quote => {
                    self.skip(place + 1);
                    return Ok(text);
                }
                letter => text.push(letter),
            }
        }
        Err(ExpressionError::new(at, format!("the {quote} that closes it is missing")))
    }
}
