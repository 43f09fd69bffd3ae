//! Workers whose mailbox is far away: each receive takes a second to be answered, unless a test says otherwise.

use std::{
    num::NonZero,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use ebbtide_lifecycle::{
    Reason,
    time::{Clock, Timer, VirtualClock},
};
use ebbtide_mailbox::{
    Address, BackendError, Boxed, Bytes, Counts, Delivery, Mailbox, MemoryMailbox, Message, MessageId, Pull,
    Receipt, ReceiveError, ReplyError, SendError, SettleError, Settlement, worker::Worker,
};

use super::{Fixture, Log, SECOND};

/// A mailbox in memory, far away.
struct Far {
    near: MemoryMailbox<VirtualClock>,
    clock: VirtualClock,
    /// How many receives are on their way, and how many were at most.
    asked: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    /// How many receives there were, which of them takes a minute, and which fail at once.
    count: Arc<AtomicUsize>,
    slow: Option<usize>,
    failing: Range<usize>,
}

/// Counts a receive out, also one that is dropped.
struct OnItsWay(Arc<AtomicUsize>);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Mailbox for Far {
    fn receive(&self, pull: Pull) -> Boxed<'_, Result<Vec<Delivery>, ReceiveError>> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(asked, Ordering::Relaxed);
        let on_its_way = OnItsWay(self.asked.clone());
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if self.failing.contains(&number) {
                return Err(ReceiveError::Backend(format!("receive {number} fails").into()));
            }
            let takes = if self.slow == Some(number) { 60 * SECOND } else { SECOND };
            self.clock.sleep_until(self.clock.now() + takes).await;
            let received = self.near.receive(pull).await;
            drop(on_its_way);
            received
        })
    }

    fn send(&self, message: Message) -> Boxed<'_, Result<MessageId, SendError>> {
        self.near.send(message)
    }

    fn settle(&self, receipt: Receipt, how: Settlement) -> Boxed<'_, Result<(), SettleError>> {
        self.near.settle(receipt, how)
    }

    fn checkpoint(&self, receipt: Receipt, progress: Bytes) -> Boxed<'_, Result<(), SettleError>> {
        self.near.checkpoint(receipt, progress)
    }

    fn reply(&self, address: Address, body: Bytes) -> Boxed<'_, Result<(), ReplyError>> {
        self.near.reply(address, body)
    }

    fn purge(&self) -> Boxed<'_, Result<u64, BackendError>> {
        self.near.purge()
    }

    fn counts(&self) -> Boxed<'_, Result<Counts, BackendError>> {
        self.near.counts()
    }

    fn close(&self) -> bool {
        self.near.close()
    }

    fn is_closed(&self) -> bool {
        self.near.is_closed()
    }
}

/// A worker of 64 at a time, what it handled, and how many receives were on their way at most.
fn worker(fixture: &Fixture, iterations: Option<u64>) -> (Worker<VirtualClock>, Log, Arc<AtomicUsize>) {
    let (far, most) = far(fixture);
    let (worker, log) = worker_at(fixture, far, iterations);
    (worker, log, most)
}

fn far(fixture: &Fixture) -> (Far, Arc<AtomicUsize>) {
    let most = Arc::new(AtomicUsize::new(0));
    let far = Far {
        near: fixture.mailbox.clone(),
        clock: fixture.clock.clone(),
        asked: Arc::default(),
        most: most.clone(),
        count: Arc::default(),
        slow: None,
        failing: 0..0,
    };
    (far, most)
}

fn worker_at(fixture: &Fixture, far: Far, iterations: Option<u64>) -> (Worker<VirtualClock>, Log) {
    let log = Log::default();
    let (noted, told) = (log.clone(), fixture.told.clone());
    let builder = Worker::builder(Arc::new(far), fixture.clock.clone(), move |job| {
        noted.add(String::from_utf8_lossy(job.body()));
        async { Ok(None) }
    });
    let builder = builder.observer(move |event| told.add(event.to_string()));
    let mut builder = builder.concurrency(NonZero::new(64).unwrap());
    if let Some(iterations) = iterations {
        builder = builder.max_iterations(iterations);
    }
    (builder.build(), log)
}

/// Works, is told to stop at `at`, and ends.
fn work_until(fixture: &Fixture, worker: &Worker<VirtualClock>, at: Instant) {
    fixture.clock.block_on(async {
        let stop = async {
            fixture.clock.sleep_until(at).await;
            worker.stop(Reason::requested("test"));
        };
        let (worked, ()) = futures_util::future::join(worker.work(), stop).await;
        worked.unwrap();
    });
}

#[test]
fn after_a_full_batch_as_many_are_asked_for_as_there_is_room_for_and_come_in_order() {
    let fixture = Fixture::new();
    let sent: Vec<_> = (0..60).map(|number| number.to_string()).collect();
    sent.iter().for_each(|body| fixture.send(body));
    let (worker, log, most) = worker(&fixture, Some(6));
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), sent);
    // One batch, and then five at the same time.
    assert_eq!((fixture.elapsed(), most.load(Ordering::Relaxed)), (2 * SECOND, 5));
    assert_eq!(fixture.counts(), (0, 0, 0));
}

#[test]
fn however_many_may_be_handled_at_a_time_only_so_many_batches_are_asked_for() {
    let fixture = Fixture::new();
    (0..20).for_each(|number| fixture.send(&number.to_string()));
    let (far, most) = far(&fixture);
    let builder = Worker::builder(Arc::new(far), fixture.clock.clone(), |_| async { Ok(None) });
    let worker = builder.concurrency(NonZero::<usize>::MAX).max_iterations(1000).build();
    work_until(&fixture, &worker, fixture.start + 3 * SECOND);
    assert_eq!(most.load(Ordering::Relaxed), 64);
    assert_eq!(worker.balance().completed, 20);
}

#[test]
fn at_a_mailbox_with_little_in_it_one_receive_waits() {
    let fixture = Fixture::new();
    fixture.send("one");
    let (worker, log, most) = worker(&fixture, Some(3));
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!((log.lines().len(), most.load(Ordering::Relaxed)), (1, 1));
}

#[test]
fn a_stop_gives_back_what_further_receives_would_have_taken() {
    let fixture = Fixture::new();
    (0..60).for_each(|number| fixture.send(&number.to_string()));
    let (worker, log, most) = worker(&fixture, None);
    work_until(&fixture, &worker, fixture.start + SECOND + SECOND / 2);
    assert_eq!((log.lines().len(), most.load(Ordering::Relaxed)), (10, 6));
    assert_eq!(fixture.counts(), (50, 0, 0));
}

#[test]
fn m3_a_stop_orphans_no_batch_that_came_before_one_that_was_asked_for_earlier() {
    let fixture = Fixture::new();
    (0..60).for_each(|number| fixture.send(&number.to_string()));
    // The first is alone; then one waits, and the first of the further ones is slow.
    let far = Far { slow: Some(2), ..far(&fixture).0 };
    let (worker, log) = worker_at(&fixture, far, None);
    work_until(&fixture, &worker, fixture.start + 5 * SECOND);
    let (pending, delayed, invisible) = fixture.counts();
    assert_eq!((delayed, invisible), (0, 0), "nothing is in nobody's hands");
    assert_eq!(log.lines().len() as u64 + pending, 60);
}

#[test]
fn a_mailbox_that_fails_at_once_after_a_full_batch_is_asked_again_after_a_pause() {
    let fixture = Fixture::new();
    (0..30).for_each(|number| fixture.send(&number.to_string()));
    let far = Far { failing: 1..1000, ..far(&fixture).0 };
    let count = far.count.clone();
    let (worker, log) = worker_at(&fixture, far, None);
    work_until(&fixture, &worker, fixture.start + 11 * SECOND);
    assert_eq!(log.lines().len(), 10);
    // 50 ms, twice as much, and so on up to five seconds: eight or nine times in ten seconds.
    let asked = count.load(Ordering::Relaxed);
    assert!(asked < 20, "{asked} receives, of {:?}", fixture.told.lines());
}

#[test]
fn m7_a_mailbox_that_closes_with_further_receives_on_their_way_ends_the_worker() {
    let fixture = Fixture::new();
    (0..60).for_each(|number| fixture.send(&number.to_string()));
    let (worker, log, most) = worker(&fixture, None);
    fixture.clock.block_on(async {
        let close = async {
            fixture.clock.sleep_until(fixture.start + SECOND + SECOND / 2).await;
            fixture.mailbox.close();
        };
        let (worked, ()) = futures_util::future::join(worker.work(), close).await;
        worked.unwrap();
    });
    assert_eq!((log.lines().len(), most.load(Ordering::Relaxed)), (10, 6));
    assert_eq!((fixture.counts(), fixture.elapsed()), ((50, 0, 0), 2 * SECOND));
}
