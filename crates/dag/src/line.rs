//! Names and messages of others, on one line.

use std::fmt::{self, Write};

/// Longer than this no piece of a line is: what is left of it is left out.
const PIECE_MAX: usize = 2000;

/// Writes what it is given with its line breaks, and whatever else a terminal might take for an order, spelled out.
pub(crate) struct Line<'a, 'f>(pub(crate) &'a mut fmt::Formatter<'f>);

impl Write for Line<'_, '_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let end = piece.char_indices().nth(PIECE_MAX).map_or(piece.len(), |(end, _)| end);
        let mut plain = 0;
        for (at, odd) in piece[..end].char_indices().filter(|(_, char)| is_odd(*char)) {
            self.0.write_str(&piece[plain..at])?;
            write!(self.0, "{}", odd.escape_debug())?;
            plain = at + odd.len_utf8();
        }
        self.0.write_str(&piece[plain..end])?;
        if end < piece.len() { self.0.write_str("…") } else { Ok(()) }
    }
}

/// Control characters, and those that begin a line or turn the direction of what follows.
fn is_odd(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown<'a>(&'a str);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(Line(f), "[{}]", self.0)
        }
    }

    #[test]
    fn what_is_odd_is_spelled_out_and_what_is_long_is_cut() {
        assert_eq!(Shown("plain \"é😀\" \\").to_string(), "[plain \"é😀\" \\]");
        assert_eq!(Shown("a\nb\u{1b}[31m\u{202e}").to_string(), "[a\\nb\\u{1b}[31m\\u{202e}]");
        let long = Shown(&"é".repeat(PIECE_MAX + 1)).to_string();
        assert_eq!(long.chars().count(), PIECE_MAX + "[…]".chars().count());
    }
}
