//! The leaf crates in a program on tokio: a pool, timeouts whose losers go on, and a coordinator that stops both.
//!
//! ```sh
//! cargo run -p ebbtide --features tokio --example leaf_in_tokio
//! ```

use std::time::Duration;

use ebbtide::{
    Error,
    lifecycle::{Outcome, Reason},
    offload::Pool,
    shutdown::{Coordinator, Priority},
    timeout::{Runners, TokioTimer},
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let coordinator = Coordinator::install()?;
    let pool = Pool::new()?;
    coordinator.register("pool", Priority::POOLS, pool.clone())?.keep();
    let runners = Runners::spawned(TokioTimer, |driver| drop(tokio::spawn(driver)));
    coordinator.register("late runners", Priority::LATE, runners.tracker().clone())?.keep();

    let request = coordinator.intake().admit()?;
    let sum: u64 = pool.offload(|| (1..=1000).sum()).await?;
    let slow = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        println!("the slow query ends, late");
    };
    let in_time = runners.timeout(Duration::from_millis(5), slow).named("slow query").await;
    println!("{sum}, and the slow query was {}", if in_time.is_ok() { "in time" } else { "too late" });
    request.settle(Outcome::Completed);

    let report = coordinator.stop(Reason::requested("it is an example")).await;
    println!("{report}");
    report.exit()
}
