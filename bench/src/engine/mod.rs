//! The plan of a feed, answered by the engine and by programs that were written for it by hand.
//!
//! All use the same steps of `ebbtide-rank`, for the same users in the same order, and write the same answers: that is
//! checked before anything is measured.

mod by_hand;
mod crowd;
mod feed;
mod http;
mod ours;
mod redis;
mod serve;

pub(crate) use self::http::serve as serve_bare;
use crate::contest::Table;

/// What a part is called, and what it does.
type Part = (&'static str, fn() -> Vec<Table>);

/// The parts, each of which can be run alone.
const PARTS: [Part; 3] = [("feed", feed::run), ("redis", redis::run), ("serve", serve::run)];

/// All parts, or the one that is wanted. None if there is no such part.
pub(crate) fn run(wanted: Option<&str>) -> Option<Vec<Table>> {
    let parts: Vec<_> =
        PARTS.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name)).collect();
    (!parts.is_empty()).then(|| parts.into_iter().flat_map(|(_, run)| run()).collect())
}
