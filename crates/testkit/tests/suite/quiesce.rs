//! A quiesce keeps to its timeout, and says truly what is left, whatever is still there.

use std::{env, future::pending, time::Duration};

use ebbtide_reactor::{Handle, sleep, spawn, yield_now};
use ebbtide_testkit::{Code, Draws, Scene};

use super::{MS, SECOND};

/// What draws are made for.
const TASKS: u64 = 200;

/// How much later than its timeout a quiesce may return, in virtual time, in which it is all its own doing.
const OVERSHOOT_MAX: Duration = Duration::from_millis(50);

/// So many programs are tried, unless somebody has more time.
fn rounds() -> u64 {
    env::var("ROUNDS").map_or(300, |given| given.parse().expect("a number"))
}

/// Tasks that end in time, that end too late, that never end, and that never rest. Gives how many of them must be left.
fn bring(handle: &Handle, draws: &mut Draws, timeout: Duration) -> usize {
    let mut left = 0;
    for _ in 0..draws.below(8) {
        // Never as long as the timeout, to the moment: then either would be right.
        let takes = draws.duration(2 * SECOND) + MS / 2;
        let what = draws.below(5);
        left += usize::from(what > 2 || what > 0 && takes > timeout);
        let task = async move {
            match what {
                0 => yield_now().await,
                1 => sleep(takes).await,
                // One that brings another: it may, until there is no task left.
                2 => drop(spawn(sleep(takes))),
                3 => pending().await,
                _ => loop {
                    sleep(MS).await;
                },
            }
        };
        handle.spawn(task).ok().unwrap().detach();
    }
    left
}

fn quiesced(scene: &Scene) {
    let (Code::Seed(seed) | Code::Step(seed)) = scene.code();
    let draws = &mut Draws::new(seed, TASKS);
    let timeout = draws.duration(SECOND);
    let mut runtime = scene.runtime();
    let left = bring(&runtime.handle(), draws, timeout);
    let before = runtime.handle().now();
    let quiet = runtime.shutdown_quiesce(timeout);
    let took = runtime.handle().now() - before;
    assert!(took <= timeout + OVERSHOOT_MAX, "{took:?} for a timeout of {timeout:?}");
    match quiet {
        Ok(()) => assert_eq!(left, 0, "it says that nothing is left"),
        Err(told) => {
            assert!(took >= timeout, "it gave up after {took:?} of {timeout:?}");
            assert_eq!((told.tasks, told.ready + told.parked), (left, left), "{told}");
            assert_eq!((told.held, told.stragglers.len()), (0, left), "{told}");
        }
    }
    let stats = runtime.shutdown_stats();
    drop(runtime);
    let balance = stats.snapshot().balance;
    balance.check().unwrap();
    assert_eq!((balance.in_flight, balance.cancelled), (0, left as u64), "{balance}");
}

#[test]
fn e10_a_quiesce_keeps_to_its_timeout_and_counts_what_is_left() {
    let summary = Scene::seeds(0..rounds(), quiesced).unwrap();
    println!("{} cases", summary.cases);
}
