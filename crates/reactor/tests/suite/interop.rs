//! Other crates on a loop.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ebbtide_reactor::{Local, Runtime};
use futures_task::{LocalSpawn, Spawn};

use crate::running;

#[test]
fn a_handle_spawns_for_futures_until_its_loop_is_stopped() {
    let events = running();
    let handle = events.handle();
    let ran = Arc::new(AtomicBool::new(false));
    let flag = ran.clone();
    handle.spawn_obj(Box::new(async move { flag.store(true, Ordering::SeqCst) }).into()).unwrap();
    assert!(handle.status().is_ok());
    events.stop();
    assert!(ran.load(Ordering::SeqCst) || handle.balance().cancelled == 1);
    assert!(handle.status().unwrap_err().is_shutdown());
    assert!(handle.spawn_obj(Box::new(async {}).into()).unwrap_err().is_shutdown());
}

#[test]
fn a_runtime_and_the_loop_that_runs_here_spawn_what_stays_on_its_thread() {
    let mut runtime = Runtime::new();
    let count = Rc::new(Cell::new(0));
    let one_more = || {
        let count = count.clone();
        Box::pin(async move { count.set(count.get() + 1) })
    };
    runtime.spawn_local_obj(one_more().into()).unwrap();
    runtime.block_on(async {
        Local.spawn_local_obj(one_more().into()).unwrap();
        Local.spawn(one_more()).unwrap().await.unwrap();
    });
    assert_eq!(count.get(), 3);
    assert!(Local.spawn_local_obj(one_more().into()).unwrap_err().is_shutdown());
}

#[cfg(feature = "resolve")]
#[test]
fn a_host_is_found_by_its_name_and_one_that_is_written_out_by_itself() {
    use ebbtide_reactor::net;

    Runtime::new().block_on(async {
        let listener = net::TcpListener::bind(([127, 0, 0, 1], 0)).unwrap();
        let port = listener.get_ref().local_addr().unwrap().port();
        let found = net::resolve(format!("localhost:{port}")).await.unwrap();
        assert!(found.iter().any(|address| address.ip().is_loopback()), "{found:?}");
        // Also where the name has an address at which nobody listens.
        net::TcpStream::connect_host(format!("localhost:{port}")).await.unwrap();
        assert_eq!(net::resolve("[::1]:80").await.unwrap(), ["[::1]:80".parse().unwrap()]);
        assert!(net::resolve("no port").await.is_err());
    });
}

#[cfg(feature = "tokio-io")]
#[test]
fn a_stream_speaks_to_what_is_written_for_tokio_and_back() {
    use ebbtide_reactor::{
        interop::{FuturesIo, TokioIo},
        spawn,
    };
    use futures_lite::{AsyncReadExt, AsyncWriteExt};

    use super::io::unix_pair;

    Runtime::new().block_on(async {
        let (one, other) = unix_pair();
        // There and back again: it has been through the traits of both.
        let mut one = FuturesIo::new(TokioIo::new(one));
        let mut other = FuturesIo::new(TokioIo::new(other));
        let writing = spawn(async move {
            one.write_all(&[7; 300_000]).await.unwrap();
            one.close().await.unwrap();
        })
        .unwrap();
        let mut got = Vec::new();
        other.read_to_end(&mut got).await.unwrap();
        assert!(got == [7; 300_000]);
        writing.await.unwrap();
    });
}
