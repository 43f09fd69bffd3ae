//! Spawning, waking and joining tasks.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    hint::black_box,
    rc::Rc,
    task::{Poll, Waker},
};

use async_executor::LocalExecutor;
use ebbtide_lifecycle::time::{Clock, SystemClock};
use ebbtide_reactor::Runtime;

use crate::{
    contest::{Contestant, Table, contest, time},
    peers::{Tokio, monoio},
};

pub(super) fn run() -> Vec<Table> {
    vec![self_wakes(), ring_wakes(), spawn_and_join_many(), spawn_and_await_one()]
}

/// How many tasks are spawned at once, or stand in a ring.
const TASKS: usize = 1_000;

/// Wakes itself once: the same for all contestants.
pub(crate) async fn yield_once() {
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
    let (tokio, smol, mut monoio) = (Tokio::new(), LocalExecutor::new(), monoio());
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
            Contestant::new("monoio", |n| {
                time(1, || {
                    monoio.block_on(async {
                        let spawn = |number| monoio::spawn(async move { number });
                        let tasks: Vec<_> = (0..n).map(spawn).collect();
                        for task in tasks {
                            black_box(task.await);
                        }
                    });
                })
            }),
        ],
    )
}

fn spawn_and_await_one() -> Table {
    let (tokio, smol, mut monoio) = (Tokio::new(), LocalExecutor::new(), monoio());
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
            Contestant::new("monoio", |n| {
                time(1, || {
                    monoio.block_on(async {
                        for number in 0..n {
                            black_box(monoio::spawn(async move { number }).await);
                        }
                    });
                })
            }),
        ],
    )
}
