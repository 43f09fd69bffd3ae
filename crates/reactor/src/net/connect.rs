//! Connecting without blocking.

use std::io;

use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

/// A socket that is connected, or about to be.
pub(super) fn begin(domain: Domain, address: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(address) {
        Err(error) if !is_in_progress(&error) => Err(error),
        _ => Ok(socket),
    }
}

/// Whether the connection comes about by and by. On Unix a socket that says "would block" has given up: the
/// queue of the listener is full.
fn is_in_progress(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error())
        || cfg!(windows) && error.kind() == io::ErrorKind::WouldBlock
}

/// What came of it: `peer` tells whether there is somebody on the other side.
///
/// # Errors
/// `WouldBlock` as long as nothing has come of it.
pub(super) fn end<A>(error: Option<io::Error>, peer: io::Result<A>) -> io::Result<()> {
    if let Some(error) = error {
        return Err(error);
    }
    match peer {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
        peer => peer.map(drop),
    }
}
