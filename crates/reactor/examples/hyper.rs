//! An HTTP server on hyper that is stopped while requests are in flight, and fails none of them.
//!
//! ```sh
//! cargo run --release -p ebbtide-reactor --features hyper --example hyper
//! ```
//!
//! When it is told to stop, the server accepts no more connections and says `connection: close` in every answer, so
//! that clients send their next request elsewhere. Only then are connections closed that nothing is heard of. A
//! connection that was closed at once, between two requests, would fail the one that is on its way.

use std::{
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    pin::pin,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Token,
    time::{Clock, Deadline, SystemClock},
};
use ebbtide_reactor::{Async, EventLoop, Local, Task, interop::HyperIo, sleep, spawn_named};
use futures_lite::future::{block_on, or};
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    header::{CONNECTION, HeaderValue},
    server::conn::http1,
    service::service_fn,
};

/// How long a request takes.
const WORK: Duration = Duration::from_millis(20);

/// How long a connection may be silent before it is closed, once the server stops.
const SILENCE: Duration = Duration::from_millis(500);

/// How long the whole stop may take.
const BUDGET: Duration = Duration::from_secs(5);

/// How many clients there are, and how many requests they make before the server is told to stop.
const CLIENTS: usize = 20;
const REQUESTS: usize = 500;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hyper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let server = EventLoop::builder().name("http").event_loop();
    server.start()?;
    let stop = server.shutdown_handle().as_trigger().token();
    let served = server.spawn_named("listener", serve(listener, stop)).map_err(|refused| refused.why)?;
    println!("serving at http://{address}");

    let answered = Arc::new(AtomicUsize::new(0));
    let client = |_| {
        let answered = answered.clone();
        thread::spawn(move || client(address, &answered))
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    while answered.load(Ordering::Relaxed) < REQUESTS {
        thread::park_timeout(WORK);
    }

    println!("stopping with {}", server.stragglers());
    let begin = SystemClock.now();
    let clean = server.stop_by(Deadline::at(begin + BUDGET));
    println!("stopped {} after {:?}", if clean { "clean" } else { "overdue" }, SystemClock.now() - begin);
    println!("tasks: {}", server.balance());

    let mut failed = 0;
    for client in clients {
        if let Err(error) = client.join().map_err(|_| "a client panicked")? {
            failed += 1;
            eprintln!("hyper: a request failed: {error}");
        }
    }
    let (answered, served) = (answered.load(Ordering::Relaxed), block_on(served)?);
    println!("requests: {served} served, {answered} answered, {failed} failed");
    if clean && failed == 0 && served == answered { Ok(()) } else { Err("a request was lost".into()) }
}

/// Accepts connections until it is told to stop, and waits for them. Gives how many requests were answered.
async fn serve(listener: TcpListener, stop: Token) -> usize {
    let served = Arc::new(AtomicUsize::new(0));
    let mut connections = Vec::new();
    match Async::new(listener) {
        Ok(listener) => {
            while let Ok(accepted) = stop.wrap(listener.accept()).await {
                match accepted {
                    Ok((stream, from)) => {
                        let connection = connection(stream, stop.clone(), served.clone());
                        connections.retain(|connection: &Task<()>| !connection.is_finished());
                        connections.extend(spawn_named(format!("connection from {from}"), connection));
                    }
                    Err(error) => {
                        eprintln!("hyper: cannot accept: {error}");
                        sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        }
        Err(error) => eprintln!("hyper: cannot wait for connections: {error}"),
    }
    for connection in connections {
        let _ = connection.await;
    }
    served.load(Ordering::Relaxed)
}

async fn connection(stream: Async<TcpStream>, stop: Token, served: Arc<AtomicUsize>) {
    let stopping = stop.clone();
    let answer = service_fn(move |request: Request<Incoming>| {
        let (served, stopping) = (served.clone(), stopping.clone());
        async move {
            sleep(WORK).await;
            let mut response =
                Response::new(Full::new(Bytes::from(format!("you asked for {}\n", request.uri()))));
            if stopping.is_triggered() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            served.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let connection = http1::Builder::new().timer(Local).serve_connection(HyperIo::new(stream), answer);
    let mut connection = pin!(connection);
    let silence = async {
        stop.triggered().await;
        sleep(SILENCE).await;
        None
    };
    if or(async { Some(connection.as_mut().await) }, silence).await.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Makes requests on one connection, one after the other, until the server says that it is the last.
fn client(server: SocketAddr, answered: &AtomicUsize) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut stream = TcpStream::connect(server)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    loop {
        stream.write_all(b"GET /tide HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let (mut last, mut length, mut line) = (false, 0, String::new());
        answers.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 200") {
            return Err(format!("the answer begins with {line:?}").into());
        }
        while line != "\r\n" {
            line.clear();
            answers.read_line(&mut line)?;
            let header = line.to_ascii_lowercase();
            last |= header.trim() == "connection: close";
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        answers.read_exact(&mut body)?;
        answered.fetch_add(1, Ordering::Relaxed);
        if last {
            return Ok(());
        }
    }
}
