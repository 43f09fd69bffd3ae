//! TCP echo: 50 connections with requests of 64 bytes, the same client for all servers.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    mem::MaybeUninit,
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    process::{self, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use async_executor::LocalExecutor;
use ebbtide_reactor::{Async, Runtime};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use rustix::event::epoll;

use crate::{
    contest::{Contestant, Table, contest, time},
    peers::{Tokio, monoio},
};

const CONNECTIONS: usize = 50;
const REQUEST: [u8; 64] = [b'~'; 64];

/// The servers; the first is the peer that the others are compared with.
const SERVERS: [&str; 4] = ["tokio current_thread", "ebbtide", "smol", "monoio"];

/// Counts requests, and ends the process with the last.
#[derive(Clone)]
struct Limit {
    left: Arc<AtomicU64>,
}

impl Limit {
    fn count(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            process::exit(0);
        }
    }
}

/// Serves on the runtime of this name, and ends the process after so many requests. Says at which port.
pub(crate) fn serve(name: &str, requests: &str) -> Result<(), String> {
    let left = requests.parse().map_err(|_| format!("{requests:?} is not a number"))?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    println!("{}", listener.local_addr().map_err(|error| error.to_string())?);
    serve_on(name, listener, Limit { left: Arc::new(AtomicU64::new(left)) });
    Ok(())
}

fn serve_on(name: &str, listener: TcpListener, limit: Limit) {
    match name {
        "ebbtide" => Runtime::new().block_on(async {
            let listener = Async::new(listener).expect("registered");
            loop {
                let (stream, _) = listener.accept().await.expect("accepted");
                ebbtide_reactor::spawn(echo(stream, limit.clone())).expect("runs").detach();
            }
        }),
        "smol" => {
            let smol = LocalExecutor::new();
            async_io::block_on(smol.run(async {
                let listener = async_io::Async::new(listener).expect("registered");
                loop {
                    let (stream, _) = listener.accept().await.expect("accepted");
                    smol.spawn(echo(stream, limit.clone())).detach();
                }
            }));
        }
        "monoio" => monoio().block_on(async {
            listener.set_nonblocking(true).expect("a socket");
            let listener = monoio::net::TcpListener::from_std(listener).expect("registered");
            loop {
                let (mut stream, _) = listener.accept().await.expect("accepted");
                let limit = limit.clone();
                monoio::spawn(async move {
                    let mut request = vec![0; 4096];
                    loop {
                        let (count, read) = stream.read(request).await;
                        request = read;
                        match count {
                            Ok(0) | Err(_) => return,
                            Ok(count) => request.truncate(count),
                        }
                        let (written, whole) = stream.write_all(request).await;
                        if written.is_err() {
                            return;
                        }
                        request = whole;
                        request.resize(4096, 0);
                        limit.count();
                    }
                });
            }
        }),
        _ => Tokio::with_io().block_on(async {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};

            listener.set_nonblocking(true).expect("a socket");
            let listener = tokio::net::TcpListener::from_std(listener).expect("registered");
            loop {
                let (mut stream, _) = listener.accept().await.expect("accepted");
                let limit = limit.clone();
                tokio::task::spawn_local(async move {
                    let mut request = [0; 4096];
                    while let Ok(count @ 1..) = stream.read(&mut request).await {
                        if stream.write_all(&request[..count]).await.is_err() {
                            return;
                        }
                        limit.count();
                    }
                });
            }
        }),
    }
}

async fn echo(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, limit: Limit) {
    let mut request = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut request).await {
        if stream.write_all(&request[..count]).await.is_err() {
            return;
        }
        limit.count();
    }
}

/// All connections on one thread, with nothing between it and the system.
struct Client {
    epoll: OwnedFd,
    streams: Vec<TcpStream>,
}

impl Client {
    fn connect(server: SocketAddr) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let streams = (0..CONNECTIONS).map(|_| TcpStream::connect(server)).collect::<io::Result<Vec<_>>>()?;
        for (nth, stream) in streams.iter().enumerate() {
            stream.set_nodelay(true)?;
            epoll::add(&epoll, stream, epoll::EventData::new_u64(nth as u64), epoll::EventFlags::IN)?;
        }
        Ok(Self { epoll, streams })
    }

    /// Makes so many requests, one at a time on each connection.
    fn request(&self, requests: usize) -> io::Result<()> {
        let (mut sent, mut answered) = (0, 0);
        for mut stream in self.streams.iter().take(requests) {
            stream.write_all(&REQUEST)?;
            sent += 1;
        }
        let mut events = [const { MaybeUninit::uninit() }; CONNECTIONS];
        while answered < requests {
            let (ready, _) = epoll::wait(&self.epoll, &mut events[..], None)?;
            for event in ready {
                let mut stream = &self.streams[event.data.u64() as usize];
                // They are small enough to come in one piece.
                stream.read_exact(&mut [0; REQUEST.len()])?;
                answered += 1;
                if sent < requests {
                    stream.write_all(&REQUEST)?;
                    sent += 1;
                }
            }
        }
        Ok(())
    }
}

/// The time for a request.
pub(super) fn requests() -> Table {
    let clients = SERVERS.map(|name| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        // They end with the process.
        thread::spawn(move || serve_on(name, listener, Limit { left: Arc::new(AtomicU64::new(u64::MAX)) }));
        Client::connect(address).expect("served")
    });
    let mut contestants = SERVERS
        .iter()
        .zip(&clients)
        .map(|(name, client)| Contestant::new(name, |n| time(1, || client.request(n).expect("answered"))));
    let peer = contestants.next().expect("there are some");
    // As fast as the best, within the noise: most of it is the system's.
    let others = contestants.map(|other| if other.is("ebbtide") { other.target(1.03) } else { other });
    contest("TCP echo, 50 connections of 64 bytes, a request", 2_000, peer, others)
}

/// The instructions that a server spends on a request outside of the system.
pub(super) fn instructions() -> Table {
    let counted = |name, requests: u64| {
        let this = env::current_exe().expect("this program");
        let mut server = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(this)
            .args(["serve", name, &requests.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("there is a valgrind");
        let mut address = String::new();
        let said = BufReader::new(server.stdout.as_mut().expect("it is piped")).read_line(&mut address);
        said.expect("it says where");
        let client = Client::connect(address.trim().parse().expect("an address")).expect("served");
        // The last answer may be cut off by the end of the server.
        let _ = client.request(requests as usize);
        let report = server.wait_with_output().expect("it ends");
        let report = String::from_utf8_lossy(&report.stderr).into_owned();
        let count = report.split("Collected :").nth(1).and_then(|rest| rest.split_whitespace().next());
        count.and_then(|count| count.parse::<f64>().ok()).expect("valgrind says how many")
    };
    eprintln!("TCP echo, instructions …");
    let (few, many) = (2_000, 12_000);
    let count = |name| vec![(counted(name, many) - counted(name, few)) / (many - few) as f64];
    Table::of(
        "TCP echo, instructions outside of the system for a request",
        "instructions",
        SERVERS,
        SERVERS.map(count),
        [None, Some(0.8), None, None],
    )
}
