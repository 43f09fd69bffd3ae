//! UDP.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
};

use crate::Async;

impl Async<UdpSocket> {
    /// A socket at `address`. With port 0 the system chooses one.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(address: impl Into<SocketAddr>) -> io::Result<Self> {
        Self::new(UdpSocket::bind(address.into())?)
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

    /// Receives a datagram without taking it: the next one received is the same.
    ///
    /// # Errors
    /// What the system says.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.read_with(|io| io.peek_from(buf)).await
    }

    /// Sends a datagram to `address`.
    ///
    /// # Errors
    /// What the system says.
    pub async fn send_to(&self, buf: &[u8], address: impl Into<SocketAddr>) -> io::Result<usize> {
        let address = address.into();
        self.write_with(|io| io.send_to(buf, address)).await
    }

    /// Receives a datagram from the address that the socket is connected to (`get_ref().connect()`).
    ///
    /// # Errors
    /// What the system says; also that the socket is not connected.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_with(|io| io.recv(buf)).await
    }

    /// Sends a datagram to the address that the socket is connected to.
    ///
    /// # Errors
    /// What the system says; also that the socket is not connected.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.write_with(|io| io.send(buf)).await
    }
}

impl TryFrom<UdpSocket> for Async<UdpSocket> {
    type Error = io::Error;

    fn try_from(socket: UdpSocket) -> io::Result<Self> {
        Self::new(socket)
    }
}
