//! Timeouts around futures that are ready, and around those that have to wait and come in time.

use std::{
    future::{Future, pending, ready},
    hint::black_box,
    pin::pin,
    task::Context,
    time::Duration,
};

use ebbtide_reactor::{Local, Runtime};
use ebbtide_timeout::{LocalRunners, timeout};
use futures_lite::FutureExt;

use crate::{
    areas::Part,
    contest::{Contestant, Table, contest, measure, time},
    peers::Tokio,
};

/// A far time: these timeouts never come.
const FAR: Duration = Duration::from_secs(3600);

pub(crate) const PARTS: [Part; 2] = [
    Part::new("ready", || vec![around_ready_futures()]),
    Part::new("waiting", || vec![armed_and_cancelled()]),
];

/// The context of a task on the loop that runs here.
async fn inside(act: impl FnOnce(&mut Context<'_>) -> Duration) -> Duration {
    let mut act = Some(act);
    std::future::poll_fn(|cx| std::task::Poll::Ready(act.take().expect("polled once")(cx))).await
}

fn poll_ready<F: Future<Output: std::fmt::Debug>>(future: F, cx: &mut Context<'_>) {
    assert!(black_box(pin!(future).poll(cx)).is_ready());
}

fn poll_pending<F: Future>(future: F, cx: &mut Context<'_>) {
    assert!(pin!(future).poll(cx).is_pending());
}

fn around_ready_futures() -> Table {
    const TIMES: usize = 10_000;
    let (tokio, mut ours, mut detaching) = (Tokio::new(), Runtime::new(), Runtime::new());
    let nanos = |time: Duration| time.as_nanos() as f64 / TIMES as f64;
    measure(
        "a timeout around a future that is ready",
        "ns",
        101,
        Contestant::value("the bar", || 10.0),
        [
            Contestant::value("ebbtide", || {
                nanos(
                    ours.block_on(inside(|cx| time(TIMES, || poll_ready(timeout(Local, FAR, ready(1)), cx)))),
                )
            })
            .target(1.0),
            Contestant::value("ebbtide, detaching", || {
                nanos(detaching.block_on(async {
                    let runners = LocalRunners::new_local(&Local, Local).expect("runs");
                    inside(|cx| time(TIMES, || poll_ready(runners.timeout(FAR, ready(1)), cx))).await
                }))
            }),
            Contestant::value("tokio", || {
                nanos(tokio.block_on(inside(|cx| {
                    time(TIMES, || poll_ready(tokio::time::timeout(FAR, ready(1)), cx))
                })))
            }),
            Contestant::value("async-io + or", || {
                nanos(async_io::block_on(inside(|cx| {
                    let late = || async {
                        async_io::Timer::after(FAR).await;
                        0
                    };
                    time(TIMES, || poll_ready(ready(1).or(late()), cx))
                })))
            }),
        ],
    )
}

fn armed_and_cancelled() -> Table {
    let (tokio, mut ours, mut detaching) = (Tokio::new(), Runtime::new(), Runtime::new());
    contest(
        "a timeout around a future that waits, and comes in time",
        5_000,
        Contestant::new("tokio", |n| {
            tokio.block_on(inside(|cx| {
                time(n, || poll_pending(tokio::time::timeout(FAR, pending::<()>()), cx))
            }))
        }),
        [
            Contestant::new("ebbtide", |n| {
                ours.block_on(inside(|cx| time(n, || poll_pending(timeout(Local, FAR, pending::<()>()), cx))))
            })
            .target(0.45),
            Contestant::new("ebbtide, detaching", |n| {
                detaching.block_on(async {
                    let runners = LocalRunners::new_local(&Local, Local).expect("runs");
                    inside(|cx| time(n, || poll_pending(runners.timeout(FAR, pending::<()>()), cx))).await
                })
            }),
            Contestant::new("async-io + or", |n| {
                async_io::block_on(inside(|cx| {
                    let late = || async {
                        async_io::Timer::after(FAR).await;
                    };
                    time(n, || poll_pending(pending::<()>().or(late()), cx))
                }))
            }),
        ],
    )
}
