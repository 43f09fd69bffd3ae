//! The drain in real time: nothing is polled.

use std::{sync::Barrier, thread};

use ebbtide_shutdown::{Coordinator, Reason, lifecycle::Outcome};

use crate::reason;

/// The origin polls every 100 ms: a request that ends right after a look costs up to that.
#[test]
fn the_last_request_that_ends_ends_the_drain() {
    let coordinator = Coordinator::builder().observer(|_| ()).start().unwrap();
    let request = coordinator.intake().admit().unwrap();
    let report = thread::scope(|scope| {
        let stopped = coordinator.stop(reason());
        scope.spawn(|| request.settle(Outcome::Completed));
        stopped.wait()
    });
    assert!(report.is_clean());
    assert!(coordinator.ready_to_stop());
}

#[test]
fn requests_from_many_threads_are_answered_or_refused_and_counted() {
    let coordinator = Coordinator::builder().observer(|_| ()).start().unwrap();
    let barrier = Barrier::new(5);
    let (served, report) = thread::scope(|scope| {
        let serve = || {
            barrier.wait();
            let mut served = 0;
            while let Ok(request) = coordinator.intake().admit() {
                request.settle(Outcome::Completed);
                served += 1;
            }
            served
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(serve)).collect();
        barrier.wait();
        let report = coordinator.stop(Reason::input_closed("test")).wait();
        (threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), report)
    });
    let balance = report.intake().unwrap().balance;
    assert_eq!((balance.accepted, balance.completed), (served, served));
    assert!(report.is_clean());
}
