//! Mutants that no test can tell from the code as it is, and why.
//!
//! The file has a line for each: the file, what is changed, `=>`, and the reason. Lines that begin with `#` are
//! remarks.

use crate::shell::{read, root};

pub(super) const FILE: &str = "xtask/mutants.txt";

/// A mutant that may survive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// As cargo-mutants names it, without the place in the file, which moves.
    pub(super) mutant: String,
}

pub(super) fn all() -> Result<Vec<Answer>, String> {
    let answers = parse(&read(root().join(FILE))?)?;
    for Answer { mutant } in &answers {
        let (file, change) = mutant.split_once(": ").unwrap_or((mutant, ""));
        let text = read(root().join(file))
            .map_err(|why| format!("{FILE} answers for a file that is gone: {why}"))?;
        if let Some(function) = function(change)
            && !text.contains(&format!("fn {function}"))
        {
            return Err(format!("{FILE} answers for `{function}` of {file}, which is gone"));
        }
    }
    Ok(answers)
}

fn parse(text: &str) -> Result<Vec<Answer>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let answer = |line: &str| match line.split_once(" => ") {
        Some((mutant, reason)) if !reason.trim().is_empty() => {
            Ok(Answer { mutant: mutant.trim().to_owned() })
        }
        _ => Err(format!("{FILE}: a line is `FILE: CHANGE => REASON`, not {line:?}")),
    };
    lines.map(answer).collect()
}

/// The function that a change is made in: `replace A::f -> bool with true`, `replace < with > in A::f`, `delete ! in
/// f`. None if it is made outside of all, in a constant: `replace | with ^`.
fn function(change: &str) -> Option<&str> {
    let path = match change.rsplit_once(" in ") {
        Some((_, path)) => path,
        None => change.trim_start_matches("replace ").split([' ', '(']).next()?,
    };
    let name = path.rsplit("::").next()?;
    name.starts_with(|first: char| first.is_alphabetic() || first == '_').then_some(name)
}

/// The name without its place: `a/b.rs:12:5: replace …` is `a/b.rs: replace …`.
pub(super) fn without_place(mutant: &str) -> String {
    let Some((file, rest)) = mutant.split_once(':') else { return mutant.to_owned() };
    let change = rest.split_once(": ").map_or(rest, |(_, change)| change);
    format!("{file}: {change}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_reason() {
        let text = "# why\n\na.rs: replace f -> bool with true => nobody can tell\n";
        assert_eq!(parse(text).unwrap(), [Answer { mutant: "a.rs: replace f -> bool with true".into() }]);
        assert!(parse("a.rs: replace f with ()").is_err());
        assert!(parse("a.rs: replace f with () =>  ").is_err());
    }

    #[test]
    fn a_mutant_is_known_wherever_its_code_has_moved_to() {
        let name = "crates/a/src/b.rs:12:5: replace A::f -> bool with true";
        assert_eq!(without_place(name), "crates/a/src/b.rs: replace A::f -> bool with true");
    }

    #[test]
    fn the_function_of_a_change_is_found() {
        assert_eq!(function("replace A::f -> bool with true"), Some("f"));
        assert_eq!(function("replace f with ()"), Some("f"));
        assert_eq!(function("replace < with > in <impl Drop for A>::drop"), Some("drop"));
        assert_eq!(function("delete ! in g"), Some("g"));
        assert_eq!(function("replace | with ^"), None);
    }

    #[test]
    fn what_is_answered_is_there() {
        assert!(all().is_ok(), "{:?}", all());
    }
}
