//! A server on tokio that is told to stop while it is under load, and fails no request.
//!
//! ```sh
//! cargo run -p ebbtide-shutdown --example server            # loads itself for a second, and sends itself a SIGTERM
//! cargo run -p ebbtide-shutdown --example server -- --serve # serves until somebody else does
//! ```
//!
//! What sends requests looks at `/health/ready` first, as a load balancer does. So readiness goes off, the server
//! goes on for half a second, and closes its port when nobody sends any more; what is in flight by then is answered.

use std::{
    env,
    error::Error,
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use ebbtide_shutdown::{
    Coordinator, Priority, Report,
    lifecycle::{
        Outcome,
        time::{Clock as _, SystemClock},
    },
};
use signal_hook::{consts::SIGTERM, low_level::raise};
use tokio::{net::TcpListener, runtime::Runtime};

/// How long a request takes.
const WORK: Duration = Duration::from_millis(20);

/// How long the load goes on before the signal.
const LOAD: Duration = Duration::from_secs(1);

const CLIENTS: usize = 20;

fn main() -> Result<Report, Box<dyn Error>> {
    let coordinator = Coordinator::builder()
        .readiness_delay(Duration::from_millis(500))
        .health_server(SocketAddr::from(([127, 0, 0, 1], 0)))
        .install()?;
    let health = coordinator.health_address().ok_or("it is served")?;

    let runtime = Runtime::new()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let admitted = middleware::from_fn_with_state(coordinator.clone(), admit);
    let router = Router::new().route("/", get(answer)).layer(admitted);
    let closing = coordinator.closing();
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        closing.triggered().await;
    });
    let server = runtime.spawn(server.into_future());
    coordinator.on_stop_async("http", Priority::SERVERS, |_, _| async { Ok(server.await??) })?.keep();
    let stop = move |deadline: ebbtide_shutdown::lifecycle::time::Deadline, _: &_| {
        runtime.shutdown_timeout(deadline.remaining(SystemClock.now()).unwrap_or_default());
        Ok(())
    };
    coordinator.on_stop("tokio", Priority::LOOPS, stop)?.keep();
    coordinator.ready();
    println!("serving http://{address}, health at http://{}/health/ready", health);

    if env::args().any(|arg| arg == "--serve") {
        return Ok(coordinator.run());
    }
    let load = Load::default();
    let report = thread::scope(|scope| {
        scope.spawn(|| load.watch(health));
        for _ in 0..CLIENTS {
            scope.spawn(|| load.send(address));
        }
        thread::park_timeout(LOAD);
        raise(SIGTERM).map(|()| coordinator.run())
    })?;
    let (answered, failed) = (load.answered.into_inner(), load.failed.into_inner());
    println!("{report}");
    println!("{answered} requests answered, {failed} failed");
    let served = report.intake().ok_or("it was drained")?.balance.completed;
    if failed > 0 || answered != served {
        return Err(format!("{served} were served, {answered} answered, {failed} failed").into());
    }
    Ok(report)
}

/// Lets requests in, and has the drain wait for them.
async fn admit(
    State(coordinator): State<Coordinator>,
    request: Request,
    next: Next,
) -> Result<Response, StatusCode> {
    let permit = coordinator.intake().gate().enter_owned().map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let response = next.run(request).await;
    permit.settle(Outcome::Completed);
    Ok(response)
}

async fn answer() -> &'static str {
    tokio::time::sleep(WORK).await;
    "hello\n"
}

/// Those who send requests, as long as the server says that it is ready.
#[derive(Default)]
struct Load {
    not_ready: AtomicBool,
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Load {
    fn watch(&self, health: SocketAddr) {
        while get_ok(health, "/health/ready").is_ok_and(|is_ok| is_ok) {
            thread::park_timeout(Duration::from_millis(20));
        }
        self.not_ready.store(true, Ordering::Relaxed);
    }

    fn send(&self, server: SocketAddr) {
        while !self.not_ready.load(Ordering::Relaxed) {
            let answered = get_ok(server, "/").is_ok_and(|is_ok| is_ok);
            let count = if answered { &self.answered } else { &self.failed };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether the answer is 200.
fn get_ok(server: SocketAddr, path: &str) -> io::Result<bool> {
    let mut stream = TcpStream::connect(server)?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200 "))
}
