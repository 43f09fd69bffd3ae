//! Tokio's traits for I/O, in both directions. They need no runtime of tokio's.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::io::ReadBuf;

pin_project! {
    /// A stream with tokio's traits, out of one with those of `futures-io`: for libraries that are written for
    /// tokio's I/O, but not for its runtime.
    #[derive(Clone, Debug, Default)]
    pub struct TokioIo<T> {
        #[pin]
        io: T,
    }
}

pin_project! {
    /// A stream with the traits of `futures-io`, out of one with tokio's: the other way round.
    #[derive(Clone, Debug, Default)]
    pub struct FuturesIo<T> {
        #[pin]
        io: T,
    }
}

impl<T> TokioIo<T> {
    /// Gives a stream tokio's traits.
    pub const fn new(io: T) -> Self {
        Self { io }
    }

    /// The stream.
    pub const fn get_ref(&self) -> &T {
        &self.io
    }

    /// The stream.
    pub fn into_inner(self) -> T {
        self.io
    }
}

impl<T> FuturesIo<T> {
    /// Gives a stream the traits of `futures-io`.
    pub const fn new(io: T) -> Self {
        Self { io }
    }

    /// The stream.
    pub const fn get_ref(&self) -> &T {
        &self.io
    }

    /// The stream.
    pub fn into_inner(self) -> T {
        self.io
    }
}

impl<T: futures_io::AsyncRead> tokio::io::AsyncRead for TokioIo<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = ready!(self.project().io.poll_read(cx, buf.initialize_unfilled()))?;
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<T: futures_io::AsyncWrite> tokio::io::AsyncWrite for TokioIo<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.project().io.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().io.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().io.poll_close(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().io.poll_write_vectored(cx, bufs)
    }
}

impl<T: tokio::io::AsyncRead> futures_io::AsyncRead for FuturesIo<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(self.project().io.poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

impl<T: tokio::io::AsyncWrite> futures_io::AsyncWrite for FuturesIo<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.project().io.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().io.poll_write_vectored(cx, bufs)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().io.poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().io.poll_shutdown(cx)
    }
}
