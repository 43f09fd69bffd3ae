//! What the clauses are written in.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;

use super::Specimen;
use crate::{
    error::{ReceiveError, SettleError},
    mailbox::{Boxed, Mailbox},
    message::{Counts, Delivery, Message, MessageId, Receipt, Settlement},
    pull::Pull,
    span::Span,
};

/// What a receive gives.
type Received = Result<Vec<Delivery>, ReceiveError>;

/// A receive in progress, which is polled only when it was woken: what it would find by itself if it were polled for
/// another reason must wake it, too.
pub(super) struct Receiving<'a> {
    future: Boxed<'a, Received>,
    nudge: Arc<Nudge>,
}

/// The waker of a receive.
struct Nudge {
    woken: AtomicBool,
    /// Whom to tell.
    poller: Mutex<Waker>,
}

impl Wake for Nudge {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let poller = self.poller().clone();
        poller.wake();
    }
}

impl Nudge {
    fn poller(&self) -> MutexGuard<'_, Waker> {
        self.poller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiving<'_> {
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<Received> {
        self.nudge.poller().clone_from(cx.waker());
        if !self.nudge.woken.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        let waker = Waker::from(self.nudge.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// A mailbox that a clause is put to.
pub(super) struct Case<'a, S> {
    pub(super) specimen: &'a S,
    pub(super) mailbox: Arc<dyn Mailbox>,
}

impl<'a, S: Specimen> Case<'a, S> {
    pub(super) fn new(specimen: &'a S) -> Self {
        Self { specimen, mailbox: specimen.mailbox() }
    }

    pub(super) fn units(&self, count: u32) -> Duration {
        self.specimen.unit() * count
    }

    pub(super) fn span(&self, units: u32) -> Span {
        Span::new(self.units(units)).expect("some units are less than twelve hours")
    }

    pub(super) async fn pass(&self, units: u32) {
        self.specimen.pass(self.units(units)).await;
    }

    /// As many as there are, for a lease that no clause sees the end of, without a wait.
    pub(super) fn pull(&self) -> Pull {
        Pull::default().visibility(Span::MAX).wait(Duration::ZERO).expect("no wait is within the range")
    }

    /// The same for so many units.
    pub(super) fn lease(&self, units: u32) -> Pull {
        self.pull().visibility(self.span(units))
    }

    /// The same with a wait of so many units.
    pub(super) fn wait(&self, pull: Pull, units: u32) -> Pull {
        pull.wait(self.units(units)).expect("five units are within the range")
    }

    pub(super) async fn send(&self, body: &'static str) -> MessageId {
        self.put(Message::new(body)).await
    }

    pub(super) async fn delayed(&self, body: &'static str, units: u32) -> MessageId {
        self.put(Message::new(body).delayed(self.span(units))).await
    }

    pub(super) async fn put(&self, message: Message) -> MessageId {
        self.mailbox.send(message).await.expect("an open mailbox with room takes a message")
    }

    /// Fills the mailbox up.
    pub(super) async fn fill(&self) {
        let counts = self.counts().await;
        for _ in counts.all()..self.specimen.limits().capacity as u64 {
            self.send("filler").await;
        }
    }

    pub(super) async fn receive(&self, pull: Pull) -> Vec<Delivery> {
        self.mailbox.receive(pull).await.expect("an open mailbox can be received from")
    }

    /// The bodies of all that can be received.
    pub(super) async fn bodies(&self) -> Vec<Bytes> {
        self.receive(self.pull()).await.into_iter().map(|delivery| delivery.body).collect()
    }

    /// The one message that can be received, for a long time.
    pub(super) async fn one(&self, why: &str) -> Delivery {
        self.one_of(self.pull(), why).await
    }

    pub(super) async fn one_of(&self, pull: Pull, why: &str) -> Delivery {
        only(self.receive(pull).await, why)
    }

    pub(super) async fn none(&self, why: &str) {
        let received = self.receive(self.pull()).await;
        assert!(received.is_empty(), "{why}: {received:?}");
    }

    pub(super) async fn settle(&self, delivery: &Delivery, how: Settlement) {
        let settled = self.mailbox.settle(delivery.receipt, how).await;
        settled.unwrap_or_else(|error| panic!("a delivery can be settled once with {how:?}: {error}"));
    }

    pub(super) async fn save(&self, delivery: &Delivery, progress: &'static str) {
        let saved = self.mailbox.checkpoint(delivery.receipt, Bytes::from_static(progress.as_bytes())).await;
        saved.expect("progress can be saved while a message is in hand");
    }

    pub(super) async fn counts(&self) -> Counts {
        self.mailbox.counts().await.expect("messages can be counted")
    }

    /// Whatever is done with the receipt is refused.
    pub(super) async fn refuses(&self, receipt: Receipt, when: &str) {
        let all = [
            Settlement::Ack,
            Settlement::Nack(Span::ZERO),
            Settlement::Nack(self.span(1)),
            Settlement::Release,
            Settlement::Extend(Span::MAX),
        ];
        for how in all {
            expired(self.mailbox.settle(receipt, how).await, &format!("{how:?} {when}"));
        }
        let saved = self.mailbox.checkpoint(receipt, Bytes::from_static(b"never to be seen")).await;
        expired(saved, &format!("a checkpoint {when}"));
    }

    /// A receive that has not begun.
    pub(super) fn begin(&self, pull: Pull) -> Receiving<'_> {
        let nudge = Nudge { woken: AtomicBool::new(true), poller: Mutex::new(Waker::noop().clone()) };
        Receiving { future: self.mailbox.receive(pull), nudge: Arc::new(nudge) }
    }

    /// What `receiving` has come to before so many units have passed.
    pub(super) async fn within(&self, units: u32, receiving: &mut Receiving<'_>) -> Option<Received> {
        let mut passed = self.specimen.pass(self.units(units));
        poll_fn(|cx| match receiving.poll(cx) {
            Poll::Ready(received) => Poll::Ready(Some(received)),
            Poll::Pending => passed.as_mut().poll(cx).map(|()| None),
        })
        .await
    }

    /// A receive that has begun to wait, for four units more.
    pub(super) async fn waiting(&self, pull: Pull) -> Receiving<'_> {
        let mut receiving = self.begin(self.wait(pull, 5));
        let received = self.within(1, &mut receiving).await;
        assert!(received.is_none(), "who waits gets nothing while there is nothing: {received:?}");
        receiving
    }

    /// The one message that wakes who waits, at most so many units from now.
    pub(super) async fn woken(&self, units: u32, receiving: &mut Receiving<'_>, by: &str) -> Delivery {
        let Some(received) = self.within(units, receiving).await else {
            panic!("who waits is woken by {by}");
        };
        only(received.expect("an open mailbox can be received from"), by)
    }
}

/// The one delivery of a batch.
pub(super) fn only(mut received: Vec<Delivery>, why: &str) -> Delivery {
    assert_eq!(received.len(), 1, "{why}: one message, not {received:?}");
    received.remove(0)
}

fn expired(outcome: Result<(), SettleError>, what: &str) {
    assert!(
        matches!(outcome, Err(SettleError::ReceiptExpired)),
        "{what} is refused because the receipt has expired: {outcome:?}"
    );
}
