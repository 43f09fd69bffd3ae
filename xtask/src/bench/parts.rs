//! The parts of the benchmark, each run in a process of its own: one that fails loses none of the others.

use std::{
    env, fmt,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::table::{self, Row, Table, Verdict};
use crate::{
    redis,
    shell::{cargo, line, output, root, run as shell, timed},
    tool::Tool,
};

pub(super) const VALGRIND: Tool = Tool {
    programs: &["valgrind"],
    package: "valgrind",
    needed_by: "counts of instructions",
    otherwise: "`dnf install valgrind`",
};

/// A part that takes so long hangs: none takes a quarter of it.
const TIME_MAX: Duration = Duration::from_secs(300);

/// How many threads a pool of a peer has that may have hundreds; see the parts for those that can be told.
const THREADS: &str = "2";

/// Something that is measured by itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) area: String,
    pub(super) name: String,
    needs: Vec<String>,
}

/// What a part has shown, or why it has not.
pub(super) struct Shown {
    pub(super) part: Part,
    pub(super) took: Duration,
    pub(super) outcome: Result<Vec<Table>, String>,
}

impl Shown {
    /// None if it could not be measured.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.outcome.iter().flatten()
    }

    /// The rows with a target, and what became of it.
    pub(super) fn verdicts(&self) -> impl Iterator<Item = (&Table, &Row, Verdict)> {
        self.tables().flat_map(|table| table.verdicts().map(move |(row, verdict)| (table, row, verdict)))
    }
}

/// The benchmark, built. It is built by itself, so that its features are its own.
pub(super) fn build() -> Result<PathBuf, String> {
    shell(&mut cargo("build --release --package ebbtide-bench"))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("release/ebbtide-bench"))
}

/// The parts that are wanted: all, those of an area, or one, `AREA/PART`.
pub(super) fn wanted(bench: &Path, wanted: &[&str]) -> Result<Vec<Part>, String> {
    let listed = output(Command::new(bench).arg("parts"))?;
    if !listed.status.success() || listed.stdout.is_empty() {
        return Err(format!("{} parts says nothing of what there is to measure", bench.display()));
    }
    select(&String::from_utf8_lossy(&listed.stdout), wanted)
}

fn select(listed: &str, wanted: &[&str]) -> Result<Vec<Part>, String> {
    let parts: Vec<_> = listed.lines().filter_map(Part::read).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !parts.iter().any(|part| part.is(wanted))) {
        let names: Vec<_> = parts.iter().map(Part::to_string).collect();
        return Err(format!("there is no area or part {unknown:?}; there are: {}", names.join(", ")));
    }
    let is_wanted = |part: &Part| wanted.is_empty() || wanted.iter().any(|wanted| part.is(wanted));
    Ok(parts.into_iter().filter(is_wanted).collect())
}

impl Part {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (area, name) = words.next()?.split_once('/')?;
        Some(Self { area: area.to_owned(), name: name.to_owned(), needs: words.map(str::to_owned).collect() })
    }

    fn is(&self, wanted: &str) -> bool {
        wanted == self.area || wanted == self.to_string()
    }

    /// Sees to it that what it needs is there, and measures it. What it says on the way goes to the terminal.
    pub(super) fn run(&self, bench: &Path) -> Shown {
        eprintln!("\n== {self}");
        let measure = || {
            for need in &self.needs {
                provide(need)?;
            }
            // Peers that may start threads have as many as the others.
            let mut measuring = Command::new(bench);
            table::read(&said(measuring.arg(self.to_string()).env("BLOCKING_MAX_THREADS", THREADS))?)
        };
        let (took, outcome) = timed(measure);
        if let Err(why) = &outcome {
            eprintln!("{self} could not be measured: {why}");
        }
        Shown { part: self.clone(), took, outcome }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.area, self.name)
    }
}

/// What a command that ends well prints, within its time.
fn said(command: &mut Command) -> Result<String, String> {
    let command_line = line(command);
    let failed = |error: io::Error| format!("{command_line}: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut printed = child.stdout.take().expect("it is piped");
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        // Nobody listens any more if it took too long.
        let _ = tell.send(printed.read_to_string(&mut text).map(|_| text));
    });
    let Ok(text) = told.recv_timeout(TIME_MAX) else {
        child.kill().and_then(|()| child.wait()).map_err(failed)?;
        return Err(format!("{command_line} had not ended after {} s, and was killed", TIME_MAX.as_secs()));
    };
    let status = child.wait().map_err(failed)?;
    if status.success() {
        text.map_err(failed)
    } else {
        Err(format!("{command_line} failed ({status}); above it says why"))
    }
}

fn provide(need: &str) -> Result<(), String> {
    match need {
        "redis" => redis::install(),
        "valgrind" => VALGRIND.install().map(drop),
        // The program `ebbtide`, by itself for the same reason.
        "program" => shell(&mut cargo("build --release --package ebbtide-cli")),
        _ => Err(format!("nobody knows how to get {need:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_all_its_parts_and_nothing_is_everything() {
        let listed = "loop/tasks\nloop/echo valgrind\ndag/cpu\n";
        let names = |wanted: &[&str]| {
            select(listed, wanted).map(|parts| parts.iter().map(Part::to_string).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["loop/tasks", "loop/echo", "dag/cpu"]);
        assert_eq!(names(&["loop"]).unwrap(), ["loop/tasks", "loop/echo"]);
        assert_eq!(names(&["dag/cpu", "loop/echo"]).unwrap(), ["loop/echo", "dag/cpu"]);
        assert!(names(&["look"]).unwrap_err().contains("\"look\""));
        assert_eq!(select(listed, &["loop/echo"]).unwrap()[0].needs, ["valgrind"]);
    }
}
