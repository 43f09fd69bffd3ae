//! `cargo xtask bench counts`: the instructions of hot paths, which a busy machine counts as well as a quiet one.
//!
//! They are held against those of `bench/figures/counts.tsv`. What the compiler or a dependency changes changes them,
//! too, and what the C library does may depend on the processor: so they are compared on one machine, and renewed with
//! `--write` when a change is wanted or is not ours.

use std::{
    iter,
    path::Path,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    documents,
    parts::{VALGRIND, build},
};
use crate::shell::{line, output, read, root, write};

/// What their file and their block are called.
pub(super) const AREA: &str = "counts";

/// By how much a count may grow before it is an error. Counts come out the same within a thousandth; what is less than
/// this is mostly the luck of the compiler.
const GROWTH_MAX: f64 = 0.02;

/// The instructions of one operation of a path.
#[derive(Clone, Debug, PartialEq)]
struct Count {
    path: String,
    instructions: f64,
}

pub(super) fn run(options: &[&str]) -> Result<(), String> {
    let file = root().join(documents::file(AREA));
    VALGRIND.install()?;
    let bench = build()?;
    match options {
        [] => {
            let counts = count_all(&bench)?;
            let baseline = read(&file).and_then(|text| parse(&text)).unwrap_or_default();
            print!("{}", compared(&counts, &baseline));
            Ok(())
        }
        ["--check"] => check(&bench, &read(&file)?).map(drop),
        ["--write"] => {
            let counts = count_all(&bench)?;
            print!("{}", compared(&counts, &counts));
            write(&file, &lines(&counts, &compiler()?))?;
            println!("wrote {}", documents::file(AREA));
            documents::write_all()
        }
        _ => Err(format!("the options of counts are --check and --write, not {}", options.join(" "))),
    }
}

/// Counts all paths, and gives their names if none takes more than is written down.
pub(crate) fn hold() -> Result<Vec<String>, String> {
    let file = root().join(documents::file(AREA));
    VALGRIND.install()?;
    check(&build()?, &read(&file)?)
}

/// Fails with what takes more than the text of the file says. Gives the names of the paths.
fn check(bench: &Path, text: &str) -> Result<Vec<String>, String> {
    let baseline = parse(text)?;
    let counts = count_all(bench)?;
    print!("{}", compared(&counts, &baseline));
    let complaints = grown(&counts, &baseline);
    if complaints.is_empty() {
        return Ok(counts.into_iter().map(|count| count.path).collect());
    }
    let (then, now) = (compiler_of(text), compiler()?);
    Err(format!(
        "\n  {}\n\
         The counts depend on the compiler (then {then}, now {now}) and on the versions of dependencies.\n\
         If the growth is wanted, or is theirs: cargo xtask bench counts --write",
        complaints.join("\n  ")
    ))
}

/// A path that is to be counted.
struct HotPath<'a> {
    name: &'a str,
    /// Of operations: the difference of two counts is what those between cost.
    few: u32,
    many: u32,
    /// How often it is counted, for the lowest count.
    times: u32,
}

impl<'a> HotPath<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.split('\t');
        let name = fields.next()?;
        let mut number = || fields.next()?.parse().ok();
        Some(Self { name, few: number()?, many: number()?, times: number()? })
    }

    fn count(&self, bench: &Path) -> Result<Count, String> {
        let lowest = |operations| {
            let counts = (0..self.times).map(|_| instructions(bench, self.name, operations));
            counts.collect::<Result<Vec<u64>, _>>().map(|counts| counts.into_iter().min().unwrap_or_default())
        };
        let between = lowest(self.many)?.saturating_sub(lowest(self.few)?);
        let instructions = between as f64 / f64::from(self.many - self.few);
        Ok(Count { path: self.name.to_owned(), instructions })
    }
}

/// Counts all paths, as many at a time as there are CPUs.
fn count_all(bench: &Path) -> Result<Vec<Count>, String> {
    let listed = output(Command::new(bench).arg("paths"))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let path = |line| HotPath::read(line).ok_or_else(|| format!("this is not a path: {line}"));
    let paths = listed.lines().map(path).collect::<Result<Vec<_>, _>>()?;
    let next = AtomicUsize::new(0);
    let work = || {
        let turns = iter::from_fn(|| {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            Some((turn, paths.get(turn)?))
        });
        turns.map(|(turn, path)| (turn, path.count(bench))).collect::<Vec<_>>()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut counted: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("counting does not panic")).collect()
    });
    counted.sort_by_key(|(turn, _)| *turn);
    counted.into_iter().map(|(_, count)| count).collect()
}

/// What a process executes that does so many operations of a path.
fn instructions(bench: &Path, path: &str, operations: u32) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(bench);
    command.args(["count", path, &operations.to_string()]);
    let said = output(&mut command)?;
    let report = String::from_utf8_lossy(&said.stderr).into_owned();
    let collected = report.split("Collected :").nth(1).and_then(|rest| rest.split_whitespace().next());
    let collected = collected.and_then(|count| count.parse().ok());
    match collected {
        Some(count) if said.status.success() => Ok(count),
        _ => Err(format!("this command failed ({}):\n  {}\n{report}", said.status, line(&command))),
    }
}

fn compiler() -> Result<String, String> {
    let said = output(Command::new("rustc").arg("--version").current_dir(root()))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

const HEAD: &str = "# instructions, counted by callgrind; ";

fn lines(counts: &[Count], compiler: &str) -> String {
    let counts = counts.iter().map(|count| format!("{}\t{:.2}\n", count.path, count.instructions));
    [format!("{HEAD}{compiler}\n")].into_iter().chain(counts).collect()
}

fn compiler_of(lines: &str) -> &str {
    lines.lines().find_map(|line| line.strip_prefix(HEAD)).unwrap_or("unknown")
}

fn parse(lines: &str) -> Result<Vec<Count>, String> {
    let count = |line: &str| {
        let (path, instructions) = line.split_once('\t')?;
        Some(Count { path: path.to_owned(), instructions: instructions.parse().ok()? })
    };
    let counts = lines.lines().filter(|line| !line.starts_with('#'));
    counts.map(|line| count(line).ok_or_else(|| format!("this is not a count: {line}"))).collect()
}

/// The counts as a table, for `FIGURES.md`.
pub(super) fn markdown(lines: &str) -> Result<String, String> {
    let mut text = String::from("| path, one operation | instructions |\n|---|---|\n");
    for Count { path, instructions } in parse(lines)? {
        text += &format!("| {path} | {instructions:.1} |\n");
    }
    Ok(text)
}

fn find<'a>(baseline: &'a [Count], path: &str) -> Option<&'a Count> {
    baseline.iter().find(|count| count.path == path)
}

fn compared(counts: &[Count], baseline: &[Count]) -> String {
    let mut text = String::from("\ninstructions   change  path, one operation\n");
    for Count { path, instructions } in counts {
        let change = find(baseline, path).map(|before| (instructions / before.instructions - 1.0) * 100.0);
        let change = change.map_or("new".to_owned(), |percent| format!("{percent:+.2} %"));
        text += &format!("{instructions:12.2} {change:>8}  {path}\n");
    }
    text
}

/// What takes more than it did, and what is missing on either side.
fn grown(counts: &[Count], baseline: &[Count]) -> Vec<String> {
    let mut complaints = Vec::new();
    for Count { path, instructions } in counts {
        match find(baseline, path).map(|before| before.instructions) {
            None => complaints.push(format!("{path}: is not in {}", documents::file(AREA))),
            Some(before) if *instructions > before * (1.0 + GROWTH_MAX) => complaints.push(format!(
                "{path}: {instructions:.1} instructions instead of {before:.1}, {:+.1} %",
                (instructions / before - 1.0) * 100.0
            )),
            Some(_) => {}
        }
    }
    let gone = baseline.iter().filter(|before| find(counts, &before.path).is_none());
    complaints.extend(gone.map(|before| format!("{}: is no longer counted", before.path)));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "# instructions, counted by callgrind; rustc 1\nself-wake\t100.00\npost\t50.50\n";

    #[test]
    fn counts_that_are_read_are_written_as_they_were() {
        let counts = parse(LINES).unwrap();
        assert_eq!(lines(&counts, compiler_of(LINES)), LINES);
        assert!(parse("self-wake 100").is_err());
        assert!(markdown(LINES).unwrap().ends_with("| self-wake | 100.0 |\n| post | 50.5 |\n"));
    }

    #[test]
    fn a_count_may_grow_a_little_and_no_more() {
        let baseline = parse(LINES).unwrap();
        let with =
            |instructions| vec![Count { path: "self-wake".to_owned(), instructions }, baseline[1].clone()];
        assert!(grown(&with(101.9), &baseline).is_empty());
        assert!(grown(&with(10.0), &baseline).is_empty());
        assert!(grown(&with(102.1), &baseline)[0].contains("102.1 instructions instead of 100.0, +2.1 %"));
    }

    #[test]
    fn a_path_that_comes_or_goes_is_named() {
        let baseline = parse(LINES).unwrap();
        assert!(grown(&baseline[..1], &baseline)[0].contains("post: is no longer counted"));
        assert!(grown(&baseline, &baseline[..1])[0].contains("post: is not in"));
    }
}
