//! Workers whose connection to the mailbox breaks, and who are told to stop at the worst moment.

use std::{collections::HashMap, sync::OnceLock};

use ebbtide_mailbox::{
    Address, BackendError, Boxed, Bytes, Counts, MessageId, Receipt, ReceiveError, ReplyError, SendError,
    SettleError, Settlement,
};

use super::*;

/// A mailbox whose connection breaks, and whose worker is told to stop at the moment at which a batch is there.
struct Shaky {
    mailbox: MemoryMailbox<VirtualClock>,
    /// Whom to stop then, if anybody.
    worker: OnceLock<Worker<VirtualClock>>,
    /// How often each release finds the connection broken.
    breaks: usize,
    /// How often each was tried.
    tried: Mutex<HashMap<Receipt, usize>>,
}

impl Shaky {
    fn new(fixture: &Fixture, breaks: usize) -> Arc<Self> {
        let (worker, tried) = (OnceLock::new(), Mutex::default());
        Arc::new(Self { mailbox: fixture.mailbox.clone(), worker, breaks, tried })
    }

    /// Whether this try finds the connection broken.
    fn breaks(&self, receipt: Receipt) -> bool {
        let mut tried = self.tried.lock().unwrap();
        let times = tried.entry(receipt).or_default();
        *times += 1;
        *times <= self.breaks
    }
}

impl Mailbox for Shaky {
    fn receive(&self, pull: Pull) -> Boxed<'_, Result<Vec<Delivery>, ReceiveError>> {
        Box::pin(async move {
            let batch = self.mailbox.receive(pull).await;
            self.worker.get().into_iter().for_each(|worker| worker.stop(reason()));
            batch
        })
    }

    fn send(&self, message: Message) -> Boxed<'_, Result<MessageId, SendError>> {
        self.mailbox.send(message)
    }

    fn settle(&self, receipt: Receipt, how: Settlement) -> Boxed<'_, Result<(), SettleError>> {
        if how == Settlement::Release && self.breaks(receipt) {
            return Box::pin(async { Err(SettleError::Backend("the connection broke".into())) });
        }
        self.mailbox.settle(receipt, how)
    }

    fn checkpoint(&self, receipt: Receipt, progress: Bytes) -> Boxed<'_, Result<(), SettleError>> {
        self.mailbox.checkpoint(receipt, progress)
    }

    fn reply(&self, address: Address, body: Bytes) -> Boxed<'_, Result<(), ReplyError>> {
        self.mailbox.reply(address, body)
    }

    fn purge(&self) -> Boxed<'_, Result<u64, BackendError>> {
        self.mailbox.purge()
    }

    fn counts(&self) -> Boxed<'_, Result<Counts, BackendError>> {
        self.mailbox.counts()
    }

    fn close(&self) -> bool {
        self.mailbox.close()
    }

    fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }
}

#[test]
fn m3_a_batch_that_comes_at_the_moment_of_a_stop_goes_back_in_its_order() {
    for breaks in [0, 1] {
        let fixture = Fixture::new();
        for n in 0..5 {
            fixture.send(&n.to_string());
        }
        let mailbox = Shaky::new(&fixture, breaks);
        let worker = Worker::builder(mailbox.clone(), fixture.clock.clone(), |_| async { Ok(None) }).build();
        assert!(mailbox.worker.set(worker.clone()).is_ok());
        fixture.clock.block_on(worker.work()).unwrap();
        let back = fixture.receive();
        let bodies: Vec<_> = back.iter().map(|delivery| String::from_utf8_lossy(&delivery.body)).collect();
        assert_eq!(bodies, ["0", "1", "2", "3", "4"]);
        assert!(back.iter().all(|delivery| delivery.delivery_count == 1), "the delivery is not counted");
        assert_eq!(worker.balance().accepted, 0);
    }
}

/// A worker that is told to stop by the handler of the first of ten messages; each release fails so often at first.
fn stopped_with_nine_in_hand(fixture: &Fixture, breaks: usize) -> Worker<VirtualClock> {
    for n in 0..10 {
        fixture.send(&n.to_string());
    }
    let (stop, told) = (Arc::new(OnceLock::<Worker<VirtualClock>>::new()), fixture.told.clone());
    let stops = stop.clone();
    let worker = Worker::builder(Shaky::new(fixture, breaks), fixture.clock.clone(), move |_| {
        stops.get().unwrap().stop(reason());
        async { Ok(None) }
    })
    .observer(move |event| told.add(event.to_string()))
    .build();
    assert!(stop.set(worker.clone()).is_ok());
    fixture.clock.block_on(worker.work()).unwrap();
    worker
}

#[test]
fn m3_all_is_released_also_when_the_connection_breaks_meanwhile() {
    let fixture = Fixture::new();
    let worker = stopped_with_nine_in_hand(&fixture, 1);
    assert_eq!(fixture.counts(), (9, 0, 0));
    assert_eq!(worker.balance().to_string(), "accepted 10, completed 1, handed back 9");
    assert_eq!(fixture.told.lines(), [""; 0]);
}

#[test]
fn m3_what_cannot_be_released_is_told_and_not_booked_as_handed_back() {
    let fixture = Fixture::new();
    let worker = stopped_with_nine_in_hand(&fixture, 2);
    assert_eq!(fixture.counts(), (0, 0, 9), "it comes back by itself");
    assert_eq!(worker.balance().to_string(), "accepted 10, completed 1, failed 9");
    let told = fixture.told.lines();
    assert_eq!(told.len(), 9, "{told:?}");
    assert!(told[0].ends_with("the delivery may not have been settled: the connection broke"), "{told:?}");
}
