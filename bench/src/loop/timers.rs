//! Timers: those that are cancelled, as most are, and those that fire.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use async_executor::LocalExecutor;
use ebbtide_lifecycle::time::{Clock, SystemClock};
use ebbtide_reactor::Runtime;
use rustix::{
    thread::nanosleep,
    time::{ClockId, Timespec, clock_gettime},
};

use super::tasks::yield_once;
use crate::{
    contest::{Contestant, Table, contest, measure, time},
    peers::Tokio,
};

pub(super) fn run() -> Vec<Table> {
    vec![
        timers_cancelled("a timer armed and cancelled", 0),
        timers_cancelled("a timer armed and cancelled, 10,000 others pending", PENDING),
        timers_cancelled_later(),
        lateness(),
    ]
}

/// A far time: the timers of these rows are cancelled, not fired.
const FAR: Duration = Duration::from_secs(3600);

/// As many timers are pending beside the one that is armed and cancelled.
const PENDING: usize = 10_000;

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

/// The same with a turn of the loop between arming and cancelling, as around an operation that has to wait.
fn timers_cancelled_later() -> Table {
    /// So many at a time, as a server with so many requests in flight.
    const TOGETHER: usize = 100;

    async fn arm_and_cancel_later<S: Future>(rounds: usize, make: impl Fn(Duration) -> S) {
        for _ in 0..rounds {
            let mut sleeps: Vec<_> = (0..TOGETHER).map(|_| Box::pin(make(FAR))).collect();
            poll_fn(|cx| {
                for sleep in &mut sleeps {
                    assert!(sleep.as_mut().poll(cx).is_pending());
                }
                Poll::Ready(())
            })
            .await;
            yield_once().await;
            drop(sleeps);
        }
    }

    let (tokio, mut ours) = (Tokio::new(), Runtime::new());
    contest(
        "100 timers armed, a turn of the loop, cancelled, each",
        5_000,
        Contestant::new("tokio", |n| {
            time(1, || tokio.block_on(arm_and_cancel_later(n / TOGETHER, tokio::time::sleep)))
        }),
        [
            Contestant::new("ebbtide", |n| {
                time(1, || ours.block_on(arm_and_cancel_later(n / TOGETHER, ebbtide_reactor::sleep)))
            }),
            Contestant::new("async-io", |n| {
                time(1, || async_io::block_on(arm_and_cancel_later(n / TOGETHER, async_io::Timer::after)))
            }),
        ],
    )
}

/// How late a sleep of a millisecond ends on a loop that does nothing else.
fn lateness() -> Table {
    const SLEEP: Duration = Duration::from_millis(1);

    async fn late<S: Future>(make: impl Fn(Duration) -> S) -> f64 {
        let mut late = Vec::new();
        for _ in 0..50 {
            let start = SystemClock.now();
            make(SLEEP).await;
            let passed = SystemClock.now() - start;
            assert!(passed >= SLEEP, "a sleep ended early");
            late.push(passed - SLEEP);
        }
        late.sort();
        late[late.len() / 2].as_nanos() as f64 / 1e3
    }

    let (tokio, mut ours) = (Tokio::new(), Runtime::new());
    measure(
        "a sleep of 1 ms, how late",
        "µs",
        15,
        Contestant::value("async-io", || async_io::block_on(late(async_io::Timer::after))),
        [
            Contestant::value("ebbtide", || ours.block_on(late(ebbtide_reactor::sleep))).target(1.2),
            Contestant::value("tokio", || tokio.block_on(late(tokio::time::sleep))),
        ],
    )
}

/// A hundred thousand tasks that sleep for different times of up to a second: what they cost, and how late they
/// are.
pub(super) fn sleepers() -> [Table; 2] {
    const SLEEPERS: usize = 100_000;

    /// What a run cost, and how late its sleepers were.
    struct Run {
        cpu: f64,
        late: f64,
    }

    fn cpu() -> Duration {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    /// Runs the sleepers, whom `spawn_all` spawns and waits for.
    fn run(spawn_all: impl FnOnce(Rc<RefCell<Vec<Duration>>>)) -> Run {
        let late = Rc::new(RefCell::new(Vec::with_capacity(SLEEPERS)));
        let before = cpu();
        spawn_all(late.clone());
        let cpu = cpu() - before;
        let mut late = late.take();
        assert_eq!(late.len(), SLEEPERS);
        late.sort_unstable();
        let late = late[SLEEPERS / 2].as_nanos() as f64 / 1e3;
        Run { cpu: cpu.as_nanos() as f64 / SLEEPERS as f64, late }
    }

    /// One of them.
    async fn sleeper<S: Future>(nth: usize, make: fn(Duration) -> S, late: Rc<RefCell<Vec<Duration>>>) {
        let wanted = Duration::from_nanos(nth as u64 * 7_919 % SLEEPERS as u64 * 10_000);
        let at = SystemClock.now() + wanted;
        make(wanted).await;
        late.borrow_mut().push(SystemClock.now().checked_duration_since(at).expect("a sleep ended early"));
    }

    eprintln!("sleepers …");
    let (tokio, mut ours) = (Tokio::new(), Runtime::new());
    let on_tokio = || {
        run(|late| {
            tokio.block_on(async {
                let spawn = |nth| tokio::task::spawn_local(sleeper(nth, tokio::time::sleep, late.clone()));
                let tasks: Vec<_> = (0..SLEEPERS).map(spawn).collect();
                for task in tasks {
                    task.await.expect("ends");
                }
            });
        })
    };
    let mut on_ours = || {
        run(|late| {
            ours.block_on(async {
                let spawn = |nth| ebbtide_reactor::spawn(sleeper(nth, ebbtide_reactor::sleep, late.clone()));
                let tasks: Vec<_> = (0..SLEEPERS).map(|nth| spawn(nth).expect("runs")).collect();
                for task in tasks {
                    task.await.expect("ends");
                }
            });
        })
    };
    let on_smol = || {
        run(|late| {
            let smol = LocalExecutor::new();
            async_io::block_on(smol.run(async {
                let spawn = |nth| smol.spawn(sleeper(nth, async_io::Timer::after, late.clone()));
                let tasks: Vec<_> = (0..SLEEPERS).map(spawn).collect();
                for task in tasks {
                    task.await;
                }
            }));
        })
    };
    // To be late by 200 µs at the median takes 2,500 wake-ups in this second.
    let waking_up = || {
        let (before, late) = (cpu(), Duration::from_micros(400));
        for _ in 0..2_500 {
            let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: late.subsec_nanos().into() });
        }
        let cpu = cpu() - before;
        Run { cpu: cpu.as_nanos() as f64 / SLEEPERS as f64, late: late.as_micros() as f64 / 2.0 }
    };
    let mut late: [Vec<f64>; 4] = Default::default();
    let mut cpu: [Vec<f64>; 4] = Default::default();
    for _ in 0..5 {
        for (nth, run) in [on_tokio(), on_ours(), on_smol(), waking_up()].into_iter().enumerate() {
            late[nth].push(run.late);
            cpu[nth].push(run.cpu);
        }
    }
    let names = ["tokio", "ebbtide", "smol + async-io", "floor: 2,500 wake-ups of a thread"];
    let (title, target) = ("100,000 sleepers over a second, CPU for each", [None, Some(0.7), None, None]);
    [
        Table::of(title, "ns", names, cpu, target),
        Table::of("100,000 sleepers over a second, how late", "µs", names, late, [None; 4]),
    ]
}
