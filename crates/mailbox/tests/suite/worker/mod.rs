//! Workers.

mod failures;
mod far;
mod groups;
mod leases;
mod shaky;
mod stops;
mod typed;

use std::{
    any::Any,
    future::pending,
    num::NonZero,
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Component, Reason, Trigger, conformance,
    time::{Clock, Deadline, ThreadTimer, Timer, VirtualClock},
};
use ebbtide_mailbox::{
    Delivery, Mailbox, MemoryMailbox, Message, Office, Pull, Span,
    worker::{Worker, WorkerBuilder},
};

const SECOND: Duration = Duration::from_secs(1);

/// A mailbox in virtual time.
struct Fixture {
    clock: VirtualClock,
    start: Instant,
    office: Office<VirtualClock>,
    mailbox: MemoryMailbox<VirtualClock>,
    told: Log,
    /// What lives as long as the fixture.
    kept: Mutex<Vec<Arc<dyn Any>>>,
}

/// What was told or done, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Fixture {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let office = Office::new(clock.clone());
        let (start, mailbox) = (clock.now(), office.mailbox("work"));
        Self { start, mailbox, office, clock, told: Log::default(), kept: Mutex::default() }
    }

    fn send(&self, body: &str) {
        self.clock.block_on(self.mailbox.send(Message::new(body.to_owned()))).unwrap();
    }

    /// A worker whose handler notes what it handles.
    fn noting(&self) -> (WorkerBuilder<VirtualClock>, Log) {
        let log = Log::default();
        let noted = log.clone();
        let builder = self.worker(move |job| {
            noted.add(String::from_utf8_lossy(job.body()));
            async { Ok(None) }
        });
        (builder, log)
    }

    fn worker<F>(
        &self,
        handler: impl Fn(ebbtide_mailbox::worker::Job) -> F + Send + Sync + 'static,
    ) -> WorkerBuilder<VirtualClock>
    where
        F: Future<Output = ebbtide_mailbox::worker::HandlerResult> + Send + 'static,
    {
        let told = self.told.clone();
        Worker::builder(Arc::new(self.mailbox.clone()), self.clock.clone(), handler)
            .observer(move |event| told.add(event.to_string()))
    }

    fn counts(&self) -> (u64, u64, u64) {
        let counts = self.clock.block_on(self.mailbox.counts()).unwrap();
        (counts.pending, counts.delayed, counts.invisible)
    }

    /// All that can be received at this moment.
    fn receive(&self) -> Vec<Delivery> {
        self.clock.block_on(self.mailbox.receive(at_once())).unwrap()
    }

    fn elapsed(&self) -> Duration {
        self.clock.now() - self.start
    }
}

fn at_once() -> Pull {
    Pull::default().wait(Duration::ZERO).unwrap()
}

fn reason() -> Reason {
    Reason::requested("test")
}

#[test]
fn m7_a_worker_conforms() {
    let timer = ThreadTimer::start().unwrap();
    conformance::runnable(|| {
        let mailbox = Arc::new(Office::new(timer.clone()).mailbox("work"));
        Worker::builder(mailbox, timer.clone(), |_| async { Ok(None) }).build()
    });
}

#[test]
fn every_message_is_handled_and_acknowledged() {
    let fixture = Fixture::new();
    for n in 0..25 {
        fixture.send(&n.to_string());
    }
    let (builder, log) = fixture.noting();
    let worker = builder.max_iterations(3).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), (0..25).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(fixture.counts(), (0, 0, 0));
    assert_eq!(worker.balance().to_string(), "accepted 25, completed 25");
    assert!(fixture.told.lines().is_empty());
}

#[test]
fn m7_it_ends_after_so_many_receives() {
    let fixture = Fixture::new();
    let (builder, _) = fixture.noting();
    let worker = builder.max_iterations(2).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(fixture.elapsed(), 40 * SECOND, "two long polls without a message");
}

#[test]
fn one_that_does_not_wait_pauses_where_there_is_nothing() {
    let fixture = Fixture::new();
    fixture.send("one");
    let (builder, log) = fixture.noting();
    let worker = builder.pull(at_once()).max_iterations(22).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), ["one"]);
    assert_eq!(fixture.elapsed(), SECOND, "20 times 50 ms, and none at the end");
}

#[test]
fn m7_it_ends_when_the_mailbox_closes() {
    let fixture = Fixture::new();
    fixture.send("one");
    let (builder, log) = fixture.noting();
    let worker = builder.build();
    fixture.clock.block_on(async {
        let close = async {
            fixture.clock.sleep_until(fixture.start + SECOND).await;
            fixture.mailbox.close();
            pending::<()>().await;
        };
        let mut close = std::pin::pin!(close);
        let mut work = std::pin::pin!(worker.work());
        std::future::poll_fn(|cx| {
            let _ = close.as_mut().poll(cx);
            work.as_mut().poll(cx)
        })
        .await
        .unwrap();
    });
    assert_eq!(log.lines(), ["one"]);
    assert_eq!(fixture.elapsed(), SECOND);
}

#[test]
fn as_many_are_handled_at_a_time_as_it_was_told() {
    let fixture = Fixture::new();
    for n in 0..6 {
        fixture.send(&n.to_string());
    }
    let clock = fixture.clock.clone();
    let builder = fixture.worker(move |_| {
        let sleep = clock.sleep_until(clock.now() + SECOND);
        async move {
            sleep.await;
            Ok(None)
        }
    });
    let pull = at_once();
    let worker = builder.concurrency(NonZero::new(3).unwrap()).pull(pull).max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(fixture.elapsed(), 2 * SECOND);
}

#[test]
fn m1_a_visibility_that_is_too_short_is_a_warning() {
    let fixture = Fixture::new();
    let (builder, _) = fixture.noting();
    let _worker = builder.bounds(30 * SECOND, 270 * SECOND).build();
    let told = fixture.told.lines();
    assert!(
        told[0].starts_with("worker: messages are out of sight for 300s, which is not longer than"),
        "{told:?}"
    );
    let (builder, _) = fixture.noting();
    let _worker = builder.bounds(30 * SECOND, 269 * SECOND).build();
    assert_eq!(fixture.told.lines().len(), 1);
}
