//! Work on other threads and back: one at a time, a thousand in flight, a thousand brought at once.

use std::{future::Future, hint::black_box, sync::Arc, time::Duration};

use async_executor::LocalExecutor;
use ebbtide_lifecycle::time::{Clock, SystemClock};
use ebbtide_offload::Pool;
use ebbtide_reactor::Runtime;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{
    areas::Part,
    contest::{Contestant, Table, each, measure},
    peers::Tokio,
};

/// How many threads each pool has.
const THREADS: usize = 2;

/// How many jobs are in flight, or in a batch.
const JOBS: usize = 1_000;

/// How many jobs each task does, one after the other, while as many others do the same.
const TURNS: usize = 20;

/// How many rounds each contestant runs.
const ROUNDS: usize = 25;

/// The same for jobs one at a time, and how many of them a round has.
const LATENCY_ROUNDS: usize = 9;
const LATENCY_JOBS: usize = 1_000;

pub(crate) const PARTS: [Part; 4] = [
    Part::new("one", || {
        one_at_a_time("a job there and back, one at a time, p50", "a job there and back, one at a time, p99")
            .into()
    }),
    Part::new("one-cpu", || {
        let _one = OneCpu::new();
        one_at_a_time(
            "a job there and back, all on one CPU, p50",
            "a job there and back, all on one CPU, p99",
        )
        .into()
    }),
    Part::new("many", || vec![in_flight()]),
    Part::new("batches", || vec![batches()]),
];

/// The job: as little as can be.
fn job(n: usize) -> usize {
    black_box(n) + 1
}

/// Rayon with a channel for each result, as its users do it.
#[derive(Clone)]
struct Rayon(Arc<rayon::ThreadPool>);

impl Rayon {
    fn new() -> Self {
        Self(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().expect("two threads")))
    }

    fn offload(&self, n: usize) -> impl Future<Output = usize> + use<> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.0.spawn(move || assert!(sender.send(job(n)).is_ok()));
        async { receiver.await.expect("it was sent") }
    }
}

fn pool() -> Pool {
    Pool::builder().cpu_threads(THREADS).start().expect("two threads")
}

async fn offload(pool: &Pool, n: usize) -> usize {
    pool.offload(move || job(n)).await.expect("runs")
}

async fn spawn_blocking(n: usize) -> usize {
    tokio::task::spawn_blocking(move || job(n)).await.expect("runs")
}

fn tokio_with_blocking_threads() -> Tokio {
    Tokio::of(tokio::runtime::Builder::new_current_thread().max_blocking_threads(THREADS))
}

/// Keeps this thread, and those that it starts, on one CPU for as long as this lives.
pub(crate) struct OneCpu(CpuSet);

impl OneCpu {
    pub(crate) fn new() -> Self {
        let before = sched_getaffinity(None).expect("this thread runs somewhere");
        let mut first = CpuSet::new();
        first.set(0);
        sched_setaffinity(None, &first).expect("there is a first CPU");
        Self(before)
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        sched_setaffinity(None, &self.0).expect("it could run there before");
    }
}

/// One job after the other: how long each takes there and back.
fn one_at_a_time(p50: &'static str, p99: &'static str) -> [Table; 2] {
    async fn round<F: Future<Output = usize>>(act: impl Fn(usize) -> F) -> Vec<Duration> {
        let mut samples = Vec::with_capacity(LATENCY_JOBS);
        for n in 0..LATENCY_JOBS {
            let start = SystemClock.now();
            assert_eq!(act(n).await, n + 1);
            samples.push(SystemClock.now() - start);
        }
        samples.sort();
        samples
    }

    eprintln!("{p50} …");
    let (tokio, blocking, mut ours) = (Tokio::new(), tokio_with_blocking_threads(), Runtime::new());
    let (rayon, pool) = (Rayon::new(), pool());
    let mut runs: [Box<dyn FnMut() -> Vec<Duration> + '_>; 5] = [
        Box::new(|| tokio.block_on(round(|n| rayon.offload(n)))),
        Box::new(|| ours.block_on(round(|n| offload(&pool, n)))),
        Box::new(|| tokio.block_on(round(|n| offload(&pool, n)))),
        Box::new(|| blocking.block_on(round(spawn_blocking))),
        Box::new(|| async_io::block_on(round(|n| blocking::unblock(move || job(n))))),
    ];
    let (mut medians, mut tails): ([Vec<f64>; 5], [Vec<f64>; 5]) = Default::default();
    // The first round is not counted: threads are started, and caches filled.
    for round in 0..=LATENCY_ROUNDS {
        for turn in 0..runs.len() {
            let nth = (round + turn) % runs.len();
            let samples = runs[nth]();
            if round == 0 {
                continue;
            }
            medians[nth].push(samples[LATENCY_JOBS / 2].as_nanos() as f64 / 1e3);
            tails[nth].push(samples[LATENCY_JOBS * 99 / 100].as_nanos() as f64 / 1e3);
        }
    }
    let names = [
        "rayon + oneshot on tokio",
        "ebbtide",
        "ebbtide's pool on tokio",
        "tokio spawn_blocking",
        "blocking::unblock on async-io",
    ];
    [
        Table::of(p50, "µs", names, medians, [None, Some(1.1), None, None, None]),
        Table::of(p99, "µs", names, tails, [None, Some(1.25), None, None, None]),
    ]
}

/// A thousand tasks on one loop, each of which offloads one job after the other.
fn in_flight() -> Table {
    let (tokio, blocking, mut ours) = (Tokio::new(), tokio_with_blocking_threads(), Runtime::new());
    let (rayon, pool) = (Rayon::new(), pool());

    /// What tokio's local set does with tasks of `act`.
    async fn on_local_set<F: Future<Output = usize> + 'static>(act: impl Fn(usize) -> F + Clone + 'static) {
        let task = |n| {
            let act = act.clone();
            tokio::task::spawn_local(async move {
                for _ in 0..TURNS {
                    assert_eq!(act(n).await, n + 1);
                }
            })
        };
        let tasks: Vec<_> = (0..JOBS).map(task).collect();
        for task in tasks {
            task.await.expect("ends");
        }
    }
    async fn on_ours(pool: &Pool) {
        let task = |n| {
            let pool = pool.clone();
            let task = async move {
                for _ in 0..TURNS {
                    assert_eq!(offload(&pool, n).await, n + 1);
                }
            };
            ebbtide_reactor::spawn(task).expect("runs")
        };
        let tasks: Vec<_> = (0..JOBS).map(task).collect();
        for task in tasks {
            task.await.expect("ends");
        }
    }
    async fn on_smol() {
        let smol = LocalExecutor::new();
        let task = |n| {
            smol.spawn(async move {
                for _ in 0..TURNS {
                    assert_eq!(blocking::unblock(move || job(n)).await, n + 1);
                }
            })
        };
        let tasks: Vec<_> = (0..JOBS).map(task).collect();
        smol.run(async {
            for task in tasks {
                task.await;
            }
        })
        .await;
    }

    measure(
        "a job there and back, 1,000 in flight, each",
        "ns",
        ROUNDS,
        Contestant::value("rayon + oneshot on tokio", || {
            let rayon = rayon.clone();
            each(TURNS * JOBS, || tokio.block_on(on_local_set(move |n| rayon.offload(n))))
        }),
        [
            Contestant::value("ebbtide", || each(TURNS * JOBS, || ours.block_on(on_ours(&pool)))).target(0.7),
            Contestant::value("tokio spawn_blocking", || {
                each(TURNS * JOBS, || blocking.block_on(on_local_set(spawn_blocking)))
            }),
            Contestant::value("blocking::unblock on smol", || {
                each(TURNS * JOBS, || async_io::block_on(on_smol()))
            }),
        ],
    )
}

/// A thousand jobs brought at once, and all results awaited.
fn batches() -> Table {
    let (tokio, blocking, mut ours) = (Tokio::new(), tokio_with_blocking_threads(), Runtime::new());
    let (rayon, pool) = (Rayon::new(), pool());
    measure(
        "a job there and back, 1,000 brought at once, each",
        "ns",
        ROUNDS * 5,
        Contestant::value("rayon + oneshot on tokio", || {
            each(JOBS, || {
                tokio.block_on(async {
                    let jobs: Vec<_> = (0..JOBS).map(|n| rayon.offload(n)).collect();
                    for job in jobs {
                        black_box(job.await);
                    }
                });
            })
        }),
        [
            Contestant::value("ebbtide", || {
                each(JOBS, || {
                    let results = ours.block_on(pool.offload_all((0..JOBS).map(|n| move || job(n))));
                    assert_eq!(results.len(), JOBS);
                })
            })
            .target(0.5),
            Contestant::value("tokio spawn_blocking", || {
                each(JOBS, || {
                    blocking.block_on(async {
                        let jobs: Vec<_> =
                            (0..JOBS).map(|n| tokio::task::spawn_blocking(move || job(n))).collect();
                        for job in jobs {
                            black_box(job.await.expect("runs"));
                        }
                    });
                })
            }),
        ],
    )
}
