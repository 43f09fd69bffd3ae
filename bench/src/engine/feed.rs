//! On the embedded data set.

use tokio::runtime::{Builder, Runtime};

use super::{
    by_hand::{ByHand, Embedded, Feed, Inline, Nodes},
    crowd::{Match, Shown, against, play},
    ours::Ours,
};
use crate::contest::Table;

/// How many threads a runtime has, and how many for what blocks: one for each CPU of the machine of the figures.
const THREADS: usize = 2;

/// The peers, each on the two kinds of runtime that tokio has. The better one is who ebbtide is compared with.
const NODES: [&str; 2] =
    ["tokio, FuturesUnordered + spawn_blocking", "tokio multi_thread, FuturesUnordered + spawn_blocking"];
const INLINE: [&str; 2] =
    ["tokio, by hand at its best: in place", "tokio multi_thread, by hand at its best: in place"];

pub(super) fn run() -> Vec<Table> {
    let one = Match { concurrency: 1, requests: 500, rounds: 51 };
    let many = Match { concurrency: 100, requests: 2_000, rounds: 51 };
    let mut tables = tables(
        &one,
        [
            "the feed, one at a time, a request",
            "the feed, one at a time, p99",
            "the feed in place, one at a time, a request",
            "the feed in place, one at a time, p99",
        ],
    );
    tables.extend(self::tables(
        &many,
        [
            "the feed, 100 at a time, a request",
            "the feed, 100 at a time, p99",
            "the feed in place, 100 at a time, a request",
            "the feed in place, 100 at a time, p99",
        ],
    ));
    tables
}

fn tables(terms: &Match, [nodes, p99, inline, inline_p99]: [&'static str; 4]) -> Vec<Table> {
    eprintln!("{nodes} …");
    let Shown { times, p99: late } = shown(terms);
    vec![
        against(nodes, "ns", NODES, [&times[0], &times[1]], &times[4], Some(0.5)),
        against(p99, "µs", NODES, [&late[0], &late[1]], &late[4], Some(1.0)),
        against(inline, "ns", INLINE, [&times[2], &times[3]], &times[4], Some(1.0)),
        against(inline_p99, "µs", INLINE, [&late[2], &late[3]], &late[4], None),
    ]
}

fn runtime(mut builder: Builder) -> Runtime {
    builder.enable_time().max_blocking_threads(THREADS).build().expect("a runtime")
}

fn runtimes() -> [Runtime; 2] {
    let mut many = Builder::new_multi_thread();
    many.worker_threads(THREADS);
    [runtime(Builder::new_current_thread()), runtime(many)]
}

/// A thread for each node, and all in place, on each runtime; and ours.
fn shown(terms: &Match) -> Shown {
    let [mut nodes, mut nodes_many] =
        runtimes().map(|runtime| ByHand::new(runtime, Nodes(Feed::new(Embedded::new()))));
    let [mut inline, mut inline_many] =
        runtimes().map(|runtime| ByHand::new(runtime, Inline(Feed::new(Embedded::new()))));
    let mut ours = Ours::embedded(THREADS.min(terms.concurrency));
    play(terms, &mut [&mut nodes, &mut nodes_many, &mut inline, &mut inline_many, &mut ours])
}
