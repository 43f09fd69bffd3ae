//! Workers on a server, in a group. Those that the origin has tests for have their names.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use ebbtide_lifecycle::{
    Reason, RunError, Runnable, Stopped, Token, Trigger,
    time::{Deadline, SystemClock},
};
use ebbtide_mailbox::{
    Mailbox, Message,
    worker::{Job, Worker},
};
use ebbtide_redis::LinkTimer;
use ebbtide_shutdown::group::{Ending, Group};

use crate::{AGES, Site, UNIT, finish, timed};

fn reason() -> Reason {
    Reason::requested("test")
}

fn far() -> Deadline {
    Deadline::after(SystemClock, AGES)
}

/// A worker that has nothing to do.
fn idle(site: &Site, name: &str) -> Worker<LinkTimer> {
    let mailbox = Arc::new(site.open(name));
    Worker::builder(mailbox, site.link.timer().clone(), |_| async { Ok(None) }).build()
}

/// A worker that says what it has begun, and ends when the test says so.
fn held(site: &Site, name: &str, finish: Token) -> (Worker<LinkTimer>, mpsc::Receiver<Job>) {
    let (begin, begun) = mpsc::channel();
    let mailbox = Arc::new(site.open(name));
    let worker = Worker::builder(mailbox, site.link.timer().clone(), move |job| {
        begin.send(job).unwrap();
        let finished = finish.triggered();
        async move {
            finished.await;
            Ok(None)
        }
    });
    (worker.build(), begun)
}

#[test]
fn test_shutdown_stops_loop() {
    let site = Site::new();
    let worker = idle(&site, "orders");
    thread::scope(|scope| {
        let run = scope.spawn(|| worker.run().map_err(|error| error.to_string()));
        site.until_waiting(1);
        assert!(worker.is_running() && worker.is_ready());
        let (stopped, took) = timed(|| worker.shutdown(far(), &reason()));
        assert_eq!(stopped, Stopped::Clean);
        assert!(took < 10 * UNIT, "in a long poll of 20 seconds: {took:?}");
        assert!(!worker.is_running());
        run.join().unwrap().unwrap();
    });
}

#[test]
fn test_shutdown_waits_for_in_flight() {
    let site = Site::new();
    let orders = site.open("orders");
    finish(orders.send(Message::new("slow"))).unwrap();
    let (completes, completed) = (Trigger::new(), Arc::new(AtomicBool::new(false)));
    let (worker, begun) = held(&site, "orders", completes.token());
    let group = Group::builder().member("main", worker.clone()).build().unwrap();
    group.start().unwrap();
    let job = begun.recv().unwrap();
    let shutdown = {
        let (group, completed) = (group.clone(), completed.clone());
        thread::spawn(move || (group.shutdown(far(), &reason()), completed.load(Ordering::SeqCst)))
    };
    job.stopping().triggered().wait();
    assert!(!shutdown.is_finished(), "the message is in flight");
    completed.store(true, Ordering::SeqCst);
    completes.fire(reason());
    assert_eq!(shutdown.join().unwrap(), (Stopped::Clean, true));
    assert_eq!(finish(orders.counts()).unwrap().all(), 0, "and acknowledged");
}

#[test]
fn test_loop_group_coordinates_shutdown() {
    let site = Site::new();
    let [main, eval] = ["requests", "evals"].map(|name| idle(&site, name));
    let group = Group::builder().member("main", main.clone()).member("eval", eval.clone()).build().unwrap();
    group.start().unwrap();
    site.until_waiting(2);
    let (stopped, took) = timed(|| group.shutdown(far(), &reason()));
    assert_eq!(stopped, Stopped::Clean);
    assert!(took < 10 * UNIT, "both in a long poll of 20 seconds: {took:?}");
    assert!(!main.is_running() && !eval.is_running());
    assert!(group.outcomes().unwrap().is_clean());
}

/// A worker that must not end by itself.
struct Endless(Worker<LinkTimer>);

impl Runnable for Endless {
    fn run(&self) -> Result<(), RunError> {
        self.0.run()?;
        if self.0.token().is_triggered() { Ok(()) } else { Err("nobody sends evals any more".into()) }
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        self.0.shutdown(deadline, reason)
    }

    fn is_running(&self) -> bool {
        self.0.is_running()
    }
}

#[test]
fn m7_a_worker_that_fails_stops_its_sibling_by_contract() {
    let site = Site::new();
    let requests = site.open("requests");
    for n in 0..10 {
        finish(requests.send(Message::new(n.to_string()))).unwrap();
    }
    let completes = Trigger::new();
    let (main, begun) = held(&site, "requests", completes.token());
    let evals = site.open("evals");
    let eval =
        Worker::builder(Arc::new(evals.clone()), site.link.timer().clone(), |_| async { Ok(None) }).build();
    let group = Group::builder().member("main", main.clone()).member("eval", Endless(eval)).build().unwrap();
    group.start().unwrap();
    let job = begun.recv().unwrap();
    evals.close();
    job.stopping().triggered().wait();
    completes.fire(reason());
    let outcomes = group.ended().wait();
    assert!(matches!(outcomes.get("main").unwrap().ending, Ending::Stopped), "{outcomes}");
    assert!(matches!(outcomes.get("eval").unwrap().ending, Ending::Failed { .. }), "{outcomes}");
    assert_eq!(main.balance().to_string(), "accepted 10, completed 1, handed back 9");
    assert_eq!(finish(requests.counts()).unwrap().pending, 9);
}
