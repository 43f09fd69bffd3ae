//! Posting from other threads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use async_executor::LocalExecutor;
use ebbtide_lifecycle::time::{Clock, SystemClock};
use ebbtide_reactor::EventLoop;

use super::floor::Floor;
use crate::{
    contest::{Contestant, Table, contest},
    peers::Tokio,
};

pub(super) fn run() -> Vec<Table> {
    vec![posts("post boxed closures, 1 thread", 1), posts("post boxed closures, 2 threads", 2)]
}

type Job = Box<dyn FnOnce() + Send>;

/// Posts from so many threads, and waits until all have run. The peers' channels take boxed closures; a loop of
/// ours boxes what it is given itself.
fn posts(title: &'static str, threads: usize) -> Table {
    const POSTS: usize = 40_000;
    let ran = &Arc::new(AtomicUsize::new(0));
    let job = || {
        let ran = ran.clone();
        move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }
    };
    let round = |post: &(dyn Fn() + Sync)| {
        ran.store(0, Ordering::SeqCst);
        let start = SystemClock.now();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..POSTS / threads).for_each(|_| post()));
            }
            while ran.load(Ordering::Acquire) < POSTS / threads * threads {
                thread::yield_now();
            }
        });
        SystemClock.now() - start
    };

    let ours = EventLoop::new();
    ours.start().expect("a thread");
    let (tokio_sender, mut tokio_receiver) = tokio::sync::mpsc::unbounded_channel::<Job>();
    let tokio = thread::spawn(move || {
        Tokio::new().block_on(async {
            while let Some(job) = tokio_receiver.recv().await {
                job();
            }
        });
    });
    let (smol_sender, smol_receiver) = async_channel::unbounded::<Job>();
    let smol = thread::spawn(move || {
        futures_lite::future::block_on(LocalExecutor::new().run(async {
            while let Ok(job) = smol_receiver.recv().await {
                job();
            }
        }));
    });
    let floor = Floor::start(|| {});
    let table = contest(
        title,
        POSTS,
        Contestant::new("tokio current_thread + mpsc", |_| {
            round(&|| assert!(tokio_sender.send(Box::new(job())).is_ok()))
        }),
        [
            Contestant::new("ebbtide", |_| round(&|| assert!(ours.post(job()).is_ok()))).target(0.8),
            Contestant::new("smol + async-channel", |_| {
                round(&|| assert!(smol_sender.try_send(Box::new(job())).is_ok()))
            }),
            Contestant::new("floor: list + eventfd", |_| round(&|| floor.post(Box::new(job())))),
        ],
    );
    drop((tokio_sender, smol_sender));
    tokio.join().expect("tokio's thread ends");
    smol.join().expect("smol's thread ends");
    table
}
