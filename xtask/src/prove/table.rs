//! The table of what is proved, for a terminal and for `PROOF.md`.

use std::time::Duration;

use super::{
    finding::{Finding, sum_up},
    proof::Proof,
    property::{Claim, PROPERTIES},
};

/// What became of a proof.
pub(super) struct Ran<'a> {
    pub(super) proof: &'a Proof,
    pub(super) time: Duration,
    pub(super) outcome: Result<Vec<Finding>, String>,
}

/// One line: a property, and one who speaks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    property: String,
    tool: String,
    explored: String,
    time: String,
    /// The day and the commit of the run.
    ran: String,
    verdict: String,
}

impl Row {
    /// That of a claim whose proof has not been run.
    fn never(property: String, tool: &str) -> Self {
        let (tool, verdict) = (tool.to_owned(), NOT_RUN.to_owned());
        Self { property, tool, explored: String::new(), time: String::new(), ran: String::new(), verdict }
    }
}

const HEAD: [&str; 6] = ["property", "tool", "explored", "time", "ran", "verdict"];

/// All that the proofs explored of what they are claimed to.
const HOLDS: &str = "holds";

/// Of some of it, nothing.
const IN_PART: &str = "in part";

/// Of all of it, nothing: the machine does not let it, or the tool does not exist for it.
const NOT_HERE: &str = "not here";

/// Not yet.
const NOT_RUN: &str = "not run";

/// There is no test of that name: the claim is empty.
const NOTHING: &str = "NOTHING";

/// The rows of the proofs that were run, on that day and at that commit, and of the tools that cannot be.
pub(super) fn rows(ran: &[Ran<'_>], at: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for property in PROPERTIES {
        let row = |tool: &str, (explored, verdict): (String, &str)| Row {
            property: property.title(),
            tool: tool.to_owned(),
            explored,
            time: String::new(),
            ran: String::new(),
            verdict: verdict.to_owned(),
        };
        for claim in property.claims {
            match claim {
                Claim::Not(tool, why) => rows.push(row(tool, ((*why).to_owned(), NOT_HERE))),
                Claim::By(name, by) => {
                    let Some(Ran { proof, time, outcome }) = ran.iter().find(|ran| ran.proof.name == *name)
                    else {
                        continue;
                    };
                    let verdict = match outcome {
                        Ok(findings) => judge(findings, by, proof.each),
                        Err(_) => (String::new(), "FAILED"),
                    };
                    let (time, ran) = (format!("{:.0} s", time.as_secs_f64()), at.to_owned());
                    rows.push(Row { time, ran, ..row(proof.tool, verdict) });
                }
            }
        }
    }
    rows
}

/// What was explored of a claim, and whether that speaks for it: each that is named has to have explored something.
fn judge(findings: &[Finding], by: &[&'static str], each: &str) -> (String, &'static str) {
    let chosen = match chosen(findings, by) {
        Err(missing) => return (format!("there is no {missing}"), NOTHING),
        Ok(chosen) if chosen.is_empty() => return ("nothing was found".to_owned(), NOTHING),
        Ok(chosen) => chosen,
    };
    let none: Vec<_> = chosen.iter().filter(|finding| finding.count == 0).collect();
    let verdict = match none.len() {
        0 => HOLDS,
        none if none < chosen.len() => IN_PART,
        _ => NOT_HERE,
    };
    let none = none.iter().map(|finding| format!("; none of {}", finding.name));
    (sum_up(&chosen, each) + &none.collect::<String>(), verdict)
}

/// What the rows say that is no pass: a claim that is empty and, unless `may_lack`, one of which this machine does not
/// let everything be explored.
pub(super) fn no_pass(rows: &[Row], may_lack: bool) -> Vec<String> {
    let is_none = |row: &&Row| match row.verdict.as_str() {
        NOTHING => true,
        // Of a tool that is known not to be there nothing was run.
        IN_PART | NOT_HERE => !may_lack && !row.ran.is_empty(),
        _ => false,
    };
    let told = |row: &Row| format!("{}: {}, {}: {}", row.property, row.tool, row.verdict, row.explored);
    rows.iter().filter(is_none).map(told).collect()
}

/// Those of these names, or all if there are none; else the name that there is nothing of.
fn chosen<'a>(findings: &'a [Finding], names: &[&'static str]) -> Result<Vec<&'a Finding>, &'static str> {
    if let Some(missing) = names.iter().find(|name| findings.iter().all(|finding| finding.name != **name)) {
        return Err(missing);
    }
    let is_chosen = |finding: &&Finding| names.is_empty() || names.contains(&finding.name.as_str());
    Ok(findings.iter().filter(is_chosen).collect())
}

/// `older` with the rows of `newer` in their places, in the order of the properties and of their claims. What no
/// property claims any more is dropped, and what was never run says so.
pub(super) fn merge(older: &[Row], newer: &[Row]) -> Vec<Row> {
    let mut rows = Vec::new();
    for property in PROPERTIES {
        for claim in property.claims {
            let tool = claim.tool();
            let is_it = |row: &&Row| row.property == property.title() && row.tool == tool;
            let known = newer.iter().find(is_it).or_else(|| older.iter().find(is_it)).cloned();
            rows.push(known.unwrap_or_else(|| Row::never(property.title(), tool)));
        }
    }
    rows
}

/// As a table of Markdown, whose columns are as wide as they must be. A property is named in its first row.
pub(super) fn render(rows: &[Row]) -> String {
    let cells = |row: &Row| {
        [&row.property, &row.tool, &row.explored, &row.time, &row.ran, &row.verdict].map(String::clone)
    };
    let mut lines = vec![HEAD.map(str::to_owned)];
    let mut last = None;
    for row in rows {
        let mut line = cells(row);
        if last == Some(&row.property) {
            line[0].clear();
        }
        last = Some(&row.property);
        lines.push(line);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4, 5].map(width);
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let padded: Vec<_> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(&format!("| {} |\n", padded.join(" | ")));
        if index == 0 {
            let rules: Vec<_> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            text.push_str(&format!("|{}|\n", rules.join("|")));
        }
    }
    text
}

/// The rows that [`render`] made the text from.
pub(super) fn parse(text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let Ok([mut property, tool, explored, time, ran, verdict]) = <[String; 6]>::try_from(cells) else {
            continue;
        };
        if property.is_empty() {
            property = rows.last().map(|row| row.property.clone()).unwrap_or_default();
        }
        rows.push(Row { property, tool, explored, time, ran, verdict });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::proof::PROOFS;

    fn row(number: usize, tool: &str, explored: &str) -> Row {
        Row {
            property: PROPERTIES[number - 1].title(),
            tool: tool.into(),
            explored: explored.into(),
            time: "3 s".into(),
            ran: "2026-01-31, abc1234".into(),
            verdict: HOLDS.into(),
        }
    }

    #[test]
    fn what_is_rendered_can_be_parsed() {
        let rows = [row(1, "loom", "5 executions"), row(1, "soak", ""), row(2, "loom", "7")];
        assert_eq!(parse(&render(&rows)), rows);
    }

    #[test]
    fn rows_of_proofs_that_were_not_run_stay_and_those_that_nobody_claims_do_not() {
        let older =
            [row(1, "loom", "old"), row(1, "soak", "old"), row(1, "magic", "old"), row(3, "loom", "old")];
        let newer = [row(1, "soak", "new"), row(2, "soak", "new")];
        let merged = merge(&older, &newer);
        let run: Vec<_> = merged.iter().filter(|row| row.verdict != NOT_RUN).cloned().collect();
        let claimed =
            [row(1, "loom", "old"), row(1, "soak", "new"), row(2, "soak", "new"), row(3, "loom", "old")];
        assert_eq!(run, claimed);
        let never = |row: &&Row| row.property == PROPERTIES[0].title() && row.verdict == NOT_RUN;
        let tools: Vec<_> = merged.iter().filter(never).map(|row| row.tool.as_str()).collect();
        assert_eq!(tools, ["shuttle", "simulation"], "what nobody ran is there, too");
    }

    fn ran(name: &str, outcome: Result<Vec<Finding>, String>) -> Vec<Row> {
        let proof = PROOFS.iter().find(|proof| proof.name == name).unwrap();
        rows(&[Ran { proof, time: Duration::ZERO, outcome }], "today")
    }

    #[test]
    fn a_claim_of_which_nothing_was_found_is_no_pass_and_the_others_have_their_rows() {
        let found = vec![Finding::new("several_posters_against_a_stop", 7, "random schedules")];
        let rows = ran("shuttle", Ok(found));
        let verdict = |number: usize| {
            let of_it = |row: &&Row| row.property == PROPERTIES[number - 1].title() && row.tool == "shuttle";
            rows.iter().find(of_it).unwrap().verdict.as_str()
        };
        assert_eq!((verdict(1), verdict(6)), (HOLDS, NOTHING));
        let told = no_pass(&rows, true);
        assert!(
            told.iter().any(|told| told.contains("there is no every_one_of_four_stoppers_waits")),
            "{told:?}"
        );
        assert!(ran("shuttle", Err("why".into())).iter().any(|row| row.verdict == "FAILED"));
    }

    #[test]
    fn what_explored_nothing_is_no_pass_though_others_beside_it_did() {
        let limits = |count| Finding::new("without_threads_a_program_says_so_and_ends", count, "limits");
        let threads = |count| {
            let name = "a_thread_that_cannot_be_started_is_an_error_whichever_it_is";
            Finding::new(name, count, "injected faults")
        };
        let verdict = |findings: [Finding; 2]| {
            let mut rows = ran("faults", Ok(findings.into()));
            rows.retain(|row| row.property.starts_with("17 "));
            (rows[0].verdict.clone(), no_pass(&rows, false).len(), no_pass(&rows, true).len())
        };
        assert_eq!(verdict([limits(20), threads(3)]), (HOLDS.to_owned(), 0, 0));
        assert_eq!(verdict([limits(0), threads(3)]), (IN_PART.to_owned(), 1, 0));
        assert_eq!(verdict([limits(0), threads(0)]), (NOT_HERE.to_owned(), 1, 0));
    }

    #[test]
    fn each_property_is_claimed_by_proofs_that_exist_and_each_proof_claims_one() {
        let claims = || PROPERTIES.iter().flat_map(|property| property.claims);
        for claim in claims() {
            if let Claim::By(name, _) = claim {
                assert!(PROOFS.iter().any(|proof| proof.name == *name), "{name}");
            }
        }
        for proof in PROOFS {
            let claimed = claims().any(|claim| matches!(claim, Claim::By(name, _) if *name == proof.name));
            assert!(claimed || proof.name == "features", "{}", proof.name);
        }
        let numbers: Vec<_> = PROPERTIES.iter().map(|property| usize::from(property.number)).collect();
        assert_eq!(numbers, (1..=PROPERTIES.len()).collect::<Vec<_>>());
        assert!(PROPERTIES.iter().all(|property| !property.claims.is_empty()));
    }
}
