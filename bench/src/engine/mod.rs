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
use self::{
    crowd::{Contender, Crowd},
    ours::Ours,
};
use crate::areas::{Need, Part};

pub(crate) const PARTS: [Part; 3] = [
    Part::new("feed", feed::run),
    Part::new("redis", redis::run).needs(&[Need::Redis]),
    Part::new("serve", serve::run).needs(&[Need::Program]),
];

/// Answers so many requests of the embedded data set, one at a time.
pub(crate) fn answer_one_by_one(requests: usize) {
    let (crowd, mut ours) = (Crowd::new(), Ours::embedded(1));
    crowd.begin(requests);
    ours.round(&crowd, 1);
}
