//! TCP, UDP and Unix sockets.
//!
//! They are those of the standard library, made [asynchronous](Async): their operations are methods of
//! `Async<std::net::TcpStream>` and so on, for which there are shorter names here. What does not have to wait,
//! such as `local_addr` or `set_nodelay`, is at [`get_ref`](Async::get_ref).
//!
//! Hosts are looked up by name with the feature `resolve`.
//!
//! Streams are read and written with the traits of `futures-io`, also through a shared reference, so that one
//! task can read what another writes.

mod connect;
mod incoming;
#[cfg(feature = "resolve")]
mod resolve;
mod tcp;
mod udp;
#[cfg(unix)]
mod unix;

pub use self::incoming::Incoming;
#[cfg(feature = "resolve")]
pub use self::resolve::resolve;
use crate::Async;

/// Listens for TCP connections.
pub type TcpListener = Async<std::net::TcpListener>;
/// A TCP connection.
pub type TcpStream = Async<std::net::TcpStream>;
/// A UDP socket.
pub type UdpSocket = Async<std::net::UdpSocket>;
/// Listens for connections on a Unix socket.
#[cfg(unix)]
pub type UnixListener = Async<std::os::unix::net::UnixListener>;
/// A connection on a Unix socket.
#[cfg(unix)]
pub type UnixStream = Async<std::os::unix::net::UnixStream>;
/// A Unix socket of datagrams.
#[cfg(unix)]
pub type UnixDatagram = Async<std::os::unix::net::UnixDatagram>;
