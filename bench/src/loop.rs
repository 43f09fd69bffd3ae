//! The loop against tokio's current-thread runtime with a `LocalSet` and smol's `LocalExecutor`.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    hint::black_box,
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use async_executor::LocalExecutor;
use ebbtide_lifecycle::time::{Clock, SystemClock};
use ebbtide_reactor::{EventLoop, Runtime};
use tokio::task::LocalSet;

use crate::contest::{Contestant, Table, contest, time};

/// A far time: the timers of these rows are cancelled, not fired.
const FAR: Duration = Duration::from_secs(3600);

/// How many tasks are spawned at once, or stand in a ring.
const TASKS: usize = 1_000;

/// As many timers are pending beside the one that is armed and cancelled.
const PENDING: usize = 10_000;

pub(crate) fn run() -> Vec<Table> {
    vec![
        self_wakes(),
        ring_wakes(),
        spawn_and_join_many(),
        spawn_and_await_one(),
        timers_cancelled("a timer armed and cancelled", 0),
        timers_cancelled("the same, 10,000 others pending", PENDING),
        posts("post boxed closures, 1 thread", 1),
        posts("post boxed closures, 2 threads", 2),
    ]
}

/// A tokio runtime of one thread, with its local set.
struct Tokio {
    runtime: tokio::runtime::Runtime,
    local: LocalSet,
}

impl Tokio {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        Self { runtime: runtime.expect("a runtime of one thread"), local: LocalSet::new() }
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.local.block_on(&self.runtime, future)
    }
}

/// Wakes itself once: the same for all contestants.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn yields(times: usize) {
    for _ in 0..times {
        yield_once().await;
    }
}

fn self_wakes() -> Table {
    let (tokio, smol) = (Tokio::new(), LocalExecutor::new());
    let mut ours = Runtime::new();
    contest(
        "self-wake",
        20_000,
        Contestant::new("tokio LocalSet", |n| {
            time(1, || tokio.block_on(async { tokio::task::spawn_local(yields(n)).await.expect("ends") }))
        }),
        [
            Contestant::new("ebbtide", |n| {
                time(1, || {
                    ours.block_on(async { ebbtide_reactor::spawn(yields(n)).expect("runs").await })
                        .expect("ends");
                })
            })
            .target(0.9),
            Contestant::new("smol LocalExecutor", |n| {
                time(1, || futures_lite::future::block_on(smol.run(async { smol.spawn(yields(n)).await })))
            }),
        ],
    )
}

/// Tasks in a ring, each of which waits for its turn and then wakes the next.
struct Ring {
    turns: Vec<Cell<usize>>,
    wakers: Vec<RefCell<Option<Waker>>>,
}

impl Ring {
    fn new() -> Rc<Self> {
        let turns = (0..TASKS).map(|_| Cell::new(0)).collect();
        Rc::new(Self { turns, wakers: (0..TASKS).map(|_| RefCell::new(None)).collect() })
    }

    /// Goes round so many times at one place of the ring.
    async fn stand(self: Rc<Self>, place: usize, rounds: usize) {
        let next = (place + 1) % TASKS;
        for round in 1..=rounds {
            poll_fn(|cx| {
                if self.turns[place].get() >= round {
                    return Poll::Ready(());
                }
                let mut waker = self.wakers[place].borrow_mut();
                match &mut *waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => *waker = Some(cx.waker().clone()),
                }
                Poll::Pending
            })
            .await;
            self.pass(next);
        }
    }

    fn pass(&self, to: usize) {
        self.turns[to].set(self.turns[to].get() + 1);
        let waker = self.wakers[to].borrow();
        if let Some(waker) = &*waker {
            waker.wake_by_ref();
        }
    }
}

fn ring_wakes() -> Table {
    let (tokio, smol) = (Tokio::new(), LocalExecutor::new());
    let mut ours = Runtime::new();
    const ROUNDS: usize = 20;
    contest(
        "wake the next in a ring of 1,000",
        TASKS * ROUNDS,
        Contestant::new("tokio LocalSet", |_| {
            tokio.block_on(async {
                let ring = Ring::new();
                let stand = |place| tokio::task::spawn_local(ring.clone().stand(place, ROUNDS));
                let tasks: Vec<_> = (0..TASKS).map(stand).collect();
                yield_once().await;
                let start = SystemClock.now();
                ring.pass(0);
                for task in tasks {
                    task.await.expect("ends");
                }
                SystemClock.now() - start
            })
        }),
        [
            Contestant::new("ebbtide", |_| {
                ours.block_on(async {
                    let ring = Ring::new();
                    let stand =
                        |place| ebbtide_reactor::spawn(ring.clone().stand(place, ROUNDS)).expect("runs");
                    let tasks: Vec<_> = (0..TASKS).map(stand).collect();
                    yield_once().await;
                    let start = SystemClock.now();
                    ring.pass(0);
                    for task in tasks {
                        task.await.expect("ends");
                    }
                    SystemClock.now() - start
                })
            })
            .target(0.9),
            Contestant::new("smol LocalExecutor", |_| {
                futures_lite::future::block_on(smol.run(async {
                    let ring = Ring::new();
                    let tasks: Vec<_> =
                        (0..TASKS).map(|place| smol.spawn(ring.clone().stand(place, ROUNDS))).collect();
                    yield_once().await;
                    let start = SystemClock.now();
                    ring.pass(0);
                    for task in tasks {
                        task.await;
                    }
                    SystemClock.now() - start
                }))
            }),
        ],
    )
}

fn spawn_and_join_many() -> Table {
    let (tokio, smol) = (Tokio::new(), LocalExecutor::new());
    let mut ours = Runtime::new();
    contest(
        "spawn 1,000 and join them, for each",
        TASKS,
        Contestant::new("smol LocalExecutor", |n| {
            time(1, || {
                futures_lite::future::block_on(smol.run(async {
                    let tasks: Vec<_> = (0..n).map(|number| smol.spawn(async move { number })).collect();
                    for task in tasks {
                        black_box(task.await);
                    }
                }));
            })
        }),
        [
            Contestant::new("ebbtide", |n| {
                time(1, || {
                    ours.block_on(async {
                        let spawn = |number| ebbtide_reactor::spawn(async move { number }).expect("runs");
                        let tasks: Vec<_> = (0..n).map(spawn).collect();
                        for task in tasks {
                            black_box(task.await.expect("ends"));
                        }
                    });
                })
            })
            .target(0.5),
            Contestant::new("tokio LocalSet", |n| {
                time(1, || {
                    tokio.block_on(async {
                        let spawn = |number| tokio::task::spawn_local(async move { number });
                        let tasks: Vec<_> = (0..n).map(spawn).collect();
                        for task in tasks {
                            black_box(task.await.expect("ends"));
                        }
                    });
                })
            }),
        ],
    )
}

fn spawn_and_await_one() -> Table {
    let (tokio, smol) = (Tokio::new(), LocalExecutor::new());
    let mut ours = Runtime::new();
    contest(
        "spawn one and await it",
        5_000,
        Contestant::new("smol LocalExecutor", |n| {
            time(1, || {
                futures_lite::future::block_on(smol.run(async {
                    for number in 0..n {
                        black_box(smol.spawn(async move { number }).await);
                    }
                }));
            })
        }),
        [
            Contestant::new("ebbtide", |n| {
                time(1, || {
                    ours.block_on(async {
                        for number in 0..n {
                            let task = ebbtide_reactor::spawn(async move { number }).expect("runs");
                            black_box(task.await.expect("ends"));
                        }
                    });
                })
            })
            .target(0.7),
            Contestant::new("tokio LocalSet", |n| {
                time(1, || {
                    tokio.block_on(async {
                        for number in 0..n {
                            black_box(tokio::task::spawn_local(async move { number }).await.expect("ends"));
                        }
                    });
                })
            }),
        ],
    )
}

/// Polls once, which arms it, and drops it, which cancels it.
fn arm_and_cancel(sleep: impl Future, cx: &mut Context<'_>) {
    let sleep = pin!(sleep);
    assert!(sleep.poll(cx).is_pending());
}

/// Runs `act` inside a future, with its context.
async fn inside(act: impl FnOnce(&mut Context<'_>) -> Duration) -> Duration {
    let mut act = Some(act);
    poll_fn(|cx| Poll::Ready(act.take().expect("polled once")(cx))).await
}

fn timers_cancelled(title: &'static str, pending: usize) -> Table {
    fn armed<S: Future>(
        count: usize,
        make: impl Fn(Duration) -> S,
        cx: &mut Context<'_>,
    ) -> Vec<Pin<Box<S>>> {
        let sleep = |index| {
            let mut sleep = Box::pin(make(FAR + Duration::from_millis(index as u64)));
            assert!(sleep.as_mut().poll(cx).is_pending());
            sleep
        };
        (0..count).map(sleep).collect()
    }

    let tokio = Tokio::new();
    let mut ours = Runtime::new();
    contest(
        title,
        5_000,
        Contestant::new("tokio", |n| {
            tokio.block_on(inside(|cx| {
                let _others = armed(pending, tokio::time::sleep, cx);
                time(n, || arm_and_cancel(tokio::time::sleep(FAR), cx))
            }))
        }),
        [
            Contestant::new("ebbtide", |n| {
                ours.block_on(inside(|cx| {
                    let _others = armed(pending, ebbtide_reactor::sleep, cx);
                    time(n, || arm_and_cancel(ebbtide_reactor::sleep(FAR), cx))
                }))
            })
            .target(0.45),
            Contestant::new("async-io", |n| {
                async_io::block_on(inside(|cx| {
                    let _others = armed(pending, async_io::Timer::after, cx);
                    time(n, || arm_and_cancel(async_io::Timer::after(FAR), cx))
                }))
            }),
        ],
    )
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
        ],
    );
    drop((tokio_sender, smol_sender));
    tokio.join().expect("tokio's thread ends");
    smol.join().expect("smol's thread ends");
    table
}
