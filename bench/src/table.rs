//! What a contest has shown, and the lines in which `cargo xtask bench` is told of it.

use std::fmt;

/// The results of one contest. The first row is the one that the ratios are to: a peer, or a bar.
pub(crate) struct Table {
    title: &'static str,
    unit: &'static str,
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    role: Role,
    /// How low its ratio to the first row should be; none for one that is only shown.
    target: Option<f64>,
    /// What one operation cost, round by round.
    rounds: Vec<f64>,
}

/// Whom a row is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Ours,
    Peer,
    /// Not a contestant, but the least that it can cost.
    Floor,
    /// Not a contestant, but a number that is not to be exceeded.
    Bar,
}

impl Role {
    /// Whom somebody of this name is: ours are called `ebbtide` or have a target.
    pub(crate) fn of(name: &str, target: Option<f64>) -> Self {
        match name {
            _ if target.is_some() || name.starts_with("ebbtide") => Self::Ours,
            _ if name.starts_with("floor") => Self::Floor,
            _ if name.starts_with("the bar") => Self::Bar,
            _ => Self::Peer,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Peer => "peer",
            Self::Floor => "floor",
            Self::Bar => "bar",
        })
    }
}

impl Table {
    /// Without rows, which are added one by one.
    pub(crate) fn new(title: &'static str, unit: &'static str) -> Self {
        Self { title, unit, rows: Vec::new() }
    }

    /// A table of rounds that were run elsewhere.
    pub(crate) fn of<const N: usize>(
        title: &'static str,
        unit: &'static str,
        names: [&'static str; N],
        rounds: [Vec<f64>; N],
        targets: [Option<f64>; N],
    ) -> Self {
        let rows = names.into_iter().zip(rounds).zip(targets);
        rows.fold(Self::new(title, unit), |table, ((name, rounds), target)| table.row(name, rounds, target))
    }

    /// The same of the peer first. Others are added row by row.
    pub(crate) fn peer(
        title: &'static str,
        unit: &'static str,
        name: &'static str,
        rounds: Vec<f64>,
    ) -> Self {
        Self::new(title, unit).row(name, rounds, None)
    }

    pub(crate) fn row(self, name: &'static str, rounds: Vec<f64>, target: Option<f64>) -> Self {
        self.row_of(Role::of(name, target), name, rounds, target)
    }

    pub(crate) fn row_of(
        mut self,
        role: Role,
        name: &'static str,
        rounds: Vec<f64>,
        target: Option<f64>,
    ) -> Self {
        self.rows.push(Row { name, role, target, rounds });
        self
    }

    /// The row of that role with the lowest median.
    fn best(&self, role: Role) -> Option<&Row> {
        let rows = self.rows.iter().filter(|row| row.role == role);
        rows.min_by(|a, b| a.median().total_cmp(&b.median()))
    }
}

impl Row {
    fn median(&self) -> f64 {
        quartile(2, self.rounds.iter().copied())
    }

    /// The ratios to another row, round by round: what disturbs the machine disturbs both.
    fn ratios(&self, other: &Self) -> impl Iterator<Item = f64> {
        self.rounds.iter().zip(&other.rounds).map(|(own, other)| own / other)
    }
}

/// The value below which so many of four quarters of the values lie.
fn quartile(quarters: usize, values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) * quarters / 4]
}

/// What the fields of a line are, in their order. They are separated by tabs, and empty where there is nothing to say.
pub(crate) const FIELDS: &str = "title\tunit\tname\trole\trounds\tlow\tmedian\thigh\tratio_low\tratio\tratio_high\t\
    target\tbest_peer\tratio_to_best_peer\tratio_to_floor";

/// A line for each row. Ratios are to the first row; those to the best peer and to the floor are told of ours alone.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (best, floor) = (self.best(Role::Peer), self.best(Role::Floor));
        for row in &self.rows {
            let Row { name, role, target, rounds } = row;
            write!(f, "{}\t{}\t{name}\t{role}\t{}", self.title, self.unit, rounds.len())?;
            for quarters in 1..=3 {
                write!(f, "\t{:.4}", quartile(quarters, rounds.iter().copied()))?;
            }
            for quarters in 1..=3 {
                write!(f, "\t{:.4}", quartile(quarters, row.ratios(&self.rows[0])))?;
            }
            write!(f, "\t{}", target.map(|target| format!("{target:.4}")).unwrap_or_default())?;
            let ours = *role == Role::Ours;
            let ratio = |to: &Row| format!("{:.4}", quartile(2, row.ratios(to)));
            let best = best.filter(|_| ours);
            write!(f, "\t{}\t{}", best.map_or("", |best| best.name), best.map(ratio).unwrap_or_default())?;
            writeln!(f, "\t{}", floor.filter(|_| ours).map(ratio).unwrap_or_default())?;
        }
        Ok(())
    }
}
