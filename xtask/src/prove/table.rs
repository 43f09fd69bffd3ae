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
    verdict: String,
}

const HEAD: [&str; 5] = ["property", "tool", "explored", "time", "verdict"];

/// The rows of the proofs that were run, and of the tools that cannot be.
///
/// # Errors
/// If a property is claimed by something that the proof did not find: the claim would be empty.
pub(super) fn rows(ran: &[Ran<'_>]) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for property in PROPERTIES {
        let says = format!("{} {}", property.number, property.says);
        let row = |tool: &str, explored: String, time: String, verdict: &str| Row {
            property: says.clone(),
            tool: tool.to_owned(),
            explored,
            time,
            verdict: verdict.to_owned(),
        };
        for claim in property.claims {
            match claim {
                Claim::Not(tool, why) => rows.push(row(tool, (*why).to_owned(), String::new(), "not here")),
                Claim::By(name, by) => {
                    let Some(Ran { proof, time, outcome }) = ran.iter().find(|ran| ran.proof.name == *name)
                    else {
                        continue;
                    };
                    let time = format!("{:.0} s", time.as_secs_f64());
                    let Ok(findings) = outcome else {
                        rows.push(row(proof.tool, String::new(), time, "FAILED"));
                        continue;
                    };
                    let findings = chosen(findings, by).map_err(|what| {
                        format!("property {}: {name} found nothing of {what}", property.number)
                    })?;
                    let explored = sum_up(&findings, proof.each);
                    let seen = findings.iter().any(|finding| finding.count > 0);
                    rows.push(row(proof.tool, explored, time, if seen { "holds" } else { "not here" }));
                }
            }
        }
    }
    Ok(rows)
}

/// Those of these names, or all if there are none; else the name that there is nothing of.
fn chosen<'a>(findings: &'a [Finding], names: &[&'static str]) -> Result<Vec<&'a Finding>, &'static str> {
    if let Some(missing) = names.iter().find(|name| findings.iter().all(|finding| finding.name != **name)) {
        return Err(missing);
    }
    let is_chosen = |finding: &&Finding| names.is_empty() || names.contains(&finding.name.as_str());
    Ok(findings.iter().filter(is_chosen).collect())
}

/// `older` with the rows of `newer` in their places, in the order of the properties.
pub(super) fn merge(older: &[Row], newer: &[Row]) -> Vec<Row> {
    let is_same = |row: &Row, other: &Row| row.property == other.property && row.tool == other.tool;
    let mut rows = Vec::new();
    for property in PROPERTIES {
        let says = format!("{} {}", property.number, property.says);
        let of_it =
            |rows: &[Row]| rows.iter().filter(|row| row.property == says).cloned().collect::<Vec<_>>();
        let mut newer = of_it(newer);
        for row in of_it(older) {
            match newer.iter().position(|other| is_same(other, &row)) {
                Some(place) => rows.push(newer.remove(place)),
                None => rows.push(row),
            }
        }
        rows.append(&mut newer);
    }
    rows
}

/// As a table of Markdown, whose columns are as wide as they must be. A property is named in its first row.
pub(super) fn render(rows: &[Row]) -> String {
    let cells =
        |row: &Row| [&row.property, &row.tool, &row.explored, &row.time, &row.verdict].map(String::clone);
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
    let widths = [0, 1, 2, 3, 4].map(width);
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
        let Ok([mut property, tool, explored, time, verdict]) = <[String; 5]>::try_from(cells) else {
            continue;
        };
        if property.is_empty() {
            property = rows.last().map(|row| row.property.clone()).unwrap_or_default();
        }
        rows.push(Row { property, tool, explored, time, verdict });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::proof::PROOFS;

    fn row(number: usize, tool: &str, explored: &str) -> Row {
        let property = &PROPERTIES[number - 1];
        Row {
            property: format!("{} {}", property.number, property.says),
            tool: tool.into(),
            explored: explored.into(),
            time: "3 s".into(),
            verdict: "holds".into(),
        }
    }

    #[test]
    fn what_is_rendered_can_be_parsed() {
        let rows = [row(1, "loom", "5 executions"), row(1, "soak", ""), row(2, "loom", "7")];
        assert_eq!(parse(&render(&rows)), rows);
    }

    #[test]
    fn rows_of_proofs_that_were_not_run_stay() {
        let older = [row(1, "loom", "old"), row(1, "soak", "old"), row(3, "loom", "old")];
        let newer = [row(1, "soak", "new"), row(2, "soak", "new")];
        let merged =
            [row(1, "loom", "old"), row(1, "soak", "new"), row(2, "soak", "new"), row(3, "loom", "old")];
        assert_eq!(merge(&older, &newer), merged);
    }

    #[test]
    fn a_claim_of_which_nothing_was_found_is_refused() {
        let proof = PROOFS.iter().find(|proof| proof.name == "shuttle").unwrap();
        let ran = |outcome| [Ran { proof, time: Duration::ZERO, outcome }];
        assert!(rows(&ran(Ok(Vec::new()))).is_err());
        let failed = rows(&ran(Err("why".into()))).unwrap();
        assert!(failed.iter().any(|row| row.verdict == "FAILED"));
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
