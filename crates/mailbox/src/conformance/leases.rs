//! How long a message stays in one pair of hands.

use super::{Specimen, case::Case};
use crate::{message::Settlement, span::Span};

pub(super) async fn a_lease_that_ends_redelivers_and_counts<S: Specimen>(case: &Case<'_, S>) {
    let id = case.send("one").await;
    for count in 1..=3 {
        let delivery = case.one_of(case.lease(2), "a message comes again when its lease has ended").await;
        assert_eq!((delivery.id(), &delivery.body[..]), (id, &b"one"[..]), "it is the same message");
        assert_eq!(delivery.delivery_count, count, "each delivery counts");
        case.pass(1).await;
        case.none("a message does not come again before its lease has ended").await;
        case.pass(2).await;
    }
}

pub(super) async fn leases_that_end_together_redeliver_in_the_order_of_the_batch<S: Specimen>(
    case: &Case<'_, S>,
) {
    for body in ["first", "a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        case.send(body).await;
    }
    // The order of the batch is not that in which they were sent.
    let first = case.pull().max(1).expect("one is within the range");
    let failed = case.one_of(first, "who wants one message gets one").await;
    case.settle(&failed, Settlement::Nack(Span::ZERO)).await;
    let batch: Vec<_> = case.receive(case.lease(1)).await.into_iter().map(|delivery| delivery.body).collect();
    case.pass(2).await;
    assert_eq!(case.bodies().await, batch, "a batch comes back in its order");
}

pub(super) async fn each_delivery_has_a_receipt_of_its_own<S: Specimen>(case: &Case<'_, S>) {
    let mut deliveries = Vec::new();
    let ways =
        [Settlement::Release, Settlement::Nack(Span::ZERO), Settlement::Nack(case.span(1)), Settlement::Ack];
    for _ in 0..2 {
        case.send("one").await;
        for how in ways {
            let delivery = case.one("it is delivered until it is acknowledged").await;
            let number = delivery.receipt.delivery;
            assert!(!deliveries.contains(&number), "no two deliveries have the same receipt");
            deliveries.push(number);
            case.settle(&delivery, how).await;
            if how == Settlement::Nack(case.span(1)) {
                case.pass(2).await;
            }
        }
    }
}

pub(super) async fn a_lease_of_no_time_leaves_the_message_in_sight<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    for count in 1..=3 {
        let delivery = case.one_of(case.lease(0), "a lease of no time has ended when it begins").await;
        assert_eq!(delivery.delivery_count, count, "each delivery counts");
        case.refuses(delivery.receipt, "after a lease of no time").await;
    }
    assert_eq!(case.counts().await.pending, 1, "what nobody has in hand can be received");
}

pub(super) async fn an_extension_keeps_the_message_out_of_sight<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let delivery = case.one_of(case.lease(2), "what was sent can be received").await;
    for _ in 0..3 {
        case.pass(1).await;
        case.settle(&delivery, Settlement::Extend(case.span(2))).await;
        case.none("what is extended stays out of sight").await;
    }
    case.pass(1).await;
    case.none("what is extended stays out of sight for so long").await;
    case.pass(2).await;
    let again = case.one("a message comes again when its extended lease has ended").await;
    assert_eq!(again.delivery_count, 2, "an extension is no delivery");
}

pub(super) async fn an_extension_keeps_the_receipt_good<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let delivery = case.one_of(case.lease(2), "what was sent can be received").await;
    case.settle(&delivery, Settlement::Extend(case.span(5))).await;
    case.pass(3).await;
    case.save(&delivery, "half").await;
    case.settle(&delivery, Settlement::Ack).await;
    case.pass(3).await;
    case.none("what was acknowledged within an extended lease is gone").await;
}

pub(super) async fn an_extension_never_shortens<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let delivery = case.one_of(case.lease(4), "what was sent can be received").await;
    case.settle(&delivery, Settlement::Extend(case.span(1))).await;
    case.settle(&delivery, Settlement::Extend(Span::ZERO)).await;
    case.none("an extension by no time shortens nothing").await;
    case.pass(3).await;
    case.none("an extension by less than what is left shortens nothing").await;
    case.settle(&delivery, Settlement::Ack).await;
}

pub(super) async fn an_extension_counts_from_when_it_is_made<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let delivery = case.one_of(case.lease(2), "what was sent can be received").await;
    for _ in 0..4 {
        case.settle(&delivery, Settlement::Extend(case.span(2))).await;
    }
    case.pass(4).await;
    case.one("extensions are not added up").await;
}
