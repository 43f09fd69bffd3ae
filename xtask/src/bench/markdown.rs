//! Tables for readers: whole ones, and one of all targets.

use super::{
    summary::{Score, workload},
    table::{Row, Table, Verdict},
};

/// One contest. Ratios to the best peer and to the floor have columns of their own where they say something more.
pub(super) fn table(table: &Table) -> String {
    let reference = table.reference();
    let other_best = |row: &Row| row.best_peer.as_ref().is_some_and(|(best, _)| *best != reference.name);
    let best = table.rows.iter().any(other_best);
    let floor = table.rows.iter().any(|row| row.to_floor.is_some());
    let mut text = format!("| {} | {}, median | quartiles | ratio |", table.title, table.unit);
    text += if best { " to the best peer |" } else { "" };
    text += if floor { " to the floor |" } else { "" };
    let columns = 5 + usize::from(best) + usize::from(floor);
    text += &format!(" target |\n{}|\n", "|---".repeat(columns));
    for row in &table.rows {
        let [low, median, high] = [row.value.low, row.value.median, row.value.high].map(value);
        text += &format!("| {} | {median} | {low}–{high} | {:.2} |", row.name, row.ratio.median);
        let ratio = |ratio: Option<f64>| ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        if best {
            text += &format!(" {} |", ratio(row.best_peer.as_ref().map(|(_, ratio)| *ratio)));
        }
        if floor {
            text += &format!(" {} |", ratio(row.to_floor));
        }
        let target = row.target.zip(row.verdict());
        let target = target.map(|(target, verdict)| format!("≤ {target:.2}, {}", emphasis(verdict)));
        text += &format!(" {} |\n", target.unwrap_or_default());
    }
    text
}

/// As exact as it is read.
fn value(value: f64) -> String {
    if value < 1_000.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn emphasis(verdict: Verdict) -> String {
    if verdict == Verdict::Met { verdict.to_string() } else { format!("**{verdict}**") }
}

/// How many targets were met, which were not, and a table of all of them, area by area.
pub(super) fn summary(areas: &[(String, Vec<Table>)]) -> String {
    let verdicts = || areas.iter().flat_map(|(_, tables)| tables).flat_map(Table::verdicts);
    let Score { targets, met, .. } = verdicts().map(|(_, verdict)| verdict).collect();
    let mut text = format!("**{met} of {targets} targets are met.**");
    let tables = areas.iter().flat_map(|(_, tables)| tables);
    let rows = tables.flat_map(|table| table.verdicts().map(move |(row, verdict)| (table, row, verdict)));
    let unmet: Vec<_> = rows
        .filter(|(.., verdict)| *verdict != Verdict::Met)
        .map(|(table, row, verdict)| {
            format!("- {verdict}: {} ({})", workload(table, row), shortfall(table, row))
        })
        .collect();
    if !unmet.is_empty() {
        text += &format!(" Not met:\n\n{}", unmet.join("\n"));
    }
    text += "\n\n<details>\n<summary>Every target</summary>\n\n\
        | area | workload | best peer | ratio to it | target |\n|---|---|---|---|---|\n";
    for (area, tables) in areas {
        let mut heading = area.as_str();
        for (table, row) in tables.iter().flat_map(|table| table.verdicts().map(move |(row, _)| (table, row)))
        {
            let (best, ratio) = match &row.best_peer {
                Some((best, ratio)) => (best.as_str(), format!("{ratio:.2}")),
                None => ("—", "—".to_owned()),
            };
            let target = target(table, row);
            text += &format!("| {heading} | {} | {best} | {ratio} | {target} |\n", workload(table, row));
            heading = "";
        }
    }
    text + "\n</details>\n"
}

/// What is wanted, of whom if that is not the best peer, and whether it is so.
fn target(table: &Table, row: &Row) -> String {
    let (Some(target), Some(verdict)) = (row.target, row.verdict()) else { return String::new() };
    let verdict = emphasis(verdict);
    let reference = table.reference();
    if row.best_peer.as_ref().is_some_and(|(best, _)| *best == reference.name) {
        return format!("≤ {target:.2}, {verdict}");
    }
    format!("{}, {verdict}", shortfall(table, row))
}

/// What is wanted and what there is.
fn shortfall(table: &Table, row: &Row) -> String {
    let (reference, target) = (table.reference(), row.target.unwrap_or_default());
    if reference.role == "bar" {
        let [bar, own] = [reference.value.median * target, row.value.median].map(value);
        return format!("≤ {bar} {}: {own}", table.unit);
    }
    format!("≤ {target:.2} of {}: {:.2}", reference.name, row.ratio.median)
}

#[cfg(test)]
mod tests {
    use super::{
        super::table::{read, tests::LINES},
        *,
    };

    #[test]
    fn a_table_says_who_was_best_where_that_is_not_its_first_row() {
        let tables = read(LINES).unwrap();
        assert_eq!(
            table(&tables[0]),
            "| spawn | ns, median | quartiles | ratio | to the best peer | to the floor | target |\n\
             |---|---|---|---|---|---|---|\n\
             | smol | 100.0 | 90.0–110.0 | 1.00 |  |  |  |\n\
             | ebbtide | 30.0 | 29.0–31.0 | 0.30 | 0.75 | 1.50 | ≤ 0.50, met |\n\
             | monoio | 40.0 | 39.0–41.0 | 0.40 |  |  |  |\n\
             | floor: a box | 20.0 | 19.0–21.0 | 0.20 |  |  |  |\n"
        );
        assert!(table(&tables[1]).contains("| 1.10 | ≤ 1.00, **missed** |"));
    }

    #[test]
    fn what_is_not_met_is_named_before_the_table_of_all() {
        let text = summary(&[("loop".to_owned(), read(LINES).unwrap())]);
        assert!(
            text.starts_with("**1 of 2 targets are met.** Not met:\n\n- missed: wait (≤ 10.0 ns: 11.0)\n"),
            "{text}"
        );
        assert!(text.contains("| loop | spawn | monoio | 0.75 | ≤ 0.50 of smol: 0.30, met |\n"), "{text}");
        assert!(text.contains("|  | wait | — | — | ≤ 10.0 ns: 11.0, **missed** |\n"), "{text}");
    }
}
