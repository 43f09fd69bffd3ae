//! A service with phases and health: each part is stopped in its turn, and the program says how far it is.
//!
//! ```sh
//! cargo run -p ebbtide --features http --example service             # told to stop after a moment
//! cargo run -p ebbtide --features http --example service -- --serve  # until SIGTERM or Ctrl-C
//! ```

use std::{
    env,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use ebbtide::{App, Exit, lifecycle::Reason, shutdown::Priority, sleep};

fn main() -> Exit {
    App::builder()
        .name("service")
        .drain_timeout(Duration::from_secs(10))
        .readiness_delay(Duration::from_millis(100))
        .health_server(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .heartbeat(Duration::from_secs(1))
        .observer(|event| println!("{event}"))
        .run(serve)
}

async fn serve(app: App) -> Result<(), ebbtide::Error> {
    // Dropped when nothing runs any more.
    app.keep("database", Database);

    // A part of the program that runs as long as it does; it is told to stop in its phase.
    app.spawn_component("sweeper", Priority::WORKERS, async |stop| {
        while stop.wrap(sleep(Duration::from_millis(50))).await.is_ok() {
            println!("swept");
        }
        Ok(())
    })?;
    app.on_stop("flush the log", Priority::RESOURCES, |_deadline, _reason| Ok(()))?;
    app.ready();
    if let Some(health) = app.coordinator().health_address() {
        println!("health at http://{health}/health/ready");
    }

    if !env::args().any(|arg| arg == "--serve") {
        let asks = app.clone();
        app.spawn_named("GET /slow", async move {
            sleep(Duration::from_millis(200)).await;
            asks.stop(Reason::requested("it is an example"));
            sleep(Duration::from_millis(200)).await; // in flight when the intake closes: the drain waits for it
        })?
        .detach();
    }
    app.closing().triggered().await;
    Ok(())
}

struct Database;

impl Drop for Database {
    fn drop(&mut self) {
        println!("the database is closed");
    }
}
