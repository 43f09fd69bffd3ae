//! I/O: what is read and written, who is woken, and what becomes of it when the loop ends.

use std::{
    future::Future,
    io::{self, ErrorKind, IoSlice, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::net::{UnixDatagram, UnixListener, UnixStream},
    pin::pin,
    rc::Rc,
    sync::{Arc, mpsc},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::time::VirtualClock;
use ebbtide_reactor::{Async, Runtime, net, sleep, spawn, yield_now};
use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};

use super::running;

/// A short time, in which what has to happen by itself happens.
pub(super) const A_MOMENT: Duration = Duration::from_millis(20);

fn block_on<F: Future>(future: F) -> F::Output {
    Runtime::new().block_on(future)
}

fn listener() -> net::TcpListener {
    Async::<TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap()
}

/// Two ends of a connection, both asynchronous.
async fn tcp_pair() -> (net::TcpStream, net::TcpStream) {
    let listener = listener();
    let address = listener.get_ref().local_addr().unwrap();
    let connecting = spawn(Async::<TcpStream>::connect(address)).unwrap();
    let (accepted, from) = listener.accept().await.unwrap();
    let connected = connecting.await.unwrap().unwrap();
    assert_eq!(from, connected.get_ref().local_addr().unwrap());
    (accepted, connected)
}

pub(super) fn unix_pair() -> (net::UnixStream, net::UnixStream) {
    Async::<UnixStream>::pair().unwrap()
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn what_is_written_to_a_tcp_connection_is_sent_at_once() {
    block_on(async {
        let (server, client) = tcp_pair().await;
        assert!(server.get_ref().nodelay().unwrap() && client.get_ref().nodelay().unwrap());
        let listener = listener();
        let _connecting = TcpStream::connect(listener.get_ref().local_addr().unwrap()).unwrap();
        let polled = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
        assert!(polled.unwrap().0.get_ref().nodelay().unwrap());
    });
}

#[test]
fn a_tcp_connection_carries_bytes_both_ways() {
    block_on(async {
        let (mut server, mut client) = tcp_pair().await;
        let serving = spawn(async move {
            let mut bytes = [0; 5];
            server.read_exact(&mut bytes).await.unwrap();
            bytes.reverse();
            server.write_all(&bytes).await.unwrap();
        })
        .unwrap();
        client.write_all(b"abcde").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "edcba");
        serving.await.unwrap();
    });
}

#[test]
fn more_than_the_system_has_room_for_is_carried_too() {
    block_on(async {
        let (mut server, mut client) = tcp_pair().await;
        let sent: Vec<u8> = (0..4_000_000_u32).map(|at| (at % 251) as u8).collect();
        let expected = sent.clone();
        let sending = spawn(async move {
            client.write_all(&sent).await.unwrap();
            client.close().await.unwrap();
        })
        .unwrap();
        let mut got = Vec::new();
        server.read_to_end(&mut got).await.unwrap();
        assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
        sending.await.unwrap();
    });
}

#[test]
fn a_unix_socket_carries_bytes_and_its_listener_accepts() {
    let directory = std::env::temp_dir().join(format!("ebbtide-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("stream");
    block_on(async {
        let listener = Async::<UnixListener>::bind(&path).unwrap();
        let mut client = Async::<UnixStream>::connect(&path).await.unwrap();
        let mut server = listener.incoming().next().await.unwrap().unwrap();
        client.write_all(b"unix").await.unwrap();
        client.close().await.unwrap();
        let mut got = String::new();
        server.read_to_string(&mut got).await.unwrap();
        assert_eq!(got, "unix");
    });
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn datagrams_are_received_whole_and_from_whom() {
    block_on(async {
        let one = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0)).unwrap();
        let other = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0)).unwrap();
        let address = other.get_ref().local_addr().unwrap();
        one.send_to(b"first", address).await.unwrap();
        one.send_to(b"second", address).await.unwrap();
        let mut bytes = [0; 64];
        for expected in ["first", "second"] {
            let (count, from) = other.recv_from(&mut bytes).await.unwrap();
            assert_eq!(&bytes[..count], expected.as_bytes());
            assert_eq!(from, one.get_ref().local_addr().unwrap());
        }
        let (one, other) = Async::<UnixDatagram>::pair().unwrap();
        one.send(b"third").await.unwrap();
        assert_eq!(other.recv(&mut bytes).await.unwrap(), 5);
    });
}

#[test]
fn the_end_that_comes_together_with_the_last_bytes_is_seen() {
    block_on(async {
        let listener = listener();
        let mut peer = TcpStream::connect(listener.get_ref().local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 64];
        // Registered now, so that what follows is one report.
        assert!(poll_once(stream.read(&mut bytes)).is_pending());
        peer.write_all(b"last").unwrap();
        drop(peer);
        sleep(A_MOMENT).await;
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 4);
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 0);
    });
}

#[test]
fn what_comes_after_a_short_read_is_read() {
    block_on(async {
        let (mut server, mut client) = tcp_pair().await;
        let mut bytes = [0; 64];
        for round in 0..100_u8 {
            client.write_all(&[round; 3]).await.unwrap();
            assert_eq!(server.read(&mut bytes).await.unwrap(), 3);
            assert_eq!(bytes[0], round);
        }
    });
}

#[test]
fn one_task_reads_what_another_writes_through_the_same_stream() {
    block_on(async {
        let (server, client) = tcp_pair().await;
        let server = Rc::new(server);
        let echo = {
            let server = server.clone();
            spawn(async move {
                let mut bytes = [0; 4096];
                let mut total = 0;
                loop {
                    match (&mut &*server).read(&mut bytes).await.unwrap() {
                        0 => return total,
                        count => total += count,
                    }
                }
            })
            .unwrap()
        };
        let pushing =
            spawn(async move { (&mut &*server).write_all(&vec![7; 2_000_000]).await.unwrap() }).unwrap();
        let mut client = client;
        sleep(A_MOMENT).await;
        client.write_all(&vec![8; 100_000]).await.unwrap();
        let mut got = vec![0; 2_000_000];
        client.read_exact(&mut got).await.unwrap();
        pushing.await.unwrap();
        client.close().await.unwrap();
        assert_eq!(echo.await.unwrap(), 100_000);
    });
}

#[test]
fn vectored_writes_go_out_in_one() {
    block_on(async {
        let (mut server, mut client) = tcp_pair().await;
        let slices = [IoSlice::new(b"one "), IoSlice::new(b"and "), IoSlice::new(b"more")];
        assert_eq!(client.write_vectored(&slices).await.unwrap(), 12);
        let (mut first, mut second) = ([0; 4], [0; 8]);
        let mut slices = [io::IoSliceMut::new(&mut first), io::IoSliceMut::new(&mut second)];
        assert_eq!(server.read_vectored(&mut slices).await.unwrap(), 12);
        assert_eq!((&first, &second), (b"one ", b"and more"));
    });
}

#[test]
fn readable_waits_for_what_is_there_also_after_reads_by_other_means() {
    block_on(async {
        let (stream, mut peer) = UnixStream::pair().unwrap();
        let stream = Async::new(stream).unwrap();
        for round in 0..3_u8 {
            assert!(poll_once(stream.readable()).is_pending());
            peer.write_all(&[round]).unwrap();
            stream.readable().await.unwrap();
            let mut byte = [0];
            stream.get_ref().read_exact(&mut byte).unwrap();
            assert_eq!(byte, [round]);
        }
        stream.writable().await.unwrap();
    });
}

#[test]
fn all_who_await_the_same_source_are_woken() {
    block_on(async {
        let (one, mut other) = unix_pair();
        let one = Rc::new(one);
        let wait = |_| {
            let one = one.clone();
            spawn(async move { one.readable().await }).unwrap()
        };
        let waiting: Vec<_> = (0..10).map(wait).collect();
        // A place that was left is not woken, and takes nobody else's.
        let mut left = Box::pin(one.readable());
        assert!(poll_once(left.as_mut()).is_pending());
        drop(left);
        yield_now().await;
        other.write_all(b"x").await.unwrap();
        for task in waiting {
            task.await.unwrap().unwrap();
        }
    });
}

#[test]
fn a_connection_is_not_lost_with_an_accept_that_was_dropped() {
    block_on(async {
        let listener = listener();
        let address = listener.get_ref().local_addr().unwrap();
        assert!(poll_once(listener.accept()).is_pending());
        let _peer = TcpStream::connect(address).unwrap();
        listener.accept().await.unwrap();
    });
}

#[test]
fn a_refused_connection_is_an_error() {
    block_on(async {
        let address = listener().get_ref().local_addr().unwrap();
        let error = Async::<TcpStream>::connect(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_closed_stream_tells_the_other_side_and_can_still_be_read() {
    block_on(async {
        let (mut server, mut client) = tcp_pair().await;
        client.close().await.unwrap();
        let mut bytes = [0; 8];
        assert_eq!(server.read(&mut bytes).await.unwrap(), 0);
        server.write_all(b"late").await.unwrap();
        assert_eq!(client.read(&mut bytes).await.unwrap(), 4);
        drop(server);
        client.close().await.unwrap();
    });
}

#[test]
fn a_file_is_refused_with_the_reason() {
    block_on(async {
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let error = Async::new(file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("files and directories"), "{error}");
    });
}

#[test]
fn a_source_may_be_made_before_its_loop_runs() {
    let listener = listener();
    let address = listener.get_ref().local_addr().unwrap();
    let peer = thread::spawn(move || TcpStream::connect(address).unwrap());
    Runtime::new().block_on(async { listener.accept().await.unwrap() });
    peer.join().unwrap();
}

#[test]
fn a_source_that_waits_where_no_loop_runs_says_so() {
    let error = futures_lite::future::block_on(listener().accept()).unwrap_err();
    assert!(error.to_string().contains("Async::new_on"), "{error}");
}

#[test]
fn a_source_is_awaited_on_another_thread_than_that_of_its_loop() {
    let events = running();
    // Long enough for the loop to sleep without I/O, from where it has to come over.
    thread::park_timeout(A_MOMENT);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Async::new_on(&events.handle(), listener).unwrap();
    let peer = thread::spawn(move || TcpStream::connect(address).unwrap());
    futures_lite::future::block_on(listener.accept()).unwrap();
    peer.join().unwrap();
}

#[test]
fn a_post_wakes_a_loop_that_waits_for_io() {
    let events = running();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let _listener = Async::new_on(&events.handle(), listener).unwrap();
    for _ in 0..200 {
        let (ran, has_run) = mpsc::channel();
        events.handle().post(move || ran.send(()).unwrap()).unwrap();
        has_run.recv_timeout(Duration::from_secs(10)).expect("the loop woke up");
    }
}

#[test]
fn who_waits_for_io_of_a_loop_that_ends_gets_an_error() {
    let events = running();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Async::new_on(&events.handle(), listener).unwrap();
    let (waits, is_waiting) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let mut accept = Box::pin(listener.accept());
        let first = futures_lite::future::block_on(std::future::poll_fn(|cx| {
            let poll = accept.as_mut().poll(cx);
            let _ = waits.send(());
            poll
        }));
        drop(accept);
        (first.unwrap_err(), listener)
    });
    is_waiting.recv().unwrap();
    events.stop();
    let (error, listener) = waiter.join().unwrap();
    assert!(error.to_string().contains("has ended"), "{error}");
    // What need not wait still works, and a new source is refused.
    let _peer = TcpStream::connect(address).unwrap();
    futures_lite::future::block_on(listener.accept()).unwrap();
    assert!(Async::new_on(&events.handle(), UnixStream::pair().unwrap().0).is_err());
}

#[test]
fn a_source_of_a_loop_that_ended_without_io_is_refused() {
    let events = running();
    events.stop();
    let error = Async::new_on(&events.handle(), UnixStream::pair().unwrap().0).unwrap_err();
    assert!(error.to_string().contains("has ended"), "{error}");
}

#[test]
fn a_source_goes_from_one_loop_to_another() {
    let (one, mut other) = UnixStream::pair().unwrap();
    let mut here = Runtime::new();
    let one = here.block_on(async { Async::new(one).unwrap().into_inner() });
    let mut there = Runtime::new();
    other.write_all(b"x").unwrap();
    there.block_on(async {
        let mut one = Async::new(one).unwrap();
        assert_eq!(one.read(&mut [0; 8]).await.unwrap(), 1);
    });
}

#[test]
fn e8_a_sleep_never_ends_early_on_a_loop_with_io() {
    block_on(async {
        let (_one, _other) = unix_pair();
        for micros in [1, 50, 300, 1_000, 5_000] {
            let before = ebbtide_reactor::now();
            sleep(Duration::from_micros(micros)).await;
            assert!(ebbtide_reactor::now() - before >= Duration::from_micros(micros));
        }
    });
}

#[test]
fn timers_that_move_earlier_and_later_are_kept_on_a_loop_with_io() {
    block_on(async {
        let (_one, _other) = unix_pair();
        let long = spawn(sleep(Duration::from_secs(3600))).unwrap();
        let at = ebbtide_reactor::now() + 2 * A_MOMENT;
        let mid = spawn(ebbtide_reactor::sleep_until(at)).unwrap();
        sleep(A_MOMENT / 4).await;
        // One that is cancelled leaves the next one in place.
        let cancelled = spawn(sleep(A_MOMENT / 4)).unwrap();
        yield_now().await;
        cancelled.cancel();
        mid.await.unwrap();
        assert!(ebbtide_reactor::now() >= at);
        long.cancel();
    });
}

#[test]
fn e10_quiesce_drives_io() {
    let mut runtime = Runtime::new();
    let (one, other) = UnixStream::pair().unwrap();
    let read =
        runtime.spawn(async move { Async::new(one).unwrap().read(&mut [0; 8]).await.unwrap() }).unwrap();
    let writer = thread::spawn(move || {
        thread::park_timeout(A_MOMENT);
        (&other).write_all(b"xyz").unwrap();
    });
    runtime.shutdown_quiesce(Duration::from_secs(10)).unwrap();
    assert_eq!(futures_lite::future::block_on(read).unwrap(), 3);
    writer.join().unwrap();
}

#[test]
fn virtual_time_stands_still_while_io_is_waited_for() {
    let clock = VirtualClock::new();
    let mut runtime = Runtime::builder().clock(&clock).runtime();
    let (one, mut other) = UnixStream::pair().unwrap();
    let writing = thread::spawn(move || {
        thread::park_timeout(A_MOMENT);
        other.write_all(b"x").unwrap();
    });
    let first = runtime.block_on(async {
        let mut one = Async::new(one).unwrap();
        let io = async { one.read(&mut [0; 8]).await.unwrap() };
        let timeout = async {
            sleep(Duration::from_secs(3600)).await;
            0
        };
        let first = futures_lite::future::or(io, timeout).await;
        // And goes on when it is not.
        sleep(Duration::from_secs(3600)).await;
        first
    });
    assert_eq!(first, 1);
    writing.join().unwrap();
}

#[test]
fn io_in_a_post_may_go_on_for_long() {
    let events = running();
    let (one, mut other) = UnixStream::pair().unwrap();
    other.write_all(&[7; 1_000]).unwrap();
    let one = Async::new_on(&events.handle(), one).unwrap();
    let (read, has_read) = mpsc::channel();
    let post = move || {
        // It blocks its loop, but what it reads is there.
        let reading = async { (&mut &one).read_exact(&mut [0; 1]).await.unwrap() };
        futures_lite::future::block_on(reading);
        for _ in 0..999 {
            futures_lite::future::block_on((&mut &one).read_exact(&mut [0; 1])).unwrap();
        }
        read.send(()).unwrap();
    };
    events.post(post).ok().unwrap();
    has_read.recv_timeout(Duration::from_secs(10)).expect("the post does not spin");
}

#[test]
fn a_descriptor_that_is_registered_twice_is_refused_with_the_reason() {
    let mut runtime = Runtime::new();
    let listener = Arc::new(TcpListener::bind(("127.0.0.1", 0)).unwrap());
    runtime.block_on(async {
        let _first = Async::new(listener.clone()).unwrap();
        let error = Async::new(listener).unwrap_err();
        assert!(error.to_string().contains("registered with the loop already"), "{error}");
    });
}

#[test]
fn tasks_that_wait_for_io_are_dropped_with_their_sources_at_the_stop() {
    let events = running();
    let (one, other) = UnixStream::pair().unwrap();
    let reading = events.handle().spawn(async move {
        let mut one = Async::new(one).unwrap();
        one.read(&mut [0; 8]).await
    });
    thread::park_timeout(A_MOMENT);
    events.stop();
    assert!(futures_lite::future::block_on(reading.unwrap()).unwrap_err().is_cancelled());
    assert_eq!((&other).read(&mut [0; 8]).unwrap(), 0, "the other side sees it closed");
}
