//! What is asked of the operating system about a single source.

use std::io;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionbio},
    net::{Shutdown, shutdown},
};

use super::{poll::RawSource, source::Direction};

#[cfg(unix)]
pub(super) use std::os::fd::AsFd as AsSource;
#[cfg(windows)]
pub(super) use std::os::windows::io::AsSocket as AsSource;

/// Whether the end of a stream is reported as such. Where it is not, a short read proves nothing.
pub(crate) const REPORTS_CLOSING: bool = cfg!(all(target_os = "linux", not(ebbtide_portable)));

#[cfg(unix)]
pub(crate) fn raw(io: &impl AsSource) -> RawSource {
    std::os::fd::AsRawFd::as_raw_fd(&io.as_fd())
}

#[cfg(windows)]
pub(crate) fn raw(io: &impl AsSource) -> RawSource {
    std::os::windows::io::AsRawSocket::as_raw_socket(&io.as_socket())
}

pub(crate) fn set_nonblocking(io: &impl AsSource) -> io::Result<()> {
    Ok(ioctl_fionbio(io, true)?)
}

/// Whether an operation in this direction would not block.
pub(crate) fn is_ready(io: &impl AsSource, direction: Direction) -> io::Result<bool> {
    let wanted = match direction {
        Direction::Read => PollFlags::IN,
        Direction::Write => PollFlags::OUT,
    };
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(poll(&mut [PollFd::new(io, wanted)], Some(&at_once))? > 0)
}

/// Closes a socket for writing. What is no socket, or is not connected any more, has nothing to close.
pub(crate) fn close_for_writing(io: &impl AsSource) -> io::Result<()> {
    match shutdown(io, Shutdown::Write) {
        Ok(()) | Err(Errno::NOTSOCK | Errno::NOTCONN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
