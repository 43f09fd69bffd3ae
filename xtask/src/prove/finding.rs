//! What a run printed of how much it explored: numbers with a unit, by the name of what they belong to.

use std::collections::BTreeSet;

/// So much of something was explored by the test, the suite or the soak of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) name: String,
    pub(super) count: u64,
    pub(super) unit: &'static str,
}

impl Finding {
    pub(super) fn new(name: impl Into<String>, count: u64, unit: &'static str) -> Self {
        Self { name: name.into(), count, unit }
    }
}

/// What our tests say of themselves, each on a line of its own: `12345 executions`.
const UNITS: &[&str] =
    &["executions", "random schedules", "PCT schedules", "cases", "limits", "injected faults", "rounds"];

/// The counts in the output of tests that are run one after the other and whose output is not captured. A test that
/// passed without saying how much it explored is not among them.
pub(super) fn of_tests(output: &str) -> Vec<Finding> {
    let (mut findings, mut test) = (Vec::new(), "");
    for line in output.lines() {
        let mut said = line;
        if let Some((name, rest)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")) {
            (test, said) = (name.rsplit("::").next().unwrap_or(name), rest);
        }
        if let Some((count, unit)) = counted(said) {
            findings.push(Finding::new(test, count, unit));
        }
    }
    findings
}

fn counted(said: &str) -> Option<(u64, &'static str)> {
    let (count, unit) = said.trim().split_once(' ')?;
    Some((count.parse().ok()?, UNITS.iter().copied().find(|known| *known == unit)?))
}

/// How many tests passed, by what the harness says at the end of each binary.
pub(super) fn passed(output: &str) -> u64 {
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.filter_map(|result| result.split_once(" passed")?.0.parse::<u64>().ok()).sum()
}

/// The first number that stands before `word`.
pub(super) fn before(output: &str, word: &str) -> Option<u64> {
    pairs(output).find_map(|(left, right)| (right == word).then(|| left.parse().ok())?)
}

/// The first number that stands after `word`.
pub(super) fn after(output: &str, word: &str) -> Option<u64> {
    pairs(output).find_map(|(left, right)| (left == word).then(|| right.parse().ok())?)
}

/// Each word with the one after it, without the marks around them.
fn pairs(output: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = || output.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '(', ')']));
    words().zip(words().skip(1))
}

/// The sums of the findings, a sum for each unit, and of how many things they are.
pub(super) fn sum_up(findings: &[&Finding], each: &str) -> String {
    let mut sums: Vec<(u64, &str)> = Vec::new();
    for finding in findings {
        match sums.iter_mut().find(|(_, unit)| *unit == finding.unit) {
            Some((sum, _)) => *sum += finding.count,
            None => sums.push((finding.count, finding.unit)),
        }
    }
    let sums: Vec<_> = sums.into_iter().map(|(sum, unit)| format!("{} {unit}", grouped(sum))).collect();
    let names: BTreeSet<_> = findings.iter().map(|finding| &finding.name).collect();
    format!("{} ({} {each})", sums.join(", "), names.len())
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let head = digits.len() % 3;
    let mut groups: Vec<&str> = if head > 0 { vec![&digits[..head]] } else { Vec::new() };
    groups.extend((head..digits.len()).step_by(3).map(|at| &digits[at..at + 3]));
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 3 tests
test models::a_stop_waits ... 120 executions
ok
test says_nothing ... ok
test both ... something else
3 random schedules
4 PCT schedules
ok

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn counts_belong_to_the_test_that_says_them() {
        let findings = of_tests(OUTPUT);
        let said = |name, count, unit| Finding::new(name, count, unit);
        assert_eq!(
            findings,
            [
                said("a_stop_waits", 120, "executions"),
                said("both", 3, "random schedules"),
                said("both", 4, "PCT schedules")
            ]
        );
    }

    #[test]
    fn only_tests_that_passed_are_counted() {
        assert_eq!(passed(&OUTPUT.repeat(2)), 6);
        assert_eq!(passed("test result: FAILED. 3 passed; 1 failed"), 0);
    }

    #[test]
    fn a_number_is_found_beside_its_word() {
        let output = "40 loops: accepted 12, completed 12\n7 rounds; 3 requests, 9 answered";
        assert_eq!(before(output, "loops"), Some(40));
        assert_eq!(before(output, "requests"), Some(3));
        assert_eq!(after(output, "accepted"), Some(12));
        assert_eq!((before(output, "nothing"), after(output, "answered")), (None, None));
    }

    #[test]
    fn sums_are_told_by_unit() {
        let findings = of_tests(&OUTPUT.replace("120", "1234567"));
        let all: Vec<_> = findings.iter().collect();
        assert_eq!(
            sum_up(&all, "models"),
            "1,234,567 executions, 3 random schedules, 4 PCT schedules (2 models)"
        );
        assert_eq!(["0", "12", "123,456"], [0, 12, 123_456].map(grouped).each_ref().map(String::as_str));
    }
}
