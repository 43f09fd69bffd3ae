//! A service without a runtime that is told to stop while it has requests: it refuses new ones, waits for those
//! inside until its deadline, and names the one that does not end.
//!
//! `cargo run -p ebbtide-lifecycle --example drain`

use std::{error::Error, thread, time::Duration};

use ebbtide_lifecycle::{
    Component, Intake, Outcome, Reason, Trigger,
    blame::Origin,
    time::{Deadline, SystemClock, ThreadTimer},
};

fn main() -> Result<(), Box<dyn Error>> {
    let intake = Intake::new(ThreadTimer::start()?);
    let shutdown = Trigger::new();

    for number in 1..=3 {
        let request = intake.admit_as(&Origin::here().named(format!("GET /item/{number}")))?;
        let stop = shutdown.token();
        thread::spawn(move || {
            // The first two answer when they hear of the shutdown; the third never looks up.
            if number == 3 {
                loop {
                    thread::park();
                }
            }
            stop.triggered().wait();
            request.settle(Outcome::Completed);
        });
    }
    println!("serving: {}", intake.balance());

    shutdown.fire(Reason::requested("example"));
    let reason = shutdown.token().triggered().wait();
    println!("stopping: {reason}");
    let stopping = intake.stop(Deadline::after(SystemClock, Duration::from_millis(200)), &reason);
    println!("a late request: {}", intake.admit().expect_err("the intake is closed"));

    println!("{}", stopping.wait());
    println!("{}", intake.stragglers());
    println!("{}", intake.balance());
    intake.balance().check()?;
    Ok(())
}
