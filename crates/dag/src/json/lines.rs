//! Lines and columns of a text.

/// Finds the line and column of a byte of a text, from 1 on, in characters, however long its lines are.
pub(super) struct Lines<'t> {
    text: &'t [u8],
    /// Where each line starts.
    starts: Vec<usize>,
    /// How many characters start before each block. A plan that was not written by hand is one long line.
    blocks: Vec<usize>,
}

const BLOCK: usize = 1024;

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let text = text.as_bytes();
        let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        let mut before = 0;
        let blocks = text.chunks(BLOCK).map(|block| {
            before += characters(block);
            before - characters(block)
        });
        Self { text, starts, blocks: blocks.collect() }
    }

    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        (line, self.characters_before(at) - self.characters_before(self.starts[line - 1]) + 1)
    }

    fn characters_before(&self, at: usize) -> usize {
        match self.blocks.get(at / BLOCK) {
            Some(before) => before + characters(&self.text[at / BLOCK * BLOCK..at]),
            // The end of a text that fills its last block.
            None => self.blocks.last().map_or(0, |before| before + characters(&self.text[at - BLOCK..at])),
        }
    }
}

/// How many characters start in these bytes of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

/// The byte that `serde_json` means by a line and a column, which counts bytes.
pub(super) fn byte_at(text: &str, line: usize, column: usize) -> usize {
    let start = match line {
        0 | 1 => 0,
        _ => text.match_indices('\n').nth(line - 2).map_or(text.len(), |(at, _)| at + 1),
    };
    text.floor_char_boundary((start + column.saturating_sub(1)).min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_in_lines_of_any_length() {
        for before in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let text = format!("é\n{}x", "é".repeat(before));
            let lines = Lines::of(&text);
            assert_eq!(lines.place(text.len() - 1), (2, before + 1), "{before} characters before");
            assert_eq!(lines.place(text.len()), (2, before + 2), "{before} characters before the end");
        }
        assert_eq!(Lines::of("").place(7), (1, 1));
        assert_eq!(Lines::of(&"x".repeat(BLOCK)).place(BLOCK), (1, BLOCK + 1));
    }
}
