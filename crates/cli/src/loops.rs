//! The loops that requests are answered on.

use std::thread;

use ebbtide::{
    App,
    reactor::{EventLoop, Handle},
};

use crate::fault::{Fault, code};

/// So many loops, of which the app's own is the first: one for each CPU, if it is not said how many.
pub(crate) fn loops(app: &App, wanted: Option<u16>, most: usize) -> Result<Vec<Handle>, Fault> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let mut loops = vec![app.handle().clone()];
    for nth in 2..=wanted.map_or(cpus, usize::from).min(most) {
        let started = app.start_loop(format!("loop {nth}"), EventLoop::builder());
        loops.push(started.map_err(|error| Fault::new(code::UNAVAILABLE, error.to_string()))?);
    }
    Ok(loops)
}
