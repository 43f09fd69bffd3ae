//! Stops a program at every step, in every order, with faults, in virtual time, and checks that nothing was lost.
//!
//! ```
//! use ebbtide::{App, sleep};
//! use ebbtide_testkit::Explorer;
//!
//! // What `ebbtide::run` would run.
//! let program = async |app: App| {
//!     let _ = app.token().wrap(sleep(std::time::Duration::from_secs(5))).await;
//!     Ok(())
//! };
//! let explorer = Explorer::new(program);
//! let summary = explorer.stop_at_every_step()?; // before step 1, 2, 3, … of its loop
//! assert!(summary.stopped > 3);
//! explorer.seeds(0..50)?; // orders, faults and stops by seed
//! # Ok::<(), ebbtide_testkit::Failing>(())
//! ```
//!
//! # Should I use this crate?
//! For a program on ebbtide, or a part of it, whose stop matters: it finds the request that is lost when the signal
//! comes between two steps, and the task that still runs when everything is over. It is for tests: add it to
//! `[dev-dependencies]`. Without its default features it knows single components, and does not need the facade.
//!
//! # What can be replayed
//! A case is decided before it is run, all of it by its [`Code`]: the order of the loop's tasks, the faults, the stop.
//! A failing one prints the line that runs it again with the same decisions. On the loop's own thread that is the same
//! course: time is virtual, so nothing depends on how fast the machine is.
//!
//! What cannot be replayed is what threads do among each other: when a job on the pool ends, and so when the task that
//! awaits it is ready, which job is the third to begin, and in which order the coordinator's threads get on. A case in
//! which that matters may fail only now and then: replay it some hundred times. What the *interleavings* of threads can
//! do wrong is for the models of each crate (loom).
//!
//! # What it does not do
//! It moves no real time and knows no sockets: a program that waits for I/O holds its clock. It refuses threads to the
//! pool, and not to the loop or the coordinator, without which nothing runs. A job that hangs is a case that hangs.
//!
//! # Reading order
//! 1. [`Explorer`]: whole programs. [`Scene`]: single components. [`Witness`]: what they leave behind.
//! 2. `decisions`, [`Faults`] and [`Draws`]: what a seed says. `hand`: who stops a program.
//! 3. `audit`: what must be true at the end. `sweep`: many cases, each watched. [`Failing`]: what is told of one.

#![forbid(unsafe_code)]

#[cfg(feature = "app")]
mod audit;
mod case;
mod decisions;
mod draws;
#[cfg(feature = "app")]
mod explorer;
mod failing;
mod faults;
#[cfg(feature = "app")]
mod hand;
mod scene;
mod sweep;
mod witness;

/// The seams that the crates own: virtual time, and signals for tests.
pub use ebbtide_lifecycle::time::VirtualClock;
#[cfg(feature = "app")]
pub use ebbtide_shutdown::{Feed, Signals};

#[cfg(feature = "app")]
pub use self::explorer::{Ended, Explorer, Program};
pub use self::{
    decisions::{By, Code, Decisions, NotACode, Stop},
    draws::Draws,
    failing::Failing,
    faults::Faults,
    scene::Scene,
    sweep::Summary,
    witness::{Canary, Mark, Promise, Watched, Witness},
};

/// The example of the README is one of the tests.
#[cfg(all(doctest, feature = "app"))]
#[doc = include_str!("../README.md")]
mod readme {}
