//! Connections, one after the other.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use crate::Async;

/// The connections of a listener, one after the other; from its `incoming`. It has no end.
#[must_use = "streams do nothing unless polled"]
pub struct Incoming<'a, L> {
    pub(super) listener: &'a Async<L>,
}

impl Stream for Incoming<'_, std::net::TcpListener> {
    type Item = io::Result<super::TcpStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.listener.poll_accept(cx).map_ok(|(stream, _)| stream).map(Some)
    }
}

#[cfg(unix)]
impl Stream for Incoming<'_, std::os::unix::net::UnixListener> {
    type Item = io::Result<super::UnixStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.listener.poll_accept(cx).map_ok(|(stream, _)| stream).map(Some)
    }
}

impl<L: fmt::Debug> fmt::Debug for Incoming<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming").field(self.listener).finish()
    }
}
