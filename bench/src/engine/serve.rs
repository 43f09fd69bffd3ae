//! The program as a server, against a bare one, each in a process of its own.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    mem::MaybeUninit,
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::event::epoll;

use super::http::ANSWER;
use crate::contest::{Contestant, Table, measure, time};

const CONNECTIONS: usize = 32;

/// Requests of a round.
const REQUESTS: usize = 5_000;

/// Odd, so that the median is one of them.
const ROUNDS: usize = 51;

/// For 0.9 of the requests in a second, each may take so much longer.
const TARGET: f64 = 1.0 / 0.9;

const REQUEST: &str = concat!(
    "POST /plans/hello HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 36\r\n\r\n",
    r#"{"user_id":1,"request_id":"hello"}"#,
    "\r\n"
);

pub(super) fn run() -> Vec<Table> {
    let this = env::current_exe().expect("this program");
    let program = this.with_file_name("ebbtide");
    assert!(
        program.exists(),
        "there is no {}: run `cargo build --release --package ebbtide-cli` before",
        program.display()
    );
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plans/hello.json");
    let bare = Served::start(Command::new(this).arg("serve-bare"));
    let serve = |loops: &[&str]| {
        let mut command = Command::new(&program);
        Served::start(command.arg("serve").arg(&plan).args(["--listen", "127.0.0.1:0"]).args(loops))
    };
    let (ours, on_one) = (serve(&[]), serve(&["--loops", "1"]));
    let round = |served: &Served| {
        let took = time(1, || served.client.request(REQUESTS).expect("answered"));
        took.as_nanos() as f64 / REQUESTS as f64
    };
    let peer = Contestant::value("bare hyper on tokio current_thread", || round(&bare));
    let others = [
        Contestant::value("ebbtide serve", || round(&ours)).target(TARGET),
        // As the peer is.
        Contestant::value("ebbtide serve, on one loop", || round(&on_one)).target(TARGET),
    ];
    vec![measure("HTTP, 32 connections, the plan hello, a request", "ns", ROUNDS, peer, others)]
}

/// A server in a process of its own, which is killed in the end, and connections to it.
struct Served {
    child: Child,
    client: Client,
}

impl Served {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server runs");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut said)
            .expect("it says where");
        let address =
            said.trim().strip_prefix("listening on http://").and_then(|address| address.parse().ok());
        let client = Client::connect(address.expect("an address")).expect("served");
        Self { child, client }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended by itself is as dead.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
            stream.write_all(REQUEST.as_bytes())?;
            sent += 1;
        }
        let mut events = [const { MaybeUninit::uninit() }; CONNECTIONS];
        let mut buffer = [0; 1024];
        while answered < requests {
            let (ready, _) = epoll::wait(&self.epoll, &mut events[..], None)?;
            for event in ready {
                let mut stream = &self.streams[event.data.u64() as usize];
                // They are small enough to come in one piece.
                let count = stream.read(&mut buffer)?;
                if !buffer[..count].ends_with(ANSWER.as_bytes()) {
                    let got = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    return Err(io::Error::other(format!("not the answer: {got}")));
                }
                answered += 1;
                if sent < requests {
                    stream.write_all(REQUEST.as_bytes())?;
                    sent += 1;
                }
            }
        }
        Ok(())
    }
}
