//! Operations that get or give less than they were offered, for whatever reason, are followed by others.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    thread,
};

use ebbtide_reactor::{Async, Runtime, sleep};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future::poll_once};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};

use super::io::A_MOMENT;

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

/// More than a system takes in one operation.
const SLICES: usize = 5_000;

#[test]
fn a_write_of_more_slices_than_the_system_takes_goes_on() {
    let (one, mut other) = tcp_pair();
    let reading = thread::spawn(move || {
        let mut all = Vec::new();
        other.read_to_end(&mut all).unwrap();
        all.len()
    });
    Runtime::new().block_on(async {
        let mut one = Async::new(one).unwrap();
        let mut left = SLICES;
        while left > 0 {
            let slices: Vec<_> = (0..left).map(|_| IoSlice::new(b"x")).collect();
            left -= one.write_vectored(&slices).await.unwrap();
        }
    });
    assert_eq!(reading.join().unwrap(), SLICES);
}

#[test]
fn a_read_into_more_slices_than_the_system_takes_goes_on() {
    let (one, mut other) = tcp_pair();
    other.write_all(&[7; SLICES]).unwrap();
    Runtime::new().block_on(async {
        let mut one = Async::new(one).unwrap();
        sleep(A_MOMENT).await;
        let mut got = 0;
        while got < SLICES {
            let mut room = [0; SLICES];
            let mut slices: Vec<_> = room.chunks_mut(1).map(IoSliceMut::new).collect();
            got += one.read_vectored(&mut slices).await.unwrap();
        }
    });
}

/// Reads what is there, which takes more than one read.
fn read_six_bytes<T>(stream: T)
where
    T: AsFd + Unpin + 'static,
    for<'a> &'a T: Read,
{
    Runtime::new().block_on(async {
        let mut stream = Async::new(stream).unwrap();
        sleep(A_MOMENT).await;
        let mut got = 0;
        while got < 6 {
            got += stream.read(&mut [0; 64]).await.unwrap();
        }
    });
}

#[test]
fn a_read_that_ends_at_a_descriptor_is_followed_by_another() {
    let (one, mut other) = UnixStream::pair().unwrap();
    let sent_along = [other.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    assert!(along.push(SendAncillaryMessage::ScmRights(&sent_along)));
    sendmsg(&other, &[IoSlice::new(b"abc")], &mut along, SendFlags::empty()).unwrap();
    other.write_all(b"def").unwrap();
    read_six_bytes(one);
}

#[test]
fn a_read_that_ends_at_urgent_data_is_followed_by_another() {
    let (one, other) = tcp_pair();
    send(&other, b"abc", SendFlags::empty()).unwrap();
    send(&other, b"!", SendFlags::OOB).unwrap();
    send(&other, b"def", SendFlags::empty()).unwrap();
    read_six_bytes(one);
}

/// A stream that takes little at a time.
struct Narrow(TcpStream);

impl AsFd for Narrow {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Write for &Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(&bytes[..bytes.len().min(3)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stream_of_ones_own_may_take_less_than_it_is_offered() {
    let (one, mut other) = tcp_pair();
    Runtime::new().block_on(async { Async::new(Narrow(one)).unwrap().write_all(&[7; 64]).await.unwrap() });
    let mut got = Vec::new();
    other.read_to_end(&mut got).unwrap();
    assert_eq!(got, [7; 64]);
}

#[test]
fn flush_and_close_do_not_wait_for_room() {
    let (one, _other) = tcp_pair();
    Runtime::new().block_on(async {
        let mut one = Async::new(one).unwrap();
        while let Some(written) = poll_once(one.write(&[7; 65_536])).await {
            written.unwrap();
        }
        one.flush().await.unwrap();
        one.close().await.unwrap();
    });
}
