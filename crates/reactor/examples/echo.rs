//! A TCP echo server that is stopped under load.
//!
//! ```sh
//! cargo run --release -p ebbtide-reactor --example echo                         # 50 connections for 10 s, then a stop
//! cargo run --release -p ebbtide-reactor --example echo -- --connections 200 --seconds 2
//! cargo run --release -p ebbtide-reactor --example echo -- --listen 127.0.0.1:7000   # serves until a line is entered
//! ```
//!
//! When it is told to stop it accepts no more connections, answers what it has read, and lets each connection go. A
//! client then knows of every request whether it was answered. The program checks the sums of both sides.

use std::{
    env,
    error::Error,
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ebbtide_lifecycle::{
    Token,
    time::{Clock, Deadline, SystemClock},
};
use ebbtide_reactor::{Async, EventLoop, Task, sleep, spawn_named};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future::block_on};

/// How long the connections have to come to an end.
const BUDGET: Duration = Duration::from_secs(5);

/// How long a client has to close after the server did.
const LINGER: Duration = Duration::from_secs(1);

const REQUEST: &[u8; 64] = &[b'~'; 64];

struct Options {
    listen: Option<SocketAddr>,
    connections: usize,
    seconds: u64,
}

fn main() -> ExitCode {
    match options().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options { listen: None, connections: 50, seconds: 10 };
    let mut args = env::args().skip(1);
    while let Some(name) = args.next() {
        if !["--listen", "--connections", "--seconds"].contains(&&*name) {
            let known = "--listen ADDRESS, --connections NUMBER, --seconds NUMBER";
            return Err(format!("there is no option {name}; there are: {known}").into());
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let wrong = |what: &str| format!("{name} {value:?}: not {what}");
        match &*name {
            "--listen" => {
                let address = value.parse().map_err(|_| wrong("an address such as 127.0.0.1:7000"))?;
                options.listen = Some(address);
            }
            "--connections" => options.connections = value.parse().map_err(|_| wrong("a number"))?,
            _ => options.seconds = value.parse().map_err(|_| wrong("a number of seconds"))?,
        }
    }
    Ok(options)
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let address = options.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let listener =
        TcpListener::bind(address).map_err(|error| format!("cannot listen at {address}: {error}"))?;
    let address = listener.local_addr()?;

    let server = EventLoop::builder().name("server").event_loop();
    server.start()?;
    let token = server.shutdown_handle().as_trigger().token();
    let served = server.spawn_named("listener", serve(listener, token))?;
    println!("serving at {address}");

    let load = match options.listen {
        Some(_) => {
            println!("press Enter to stop");
            io::stdin().read_line(&mut String::new())?;
            None
        }
        None => {
            println!("load: {} connections for {} s", options.connections, options.seconds);
            Some(Load::start(address, options.connections, options.seconds)?)
        }
    };

    println!("stopping with {}", server.stragglers());
    let begin = SystemClock.now();
    let clean = server.stop_by(Deadline::at(begin + BUDGET));
    println!("stopped {} after {:?}", if clean { "clean" } else { "overdue" }, SystemClock.now() - begin);
    let balance = server.balance();
    println!("tasks: {balance}");

    let requests = block_on(served).map_or(0, |served| served);
    println!("server: answered {requests} requests");
    if let Some(load) = load {
        load.check(requests)?;
    }
    if clean && balance.is_balanced() { Ok(()) } else { Err(server.stragglers().to_string().into()) }
}

/// Accepts connections until it is told to stop, and waits for them. Gives how many requests were answered.
async fn serve(listener: TcpListener, stop: Token) -> u64 {
    let listener = match Async::new(listener) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("echo: cannot wait for connections: {error}");
            return 0;
        }
    };
    let requests = Arc::new(AtomicU64::new(0));
    let mut connections = Vec::new();
    while let Ok(accepted) = stop.wrap(listener.accept()).await {
        match accepted {
            Ok((stream, from)) => {
                let connection = connection(stream, stop.clone(), requests.clone());
                // Those that have ended are done with. While this task runs, its loop takes others.
                connections.retain(|connection: &Task<()>| !connection.is_finished());
                connections.extend(spawn_named(format!("connection from {from}"), connection));
            }
            Err(error) => {
                // Out of descriptors, most likely: when some connections have ended it goes on.
                eprintln!("echo: cannot accept: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    for connection in connections {
        let _ = connection.await;
    }
    requests.load(Ordering::Relaxed)
}

/// Answers requests until the client closes, or until it is told to stop and has answered what it has read.
async fn connection(mut stream: Async<TcpStream>, stop: Token, requests: Arc<AtomicU64>) {
    let mut request = [0; REQUEST.len()];
    loop {
        // To be told to stop between two requests is fine, and loses nothing: what was not read is not accepted.
        if let Err(_stopping) = stop.wrap(stream.readable()).await {
            break;
        }
        if stream.read_exact(&mut request).await.is_err() || stream.write_all(&request).await.is_err() {
            return;
        }
        requests.fetch_add(1, Ordering::Relaxed);
    }
    // Closed for writing first, and for reading when the client has seen that: a connection that is dropped with
    // unread bytes takes answers with it that are still on their way.
    let linger = async {
        let _ = stream.close().await;
        while stream.read(&mut request).await.is_ok_and(|count| count > 0) {}
    };
    futures_lite::future::or(linger, sleep(LINGER)).await;
}

/// Clients on a loop of their own.
struct Load {
    events: EventLoop,
    clients: Vec<Task<io::Result<Tally>>>,
}

/// What came of a client's requests.
#[derive(Default)]
struct Tally {
    answered: u64,
    /// Not answered: the server said that it is closing instead.
    refused: u64,
}

impl Load {
    /// Begins, and returns when the time is over; the load goes on until the server ends it.
    fn start(server: SocketAddr, connections: usize, seconds: u64) -> Result<Self, Box<dyn Error>> {
        let events = EventLoop::builder().name("clients").event_loop();
        events.start()?;
        let handle = events.handle();
        let client = |_| handle.spawn(client(server)).map_err(|refused| refused.why);
        let clients = (0..connections).map(client).collect::<Result<_, _>>()?;
        let time = handle
            .spawn(async move { sleep(Duration::from_secs(seconds)).await })
            .map_err(|refused| refused.why)?;
        block_on(time)?;
        Ok(Self { events, clients })
    }

    fn check(self, answered_by_server: u64) -> Result<(), Box<dyn Error>> {
        let mut sum = Tally::default();
        for client in self.clients {
            let tally = block_on(client)??;
            sum.answered += tally.answered;
            sum.refused += tally.refused;
        }
        drop(self.events);
        println!("clients: {} requests answered, {} refused by the stop", sum.answered, sum.refused);
        if sum.answered != answered_by_server {
            return Err(format!(
                "the server answered {answered_by_server} requests, the clients got {}",
                sum.answered
            )
            .into());
        }
        Ok(())
    }
}

/// Sends requests, one after the other, until the server closes.
async fn client(server: SocketAddr) -> io::Result<Tally> {
    let mut stream = Async::<TcpStream>::connect(server).await?;
    let mut tally = Tally::default();
    let mut answer = [0; REQUEST.len()];
    loop {
        stream.write_all(REQUEST).await?;
        match stream.read_exact(&mut answer).await {
            Ok(()) if answer == *REQUEST => tally.answered += 1,
            Ok(()) => return Err(io::Error::other("the answer is not what was sent")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                tally.refused += 1;
                return Ok(tally);
            }
            Err(error) => return Err(error),
        }
    }
}
