//! Loops that are started, flooded and stopped, again and again, while every post and every task is counted
//! twice: by the loop's ledger, and by those who brought it. Ends with the sums, and fails if they differ.
//!
//! `cargo xtask soak loop --seconds 60`

use std::{
    env,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Balance, Reason, Trigger,
    time::{Clock, Deadline, SystemClock},
};
use ebbtide_reactor::{EventLoop, sleep, yield_now};

const PRODUCERS: u64 = 3;

/// What those who bring work count.
#[derive(Default)]
struct Tally {
    accepted: AtomicU64,
    refused: AtomicU64,
    ran: AtomicU64,
    /// Refused, and yet it ran.
    ghosts: AtomicU64,
}

impl Tally {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() -> ExitCode {
    let seconds = env::args().nth(1).and_then(|seconds| seconds.parse().ok());
    let Some(seconds) = seconds else {
        eprintln!("usage: soak SECONDS");
        return ExitCode::FAILURE;
    };
    let end = SystemClock.now() + Duration::from_secs(seconds);
    let (mut rounds, mut total, tally) = (0_u64, Balance::default(), Arc::new(Tally::default()));
    while SystemClock.now() < end {
        rounds += 1;
        let balance = round(rounds, &tally);
        if let Err(unbalanced) = balance.check() {
            eprintln!("round {rounds}: {unbalanced}");
            return ExitCode::FAILURE;
        }
        total = total + balance;
    }
    let [accepted, refused, ran, ghosts] = [&tally.accepted, &tally.refused, &tally.ran, &tally.ghosts]
        .map(|count| count.load(Ordering::SeqCst));
    println!("{rounds} loops: {total}");
    println!(
        "brought: accepted {accepted}, refused {refused}; posts that ran {ran}; refused that ran {ghosts}"
    );
    let agree = (total.accepted, total.refused, ghosts) == (accepted, refused, 0);
    let whole = total.completed + total.cancelled == total.accepted && ran <= total.completed;
    if agree && whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One loop's life, ended at some moment of the flood: at once, after its tasks, or when the flood has gone on
/// a little.
fn round(number: u64, tally: &Arc<Tally>) -> Balance {
    let events = EventLoop::new();
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (events, tally) = (&events, tally.clone());
            scope.spawn(move || produce(events, &tally, number + producer));
        }
        // A stop may come before the start is through: then everything is refused.
        let _ = events.start();
        for _ in 0..number % 97 {
            thread::yield_now();
        }
        match number % 3 {
            0 => events.stop(),
            1 => {
                events.stop_by(Deadline::after(SystemClock, Duration::from_millis(2)));
            }
            _ => thread::yield_now(),
        }
        events.stop();
    });
    events.balance()
}

fn produce(events: &EventLoop, tally: &Arc<Tally>, seed: u64) {
    for work in 0..400 {
        let accepted = match (seed + work) % 4 {
            0 | 1 => {
                let (inside, refused) = (tally.clone(), Arc::new(AtomicU64::new(0)));
                let was_refused = refused.clone();
                let post = events.post(move || {
                    Tally::count(&inside.ran);
                    inside.ghosts.fetch_add(was_refused.load(Ordering::SeqCst), Ordering::SeqCst);
                });
                refused.store(u64::from(post.is_err()), Ordering::SeqCst);
                post.is_ok()
            }
            2 => {
                let wake = Trigger::new();
                let token = wake.token();
                let task = events.spawn(async move {
                    token.triggered().await;
                    yield_now().await;
                });
                wake.fire(Reason::requested("soak"));
                task.map(|task| {
                    if work % 8 == 0 {
                        task.cancel();
                    }
                })
                .is_ok()
            }
            _ => events.spawn(sleep(Duration::from_micros(work))).map(drop).is_ok(),
        };
        Tally::count(if accepted { &tally.accepted } else { &tally.refused });
    }
}
