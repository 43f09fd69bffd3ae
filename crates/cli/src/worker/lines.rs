//! Standard input, line by line.

use std::io::{self, BufRead, Read};

use crate::{
    fault::Fault,
    request::REQUEST_BYTES_MAX,
    stdin::{Pieces, Tray},
};

/// So many lines are read before somebody has to take one.
const AHEAD: usize = 256;

/// A line, or why there is none; with its number.
pub(super) type Line = (u64, Result<String, String>);

/// The lines of standard input, but for blank ones.
pub(super) struct Lines(Pieces<Line>);

impl Lines {
    /// Begins to read.
    pub(super) fn read() -> Result<Self, Fault> {
        Pieces::read(AHEAD, |lines| read_all(&mut io::stdin().lock(), lines)).map(Self)
    }

    /// The next line; none at the end. Dropped before its end, it has taken none.
    pub(super) async fn next(&mut self) -> Option<Line> {
        self.0.next().await
    }
}

fn read_all(input: &mut impl BufRead, lines: &Tray<Line>) {
    let mut number = 0;
    loop {
        number += 1;
        let mut bytes = Vec::new();
        let line = match input.by_ref().take(REQUEST_BYTES_MAX + 1).read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(_) if bytes.len() as u64 > REQUEST_BYTES_MAX => {
                skip_line(input);
                Err(format!("it is longer than {REQUEST_BYTES_MAX} bytes"))
            }
            Ok(_) => match String::from_utf8(bytes) {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => Ok(line),
                Err(_) => Err("it is not UTF-8 text".to_owned()),
            },
            Err(error) => {
                lines.put((number, Err(format!("cannot read it: {error}"))));
                return;
            }
        };
        if !lines.put((number, line)) {
            return;
        }
    }
}

/// Leaves out what is left of a line.
fn skip_line(input: &mut impl BufRead) {
    loop {
        let (used, ended) = match input.fill_buf() {
            Ok([]) | Err(_) => return,
            Ok(bytes) => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        };
        input.consume(used);
        if ended {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn lines_of(text: &[u8]) -> Vec<Line> {
        let (lines, taken) = sync_channel(AHEAD);
        read_all(&mut &*text, &Tray::into(lines));
        taken.iter().collect()
    }

    #[test]
    fn blank_lines_are_left_out_and_counted() {
        let lines = lines_of(b"one\n\n  \ntwo");
        assert_eq!(lines, [(1, Ok("one\n".to_owned())), (4, Ok("two".to_owned()))]);
    }

    #[test]
    fn a_line_that_is_too_long_or_no_text_is_an_error_and_the_next_one_is_read() {
        let mut text = vec![b'x'; REQUEST_BYTES_MAX as usize * 2];
        text.extend_from_slice(b"\n\xff\nlast\n");
        let lines = lines_of(&text);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].1.is_err() && lines[1].1.is_err());
        assert_eq!(lines[2], (3, Ok("last\n".to_owned())));
    }
}
