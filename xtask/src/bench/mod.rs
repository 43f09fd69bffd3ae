//! `cargo xtask bench`: figures of the product against its peers, in one run.
//!
//! What is measured goes to `bench/figures`, one file for each area, if that is asked for. All else is made of those
//! files: the tables of `FIGURES.md`, the summary in the README, and the chart.

mod chart;
pub(crate) mod counts;
pub(crate) mod documents;
mod json;
mod markdown;
mod parts;
mod summary;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
};

use self::{
    parts::{Part, Shown},
    table::{Table, Verdict},
};
use crate::shell::{root, write};

const USAGE: &str = "\
cargo xtask bench [AREA | AREA/PART]... [--check] [--write] [--json PATH]
cargo xtask bench counts [--check | --write]
cargo xtask bench documents";

/// What there is to do.
struct Orders<'a> {
    wanted: Vec<&'a str>,
    check: bool,
    write: bool,
    json: PathBuf,
}

impl<'a> Orders<'a> {
    fn read(args: &[&'a str]) -> Result<Self, String> {
        let json = root().join("target/bench/figures.json");
        let mut orders = Self { wanted: Vec::new(), check: false, write: false, json };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--check" => orders.check = true,
                "--write" => orders.write = true,
                "--json" => orders.json = args.next().ok_or("--json needs a path")?.into(),
                option if option.starts_with('-') => {
                    return Err(format!("there is no option {option}\n{USAGE}"));
                }
                wanted => orders.wanted.push(wanted),
            }
        }
        match orders.wanted.iter().find(|wanted| orders.write && wanted.contains('/')) {
            Some(part) => Err(format!("{part} is a part; only whole areas can be written")),
            None => Ok(orders),
        }
    }
}

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    match args {
        ["counts", options @ ..] => return counts::run(options),
        ["documents"] => return documents::write_all(),
        _ => {}
    }
    let orders = Orders::read(args)?;
    let bench = parts::build()?;
    let mut shown: Vec<Shown> = Vec::new();
    for part in parts::wanted(&bench, &orders.wanted)? {
        let part = measure(&part, &bench);
        shown.push(part);
    }
    // What is written is what was measured first: a second try would make the figures better than they are.
    if orders.write {
        write_figures(&shown)?;
    }
    if orders.check {
        repeat_what_is_lost(&mut shown, &bench);
    }
    print!("{}", summary::text(&shown));
    write_json(&orders.json, &shown)?;
    verdict(&shown, orders.check)
}

/// Measures a part, and prints its tables.
fn measure(part: &Part, bench: &Path) -> Shown {
    let shown = part.run(bench);
    for table in shown.outcome.iter().flatten() {
        println!("\n{}", markdown::table(table));
    }
    shown
}

/// Runs the parts in which a target was lost once more. What is lost again stays so.
fn repeat_what_is_lost(shown: &mut [Shown], bench: &Path) {
    for first in shown {
        if !first.tables().any(is_lost) {
            continue;
        }
        eprintln!("\n{}: a target was lost, so it is measured again", first.part);
        let second = measure(&first.part, bench);
        first.took += second.took;
        let Ok(tables) = &mut first.outcome else { continue };
        for table in tables.iter_mut().filter(|table| is_lost(table)) {
            if let Some(again) = second.tables().find(|again| again.title == table.title) {
                table.clone_from(again);
            }
        }
    }
}

fn is_lost(table: &Table) -> bool {
    table.verdicts().any(|(_, verdict)| verdict == Verdict::Lost)
}

fn write_json(path: &Path, shown: &[Shown]) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    write(path, &json::text(shown))?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Writes the areas of which all was measured, and what is made of them.
fn write_figures(shown: &[Shown]) -> Result<(), String> {
    for parts in shown.chunk_by(|a, b| a.part.area == b.part.area) {
        let area = &parts[0].part.area;
        if parts.iter().any(|part| part.outcome.is_err()) {
            println!("{area} was not measured as a whole, and is left as it was");
            continue;
        }
        let tables: Vec<Table> = parts.iter().flat_map(Shown::tables).cloned().collect();
        write(root().join(documents::file(area)), &table::lines(&tables))?;
        println!("wrote {}", documents::file(area));
    }
    documents::write_all()
}

/// Fails if a part was not measured, and if a target was lost where that is asked.
fn verdict(shown: &[Shown], check: bool) -> Result<(), String> {
    let mut complaints = Vec::new();
    for part in shown {
        if let Err(why) = &part.outcome {
            complaints.push(format!("{} could not be measured: {why}", part.part));
        }
        for (table, row, _) in part.verdicts().filter(|(.., verdict)| check && *verdict == Verdict::Lost) {
            let what = summary::workload(table, row);
            let (ratio, target) = (row.ratio, row.target.unwrap_or_default());
            complaints.push(format!(
                "{}: {what}: {:.2} ({:.2}–{:.2}) of {}, and {target:.2} is wanted",
                part.part,
                ratio.median,
                ratio.low,
                ratio.high,
                table.reference().name
            ));
        }
    }
    if complaints.is_empty() { Ok(()) } else { Err(format!("\n  {}", complaints.join("\n  "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_what_makes_no_sense_is_refused() {
        let orders = Orders::read(&["loop", "dag/cpu", "--check", "--json", "out.json"]).unwrap();
        assert_eq!(orders.wanted, ["loop", "dag/cpu"]);
        assert!(orders.check && !orders.write);
        assert_eq!(orders.json, Path::new("out.json"));
        for refused in [&["--fast"][..], &["--json"], &["dag/cpu", "--write"]] {
            assert!(Orders::read(refused).is_err(), "{refused:?}");
        }
    }
}
