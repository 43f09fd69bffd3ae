//! Unix sockets.

use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
    },
    path::Path,
    task::{Context, Poll},
};

use socket2::{Domain, SockAddr};

use super::{Incoming, connect};
use crate::{
    Async,
    io::{Direction, Slot, set_nonblocking},
};

impl Async<UnixListener> {
    /// Listens at `path`, which must not exist yet; it stays there when the listener is dropped.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::new(UnixListener::bind(path)?)
    }

    /// Accepts a connection. See `accept` of a [`TcpListener`](super::TcpListener) for what to do when descriptors
    /// run out.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancel safety
    /// No connection is lost when this is dropped before its end.
    pub async fn accept(&self) -> io::Result<(Async<UnixStream>, SocketAddr)> {
        self.read_with(accept).await
    }

    /// The same, for who polls: of several, the last is woken.
    ///
    /// # Errors
    /// What the system says.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Async<UnixStream>, SocketAddr)>> {
        self.poll_with(Direction::Read, Slot::Polled, cx, &mut accept)
    }

    /// The connections, one after the other. An error does not end them.
    pub fn incoming(&self) -> Incoming<'_, UnixListener> {
        Incoming { listener: self }
    }
}

fn accept(listener: &UnixListener) -> io::Result<(Async<UnixStream>, SocketAddr)> {
    let (stream, address) = listener.accept()?;
    set_nonblocking(&stream)?;
    Ok((Async::ready_made(stream), address))
}

impl Async<UnixStream> {
    /// Connects to the listener at `path`.
    ///
    /// # Errors
    /// What the system says. `WouldBlock` means that the listener's queue is full: try again later.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let socket = connect::begin(Domain::UNIX, &SockAddr::unix(path)?)?;
        let stream = Self::ready_made(OwnedFd::from(socket).into());
        stream.write_with(|io| connect::end(io.take_error()?, io.peer_addr())).await?;
        Ok(stream)
    }

    /// Two streams that are connected to each other.
    ///
    /// # Errors
    /// What the system says.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixStream::pair()?;
        Ok((Self::new(one)?, Self::new(other)?))
    }
}

impl Async<UnixDatagram> {
    /// A socket at `path`, which must not exist yet; it stays there when the socket is dropped.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::new(UnixDatagram::bind(path)?)
    }

    /// A socket without an address: it can send, and receive nothing but from whom it is connected to.
    ///
    /// # Errors
    /// What the system says.
    pub fn unbound() -> io::Result<Self> {
        Self::new(UnixDatagram::unbound()?)
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// What the system says.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixDatagram::pair()?;
        Ok((Self::new(one)?, Self::new(other)?))
    }

    /// Receives a datagram, and tells from whom. What has no room in `buf` is lost.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancel safety
    /// No datagram is lost when this is dropped before its end.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.read_with(|io| io.recv_from(buf)).await
    }

    /// Sends a datagram to the socket at `path`. It does not wait: no system tells when another socket has room
    /// again. To wait for that, connect to it first (`get_ref().connect(path)`), and [`send`](Async::send).
    ///
    /// # Errors
    /// What the system says; and `WouldBlock` if the queue of the receiver is full.
    pub fn send_to(&self, buf: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        self.get_ref().send_to(buf, &path)
    }

    /// Receives a datagram.
    ///
    /// # Errors
    /// What the system says.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_with(|io| io.recv(buf)).await
    }

    /// Sends a datagram to the socket that this one is connected to.
    ///
    /// # Errors
    /// What the system says; also that the socket is not connected.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.write_with(|io| io.send(buf)).await
    }
}

impl TryFrom<UnixListener> for Async<UnixListener> {
    type Error = io::Error;

    fn try_from(listener: UnixListener) -> io::Result<Self> {
        Self::new(listener)
    }
}

impl TryFrom<UnixStream> for Async<UnixStream> {
    type Error = io::Error;

    fn try_from(stream: UnixStream) -> io::Result<Self> {
        Self::new(stream)
    }
}

impl TryFrom<UnixDatagram> for Async<UnixDatagram> {
    type Error = io::Error;

    fn try_from(socket: UnixDatagram) -> io::Result<Self> {
        Self::new(socket)
    }
}
