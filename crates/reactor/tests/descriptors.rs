//! Descriptors that run out, or are closed. Both concern the whole process, so they have one to themselves.

#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]
#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

use std::{
    fs::File,
    net::{TcpListener, TcpStream},
    os::fd::{AsRawFd, BorrowedFd},
    time::Duration,
};

use ebbtide_reactor::{Async, Runtime, sleep};
use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

#[test]
fn descriptors_that_run_out_or_are_closed_are_errors_and_none_is_kept() {
    closed_descriptors();
    exhausted_descriptors();
    descriptors_of_ended_loops();
}

fn descriptors_of_ended_loops() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    let handles: Vec<_> = (0..20)
        .map(|_| {
            let mut runtime = Runtime::new();
            runtime.block_on(sleep(Duration::from_millis(1)));
            runtime.handle()
        })
        .collect();
    assert_eq!(open(), before, "loops that have ended keep descriptors");
    drop(handles);
}

fn closed_descriptors() {
    let mut runtime = Runtime::new();
    runtime.block_on(async {
        // SAFETY: it is open nowhere, so nobody's; that is the point.
        let closed = unsafe { BorrowedFd::borrow_raw(1_000_000) };
        let error = Async::new(closed).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()), "{error}");

        let (reader, _writer) = std::io::pipe().unwrap();
        // SAFETY: it is closed while it is borrowed, which only code that says `unsafe` can do.
        let pipe = Async::new(unsafe { BorrowedFd::borrow_raw(reader.as_raw_fd()) }).unwrap();
        drop(reader);
        let error = pipe.read_with(|fd| Ok(rustix::io::read(fd, &mut [0; 1])?)).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()), "{error}");
        drop(pipe);
        sleep(Duration::from_millis(1)).await;
    });
}

fn exhausted_descriptors() {
    let mut runtime = Runtime::new();
    runtime.block_on(async {
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
        let peer = TcpStream::connect(listener.get_ref().local_addr().unwrap()).unwrap();
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).unwrap();
        let mut fill: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        for _ in 0..3 {
            let error = listener.accept().await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()), "{error}");
            sleep(Duration::from_millis(1)).await;
        }
        // A loop that has no I/O yet needs descriptors for its first source.
        let error = Async::new_on(&Runtime::new().handle(), peer).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()), "{error}");
        fill.truncate(fill.len() - 8);
        // The connection waited; its other side has been closed with the error above.
        let (stream, _) = listener.accept().await.unwrap();
        stream.readable().await.unwrap();
        setrlimit(Resource::Nofile, limit).unwrap();
    });
}
