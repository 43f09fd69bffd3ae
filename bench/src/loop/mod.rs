//! The loop against tokio's current-thread runtime with a `LocalSet`, smol and monoio.

mod echo;
mod floor;
mod memory;
mod posts;
mod reply;
mod tasks;
mod timers;

use crate::contest::Table;

pub(crate) use self::{echo::serve, memory::measure_in_this_process};

/// What a part is called, and what it does.
type Part = (&'static str, fn() -> Vec<Table>);

/// The parts, each of which can be run alone.
const PARTS: [Part; 6] = [
    ("tasks", tasks::run),
    ("timers", timers::run),
    ("posts", posts::run),
    ("reply", || reply::replies().into()),
    ("echo", echo::run),
    ("memory", || memory::tables().into()),
];

/// All parts, or the one that is wanted. None if there is no such part.
pub(crate) fn run(wanted: Option<&str>) -> Option<Vec<Table>> {
    let parts: Vec<_> =
        PARTS.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name)).collect();
    (!parts.is_empty()).then(|| parts.into_iter().flat_map(|(_, run)| run()).collect())
}
