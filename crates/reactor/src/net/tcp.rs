//! TCP.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    task::{Context, Poll},
};

use socket2::{Domain, SockAddr};

use super::{Incoming, connect};
use crate::{
    Async,
    io::{Direction, Slot, set_nonblocking},
};

impl Async<TcpListener> {
    /// Listens at `address`. With port 0 the system chooses one; `get_ref().local_addr()` tells which.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(address: impl Into<SocketAddr>) -> io::Result<Self> {
        Self::new(TcpListener::bind(address.into())?)
    }

    /// Accepts a connection. What is written to it is [sent at once](Async::connect).
    ///
    /// # Errors
    /// What the system says. That it has no descriptors left ([`io::ErrorKind::QuotaExceeded`] does not cover it:
    /// the codes are `EMFILE` and `ENFILE`) is said at once and every time until some are closed: sleep a little
    /// before the next try. The connection stays in the queue of the system.
    ///
    /// # Cancel safety
    /// No connection is lost when this is dropped before its end.
    pub async fn accept(&self) -> io::Result<(Async<TcpStream>, SocketAddr)> {
        self.read_with(accept).await
    }

    /// The same, for who polls: of several, the last is woken.
    ///
    /// # Errors
    /// As [`accept`](Async::accept).
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Async<TcpStream>, SocketAddr)>> {
        self.poll_with(Direction::Read, Slot::Polled, cx, &mut accept)
    }

    /// The connections, one after the other. An error does not end them; see [`accept`](Async::accept).
    pub fn incoming(&self) -> Incoming<'_, TcpListener> {
        Incoming { listener: self }
    }
}

fn accept(listener: &TcpListener) -> io::Result<(Async<TcpStream>, SocketAddr)> {
    let (stream, address) = listener.accept()?;
    set_nonblocking(&stream)?;
    send_at_once(&stream);
    Ok((Async::ready_made(stream), address))
}

/// Otherwise the system keeps small writes back until the other side has acknowledged those before them, which takes it
/// up to 40 ms where it has nothing to say itself.
fn send_at_once(stream: &TcpStream) {
    // It is refused only by a connection that has come to nothing, whose next operation says so.
    let _ = stream.set_nodelay(true);
}

impl Async<TcpStream> {
    /// Connects to `address`. On a loop: where none runs, connect with `std`, and take [`Async::new_on`].
    ///
    /// What is written is sent at once, however little it is, as on connections that are [accepted](Async::accept):
    /// `get_ref().set_nodelay(false)` has the system collect it.
    ///
    /// # Errors
    /// What the system says, now or when the other side has answered.
    ///
    /// # Cancel safety
    /// When this is dropped before its end, there is no connection, or it is closed.
    pub async fn connect(address: impl Into<SocketAddr>) -> io::Result<Self> {
        let address = address.into();
        let socket = connect::begin(Domain::for_address(address), &SockAddr::from(address))?;
        let stream = TcpStream::from(socket);
        send_at_once(&stream);
        let stream = Self::ready_made(stream);
        stream.write_with(|io| connect::end(io.take_error()?, io.peer_addr())).await?;
        Ok(stream)
    }

    /// Reads without taking: what is read next is the same.
    ///
    /// # Errors
    /// What the system says.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_with(|io| io.peek(buf)).await
    }
}

impl TryFrom<TcpListener> for Async<TcpListener> {
    type Error = io::Error;

    fn try_from(listener: TcpListener) -> io::Result<Self> {
        Self::new(listener)
    }
}

impl TryFrom<TcpStream> for Async<TcpStream> {
    type Error = io::Error;

    fn try_from(stream: TcpStream) -> io::Result<Self> {
        Self::new(stream)
    }
}
