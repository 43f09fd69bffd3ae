//! Graphs of async and CPU steps that answer requests, under a deadline, on any executor.
//!
//! A [`Graph`] says what depends on what. [`Graph::plan`] checks it and makes a [`Plan`], once; [`Plan::bind`] gives
//! it a timer and a pool; the [`Engine`] then answers any number of requests at the same time.
//!
//! ```
//! use std::time::Duration;
//! use ebbtide_dag::{Env, Graph};
//! use ebbtide_lifecycle::{time::ThreadTimer, wait::block_on};
//! use ebbtide_offload::Pool;
//!
//! let mut graph = Graph::<u64>::new("rank");
//! let viewer = graph.future("viewer", (), |cx, ()| {
//!     let user = cx.request().clone();
//!     async move { Ok(format!("user {user}")) }
//! });
//! let scores = graph.cpu("scores", viewer, |_, viewer| Ok(viewer.len() * 2));
//! let count = graph.inline("count", (viewer, scores), |_, (viewer, scores)| Ok(viewer.len() + *scores));
//! graph.node(scores).timeout(Duration::from_millis(50)).fallback(0);
//!
//! let pool = Pool::new()?;
//! let engine = graph.plan((viewer, count))?.bind(Env::new(ThreadTimer::start()?).pool(&pool))?;
//! let (viewer, count) = block_on(engine.run(7).within(Duration::from_secs(1)))?;
//! assert_eq!((viewer.as_str(), *count), ("user 7", 18));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What becomes of a node
//!
//! | | |
//! |---|---|
//! | it fails | it is [tried again](NodeTerms::retry), or [falls back](NodeTerms::fallback); else see [`Policy`] |
//! | it panics | the same, but it is not tried again |
//! | its [timeout](NodeTerms::timeout) comes, or the deadline | it goes on, late; or is dropped: [`OnTimeout`] |
//! | its [condition](NodeTerms::when) does not hold | it is skipped, with those that [need it](Handle::optional) |
//! | the run is dropped or [cancelled](Run::cancelled_by) | async, it is dropped; begun on the pool, it goes on |
//!
//! A run ends only when nothing of it is under way, but for those that go on after their deadline: the engine counts
//! those on the pool, its runners the others, and both are [components](ebbtide_lifecycle::Component) that a
//! coordinator waits for.
//!
//! # Reading order
//! 1. [`Graph`], [`Handle`] and [`NodeTerms`]: how a graph is built. `inputs`: what a node depends on.
//! 2. `check`, `circle` and `plan`: what is checked, and the form in which a graph is run.
//! 3. `core`: what the threads of a run share. `pass`: how a run goes on. `shift` and `stacks`: how nodes are run on
//!    the pool.
//! 4. `slot`: where outputs lie. `berth` and `lodger`: where futures lie. `op`: a node with its types forgotten.
//! 5. `json`, behind the feature of that name: plans from data.
//! 6. `page`, behind the feature of that name: plans as SVG, and runs as one page of HTML.

mod berth;
mod check;
mod circle;
mod class;
mod core;
mod cx;
mod draw;
mod engine;
mod error;
mod failure;
mod graph;
mod history;
mod inbox;
mod input;
mod inputs;
#[cfg(feature = "json")]
pub mod json;
mod line;
mod lodger;
mod memory;
mod op;
mod outline;
#[cfg(feature = "page")]
mod page;
mod pass;
mod plan;
mod queue;
mod reach;
mod report;
mod retry;
mod run;
mod shift;
mod slot;
mod stacks;
mod trace;

pub use self::{
    check::NODES_MAX,
    class::Class,
    cx::Cx,
    engine::{Engine, Env},
    error::{Code, Missing, PlanError, PlanErrors, RunError},
    failure::Failure,
    graph::{Graph, Handle, Kind, LocalGraph, NodeTerms, OnTimeout},
    input::Input,
    inputs::{Inputs, Optional},
    plan::Plan,
    reach::{Local, Reach, Threads},
    report::{NodeEnd, NodeReport, Report, Span, Step},
    retry::Retry,
    run::{Policy, Reported, Run},
};

/// The example of the README is one of the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
