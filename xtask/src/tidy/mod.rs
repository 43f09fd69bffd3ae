//! `cargo xtask ci tidy`: what a compiler does not check, but a reader relies on.
//!
//! Each rule is a function from texts to complaints, so that it can be shown to complain.

mod arrows;
mod contracts;
mod figures;
mod sources;

use crate::shell::{crates, read, root, tracked_files};

pub(crate) fn run() -> Result<(), String> {
    let architecture = read(root().join("ARCHITECTURE.md"))?;
    let readme = read(root().join("README.md"))?;
    let manifest = read(root().join("Cargo.toml"))?;
    let mut complaints = Vec::new();

    let mut manifests = Vec::new();
    for folder in crates()? {
        manifests.push((folder.clone(), read(root().join("crates").join(&folder).join("Cargo.toml"))?));
    }
    complaints.extend(arrows::check(&architecture, &manifests));

    let mut sources = Vec::new();
    for path in tracked_files()? {
        // What is not text is not ours to read.
        if let Ok(text) = read(root().join(&path)) {
            sources.push((path.display().to_string(), text));
        }
    }
    complaints.extend(contracts::check(&architecture, &manifests, &sources));
    complaints.extend(sources::check(&sources));
    let files: Vec<_> = sources.iter().map(|(path, _)| path.clone()).collect();
    complaints.extend(figures::check_documents(&files, |path| read(root().join(path))));
    complaints.extend(figures::check_versions(&readme, &manifest));

    if complaints.is_empty() { Ok(()) } else { Err(format!("\n  {}", complaints.join("\n  "))) }
}

/// The cells of the rows of the table below the heading, without its head.
fn table<'a>(text: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let below = text.lines().skip_while(|line| line.trim() != heading).skip(1);
    let section = below.take_while(|line| !line.starts_with('#'));
    let rows = section.filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_found_below_its_heading_and_nowhere_else() {
        let text = "# A\n| x |\n|---|\n| 0 |\n## Arrows\n\n| crate | may use |\n|---|---|\n| `a` | `b`, `c` |\n# B\n| y |";
        let rows = table(text, "## Arrows");
        assert_eq!(rows, [["`a`", "`b`, `c`"]]);
        assert_eq!(quoted(rows[0][1]).collect::<Vec<_>>(), ["b", "c"]);
        assert!(table(text, "## Nowhere").is_empty());
    }
}
