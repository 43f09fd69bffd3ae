//! A connection as hyper wants it.

use std::{
    cell::Cell,
    io::{self, IoSlice},
    net::TcpStream,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use ebbtide::reactor::Async;
use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBufCursor, Write};

/// So much is read at a time. Most requests are smaller.
const ROOM: usize = 4 << 10;

/// A connection with a place of its own to read into. What hyper has for that is larger than most requests by far, and
/// would have to be filled with zeros before each look at it; here only what has come is copied.
pub(super) struct Wire {
    stream: Async<TcpStream>,
    room: Box<[u8; ROOM]>,
    flow: Rc<Flow>,
}

/// How far a connection has come, for whoever watches it.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// How many bytes the client has been sent.
    pub(super) written: Cell<u64>,
    /// There is more for the client than it takes.
    pub(super) is_blocked: Cell<bool>,
    /// A request of it is being answered.
    pub(super) is_answering: Cell<bool>,
}

impl Flow {
    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.is_blocked.set(written.is_pending());
        if let Poll::Ready(Ok(count)) = &written {
            self.written.set(self.written.get().wrapping_add(*count as u64));
        }
        written
    }
}

impl Wire {
    pub(super) fn new(stream: Async<TcpStream>, flow: Rc<Flow>) -> Self {
        Self { stream, room: Box::new([0; ROOM]), flow }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut Async<TcpStream>> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl Read for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, room, .. } = self.get_mut();
        let room = &mut room[..buf.remaining().min(ROOM)];
        let count = ready!(Pin::new(stream).poll_read(cx, room))?;
        buf.put_slice(&room[..count]);
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, flow, .. } = self.get_mut();
        flow.note(Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, flow, .. } = self.get_mut();
        flow.note(Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_close(cx)
    }
}
