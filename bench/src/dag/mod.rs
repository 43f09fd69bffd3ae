//! Graphs whose nodes do as little as can be: what it costs to run them in order, and to hand on what they give.
//!
//! All contestants run the same [shapes](shapes::Shape), again and again, and have what they know of a shape before
//! they start. A node gives the sum of its inputs plus one.

mod ours;
mod peers;
mod pool;
mod shapes;
mod tables;

use crate::contest::Table;

/// What a part is called, and what it does.
type Part = (&'static str, fn() -> Vec<Table>);

/// The parts, each of which can be run alone.
const PARTS: [Part; 6] = [
    ("async", tables::ready),
    ("inline", tables::inline),
    ("timeouts", tables::timeouts),
    ("cpu", tables::cpu),
    ("plan", tables::plan),
    ("trace", tables::trace),
];

/// All parts, or the one that is wanted. None if there is no such part.
pub(crate) fn run(wanted: Option<&str>) -> Option<Vec<Table>> {
    let parts: Vec<_> =
        PARTS.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name)).collect();
    (!parts.is_empty()).then(|| parts.into_iter().flat_map(|(_, run)| run()).collect())
}
