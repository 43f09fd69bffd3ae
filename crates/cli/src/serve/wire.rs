//! A connection as hyper wants it.

use std::{
    cell::Cell,
    io::{self, IoSlice},
    net::TcpStream,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};

use ebbtide::reactor::{Async, now};
use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBufCursor, Write};

/// So much is read at a time. Most requests are smaller.
const ROOM: usize = 4 << 10;

/// A connection with a place of its own to read into. What hyper has for that is larger than most requests by far, and
/// would have to be filled with zeros before each look at it; here only what has come is copied.
pub(super) struct Wire<'a> {
    stream: Async<TcpStream>,
    room: Box<[u8; ROOM]>,
    flow: &'a Flow,
}

/// How far a connection has come, for whoever watches it.
#[derive(Debug)]
pub(super) struct Flow {
    /// How many bytes the client has been sent.
    written: Cell<u64>,
    /// There is more for the client than it takes.
    is_blocked: Cell<bool>,
    /// A request of it is being answered.
    is_answering: Cell<bool>,
    /// When it was last the client's turn: it had its answer, or some of it and was to take more.
    since: Cell<Instant>,
}

impl Flow {
    /// Of a connection that begins now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            written: Cell::new(0),
            is_blocked: Cell::new(false),
            is_answering: Cell::new(false),
            since: Cell::new(now),
        }
    }

    /// A request has come, and is answered from now on.
    pub(super) fn begin(&self) {
        self.is_answering.set(true);
    }

    /// It was answered.
    pub(super) fn end(&self, now: Instant) {
        self.is_answering.set(false);
        self.since.set(now);
    }

    /// How many bytes the client has been sent.
    pub(super) fn written(&self) -> u64 {
        self.written.get()
    }

    /// Whether a request is being answered.
    pub(super) fn is_answering(&self) -> bool {
        self.is_answering.get()
    }

    /// Since when the client is waited for, if it is.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        (self.is_blocked.get() || !self.is_answering.get()).then(|| self.since.get())
    }

    /// Notes how an attempt to write went. The time is asked for only where the client does not keep up.
    pub(super) fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let is_blocked = written.is_pending();
        if self.is_blocked.replace(is_blocked) != is_blocked {
            self.since.set(now());
        }
        if let Poll::Ready(Ok(count)) = &written {
            self.written.set(self.written.get().wrapping_add(*count as u64));
        }
        written
    }
}

impl<'a> Wire<'a> {
    pub(super) fn new(stream: Async<TcpStream>, flow: &'a Flow) -> Self {
        Self { stream, room: Box::new([0; ROOM]), flow }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut Async<TcpStream>> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl Read for Wire<'_> {
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

impl Write for Wire<'_> {
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
