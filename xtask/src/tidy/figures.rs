//! The figures and versions of the documents are those of the benchmark and of the manifest.

use crate::bench::documents;

/// The tables of `FIGURES.md`, the summary of the README and the chart are made of the files in `bench/figures`, and of
/// all of them. `read` gives a file by its path from the root, and `files` are those that there are.
pub(super) fn check_documents(
    files: &[String],
    read: impl Fn(&str) -> Result<String, String>,
) -> Vec<String> {
    let made = match documents::made(&read) {
        Ok(made) => made,
        Err(why) => return vec![why],
    };
    let mut complaints = Vec::new();
    for (path, text) in &made {
        if read(path).as_deref() != Ok(text) {
            complaints.push(format!(
                "{path} is not what is made of bench/figures: `cargo xtask bench documents` makes it anew"
            ));
        }
    }
    let shown: Vec<_> = documents::blocks(&made[0].1).map(documents::file).collect();
    let figures = files.iter().filter(|file| file.starts_with("bench/figures/") && file.ends_with(".tsv"));
    let hidden = figures.filter(|file| !shown.contains(file));
    complaints.extend(hidden.map(|file| format!("FIGURES.md does not show {file}")));
    complaints
}

/// A dependency on one of ours that the README shows asks for the version in the manifest, and so does the Rust
/// that it says is needed.
pub(super) fn check_versions(readme: &str, manifest: &str) -> Vec<String> {
    let value = |key: &str| {
        let line = manifest.lines().find(|line| line.starts_with(key))?;
        line.split('"').nth(1)
    };
    let mut complaints = Vec::new();
    let version = value("version = ").unwrap_or_default();
    for line in readme.lines().filter(|line| line.starts_with("ebbtide") && line.contains('=')) {
        let asked = line.split('"').nth(1).unwrap_or_default();
        if asked.is_empty() || !version.starts_with(asked) {
            complaints.push(format!("the README says {line:?}, the manifest's version is {version}"));
        }
    }
    let rust = format!("Rust {}", value("rust-version = ").unwrap_or_default());
    if !readme.contains(&rust) {
        complaints.push(format!("the README does not say that {rust} is needed"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str =
        "Rust 1.95\nebbtide-lifecycle = \"0.1\"\n<!-- figures: summary -->\n<!-- end of figures -->\n";
    const MANIFEST: &str = "version = \"0.1.0\"\nrust-version = \"1.95\"\n";

    #[test]
    fn documents_that_agree_pass_and_others_do_not() {
        let figures = "spawn\tns\tebbtide\tours\t1\t1\t1\t1\t1\t1\t1\t1.0\t\t\t\n";
        let empty = |path: &str| match path {
            "FIGURES.md" => Ok("<!-- figures: a -->\n<!-- end of figures -->\n".to_owned()),
            "README.md" => Ok(README.to_owned()),
            "bench/figures/a.tsv" => Ok(figures.to_owned()),
            _ => Err("no such file".to_owned()),
        };
        let made = documents::made(empty).unwrap();
        let filled = |path: &str| match made.iter().find(|(made, _)| *made == path) {
            Some((_, text)) => Ok(text.clone()),
            None => empty(path),
        };
        let files = ["bench/figures/a.tsv".to_owned()];
        assert_eq!(check_documents(&files, filled), [""; 0]);
        assert_eq!(check_documents(&files, empty).len(), 3);
        assert_eq!(check_documents(&["bench/figures/b.tsv".to_owned()], filled).len(), 1);
        assert_eq!(check_documents(&files, |_| Err("no such file".to_owned())).len(), 1);
    }

    #[test]
    fn versions_that_agree_pass_and_others_do_not() {
        assert!(check_versions(README, MANIFEST).is_empty());
        let newer = "version = \"0.2.0\"\nrust-version = \"1.96\"\n";
        assert_eq!(check_versions(README, newer).len(), 2);
    }
}
