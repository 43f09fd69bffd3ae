//! What was measured: tables of rows, as they are kept in `bench/figures`, and what became of the targets.

use std::fmt;

/// The results of one contest. The first row is the one that the ratios are to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// `ours`, `peer`, `floor` or `bar`.
    pub(crate) role: String,
    pub(crate) rounds: usize,
    pub(crate) value: Spread,
    /// Of the ratios to the first row, each taken within a round.
    pub(crate) ratio: Spread,
    pub(crate) target: Option<f64>,
    /// The peer with the lowest median, and the median of the ratios to it; of ours alone.
    pub(crate) best_peer: Option<(String, f64)>,
    pub(crate) to_floor: Option<f64>,
}

/// A median between its quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

/// What became of a target.
///
/// The rounds are the measure of the noise: where the median misses the target, but a quarter of the rounds or more
/// meets it, another run may well meet it, too. Only where three of four rounds miss it, it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The median of the ratios is no more than the target.
    Met,
    /// The median is more, but the lower quartile is not.
    Missed,
    /// So is the lower quartile.
    Lost,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Lost => "lost",
        })
    }
}

impl Row {
    /// None for a row without a target.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let target = self.target?;
        Some(match self.ratio {
            Spread { median, .. } if median <= target => Verdict::Met,
            Spread { low, .. } if low <= target => Verdict::Missed,
            _ => Verdict::Lost,
        })
    }
}

impl Table {
    /// The rows with a target, and what became of it.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = (&Row, Verdict)> {
        self.rows.iter().filter_map(|row| Some((row, row.verdict()?)))
    }

    /// What ratios are to.
    pub(crate) fn reference(&self) -> &Row {
        &self.rows[0]
    }
}

/// The names of the fields, as `bench/src/table.rs` has them. In the file they are its first line.
const FIELDS: &str = "title\tunit\tname\trole\trounds\tlow\tmedian\thigh\tratio_low\tratio\tratio_high\ttarget\t\
    best_peer\tratio_to_best_peer\tratio_to_floor";

/// The tables that these lines tell of.
pub(crate) fn read(lines: &str) -> Result<Vec<Table>, String> {
    let mut tables: Vec<Table> = Vec::new();
    for line in lines.lines().filter(|line| *line != FIELDS) {
        let (title, unit, row) =
            read_row(line).ok_or_else(|| format!("this is not a row of figures: {line}"))?;
        match tables.last_mut().filter(|table| table.title == title) {
            Some(table) => table.rows.push(row),
            None => tables.push(Table { title: title.to_owned(), unit: unit.to_owned(), rows: vec![row] }),
        }
    }
    Ok(tables)
}

fn read_row(line: &str) -> Option<(&str, &str, Row)> {
    let mut fields = line.split('\t');
    let (title, unit, name, role) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let rounds = fields.next()?.parse().ok()?;
    let mut spread = || {
        let mut number = || fields.next()?.parse().ok();
        Some(Spread { low: number()?, median: number()?, high: number()? })
    };
    let (value, ratio) = (spread()?, spread()?);
    let mut maybe = || fields.next().filter(|field| !field.is_empty());
    // One that cannot be read is no figure without a target.
    let target = maybe().map(str::parse).transpose().ok()?;
    let best_peer = maybe().map(str::to_owned).zip(maybe().and_then(|field| field.parse().ok()));
    let to_floor = maybe().and_then(|field| field.parse().ok());
    let row = Row {
        name: name.to_owned(),
        role: role.to_owned(),
        rounds,
        value,
        ratio,
        target,
        best_peer,
        to_floor,
    };
    Some((title, unit, row))
}

/// The lines that tell of these tables.
pub(crate) fn lines(tables: &[Table]) -> String {
    let mut lines = format!("{FIELDS}\n");
    for (table, row) in tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row))) {
        let Row { name, role, rounds, value, ratio, target, best_peer, to_floor } = row;
        lines += &format!("{}\t{}\t{name}\t{role}\t{rounds}", table.title, table.unit);
        for number in [value.low, value.median, value.high, ratio.low, ratio.median, ratio.high] {
            lines += &format!("\t{number:.4}");
        }
        let maybe = |number: Option<f64>| number.map(|number| format!("{number:.4}")).unwrap_or_default();
        let (best, to_best) = best_peer.clone().unzip();
        let (target, best, to_best) = (maybe(*target), best.unwrap_or_default(), maybe(to_best));
        lines += &format!("\t{target}\t{best}\t{to_best}\t{}\n", maybe(*to_floor));
    }
    lines
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const LINES: &str = "title\tunit\tname\trole\trounds\tlow\tmedian\thigh\t\
        ratio_low\tratio\tratio_high\ttarget\tbest_peer\tratio_to_best_peer\tratio_to_floor\n\
        spawn\tns\tsmol\tpeer\t201\t90.0000\t100.0000\t110.0000\t\
        1.0000\t1.0000\t1.0000\t\t\t\t\n\
        spawn\tns\tebbtide\tours\t201\t29.0000\t30.0000\t31.0000\t\
        0.2900\t0.3000\t0.3100\t0.5000\tmonoio\t0.7500\t1.5000\n\
        spawn\tns\tmonoio\tpeer\t201\t39.0000\t40.0000\t41.0000\t\
        0.3900\t0.4000\t0.4100\t\t\t\t\n\
        spawn\tns\tfloor: a box\tfloor\t201\t19.0000\t20.0000\t21.0000\t\
        0.1900\t0.2000\t0.2100\t\t\t\t\n\
        wait\tns\tthe bar\tbar\t101\t10.0000\t10.0000\t10.0000\t\
        1.0000\t1.0000\t1.0000\t\t\t\t\n\
        wait\tns\tebbtide\tours\t101\t9.0000\t11.0000\t12.0000\t\
        0.9000\t1.1000\t1.2000\t1.0000\t\t\t\n";

    #[test]
    fn lines_that_are_read_are_written_as_they_were() {
        let tables = read(LINES).unwrap();
        assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [4, 2]);
        assert_eq!(tables[0].rows[1].best_peer, Some(("monoio".to_owned(), 0.75)));
        assert_eq!(lines(&tables), LINES);
        assert!(read("spawn\tns\tsmol\tpeer\tmany\n").unwrap_err().contains("many"));
    }

    #[test]
    fn a_target_is_lost_only_if_three_of_four_rounds_miss_it() {
        let mut row = read(LINES).unwrap()[1].rows[1].clone();
        assert_eq!(row.verdict(), Some(Verdict::Missed));
        row.ratio.low = 1.01;
        assert_eq!(row.verdict(), Some(Verdict::Lost));
        row.ratio.median = 1.0;
        assert_eq!(row.verdict(), Some(Verdict::Met));
        row.target = None;
        assert_eq!(row.verdict(), None);
    }
}
