//! Post to a loop that sleeps, and wait for its reply: both threads on one CPU, so that it is the loop that is
//! measured and not the machine's way to wake another CPU.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use async_executor::LocalExecutor;
use ebbtide_lifecycle::time::{Clock, SystemClock};
use ebbtide_reactor::EventLoop;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::floor::Floor;
use crate::{contest::Table, peers::Tokio};

type Job = Box<dyn FnOnce() + Send>;

const ROUNDS: usize = 101;
const POSTS: usize = 200;

/// Keeps this thread on the first CPU.
fn pin() {
    let mut first = CpuSet::new();
    first.set(0);
    sched_setaffinity(None, &first).expect("there is a first CPU");
}

pub(super) fn replies() -> [Table; 2] {
    eprintln!("post and reply …");
    let before = sched_getaffinity(None).expect("this thread runs somewhere");
    pin();

    let ours = EventLoop::new();
    ours.start().expect("a thread");
    ours.post(pin).expect("runs");
    let floor = Floor::start(pin);
    let (tokio_sender, mut tokio_receiver) = tokio::sync::mpsc::unbounded_channel::<Job>();
    let tokio = thread::spawn(move || {
        pin();
        Tokio::new().block_on(async {
            while let Some(job) = tokio_receiver.recv().await {
                job();
            }
        });
    });
    let (smol_sender, smol_receiver) = async_channel::unbounded::<Job>();
    let smol = thread::spawn(move || {
        pin();
        futures_lite::future::block_on(LocalExecutor::new().run(async {
            while let Ok(job) = smol_receiver.recv().await {
                job();
            }
        }));
    });

    let on_tokio = |job: Job| assert!(tokio_sender.send(job).is_ok());
    let on_ours = |job: Job| assert!(ours.post(job).is_ok());
    let on_smol = |job: Job| assert!(smol_sender.try_send(job).is_ok());
    let on_floor = |job: Job| floor.post(job);
    let posts: [&dyn Fn(Job); 4] = [&on_tokio, &on_ours, &on_smol, &on_floor];
    let (mut medians, mut tails): ([Vec<f64>; 4], [Vec<f64>; 4]) = Default::default();
    for _ in 0..ROUNDS {
        for (nth, post) in posts.iter().enumerate() {
            let samples = round(post);
            medians[nth].push(samples[POSTS / 2].as_nanos() as f64 / 1e3);
            tails[nth].push(samples[POSTS * 99 / 100].as_nanos() as f64 / 1e3);
        }
    }

    drop((tokio_sender, smol_sender));
    tokio.join().expect("tokio's thread ends");
    smol.join().expect("smol's thread ends");
    sched_setaffinity(None, &before).expect("it could run there before");
    let names = ["tokio current_thread + mpsc", "ebbtide", "smol + async-channel", "floor: list + eventfd"];
    [
        Table::of(
            "post to a sleeping loop and reply, one CPU, p50",
            "µs",
            names,
            medians,
            [None, Some(1.0), None, None],
        ),
        Table::of(
            "post to a sleeping loop and reply, one CPU, p99",
            "µs",
            names,
            tails,
            [None, Some(1.1), None, None],
        ),
    ]
}

/// How long each reply took, the shortest first.
fn round(post: &dyn Fn(Job)) -> Vec<Duration> {
    let replied = Arc::new(AtomicBool::new(false));
    let sample = |_| {
        replied.store(false, Ordering::Relaxed);
        let (reply, poster) = (replied.clone(), thread::current());
        let start = SystemClock.now();
        post(Box::new(move || {
            reply.store(true, Ordering::Release);
            poster.unpark();
        }));
        while !replied.load(Ordering::Acquire) {
            thread::park();
        }
        SystemClock.now() - start
    };
    let mut samples: Vec<_> = (0..POSTS).map(sample).collect();
    samples.sort_unstable();
    samples
}
