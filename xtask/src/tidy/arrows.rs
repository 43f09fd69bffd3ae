//! Dependencies among our crates are those that `ARCHITECTURE.md` allows.

use super::{quoted, table};
use crate::shell::package;

const HEADING: &str = "## Arrows";

/// `manifests`: the folder and the text of each crate's manifest.
pub(super) fn check(architecture: &str, manifests: &[(String, String)]) -> Vec<String> {
    let rows = table(architecture, HEADING);
    let mut complaints = Vec::new();
    for (folder, manifest) in manifests {
        let row = rows.iter().find(|row| row.len() == 2 && quoted(row[0]).any(|name| name == folder));
        let Some(row) = row else {
            complaints.push(format!("crates/{folder} has no row below {HEADING:?} in ARCHITECTURE.md"));
            continue;
        };
        let allowed: Vec<_> = quoted(row[1]).map(package).collect();
        for used in ours(manifest).filter(|used| !allowed.iter().any(|allowed| allowed == used)) {
            complaints
                .push(format!("crates/{folder} uses {used}: there is no such arrow in ARCHITECTURE.md"));
        }
    }
    complaints
}

/// The packages of ours that a manifest depends on, for the product or its build; tests may use any.
fn ours(manifest: &str) -> impl Iterator<Item = &str> {
    let mut counts = false;
    manifest.lines().filter_map(move |line| {
        if let Some(section) = line.strip_prefix('[') {
            counts = section.contains("dependencies") && !section.contains("dev-dependencies");
            return None;
        }
        let name = line.split(['=', '.', ' ']).next()?;
        (counts && name.starts_with("ebbtide")).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCHITECTURE: &str =
        "## Arrows\n| crate | may use |\n|---|---|\n| `lifecycle` | nothing |\n| `timeout` | `lifecycle` |\n";

    fn complaints(folder: &str, manifest: &str) -> Vec<String> {
        check(ARCHITECTURE, &[(folder.into(), manifest.into())])
    }

    #[test]
    fn an_arrow_that_is_drawn_is_allowed() {
        let manifest = "[dependencies]\nebbtide-lifecycle.workspace = true\nslab = \"1\"\n";
        assert!(complaints("timeout", manifest).is_empty());
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_refused() {
        for section in ["[dependencies]", "[build-dependencies]", "[target.'cfg(unix)'.dependencies]"] {
            let manifest = format!("{section}\nebbtide-timeout = {{ workspace = true }}\n");
            assert_eq!(complaints("lifecycle", &manifest).len(), 1, "{section}");
        }
    }

    #[test]
    fn tests_may_use_any() {
        assert!(complaints("lifecycle", "[dev-dependencies]\nebbtide-timeout = \"1\"\n").is_empty());
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_refused() {
        assert_eq!(complaints("newcomer", "").len(), 1);
    }
}
