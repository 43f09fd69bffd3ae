//! What there is to measure: areas, and their parts, each of which is run in a process of its own.

use crate::{contest::Table, dag, engine, lifecycle, r#loop, mailbox, memory, offload, shutdown, timeout};

/// Something that is measured by itself.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// What must be there for it.
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn() -> Vec<Table>,
}

/// What a part cannot do without, and the machine may not have.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// `redis-server`.
    Redis,
    /// `ebbtide`, beside this program.
    Program,
    /// `valgrind`.
    Valgrind,
}

impl Part {
    pub(crate) const fn new(name: &'static str, run: fn() -> Vec<Table>) -> Self {
        Self { name, needs: &[], run }
    }

    pub(crate) const fn needs(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }
}

/// In the order in which they are run and shown.
const AREAS: &[(&str, &[Part])] = &[
    ("lifecycle", &lifecycle::PARTS),
    ("loop", &r#loop::PARTS),
    ("offload", &offload::PARTS),
    ("timeout", &timeout::PARTS),
    ("dag", &dag::PARTS),
    ("engine", &engine::PARTS),
    ("mailbox", &mailbox::PARTS),
    ("shutdown", &shutdown::PARTS),
    ("memory", &memory::PARTS),
];

/// A line for each part: its name, and what it needs.
pub(crate) fn list() -> String {
    let mut lines = String::new();
    for (area, parts) in AREAS {
        for part in *parts {
            lines += &format!("{area}/{}", part.name);
            for need in part.needs {
                lines += match need {
                    Need::Redis => " redis",
                    Need::Program => " program",
                    Need::Valgrind => " valgrind",
                };
            }
            lines.push('\n');
        }
    }
    lines
}

/// The part of that name, which is `AREA/PART`.
pub(crate) fn find(name: &str) -> Option<&'static Part> {
    let (area, part) = name.split_once('/')?;
    let (_, parts) = AREAS.iter().find(|(name, _)| *name == area)?;
    parts.iter().find(|candidate| candidate.name == part)
}
