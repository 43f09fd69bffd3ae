//! The proofs there are, in the order in which they are run: what fails fastest comes first.

use super::{cases, costs, faults, finding::Finding, models, mutation, powerset, sanitizers, soaks};

/// How much is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tier {
    /// What CI has time for, beside its other steps.
    Quick,
    /// As much as each property asks for.
    Full,
}

/// One tool, let loose on all that it can say something about.
pub(super) struct Proof {
    pub(super) name: &'static str,
    pub(super) tool: &'static str,
    pub(super) what: &'static str,
    /// What its findings are, one by one.
    pub(super) each: &'static str,
    pub(super) in_ci: InCi,
    pub(super) act: fn(Tier) -> Result<Vec<Finding>, String>,
}

/// Who runs a proof in CI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InCi {
    /// The quick tier.
    Quick,
    /// A step of its own, so that the quick tier has no need to.
    Step(&'static str),
    /// Nobody: it takes too long.
    No,
}

pub(super) const PROOFS: &[Proof] = &[
    Proof {
        name: "shuttle",
        tool: "shuttle",
        what: "schedules of more threads than loom can go through, at random and by PCT",
        each: "models",
        in_ci: InCi::Quick,
        act: models::shuttle,
    },
    Proof {
        name: "faults",
        tool: "limits, strace",
        what: "a program without threads, without descriptors, whose calls fail, that is paused",
        each: "kinds",
        in_ci: InCi::Quick,
        act: faults::run,
    },
    Proof {
        name: "loom",
        tool: "loom",
        what: "every interleaving of the modelled parts, up to a bound of preemptions",
        each: "models",
        in_ci: InCi::Step("loom"),
        act: models::loom,
    },
    Proof {
        name: "twins",
        tool: "broken twins",
        what: "the models catch what they are there for",
        each: "twins",
        in_ci: InCi::Step("mutants"),
        act: models::twins,
    },
    Proof {
        name: "cases",
        tool: "proptest, storms",
        what: "random sequences, graphs and rounds against a plain model or an oracle",
        each: "tests",
        in_ci: InCi::Step("test"),
        act: cases::run,
    },
    Proof {
        name: "explore",
        tool: "simulation",
        what: "whole programs by seed, with faults and stops",
        each: "sweep",
        in_ci: InCi::Step("explore"),
        act: cases::explore,
    },
    Proof {
        name: "soak",
        tool: "soak",
        what: "work without end, counted by those who bring it and by those who take it",
        each: "soaks",
        in_ci: InCi::Step("soak"),
        act: soaks::run,
    },
    Proof {
        name: "features",
        tool: "feature powerset",
        what: "each crate builds with every set of its features",
        each: "crates",
        in_ci: InCi::Step("features"),
        act: powerset::run,
    },
    Proof {
        name: "address",
        tool: "ASan, LSan",
        what: "all tests but models under the address and leak sanitizers",
        each: "suites",
        in_ci: InCi::No,
        act: sanitizers::address,
    },
    Proof {
        name: "memcheck",
        tool: "valgrind memcheck",
        what: "the suites of the crates with `unsafe`, with the allocator and the std of the product",
        each: "suites",
        in_ci: InCi::No,
        act: sanitizers::memcheck,
    },
    Proof {
        name: "counts",
        tool: "callgrind",
        what: "no hot path takes over 2 % more instructions than is written down",
        each: "hot paths",
        in_ci: InCi::No,
        act: costs::run,
    },
    Proof {
        name: "mutants",
        tool: "cargo-mutants",
        what: "every small change of the contract-bearing files is noticed by a test, or answered",
        each: "crates",
        in_ci: InCi::No,
        act: mutation::run,
    },
];
