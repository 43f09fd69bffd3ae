//! Files that a person can read: not too long, and nothing in them that is true on one machine only.

/// A file above this holds two ideas.
const LINES_MAX: usize = 500;

/// A line above this wraps in a review.
const WIDTH_MAX: usize = 120;

/// Parts of paths and hosts that belong to one machine. Split, so that this file does not find itself.
const PRIVATE: &[&str] =
    &[concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("crates", ".io/"), concat!("index.", "crates")];

pub(super) fn check(sources: &[(String, String)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in sources {
        if let Some(private) = PRIVATE.iter().find(|private| text.contains(**private)) {
            complaints.push(format!("{path} says {private:?}, which is not the same everywhere"));
        }
        if !path.ends_with(".rs") {
            continue;
        }
        let lines = text.lines().count();
        if lines > LINES_MAX {
            complaints.push(format!("{path} has {lines} lines, more than {LINES_MAX}: two ideas?"));
        }
        for (index, line) in text.lines().enumerate() {
            // A string that is data may be long.
            if line.chars().count() > WIDTH_MAX && !line.contains('"') {
                complaints.push(format!("{path}:{} is wider than {WIDTH_MAX}", index + 1));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check(&[(path.into(), text.into())]).len()
    }

    #[test]
    fn long_files_wide_lines_and_private_paths_are_found() {
        assert_eq!(complaints("a.rs", "fn main() {}\n"), 0);
        assert_eq!(complaints("a.rs", &"\n".repeat(LINES_MAX + 1)), 1);
        assert_eq!(complaints("a.rs", &"x".repeat(WIDTH_MAX + 1)), 1);
        assert_eq!(complaints("a.md", PRIVATE[0]), 1);
        assert_eq!(complaints("a.md", &"x".repeat(WIDTH_MAX + 1)), 0);
    }
}
