//! The program, run as its users run it: as a process, with arguments, pipes and signals.
//!
//! `UPDATE_SNAPSHOTS=1` writes the files in `tests/snapshots` anew.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod bad_input;
mod bench;
mod codes;
mod colours;
mod fake_redis;
mod files;
mod http;
mod loader;
mod lookup;
mod pipes;
mod program;
mod queue;
mod redis;
mod run;
mod serve;
mod serve_hung;
mod serve_limits;
mod serve_redis;
mod serve_stop;
mod site;
mod snapshots;
mod worker;
