//! Addresses by name.

use std::{
    io,
    net::{SocketAddr, TcpStream, ToSocketAddrs},
};

use crate::Async;

/// The addresses of a host and port, such as `"example.org:443"`.
///
/// The system looks names up by blocking, so that is done on a thread of the `blocking` crate; an address that is
/// written out needs none.
///
/// # Errors
/// What the system says; and `NotFound` if the name has no address.
///
/// # Cancel safety
/// A look-up that has begun goes on by itself when this is dropped.
pub async fn resolve(host: impl Into<String>) -> io::Result<Vec<SocketAddr>> {
    let host = host.into();
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let named = host.clone();
    let addresses: Vec<_> = blocking::unblock(move || named.to_socket_addrs()).await?.collect();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("{host:?} has no address")));
    }
    Ok(addresses)
}

impl Async<TcpStream> {
    /// Connects to a host by name, such as `"example.org:443"`: to the first of its addresses that takes the
    /// connection.
    ///
    /// # Errors
    /// Those of [`resolve`], and what was said of the last address.
    pub async fn connect_host(host: impl Into<String>) -> io::Result<Self> {
        let mut last = None;
        for address in resolve(host).await? {
            match Self::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }
}
