//! Text that was written by others: escaped, shortened, and how much room it takes.

use std::fmt::{self, Write};

/// Text as it may stand between tags, and in attributes, of HTML and XML.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(c)?,
                // XML has no way to say these.
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A length or a place in a picture: to a tenth, and without one that is zero.
#[derive(Clone, Copy)]
pub(super) struct Px(pub(super) f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths % 10 == 0 { write!(f, "{}", tenths / 10) } else { write!(f, "{:.1}", tenths as f64 / 10.0) }
    }
}

/// How many columns of a fixed-width font a character takes, about.
fn columns_of(c: char) -> usize {
    match c as u32 {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        // From Hangul on: what is written in squares, and pictures.
        0x1100..=0x11ff | 0x2e80..=0xd7ff | 0xf900..=0xfaff | 0xff00..=0xff60 | 0x1f000.. => 2,
        _ => 1,
    }
}

/// How many columns of a fixed-width font a text takes, about.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The text in so many columns: of a longer one, how it begins and how it ends.
pub(super) fn shorten(text: &str, columns_max: usize) -> String {
    if columns(text) <= columns_max {
        return text.to_owned();
    }
    let room = columns_max.saturating_sub(1);
    let head: String = fitting(text.chars(), room.div_ceil(2)).collect();
    let tail: Vec<char> = fitting(text.chars().rev(), room - room.div_ceil(2)).collect();
    head.chars().chain(['…']).chain(tail.into_iter().rev()).collect()
}

fn fitting(chars: impl Iterator<Item = char>, mut room: usize) -> impl Iterator<Item = char> {
    chars.map_while(move |c| {
        room = room.checked_sub(columns_of(c))?;
        Some(c)
    })
}

/// `1 node`, `2 nodes`.
pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
