//! One message: handled, and settled.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Instant,
};

use ebbtide_lifecycle::{
    Outcome, OwnedPermit,
    blame::{Activity, Seat},
    contain,
    time::Timer,
};

use super::{
    Event, Failure, GiveUp, HandlerResult, Job, Shared,
    lease::{self, Lease},
};
use crate::{
    envelope::{DeadLetter, Reply},
    error::{NotSent, ReplyError, SendError, SettleError},
    mailbox::Mailbox,
    message::{Delivery, Message, Receipt, Settlement},
    span::Span,
};

/// A message in hand.
pub(super) struct Held {
    pub(super) delivery: Delivery,
    /// There while it is in flight.
    pub(super) permit: OwnedPermit,
    /// When others may get it.
    pub(super) until: Instant,
}

/// A handler that runs, among those that do.
pub(super) struct Hand(Arc<AtomicUsize>);

impl Hand {
    pub(super) fn new(busy: &Arc<AtomicUsize>) -> Self {
        // Relaxed: whoever polls the worker counts, and looks.
        busy.fetch_add(1, Ordering::Relaxed);
        Self(busy.clone())
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Handles a message and settles it. While it is settled, another can be handled.
pub(super) async fn attempt<T>(shared: &Shared<T>, held: Held, hand: Hand)
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    let Held { delivery, permit, until } = held;
    let seat = Sitting::new(shared, &delivery);
    let handled = match unhandled(shared, &delivery) {
        Some(failure) => Err(failure),
        None => handle(shared, &delivery, until).await,
    };
    drop(hand);
    let outcome = match handled {
        Ok(reply) => done(shared, &delivery, reply).await,
        Err(failure) => {
            let outcome = failed(shared, &delivery, &failure).await;
            discard(failure);
            outcome
        }
    };
    discard(delivery);
    // The seat first: an idle worker has no stragglers.
    drop(seat);
    permit.settle(outcome);
}

/// Drops what is foreign code: a body, a reply, an error. One that panics ends no worker.
pub(super) fn discard<V>(value: V) {
    drop(contain(|| drop(value)));
}

/// Why a message is not handled at all, if that is so.
fn unhandled<T>(shared: &Shared<T>, delivery: &Delivery) -> Option<Failure> {
    let (most, before) = (shared.settings.max_deliveries?.get(), delivery.delivery_count.saturating_sub(1));
    let reason = || format!("not handled: it was delivered {before} times before, and {most} are allowed");
    (before >= most).then(|| Failure::Error(GiveUp::because(reason()).into()))
}

/// Runs the handler, and keeps the message out of sight meanwhile.
async fn handle<T>(
    shared: &Shared<T>,
    delivery: &Delivery,
    until: Instant,
) -> Result<Option<bytes::Bytes>, Failure>
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    let settings = &shared.settings;
    let beats = Arc::new(AtomicU64::new(0));
    let job = Job {
        delivery: delivery.clone(),
        mailbox: shared.mailbox.clone(),
        stopping: shared.stop.token(),
        beats: beats.clone(),
    };
    let mut handler = contain(|| (settings.handler)(job)).map_err(Failure::Panicked)?;
    let lease = Lease { receipt: delivery.receipt, visibility: settings.pull.lease(), until };
    let mut kept = pin!(lease::keep(settings.leases, &beats, &*shared.mailbox, lease, &shared.timer));
    let mut is_kept = true;
    let ended: Result<HandlerResult, _> = poll_fn(|cx| {
        match contain(|| handler.as_mut().poll(cx)) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(result)) => return Poll::Ready(Ok(result)),
            Err(panicked) => return Poll::Ready(Err(panicked)),
        }
        // Once it is lost the handler goes on all the same: nobody but itself knows how to stop it.
        is_kept = is_kept && kept.as_mut().poll(cx).is_pending();
        Poll::Pending
    })
    .await;
    // What it held may panic when it is dropped, too.
    let dropped = contain(|| drop(handler));
    match (ended, dropped) {
        (Err(panicked), _) | (Ok(Ok(_)), Err(panicked)) => Err(Failure::Panicked(panicked)),
        (Ok(Err(error)), _) => Err(Failure::Error(error)),
        (Ok(Ok(reply)), Ok(())) => Ok(reply),
    }
}

async fn done<T>(shared: &Shared<T>, delivery: &Delivery, reply: Option<bytes::Bytes>) -> Outcome {
    // Before it is acknowledged: should the process end in between, it is answered twice, and not never.
    answer(shared, delivery, || Reply::Done(reply.clone().unwrap_or_default())).await;
    discard(reply);
    settle(shared, delivery, Settlement::Ack).await.map_or(Outcome::Failed, |()| Outcome::Completed)
}

async fn failed<T>(shared: &Shared<T>, delivery: &Delivery, failure: &Failure) -> Outcome {
    let attempts = delivery.delivery_count;
    let retry = contain(|| shared.settings.retry.after(attempts, failure)).unwrap_or(None);
    let told = retry.map(Span::duration);
    shared.tell(&Event::Failed { id: delivery.id(), attempts, failure, retry: told });
    let how = match (retry, &shared.dead_letters) {
        (Some(delay), _) => Settlement::Nack(delay),
        (None, None) => Settlement::Ack,
        (None, Some(dead_letters)) => {
            let letter = DeadLetter::new(delivery.body.clone(), reason(failure), attempts);
            match bury(&**dead_letters, &letter).await {
                Ok(()) => Settlement::Ack,
                Err(error) => {
                    shared.tell(&Event::NotBuried { id: delivery.id(), error: &error });
                    // Neither lost nor tried in a hurry.
                    Settlement::Nack(shared.settings.pull.lease())
                }
            }
        }
    };
    if how == Settlement::Ack {
        answer(shared, delivery, || Reply::Failed(reason(failure))).await;
    }
    // What it is settled as does not change that it failed.
    let _ = settle(shared, delivery, how).await;
    Outcome::Failed
}

/// What is kept of a failure. An error whose text panics fails its message, and not the worker.
fn reason(failure: &Failure) -> Arc<str> {
    let text = contain(|| failure.to_string());
    text.unwrap_or_else(|panicked| format!("an error that does not say what it is: {panicked}")).into()
}

async fn bury(dead_letters: &dyn Mailbox, letter: &DeadLetter) -> Result<(), SendError> {
    let Err(refused) = dead_letters.send(Message::new(letter.encode())).await else { return Ok(()) };
    let NotSent::TooLarge { limit, .. } = refused.why else { return Err(refused) };
    // Rather with a part of its reason than tried for ever.
    let Some(fits) = letter.encode_within(limit) else { return Err(refused) };
    dead_letters.send(Message::new(fits)).await.map(drop)
}

/// Whoever asked gets an answer also if that is too large: rather a part of a reason, or why there is none, than
/// nothing.
async fn answer<T>(shared: &Shared<T>, delivery: &Delivery, reply: impl FnOnce() -> Reply) {
    let Some(address) = delivery.reply_to.clone() else { return };
    let (id, reply) = (delivery.id(), reply());
    let Err(error) = shared.mailbox.reply(address.clone(), reply.encode()).await else { return };
    let limit = match &error {
        ReplyError::Refused(SendError { why: NotSent::TooLarge { limit, .. }, .. }) => Some(*limit),
        _ => None,
    };
    let reason = match reply {
        Reply::Failed(reason) if limit.is_some() => reason,
        _ => {
            shared.tell(&Event::NotReplied { id, error: &error });
            error.to_string().into()
        }
    };
    let Some(short) = limit.and_then(|limit| Reply::failed_within(&reason, limit)) else { return };
    if let Err(error) = shared.mailbox.reply(address, short).await {
        shared.tell(&Event::NotReplied { id, error: &error });
    }
}

async fn settle<T>(shared: &Shared<T>, delivery: &Delivery, how: Settlement) -> Result<(), SettleError> {
    let mut settled = shared.mailbox.settle(delivery.receipt, how).await;
    if matches!(settled, Err(SettleError::Backend(_))) {
        // A connection that broke is no reason to handle it twice; and a receipt is good for one settlement only.
        let again = shared.mailbox.settle(delivery.receipt, how).await;
        // If it has expired by now, it may be because it was settled at first: that is not known.
        if !matches!(again, Err(SettleError::ReceiptExpired)) {
            settled = again;
        }
    }
    if let Err(error) = &settled {
        shared.tell(&Event::NotSettled { id: delivery.id(), error });
    }
    settled
}

/// Gives a message back that was not begun.
pub(super) async fn release<T>(shared: &Shared<T>, held: Held) {
    let Held { delivery, permit, .. } = held;
    let is_back = give_back(shared, delivery.receipt).await;
    discard(delivery);
    // One that is not comes back by itself and counted, as one does whose handler failed.
    permit.settle(if is_back { Outcome::HandedBack } else { Outcome::Failed });
}

/// Releases a delivery. Gives whether others can have the message.
pub(super) async fn give_back<T>(shared: &Shared<T>, receipt: Receipt) -> bool {
    let mut released = shared.mailbox.settle(receipt, Settlement::Release).await;
    if matches!(released, Err(SettleError::Backend(_))) {
        // A connection that broke is no reason to keep it from others until its time is over.
        released = shared.mailbox.settle(receipt, Settlement::Release).await;
    }
    match released {
        // One that has expired is back already: by itself, or it was released at first.
        Ok(()) | Err(SettleError::ReceiptExpired) => true,
        Err(error) => {
            shared.tell(&Event::NotSettled { id: receipt.id, error: &error });
            false
        }
    }
}

/// A place in the worker's roster, for as long as a message is under way.
struct Sitting<'a, T> {
    shared: &'a Shared<T>,
    seat: Option<Seat>,
}

impl<'a, T: Timer> Sitting<'a, T> {
    fn new(shared: &'a Shared<T>, delivery: &Delivery) -> Self {
        let origin = shared.settings.origin.clone().named(format!("message {}", delivery.id()));
        let since = shared.roster.moment(shared.timer.now());
        Self { shared, seat: Some(shared.roster.take(&origin, Activity::Running, since)) }
    }
}

impl<T> Drop for Sitting<'_, T> {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            self.shared.roster.leave(seat);
        }
    }
}
