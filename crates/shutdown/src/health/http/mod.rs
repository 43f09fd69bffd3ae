//! Health over HTTP, for load balancers and supervisors.
//!
//! `/health/live` and `/health/ready`, by `GET` or `HEAD`: 200 for a yes, 503 for a no, with [`Probe::to_json`] as
//! the body. It has threads of its own, so that it answers while everything else hangs, and lives in the system's
//! time, because sockets do.
//!
//! [`Probe::to_json`]: super::Probe::to_json

mod exchange;
mod places;

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::{
    Reason, Token, Trigger,
    time::{Deadline, SystemClock},
};

use self::{exchange::exchange, places::Places};
use super::Health;

/// How long a client may take for all of its request and for taking all of the answer.
const EXCHANGE_MAX: Duration = Duration::from_secs(2);

/// How long nobody is accepted after the system has refused to: it does so, at once and again, for as long as the
/// process has no file left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves a program's health, to 16 clients at a time.
///
/// More than that wait, each until one of the 16 is done. One that is not after 250 ms, because it says nothing or does
/// not listen, has to leave for one that waits; if nobody does, it has two seconds.
///
/// Dropping it closes the port and waits for those that are being served: two seconds at most.
#[must_use = "dropped, it serves no more"]
pub struct HealthServer {
    addr: SocketAddr,
    ending: Trigger,
    /// One for each client that is being served.
    places: Arc<Places>,
    /// There until the drop; the listener is the acceptor's, to wake it with.
    acceptor: Option<(JoinHandle<()>, TcpListener)>,
}

impl HealthServer {
    /// Serves `health` at 127.0.0.1, to this machine only. Port 0 is one that is free: see
    /// [`local_addr`](HealthServer::local_addr).
    ///
    /// # Errors
    /// [`ServeError`], if the port cannot be had or the system has no thread to give.
    pub fn start(health: &Health, port: u16) -> Result<Self, ServeError> {
        Self::start_at(health, (Ipv4Addr::LOCALHOST, port).into())
    }

    /// Serves `health` at `addr`, to whoever can reach that. The answers have the names of the program's parts, and
    /// where in its source they were made.
    ///
    /// # Errors
    /// As [`start`](HealthServer::start).
    pub fn start_at(health: &Health, addr: SocketAddr) -> Result<Self, ServeError> {
        Self::listen(health, addr).map_err(|error| ServeError { addr, error })
    }

    fn listen(health: &Health, addr: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        let (addr, ending) = (listener.local_addr()?, Trigger::new());
        let places = Arc::new(Places::default());
        let acceptor = Acceptor {
            health: health.clone(),
            listener: listener.try_clone()?,
            ending: ending.token(),
            places: places.clone(),
        };
        let acceptor = thread::Builder::new().name("ebbtide-health".into()).spawn(move || acceptor.run())?;
        Ok(Self { addr, ending, places, acceptor: Some((acceptor, listener)) })
    }

    /// Where it serves.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for HealthServer {
    fn drop(&mut self) {
        self.ending.fire(Reason::requested("the server of health is dropped"));
        self.places.close();
        let (acceptor, listener) = self.acceptor.take().expect("it is there until the drop");
        // One that could not be told would have to be waited for until the next client comes.
        if end_accept(listener, self.addr) {
            acceptor.join().expect("it does not panic");
        }
        self.places.wait_until_empty();
    }
}

impl fmt::Debug for HealthServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthServer").field("addr", &self.addr).finish_non_exhaustive()
    }
}

/// The thread that waits for clients.
struct Acceptor {
    health: Health,
    listener: TcpListener,
    ending: Token,
    places: Arc<Places>,
}

impl Acceptor {
    fn run(self) {
        while !self.ending.is_triggered() {
            match self.listener.accept() {
                Ok((client, _)) => self.serve(client),
                // One that has left before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Ended early only by the end of the server.
                    let pause = Deadline::after(SystemClock, ACCEPT_PAUSE);
                    let _ = self.ending.triggered().wait_by(pause);
                }
            }
        }
    }

    /// Serves a client on a thread of its own, as soon as there is a place; all who come meanwhile wait to be
    /// accepted. At the end of the server, or where there is no thread, it is dropped, which closes the connection: a
    /// probe takes that for a no, and comes again.
    fn serve(&self, client: TcpStream) {
        let Some(place) = self.places.take() else { return };
        let health = self.health.clone();
        let serve = move || {
            // An error is the client's: it has left, or was too slow.
            let _ = exchange(&health, client, &place);
        };
        drop(thread::Builder::new().name("ebbtide-health-client".into()).spawn(serve));
    }
}

/// Has a thread return that waits in `accept`. Gives whether it will.
///
/// The standard library cannot wait for a client and for something else at once. Linux ends a listener, and all who
/// wait at it, by a shutdown, which needs nothing that could have run out; elsewhere, one more client has to come.
fn end_accept(listener: TcpListener, addr: SocketAddr) -> bool {
    shut(listener) || {
        let ip = match addr.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        TcpStream::connect_timeout(&SocketAddr::new(ip, addr.port()), EXCHANGE_MAX).is_ok()
    }
}

#[cfg(target_os = "linux")]
fn shut(listener: TcpListener) -> bool {
    TcpStream::from(std::os::fd::OwnedFd::from(listener)).shutdown(std::net::Shutdown::Both).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn shut(_: TcpListener) -> bool {
    false
}

/// Why health is not served.
#[derive(Debug)]
pub struct ServeError {
    addr: SocketAddr,
    error: io::Error,
}

impl ServeError {
    /// Where it was to be served.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// Its text says all: there is no source to say it again.
impl std::error::Error for ServeError {}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.error.kind() {
            io::ErrorKind::AddrInUse => "choose another port, or 0 for one that is free",
            io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
            io::ErrorKind::PermissionDenied => {
                "choose a port from 1024 up, or give the program the right to it"
            }
            _ => "choose another address, or see to what the system lacks",
        };
        write!(f, "health cannot be served at {}: {}; {advice}", self.addr, self.error)
    }
}
