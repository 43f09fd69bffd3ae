//! Any source of I/O, made asynchronous.

use std::{
    any::TypeId,
    fmt,
    future::Future,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    net::TcpStream,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll, Waker, ready},
};

use futures_io::{AsyncRead, AsyncWrite};

use super::{
    driver::{Registration, ended},
    os::{self, AsSource},
    source::{Direction, Parked, Seen, Slot},
};
use crate::{Handle, core::Core, shared::Shared};

/// A source of I/O whose operations are awaited instead of blocking.
///
/// The source can be whatever the operating system can wait for: sockets, pipes, terminals, and descriptors such
/// as those of `inotify`. Those of [`std::net`] and of `std::os::unix::net` have their operations as methods; see
/// [`net`](crate::net). With others, hand the operation to [`read_with`](Async::read_with) or
/// [`write_with`](Async::write_with).
///
/// ```
/// use std::{io::Write, net::{TcpListener, TcpStream}};
/// use ebbtide_reactor::{Async, Runtime};
///
/// let mut runtime = Runtime::new();
/// runtime.block_on(async {
///     let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
///     let mut peer = TcpStream::connect(listener.get_ref().local_addr()?)?;
///     let (stream, _) = listener.accept().await?;
///     peer.write_all(b"ebb")?;
///     let mut bytes = [0; 8];
///     let count = stream.read_with(|stream| stream.peek(&mut bytes)).await?;
///     assert_eq!(&bytes[..count], b"ebb");
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
///
/// # Whose it is
/// What [`Async::new`] makes belongs to the loop that runs there, and what [`Async::new_on`] makes to that of
/// the handle. What is made where no loop runs, and connections that are accepted or made, belong to the loop
/// on which they are first waited for. That loop reports when it is ready; it may be used on any thread and
/// with any executor. When the loop ends, whoever waits gets an error, and operations that need not wait still
/// work.
///
/// # Who is woken
/// Any number may await its futures at the same time, in either direction; all are woken, and try. Of those who
/// *poll* ([`AsyncRead`], [`AsyncWrite`], and the functions that begin with `poll`), the last one for each
/// direction is woken. So one half may be read by one task, through `&Async`, and written by another.
///
/// # Fairness
/// A source that is always ready would never let its task wait. So once in more than a hundred operations on a
/// loop, one is pending though it could be done, wakes its task, and lets others go first.
pub struct Async<T> {
    /// Before `io`, so that it is gone when the source is closed.
    registration: OnceLock<Registration>,
    io: T,
}

impl<T: AsSource + 'static> Async<T> {
    /// Makes `io` asynchronous: it is set to be non-blocking, and registered with the loop that runs here, if any.
    ///
    /// # Errors
    /// What the system says when it cannot be done: it may be closed, or a file, which no system can wait for.
    /// Where no loop runs, some of that is said only when it is waited for.
    pub fn new(io: T) -> io::Result<Self> {
        let new = Self::set_up(io)?;
        if let Some(core) = Core::current() {
            new.register(core.shared())?;
        }
        Ok(new)
    }

    /// The same, registered with the loop of `handle`.
    ///
    /// # Errors
    /// As [`new`](Async::new), and if that loop has ended.
    pub fn new_on(handle: &Handle, io: T) -> io::Result<Self> {
        let new = Self::set_up(io)?;
        new.register(&handle.shared)?;
        Ok(new)
    }

    fn set_up(io: T) -> io::Result<Self> {
        os::set_nonblocking(&io)?;
        Ok(Self::ready_made(io))
    }

    /// A source that is non-blocking already, and that the system can wait for. It is registered when it has to be
    /// waited for.
    pub(crate) fn ready_made(io: T) -> Self {
        Self { registration: OnceLock::new(), io }
    }

    fn register(&self, shared: &Shared) -> io::Result<()> {
        let driver = shared.driver_or_new()?;
        // SAFETY: the registration is dropped before the source, which nobody can get at but by a shared reference
        // or after the registration has gone. If neither is dropped, the source is `'static`. So it stays open.
        unsafe { driver.register(os::raw(&self.io), &self.registration) }
    }

    /// The registration with the loop that it belongs to, or that runs here.
    fn registered(&self) -> io::Result<&Registration> {
        if let Some(registration) = self.registration.get() {
            return Ok(registration);
        }
        let core = Core::current().ok_or_else(|| {
            io::Error::other("this I/O belongs to no loop, and none runs here: make it with `Async::new_on`")
        })?;
        self.register(core.shared())?;
        Ok(self.registration.get().expect("it has just been registered"))
    }
}

impl<T> Async<T> {
    /// The source.
    pub const fn get_ref(&self) -> &T {
        &self.io
    }

    /// The source, as it is: still non-blocking.
    pub fn into_inner(self) -> T {
        let Self { registration, io, .. } = self;
        drop(registration);
        io
    }
}

impl<T: AsSource + 'static> Async<T> {
    /// Waits until the source can be read from: until there is something, or the end of it, or an error.
    ///
    /// The system is asked, so that whoever reads by other means than [`read_with`](Async::read_with) does not
    /// turn in circles; still somebody else may be faster.
    ///
    /// # Errors
    /// If the source cannot be waited for, or its loop has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost when this is dropped before its end.
    pub fn readable(&self) -> Ready<'_, T> {
        Ready { place: Place { source: self, direction: Direction::Read, key: None } }
    }

    /// Waits until the source can be written to. See [`readable`](Async::readable).
    ///
    /// # Errors
    /// As `readable`.
    pub fn writable(&self) -> Ready<'_, T> {
        Ready { place: Place { source: self, direction: Direction::Write, key: None } }
    }

    /// Does `operation` as soon as it does not say [`WouldBlock`](io::ErrorKind::WouldBlock): tries at once, and
    /// again whenever the source can be read from.
    ///
    /// # Errors
    /// Those of the operation, but for `WouldBlock` and `Interrupted`; and those of [`readable`](Async::readable).
    ///
    /// # Cancel safety
    /// When this is dropped before its end, the operation has said `WouldBlock`, or was not begun.
    pub async fn read_with<R>(&self, operation: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.with(Direction::Read, operation).await
    }

    /// The same for writing.
    ///
    /// # Errors
    /// As [`read_with`](Async::read_with).
    pub async fn write_with<R>(&self, operation: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.with(Direction::Write, operation).await
    }

    async fn with<R>(
        &self,
        direction: Direction,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut place = Place { source: self, direction, key: None };
        std::future::poll_fn(|cx| self.poll_with(direction, Slot::Own(&mut place.key), cx, &mut operation))
            .await
    }

    /// As [`readable`](Async::readable), for who polls: of several, the last is woken.
    ///
    /// # Errors
    /// As `readable`.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(Direction::Read, Slot::Polled, cx)
    }

    /// As [`writable`](Async::writable), for who polls: of several, the last is woken.
    ///
    /// # Errors
    /// As `writable`.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(Direction::Write, Slot::Polled, cx)
    }

    fn poll_ready(&self, direction: Direction, slot: Slot<'_>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(direction, slot, cx, &mut |io: &T| {
            if os::is_ready(io, direction)? { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        })
    }

    /// Tries the operation, and waits while it would block.
    pub(crate) fn poll_with<R>(
        &self,
        direction: Direction,
        slot: Slot<'_>,
        cx: &mut Context<'_>,
        operation: &mut impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_seeing(direction, slot, cx, &mut |io, _| operation(io))
    }

    /// The same, for operations that can tell from what they got that the next one would block.
    fn poll_seeing<R>(
        &self,
        direction: Direction,
        mut slot: Slot<'_>,
        cx: &mut Context<'_>,
        operation: &mut impl FnMut(&T, Sight<'_>) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        ready!(poll_turn(cx.waker()));
        loop {
            let registration = self.registration.get();
            let seen = registration.map(|registration| registration.source().look());
            if seen.is_none_or(|seen| seen.is_ready(direction)) {
                let sight = Sight { registration, seen };
                match operation(&self.io, sight) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    done => {
                        spend_turn();
                        return Poll::Ready(done);
                    }
                }
            }
            let registration = self.registered()?;
            let source = registration.source();
            // A source that has just been registered is as it was before the operation: what comes since is news.
            source.clear(direction, seen.unwrap_or(Seen::NEW));
            match registration.park(direction, slot.reborrow(), cx.waker()) {
                Parked::Waiting if Core::stands_still(registration.driver()) => {
                    return Poll::Ready(Err(io::Error::other(
                        "this I/O belongs to a loop that stands still, because another one runs within a task of it",
                    )));
                }
                Parked::Waiting => return Poll::Pending,
                Parked::Ready => {}
                Parked::Ended => return Poll::Ready(Err(ended())),
            }
        }
    }

    /// Reads bytes, of which `wanted` have room.
    fn poll_bytes(
        &self,
        direction: Direction,
        wanted: usize,
        cx: &mut Context<'_>,
        mut operation: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.poll_seeing(direction, Slot::Polled, cx, &mut |io, sight| {
            let count = operation(io)?;
            if is_tcp::<T>() && count < wanted && count > 0 {
                sight.is_drained(direction);
            }
            Ok(count)
        })
    }
}

/// Whether less than was asked for means that there is no more at the moment. It does not for anybody's own
/// streams, nor for Unix sockets, which read no further than the next descriptor that was sent along.
fn is_tcp<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<TcpStream>()
}

/// How much has room in buffers, as far as the system looks at them in one operation.
fn room(lens: impl Iterator<Item = usize>) -> usize {
    /// What every system looks at. If it looked at more, the next operation is tried for nothing.
    const BUFFERS_MAX: usize = 16;
    lens.take(BUFFERS_MAX).sum()
}

/// What was seen of a source before an operation.
struct Sight<'a> {
    registration: Option<&'a Registration>,
    seen: Option<Seen>,
}

impl Sight<'_> {
    /// A TCP connection gave or took less than it was offered, so the next operation would block: it waits without
    /// trying. Unless that may have another reason, and nothing more is reported.
    fn is_drained(&self, direction: Direction) {
        if let (Some(registration), Some(seen)) = (self.registration, self.seen)
            && os::REPORTS_CLOSING
            && !seen.is_closed(direction)
        {
            registration.source().clear(direction, seen);
        }
    }
}

/// Whether this task may do another operation, or has to let others on its loop go first.
fn poll_turn(waker: &Waker) -> Poll<()> {
    if Core::current().is_some_and(|core| !core.may_operate()) {
        waker.wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(())
}

/// Counts an operation that did not have to wait. One that waits lets others go first in any case.
fn spend_turn() {
    if let Some(core) = Core::current() {
        core.spend_operation();
    }
}

/// A future's own place among those who wait.
struct Place<'a, T> {
    source: &'a Async<T>,
    direction: Direction,
    key: Option<usize>,
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        if let (Some(key), Some(registration)) = (self.key, self.source.registration.get()) {
            registration.source().leave(self.direction, key);
        }
    }
}

/// Waits until a source is ready; from [`Async::readable`] and [`Async::writable`].
#[must_use = "futures do nothing unless awaited"]
pub struct Ready<'a, T> {
    place: Place<'a, T>,
}

impl<T: AsSource + 'static> Future for Ready<'_, T> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Place { source, direction, key } = &mut self.place;
        source.poll_ready(*direction, Slot::Own(key), cx)
    }
}

impl<T> fmt::Debug for Ready<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").field("direction", &self.place.direction).finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for Async<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Async").field(&self.io).finish()
    }
}

impl<T> AsRef<T> for Async<T> {
    fn as_ref(&self) -> &T {
        &self.io
    }
}

impl<T: AsSource + 'static> AsyncRead for &Async<T>
where
    for<'a> &'a T: Read,
{
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.poll_bytes(Direction::Read, buf.len(), cx, |mut io| io.read(buf))
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted = room(bufs.iter().map(|buf| buf.len()));
        self.poll_bytes(Direction::Read, wanted, cx, |mut io| io.read_vectored(bufs))
    }
}

impl<T: AsSource + 'static> AsyncWrite for &Async<T>
where
    for<'a> &'a T: Write,
{
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_bytes(Direction::Write, buf.len(), cx, |mut io| io.write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted = room(bufs.iter().map(|buf| buf.len()));
        self.poll_bytes(Direction::Write, wanted, cx, |mut io| io.write_vectored(bufs))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Tried first: it may have nothing to do with what there is room for, and does not with sockets.
        match (&self.io).flush() {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                self.poll_with(Direction::Write, Slot::Polled, cx, &mut |mut io: &T| io.flush())
            }
            flushed => Poll::Ready(flushed),
        }
    }

    /// Flushes, and closes a socket for writing: the other side reads the end.
    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Poll::Ready(os::close_for_writing(&self.io))
    }
}

impl<T: AsSource + 'static> AsyncRead for Async<T>
where
    for<'a> &'a T: Read,
{
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read(cx, buf)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read_vectored(cx, bufs)
    }
}

impl<T: AsSource + 'static> AsyncWrite for Async<T>
where
    for<'a> &'a T: Write,
{
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write_vectored(cx, bufs)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_close(cx)
    }
}
