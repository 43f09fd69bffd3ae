//! A receipt is good for one settlement, of one delivery, within its lease.

use super::{
    Specimen,
    case::{Case, only},
};
use crate::{
    message::{Counts, Delivery, Message, MessageId, Receipt, Settlement},
    span::Span,
};

/// A message in hand.
async fn in_hand<S: Specimen>(case: &Case<'_, S>) -> Delivery {
    case.send("one").await;
    case.one("what was sent can be received").await
}

/// The message is as it was before the refusals.
async fn is_untouched<S: Specimen>(case: &Case<'_, S>, count: u32) {
    assert_eq!(case.counts().await, Counts::new(1, 0, 0), "a refused settlement moves nothing");
    let again = case.one("a refused settlement settles nothing").await;
    assert_eq!(again.delivery_count, count, "a refused settlement counts nothing");
    assert_eq!(again.checkpoint, None, "a refused checkpoint saves nothing");
    case.settle(&again, Settlement::Ack).await;
}

pub(super) async fn a_receipt_is_refused_after_an_ack<S: Specimen>(case: &Case<'_, S>) {
    let delivery = in_hand(case).await;
    case.settle(&delivery, Settlement::Ack).await;
    case.refuses(delivery.receipt, "after an ack").await;
    case.none("what was acknowledged does not come back").await;
    // Whatever takes the place of the first must not be settled with its receipt.
    in_hand(case).await;
    case.refuses(delivery.receipt, "when another message has come").await;
}

pub(super) async fn a_receipt_is_refused_after_a_nack<S: Specimen>(case: &Case<'_, S>) {
    let delivery = in_hand(case).await;
    case.settle(&delivery, Settlement::Nack(case.span(1))).await;
    case.refuses(delivery.receipt, "while a nacked message waits to be tried again").await;
    case.pass(2).await;
    case.refuses(delivery.receipt, "after a nack").await;
    is_untouched(case, 2).await;
}

pub(super) async fn a_receipt_is_refused_after_a_release<S: Specimen>(case: &Case<'_, S>) {
    let delivery = in_hand(case).await;
    case.settle(&delivery, Settlement::Release).await;
    case.refuses(delivery.receipt, "after a release").await;
    is_untouched(case, 1).await;
}

pub(super) async fn a_receipt_is_refused_after_its_lease<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let delivery = case.one_of(case.lease(1), "what was sent can be received").await;
    case.pass(2).await;
    // Nobody has looked since the lease ended.
    case.refuses(delivery.receipt, "after the lease").await;
    is_untouched(case, 2).await;
}

pub(super) async fn a_receipt_is_refused_after_the_next_delivery<S: Specimen>(case: &Case<'_, S>) {
    for how in [None, Some(Settlement::Release), Some(Settlement::Nack(Span::ZERO))] {
        case.send("one").await;
        let first = case.one_of(case.lease(1), "what was sent can be received").await;
        match how {
            Some(how) => case.settle(&first, how).await,
            None => case.pass(2).await,
        }
        let second = case.one("it is delivered until it is acknowledged").await;
        case.refuses(first.receipt, "when the message is in other hands").await;
        assert_eq!(case.counts().await, Counts::new(0, 0, 1), "it stays in those hands");
        case.settle(&second, Settlement::Ack).await;
    }
}

pub(super) async fn a_receipt_is_refused_after_a_purge<S: Specimen>(case: &Case<'_, S>) {
    let delivery = in_hand(case).await;
    assert_eq!(
        case.mailbox.purge().await.expect("a mailbox can be purged"),
        1,
        "what is in hand is purged too"
    );
    case.refuses(delivery.receipt, "after a purge").await;
    case.none("what was purged does not come back").await;
    in_hand(case).await;
    case.refuses(delivery.receipt, "when another message has come after a purge").await;
}

pub(super) async fn a_receipt_of_another_mailbox_is_refused<S: Specimen>(case: &Case<'_, S>) {
    let (_, other) = case.specimen.other("other");
    other.send(Message::new("theirs")).await.expect("an open mailbox with room takes a message");
    let theirs = other.receive(case.pull()).await.expect("an open mailbox can be received from");
    let theirs = only(theirs, "what was sent can be received");
    in_hand(case).await;
    case.refuses(theirs.receipt, "of another mailbox").await;
    assert_eq!(case.counts().await, Counts::new(0, 0, 1), "a receipt is good at its own mailbox only");
    let settled = other.settle(theirs.receipt, Settlement::Ack).await;
    settled.expect("a delivery can be settled where it was received");
}

pub(super) async fn a_receipt_that_was_never_given_is_refused<S: Specimen>(case: &Case<'_, S>) {
    let given = in_hand(case).await.receipt;
    let (id, delivery) = (MessageId(u64::MAX), u64::MAX);
    for made_up in [
        Receipt { delivery, ..given },
        Receipt { id, ..given },
        Receipt { id, delivery, ..given },
        Receipt { count: given.count + 1, ..given },
        Receipt { mailbox: !given.mailbox, ..given },
        Receipt { id: MessageId(0), delivery: 0, ..given },
    ] {
        case.refuses(made_up, "that was never given").await;
    }
    assert_eq!(case.counts().await, Counts::new(0, 0, 1), "a made-up receipt moves nothing");
}
