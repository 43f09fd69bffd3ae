//! Workers in a group, stopped by hand and by signals, in virtual time. Those that the origin has tests for have their
//! names.

use std::{sync::OnceLock, thread};

use ebbtide_lifecycle::{Component, RunError, Runnable, Stopped, Stopping, time::Hold};
use ebbtide_shutdown::{
    Coordinator, Feed, Priority, Report, Signals,
    group::{Ending, Group, GroupBuilder},
};

use super::{stops::waiting, *};

/// A worker that takes part in virtual time, which stands still from its end on: else it might move on before the
/// group knows of it.
struct Timely {
    clock: VirtualClock,
    worker: Worker<VirtualClock>,
    ended: OnceLock<Hold>,
}

impl Runnable for Timely {
    fn run(&self) -> Result<(), RunError> {
        self.clock.block_on(async {
            let ended = self.worker.work().await;
            let _ = self.ended.set(self.clock.hold());
            ended
        })
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        self.worker.shutdown(deadline, reason)
    }

    fn is_running(&self) -> bool {
        self.worker.is_running()
    }
}

/// One that must not end by itself.
struct Endless(Arc<Timely>);

impl Runnable for Endless {
    fn run(&self) -> Result<(), RunError> {
        self.0.run()?;
        if self.0.worker.token().is_triggered() { Ok(()) } else { Err("nobody sends evals any more".into()) }
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        self.0.shutdown(deadline, reason)
    }

    fn is_running(&self) -> bool {
        self.0.is_running()
    }
}

impl Fixture {
    fn timely(&self, worker: &Worker<VirtualClock>) -> Arc<Timely> {
        let (clock, worker) = (self.clock.clone(), worker.clone());
        let timely = Arc::new(Timely { clock, worker, ended: OnceLock::new() });
        self.kept.lock().unwrap().push(timely.clone());
        timely
    }

    /// Starts a group, and returns when all of its workers work. No time passes until the hold is dropped.
    fn start(&self, group: GroupBuilder, workers: &[&Worker<VirtualClock>]) -> (Group, Hold) {
        let hold = self.clock.hold();
        let group = group.clock(&self.clock).build().unwrap();
        group.start().unwrap();
        while !workers.iter().all(|worker| worker.is_ready()) {
            thread::yield_now();
        }
        (group, hold)
    }

    /// Stops a group, within five seconds. No time passes before its workers know.
    fn stop(&self, (group, hold): (&Group, Hold), workers: &[&Worker<VirtualClock>]) -> Stopped {
        let deadline = Deadline::after(&self.clock, 5 * SECOND);
        let Stopping::Future(stop) = Component::stop(group, deadline, &reason()) else {
            panic!("in virtual time it is a future");
        };
        workers.iter().for_each(|worker| drop(worker.token().triggered().wait()));
        drop(hold);
        self.clock.block_on(stop)
    }

    /// Has a coordinator stop a group at a signal after a second, and does the rest when the worker knows.
    fn signal(
        &self,
        (group, hold): (Group, Hold),
        worker: &Worker<VirtualClock>,
        rest: impl Future<Output = ()>,
    ) -> Report {
        let feed = Feed::new();
        let builder = Coordinator::builder().clock(&self.clock).observer(|_| ());
        let coordinator = builder.signals(Signals::from_feed(&feed)).start().unwrap();
        coordinator.register("workers", Priority::WORKERS, group).unwrap().keep();
        self.clock.block_on(async {
            drop(hold);
            self.clock.sleep_until(self.start + SECOND).await;
            let hold = self.clock.hold();
            feed.send(15);
            worker.token().triggered().await;
            drop(hold);
            rest.await;
            coordinator.stopped().await
        })
    }
}

#[test]
fn test_shutdown_waits_for_in_flight() {
    let fixture = Fixture::new();
    fixture.send("slow");
    let (clock, completed) = (fixture.clock.clone(), Log::default());
    let (begun, done) = (Trigger::new(), completed.clone());
    let begins = begun.token();
    let worker = fixture
        .worker(move |_| {
            begun.fire(reason());
            let (sleep, done) = (clock.sleep_until(clock.now() + 2 * SECOND), done.clone());
            async move {
                sleep.await;
                done.add("completed");
                Ok(None)
            }
        })
        .build();
    let (group, hold) = fixture.start(Group::builder().member("main", fixture.timely(&worker)), &[&worker]);
    begins.triggered().wait();
    assert_eq!(fixture.stop((&group, hold), &[&worker]), Stopped::Clean);
    assert_eq!(completed.lines(), ["completed"]);
    assert_eq!(fixture.elapsed(), 2 * SECOND);
    assert_eq!(fixture.counts(), (0, 0, 0));
}

#[test]
fn test_loop_group_coordinates_shutdown() {
    let fixture = Fixture::new();
    let [main, eval] = [fixture.noting().0.build(), fixture.noting().0.build()];
    let group = Group::builder().member("main", fixture.timely(&main)).member("eval", fixture.timely(&eval));
    let (group, hold) = fixture.start(group, &[&main, &eval]);
    assert!(main.is_running() && eval.is_running());
    assert_eq!(fixture.stop((&group, hold), &[&main, &eval]), Stopped::Clean);
    assert!(!main.is_running() && !eval.is_running());
    assert_eq!(fixture.elapsed(), Duration::ZERO, "a long poll keeps nobody");
    let outcomes = group.ended().wait();
    assert!(outcomes.iter().all(|fate| matches!(fate.ending, Ending::Stopped)), "{outcomes}");
}

#[test]
fn test_sigterm_triggers_shutdown() {
    let fixture = Fixture::new();
    let worker = fixture.noting().0.build();
    let started = fixture.start(Group::builder().member("main", fixture.timely(&worker)), &[&worker]);
    let report = fixture.signal(started, &worker, async {});
    assert_eq!((report.reason(), report.exit_code()), (&Reason::Signal(15), 0), "{report}");
    assert_eq!(fixture.elapsed(), SECOND, "in a long poll of 20 seconds: it ends at once");
}

#[test]
fn m3_a_signal_with_a_batch_in_hand_ends_the_first_and_releases_nine() {
    let fixture = Fixture::new();
    for n in 0..10 {
        fixture.send(&n.to_string());
    }
    let (builder, finish, begun) = waiting(&fixture);
    let worker = builder.build();
    let started = fixture.start(Group::builder().member("main", fixture.timely(&worker)), &[&worker]);
    let report = fixture.signal(started, &worker, async {
        fixture.clock.sleep_until(fixture.start + 2 * SECOND).await;
        let others = fixture.mailbox.receive(at_once()).await.unwrap();
        assert_eq!(others.len(), 9, "while the first is under way");
        assert!(others.iter().all(|delivery| delivery.delivery_count == 1), "the delivery is not counted");
        fixture.clock.sleep_until(fixture.start + 3 * SECOND).await;
        finish.fire(reason());
    });
    assert_eq!(report.exit_code(), 0, "{report}");
    assert_eq!((begun.lines(), fixture.elapsed()), (vec!["0".to_owned()], 3 * SECOND));
    assert_eq!(worker.balance().to_string(), "accepted 10, completed 1, handed back 9");
    assert_eq!(fixture.counts(), (0, 0, 9), "the first is acknowledged");
}

#[test]
fn m7_a_worker_that_fails_stops_its_sibling_by_contract() {
    let fixture = Fixture::new();
    for n in 0..10 {
        fixture.send(&n.to_string());
    }
    let (builder, finish, begun) = waiting(&fixture);
    let main = builder.build();
    let evals = fixture.office.mailbox("evals");
    let eval =
        Worker::builder(Arc::new(evals.clone()), fixture.clock.clone(), |_| async { Ok(None) }).build();
    let group =
        Group::builder().member("main", fixture.timely(&main)).member("eval", Endless(fixture.timely(&eval)));
    let (group, hold) = fixture.start(group, &[&main, &eval]);
    let outcomes = fixture.clock.block_on(async {
        drop(hold);
        fixture.clock.sleep_until(fixture.start + SECOND).await;
        let hold = fixture.clock.hold();
        evals.close();
        let reason = main.token().triggered().await;
        assert_eq!(reason.to_string(), "eval failed: nobody sends evals any more");
        drop(hold);
        finish.fire(reason);
        group.ended().await
    });
    assert!(matches!(outcomes.get("main").unwrap().ending, Ending::Stopped), "{outcomes}");
    assert!(matches!(outcomes.get("eval").unwrap().ending, Ending::Failed { .. }), "{outcomes}");
    assert_eq!((begun.lines(), fixture.elapsed()), (vec!["0".to_owned()], SECOND));
    assert_eq!(fixture.counts(), (9, 0, 0), "one was handled, nine are released");
    assert_eq!(main.balance().to_string(), "accepted 10, completed 1, handed back 9");
}
