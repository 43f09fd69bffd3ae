//! The figures and versions of the README are those of the benchmark and of the manifest.

/// Where the figures of an area are kept, from the root.
pub(crate) fn file(area: &str) -> String {
    format!("bench/figures/{area}.md")
}

const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end of figures -->";

/// The README with `figures` in the area's block.
pub(crate) fn put(readme: &str, area: &str, figures: &str) -> Result<String, String> {
    let begin = format!("{BEGIN}{area} -->\n");
    let (before, rest) =
        readme.split_once(&begin).ok_or_else(|| format!("the README has no line {}", begin.trim()))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("the README has no line {END}"))?;
    Ok(format!("{before}{begin}{}\n{END}{after}", figures.trim_end()))
}

/// Each block of figures says what the benchmark's file says.
pub(super) fn check_blocks(readme: &str, read: impl Fn(&str) -> Result<String, String>) -> Vec<String> {
    let areas = readme.lines().filter_map(|line| line.strip_prefix(BEGIN)?.strip_suffix(" -->"));
    let check = |area: &str| {
        if put(readme, area, &read(area)?)? == readme {
            Ok(())
        } else {
            Err(format!("the README's figures of {area} are not those of {}", file(area)))
        }
    };
    areas.filter_map(|area| check(area).err()).collect()
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
        "Rust 1.95\nebbtide-lifecycle = \"0.1\"\n<!-- figures: a -->\n1 ns\n<!-- end of figures -->\n";
    const MANIFEST: &str = "version = \"0.1.0\"\nrust-version = \"1.95\"\n";

    #[test]
    fn figures_that_agree_pass_and_others_do_not() {
        assert!(check_blocks(README, |_| Ok("1 ns\n".into())).is_empty());
        assert_eq!(check_blocks(README, |_| Ok("2 ns\n".into())).len(), 1);
        assert_eq!(check_blocks(README, |_| Err("no such file".into())).len(), 1);
        assert_eq!(put(README, "a", "2 ns").unwrap(), README.replace("1 ns", "2 ns"));
        assert!(put(README, "b", "").is_err());
    }

    #[test]
    fn versions_that_agree_pass_and_others_do_not() {
        assert!(check_versions(README, MANIFEST).is_empty());
        let newer = "version = \"0.2.0\"\nrust-version = \"1.96\"\n";
        assert_eq!(check_versions(README, newer).len(), 2);
    }
}
