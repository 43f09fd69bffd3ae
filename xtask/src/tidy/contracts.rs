//! Every contract of a crate that exists has a row in `ARCHITECTURE.md`, and every test named there exists.

use super::{quoted, table};
use crate::mutants::{MUTANTS, Mutant};

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
    ("ebbtide", 'P', 3),
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
    complaints.extend(MUTANTS.iter().filter_map(|mutant| check_mutant(mutant, architecture, sources).err()));
    complaints
}

/// It is described, its model exists, and its edit still applies.
fn check_mutant(mutant: &Mutant, architecture: &str, sources: &[(String, String)]) -> Result<(), String> {
    let name = mutant.name;
    if !architecture.contains(&format!("| `{name}` |")) {
        return Err(format!("ARCHITECTURE.md does not describe the mutant `{name}`"));
    }
    if !is_a_test(mutant.caught_by, sources) {
        return Err(format!("the mutant `{name}` names a model that does not exist"));
    }
    let source = sources.iter().find(|(path, _)| *path == mutant.path());
    let (_, text) = source.ok_or_else(|| format!("the mutant `{name}` breaks a file that does not exist"))?;
    mutant.broken(text).map(drop).map_err(|why| format!("mutant `{name}`: {why}"))
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

    fn complaints(rows: &str, source: &str) -> Vec<String> {
        let architecture = format!("## Contracts\n| id | contract | tests |\n|---|---|---|\n{rows}");
        let manifests = [("lifecycle".to_owned(), String::new())];
        let sources = [("crates/lifecycle/tests/a.rs".to_owned(), source.to_owned())];
        let mut found = check(&architecture, &manifests, &sources);
        found.retain(|complaint| !complaint.contains("mutant"));
        found
    }

    const TEST: &str = "#[test]\nfn holds() {}\nfn helper() {}\n";

    #[test]
    fn contracts_with_tests_that_exist_pass() {
        let rows = "| L1 | a | `holds` |\n| L2 | b | `holds` |\n| L3 | c | `holds` |\n| L4 | d | `holds` |\n";
        assert_eq!(complaints(rows, TEST), [""; 0]);
    }

    #[test]
    fn a_missing_row_a_missing_name_and_a_missing_test_are_found() {
        let rows = "| L1 | a | none |\n| L2 | b | `fails` |\n| L3 | c | `helper` |\n";
        assert_eq!(complaints(rows, TEST).len(), 4);
    }

    #[test]
    fn a_mutant_that_is_not_described_or_does_not_apply_is_found() {
        let mutant = &MUTANTS[0];
        let described = format!("| `{}` |", mutant.name);
        let model = ("crates/x/tests/loom.rs".to_owned(), format!("#[test]\nfn {}() {{}}", mutant.caught_by));
        let file = |text: &str| (mutant.path(), text.to_owned());
        assert!(check_mutant(mutant, "", &[]).is_err());
        assert!(check_mutant(mutant, &described, &[file(mutant.from)]).is_err());
        assert!(check_mutant(mutant, &described, std::slice::from_ref(&model)).is_err());
        assert!(check_mutant(mutant, &described, &[model.clone(), file("sound")]).is_err());
        assert_eq!(check_mutant(mutant, &described, &[model, file(mutant.from)]), Ok(()));
    }
}
