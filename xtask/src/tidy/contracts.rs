//! Every contract of a crate that exists has a row in `ARCHITECTURE.md`, and every test named there exists.

use super::{quoted, table};
use crate::mutants::MUTANTS;

const HEADING: &str = "## Contracts";

/// Whose contracts begin with which letter, and how many there are.
const OWNERS: &[(&str, char, u32)] = &[
    ("lifecycle", 'L', 4),
    ("reactor", 'E', 11),
    ("offload", 'O', 5),
    ("timeout", 'T', 5),
    ("dag", 'D', 8),
    ("shutdown", 'S', 8),
    ("mailbox", 'M', 7),
];

pub(super) fn check(
    architecture: &str,
    manifests: &[(String, String)],
    sources: &[(String, String)],
) -> Vec<String> {
    let rows = table(architecture, HEADING);
    let mut complaints = Vec::new();
    let owners = OWNERS.iter().filter(|owner| manifests.iter().any(|(folder, _)| folder == owner.0));
    for (folder, letter, count) in owners {
        for id in (1..=*count).map(|number| format!("{letter}{number}")) {
            let row = rows.iter().find(|row| row.len() == 3 && row[0] == id);
            match row.map(|row| quoted(row[2]).collect::<Vec<_>>()) {
                None => complaints.push(format!("{id} of crates/{folder} has no row in ARCHITECTURE.md")),
                Some(tests) if tests.is_empty() => complaints.push(format!("{id} names no test")),
                Some(tests) => {
                    for test in tests.into_iter().filter(|test| !is_a_test(test, sources)) {
                        complaints.push(format!("{id} names `{test}`, and there is no such test"));
                    }
                }
            }
        }
    }
    for mutant in MUTANTS.iter().filter(|mutant| !architecture.contains(&format!("`{}`", mutant.name))) {
        complaints.push(format!("ARCHITECTURE.md does not describe the mutant `{}`", mutant.name));
    }
    complaints
}

fn is_a_test(name: &str, sources: &[(String, String)]) -> bool {
    let (function, macro_form) = (format!("fn {name}()"), format!("fn {name}("));
    sources.iter().any(|(path, text)| {
        path.starts_with("crates/")
            && path.ends_with(".rs")
            && text.split("#[test]").skip(1).any(|after| {
                let signature = after.split('{').next().unwrap_or_default();
                signature.contains(&function) || signature.contains(&macro_form)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(rows: &str, source: &str) -> usize {
        let mutants: String = MUTANTS.iter().map(|mutant| format!("`{}` ", mutant.name)).collect();
        let architecture =
            format!("{mutants}\n## Contracts\n| id | contract | tests |\n|---|---|---|\n{rows}");
        let manifests = [("lifecycle".to_owned(), String::new())];
        check(&architecture, &manifests, &[("crates/lifecycle/tests/a.rs".into(), source.into())]).len()
    }

    const TEST: &str = "#[test]\nfn holds() {}\nfn helper() {}\n";

    #[test]
    fn contracts_with_tests_that_exist_pass() {
        let rows = "| L1 | a | `holds` |\n| L2 | b | `holds` |\n| L3 | c | `holds` |\n| L4 | d | `holds` |\n";
        assert_eq!(complaints(rows, TEST), 0);
    }

    #[test]
    fn a_missing_row_a_missing_name_and_a_missing_test_are_found() {
        let rows = "| L1 | a | none |\n| L2 | b | `fails` |\n| L3 | c | `helper` |\n";
        assert_eq!(complaints(rows, TEST), 4);
    }

    #[test]
    fn a_mutant_that_is_not_described_is_found() {
        let found = check("", &[], &[]);
        assert_eq!(found.len(), MUTANTS.len());
    }
}
