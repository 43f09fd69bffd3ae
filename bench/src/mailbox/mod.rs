//! Messages of 100 bytes, sent, received and acknowledged.

mod memory;
mod peers;
mod redis;

use crate::contest::Table;

/// What a part is called, and what it does.
type Part = (&'static str, fn() -> Vec<Table>);

/// The parts, each of which can be run alone.
const PARTS: [Part; 2] = [("memory", memory::run), ("redis", redis::run)];

/// All parts, or the one that is wanted. None if there is no such part.
pub(crate) fn run(wanted: Option<&str>) -> Option<Vec<Table>> {
    let parts: Vec<_> =
        PARTS.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name)).collect();
    (!parts.is_empty()).then(|| parts.into_iter().flat_map(|(_, run)| run()).collect())
}
