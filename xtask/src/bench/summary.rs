//! One line for each target: what is wanted, and what came of it.

use super::{
    parts::Shown,
    table::{Row, Table, Verdict},
};

/// What a row is about, by itself: one called `ebbtide` and nothing else is its table's.
pub(crate) fn workload(table: &Table, row: &Row) -> String {
    match row.name.strip_prefix("ebbtide").map(|rest| rest.trim_start_matches([',', ' '])) {
        Some("" | "serve") => table.title.clone(),
        Some(rest) => format!("{}: {rest}", table.title),
        None => format!("{}: {}", table.title, row.name),
    }
}

/// How many targets there are, and how many of them were met, missed and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) targets: usize,
    pub(crate) met: usize,
    pub(crate) missed: usize,
    pub(crate) lost: usize,
}

impl FromIterator<Verdict> for Score {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Self {
        let mut score = Self::default();
        for verdict in verdicts {
            score.targets += 1;
            *match verdict {
                Verdict::Met => &mut score.met,
                Verdict::Missed => &mut score.missed,
                Verdict::Lost => &mut score.lost,
            } += 1;
        }
        score
    }
}

/// For the terminal.
pub(super) fn text(shown: &[Shown]) -> String {
    let mut text = String::from("\n== targets\n");
    for (table, row, verdict) in shown.iter().flat_map(Shown::verdicts) {
        let target = row.target.unwrap_or_default();
        text += &format!("{verdict:6} {:6.2} ≤ {target:<5.2} {}", row.ratio.median, workload(table, row));
        if table.reference().role != "peer" {
            text += &format!(" (of {})", table.reference().name);
        }
        if let Some((best, ratio)) = &row.best_peer {
            text += &format!(" — {ratio:.2} of the best peer, {best}");
        }
        if let Some(ratio) = row.to_floor {
            text += &format!(", {ratio:.2} of the floor");
        }
        text.push('\n');
    }
    let score: Score = shown.iter().flat_map(Shown::verdicts).map(|(.., verdict)| verdict).collect();
    let Score { targets, met, missed, lost } = score;
    text += &format!("\n{met} of {targets} targets met, {missed} missed within the noise, {lost} lost\n");
    for part in shown {
        let verdict = match &part.outcome {
            Ok(_) => String::new(),
            Err(why) => format!("  not measured: {}", why.lines().next().unwrap_or_default()),
        };
        text += &format!("{:18} {:6.1} s{verdict}\n", part.part.to_string(), part.took.as_secs_f64());
    }
    let total: f64 = shown.iter().map(|part| part.took.as_secs_f64()).sum();
    text + &format!("{:18} {total:6.1} s\n", "total")
}

#[cfg(test)]
mod tests {
    use super::{
        super::table::{read, tests::LINES},
        *,
    };

    #[test]
    fn a_row_is_named_by_its_table_and_by_what_sets_it_apart() {
        let mut table = read(LINES).unwrap().swap_remove(0);
        let names = ["ebbtide", "ebbtide, one by one", "borrowed permit"].map(|name| {
            table.rows[1].name = name.to_owned();
            workload(&table, &table.rows[1])
        });
        assert_eq!(names, ["spawn", "spawn: one by one", "spawn: borrowed permit"]);
    }

    #[test]
    fn every_target_is_counted_once() {
        let tables = read(LINES).unwrap();
        let score: Score = tables.iter().flat_map(Table::verdicts).map(|(_, verdict)| verdict).collect();
        assert_eq!(score, Score { targets: 2, met: 1, missed: 1, lost: 0 });
    }
}
