//! The traits of hyper for I/O, executors and timers.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Executor, Read, ReadBufCursor, Timer, Write};
use pin_project_lite::pin_project;

use crate::{Handle, Local, Sleep, now, sleep, sleep_until};

pin_project! {
    /// A stream for hyper, out of one with the traits of `futures-io`.
    #[derive(Clone, Debug, Default)]
    pub struct HyperIo<T> {
        #[pin]
        io: T,
    }
}

impl<T> HyperIo<T> {
    /// Makes a stream one for hyper.
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

impl<T: AsyncRead> Read for HyperIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: nothing that has been initialised is made uninitialised: it is written to, below.
        let room = unsafe { buf.as_mut() };
        room.fill(std::mem::MaybeUninit::new(0));
        // SAFETY: it has just been filled.
        let bytes = unsafe { &mut *(std::ptr::from_mut(room) as *mut [u8]) };
        let len = bytes.len();
        let count = ready!(self.project().io.poll_read(cx, bytes))?;
        assert!(count <= len, "a stream cannot read more than there is room for");
        // SAFETY: all of the room is initialised, and no more than that was read.
        unsafe { buf.advance(count) };
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite> Write for HyperIo<T> {
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

/// What is refused is dropped: the trait has no room to hand it back.
impl<F> Executor<F> for Handle
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        drop(self.spawn(future));
    }
}

/// What is refused is dropped: the trait has no room to hand it back.
impl<F: Future + 'static> Executor<F> for Local {
    fn execute(&self, future: F) {
        drop(self.spawn(future));
    }
}

impl hyper::rt::Sleep for Sleep {}

impl Timer for Handle {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Self::sleep(self, duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Self::sleep_until(self, deadline))
    }

    fn now(&self) -> Instant {
        Self::now(self)
    }
}

impl Timer for Local {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(sleep(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(sleep_until(deadline))
    }

    fn now(&self) -> Instant {
        now()
    }
}
