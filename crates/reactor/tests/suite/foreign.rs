//! Foreign code where I/O calls it: wakers and sources of the user's own.

use std::{
    future::Future,
    io::{self, ErrorKind, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

use ebbtide_reactor::{Async, Runtime};
use futures_lite::AsyncWriteExt;

use super::running;

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A waker that keeps another wait for the same source, as that of a task does whose executor has gone.
struct Keeps {
    _wait: Mutex<Wait>,
}

impl Wake for Keeps {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_whose_drop_ends_another_wait_for_its_source_does_no_harm() {
    let events = running();
    let (ours, mut peer) = UnixStream::pair().unwrap();
    let source = Arc::new(Async::new_on(&events.handle(), ours).unwrap());
    let waker = || {
        let source = source.clone();
        let mut wait: Wait = Box::pin(async move { drop(source.readable().await) });
        let _pending = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        Waker::from(Arc::new(Keeps { _wait: Mutex::new(wait) }))
    };
    for _ in 0..3_000 {
        while source.get_ref().read(&mut [0; 64]).is_ok() {}
        let _pending = source.poll_readable(&mut Context::from_waker(&waker()));
        peer.write_all(b"x").unwrap();
        while source.poll_readable(&mut Context::from_waker(&waker())).is_pending() {}
    }
}

/// Its first flush is interrupted.
struct Interrupted {
    stream: UnixStream,
    flushed: AtomicBool,
}

impl AsFd for Interrupted {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Write for &Interrupted {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&self.stream).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.flushed.swap(true, Ordering::Relaxed) { Ok(()) } else { Err(ErrorKind::Interrupted.into()) }
    }
}

#[test]
fn an_interrupted_flush_is_tried_again() {
    let (stream, _peer) = UnixStream::pair().unwrap();
    Runtime::new().block_on(async {
        let mut stream = Async::new(Interrupted { stream, flushed: AtomicBool::new(false) }).unwrap();
        stream.flush().await.unwrap();
    });
}
