//! A worker on a queue: told to stop, it ends what it has begun, and releases what it has not.
//!
//! ```sh
//! cargo run -p ebbtide --features mailbox --example queue_worker
//! ```

use std::{sync::Arc, time::Duration};

use ebbtide::{
    Exit,
    lifecycle::Reason,
    mailbox::{Mailbox as _, Message, Office, worker::Worker},
    shutdown::Priority,
    sleep,
};

fn main() -> Exit {
    ebbtide::run(async |app| {
        let orders = Arc::new(Office::new(app.handle().clone()).mailbox("orders"));
        for number in 1..=5 {
            orders.send(Message::new(format!("order {number}"))).await?;
        }
        let stops = app.clone();
        let worker = Worker::builder(orders.clone(), app.handle().clone(), move |job| {
            let app = stops.clone();
            async move {
                println!("{}", String::from_utf8_lossy(job.body()));
                if job.body() == "order 2" {
                    app.stop(Reason::requested("enough for an example")); // as SIGTERM does
                }
                sleep(Duration::from_millis(10)).await;
                Ok(None)
            }
        })
        .build();
        app.register("orders", Priority::WORKERS, worker.clone())?;
        app.ready();
        worker.work().await?;
        println!("{}; {} left for others", worker.balance(), orders.counts().await?.pending);
        Ok(())
    })
}
