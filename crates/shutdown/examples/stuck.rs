//! A program with a task that never ends, and what it says when it is told to stop.
//!
//! ```sh
//! cargo run -p ebbtide-shutdown --example stuck & sleep 5; kill %1    # once: it ends within its budget
//! cargo run -p ebbtide-shutdown --example stuck & sleep 5; kill %1 %1 # twice: at once
//! ```
//!
//! The budget is five seconds; `DRAIN_TIMEOUT_SECONDS` says otherwise.

use std::{env, error::Error, future::pending, time::Duration};

use ebbtide_reactor::EventLoop;
use ebbtide_shutdown::{
    Coordinator, DrainTimeout, Priority, Report,
    lifecycle::{Outcome, blame::Origin},
};

fn main() -> Result<Report, Box<dyn Error>> {
    let timeout = match env::var_os(DrainTimeout::VARIABLE) {
        Some(_) => DrainTimeout::from_env(DrainTimeout::VARIABLE),
        None => DrainTimeout::new(Duration::from_secs(5)),
    };
    let progress = Duration::from_secs(1);
    let coordinator = Coordinator::builder().drain_timeout(timeout).progress_every(progress).install()?;

    let events = EventLoop::new();
    events.start()?;
    events.spawn_named("the task that never ends", pending::<()>())?.detach();
    coordinator.register("loop", Priority::LOOPS, events)?.keep();

    let answered = coordinator.intake().admit_as(&Origin::here().named("GET /quick"))?;
    answered.settle(Outcome::Completed);

    coordinator.ready();
    println!("ready: process {}, waiting for SIGTERM or SIGINT", std::process::id());
    Ok(coordinator.run())
}
