//! Accounted work: the vocabulary of ebbtide, and what every part of it that can stop is made of.
//!
//! Work that was accepted is **run, handed back, or named**. It is never silently lost, and what was refused never
//! runs. This crate has the parts that carry that idea; it needs no async runtime and works on all of them.
//!
//! ```
//! use std::thread;
//! use ebbtide_lifecycle::{Gate, Ledger, Outcome, Terms};
//!
//! let gate = Gate::with(Terms { ledger: Some(Ledger::new()), ..Terms::default() });
//! for _ in 0..3 {
//!     let permit = gate.enter_owned()?;
//!     thread::spawn(move || permit.settle(Outcome::Completed));
//! }
//! gate.close();
//! gate.idle().wait();
//! assert_eq!(gate.balance().unwrap().to_string(), "accepted 3, completed 3");
//! # Ok::<(), ebbtide_lifecycle::Refusal>(())
//! ```
//!
//! # Should I use this crate?
//! Take it alone for a service on tokio, smol or plain threads that has to know when its last request has ended
//! ([`Gate`]), who is still inside ([`Intake`]), or why it is stopping ([`Trigger`]). It handles no signals and
//! brings no order into the stop of several parts; it is what such a coordinator is built on.
//!
//! # Reading order
//! 1. [`State`] and [`Lifecycle`]: the five states and their table.
//! 2. [`Gate`]: admission and its count; [`Ledger`] and [`Balance`]: what became of it; [`Tally`]: both, under a
//!    lock that is there in any case.
//! 3. [`blame`]: who is in flight. [`Intake`]: gate, ledger and blame in one.
//! 4. [`wait`]: how all waiting is done. [`time`]: clocks, timers, deadlines.
//! 5. [`Trigger`] and [`Token`]: the word "stop". [`Component`] and [`Runnable`]: what can be stopped.

mod balance;
pub mod blame;
mod component;
#[cfg(feature = "conformance")]
pub mod conformance;
mod gate;
mod intake;
mod ledger;
mod panicked;
mod park;
mod refusal;
mod runnable;
mod state;
mod sync;
mod tally;
pub mod time;
mod trigger;
pub mod wait;

pub use self::{
    balance::{Balance, Unbalanced},
    component::{Component, Stopped, Stopping},
    gate::{Drained, Gate, Idle, OwnedPermit, Permit, Terms},
    intake::{Admission, Intake},
    ledger::{Book, Entry, Ledger, Outcome},
    panicked::{Panicked, contain},
    refusal::{Refusal, Refused},
    runnable::{RunError, Runnable},
    state::{Illegal, Lifecycle, Reached, State, Step},
    tally::Tally,
    trigger::{Interrupted, Reason, Token, Trigger, Triggered, Wrap},
};
