//! What becomes of a delivery, and of all messages.

use bytes::Bytes;

use super::{Specimen, case::Case};
use crate::{
    error::SettleError,
    message::{Counts, Settlement},
    span::Span,
};

pub(super) async fn an_acknowledged_message_is_gone<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    case.send("two").await;
    let taken = case.receive(case.lease(2)).await;
    case.settle(&taken[0], Settlement::Ack).await;
    assert_eq!(case.counts().await, Counts::new(0, 0, 1), "an acknowledged message is gone, and no other");
    case.pass(3).await;
    let left = case.one("an acknowledged message does not come back when its lease would have ended").await;
    assert_eq!(left.body, "two", "the other one is left");
}

pub(super) async fn a_nacked_message_comes_again_and_is_counted<S: Specimen>(case: &Case<'_, S>) {
    let id = case.send("one").await;
    for count in 1..=3 {
        let delivery = case.one("a nacked message comes again at once").await;
        assert_eq!((delivery.id(), delivery.delivery_count), (id, count), "each delivery counts");
        case.settle(&delivery, Settlement::Nack(Span::ZERO)).await;
    }
}

pub(super) async fn a_nack_with_a_delay_keeps_the_message_back_for_so_long<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    // The lease ends within the delay, and changes nothing.
    let delivery = case.one_of(case.lease(1), "what was sent can be received").await;
    case.settle(&delivery, Settlement::Nack(case.span(3))).await;
    assert_eq!(case.counts().await, Counts::new(0, 1, 0), "what is tried again later is delayed");
    case.pass(2).await;
    case.none("a nacked message does not come before its delay has ended").await;
    case.pass(2).await;
    let again = case.one("a nacked message comes when its delay has ended").await;
    assert_eq!(again.delivery_count, 2, "a delivery that failed is counted");
}

pub(super) async fn a_released_message_is_in_sight_at_once_and_in_front<S: Specimen>(case: &Case<'_, S>) {
    for body in ["one", "two", "three"] {
        case.send(body).await;
    }
    let first = case.pull().max(1).expect("one is within the range");
    let delivery = case.one_of(first, "who wants one message gets one").await;
    case.settle(&delivery, Settlement::Release).await;
    let bodies = case.bodies().await;
    assert_eq!(bodies, ["one", "two", "three"], "a released message is in front of those behind it");
}

pub(super) async fn a_release_is_not_counted<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    for (count, how) in [
        (1, Settlement::Release),
        (1, Settlement::Release),
        (1, Settlement::Nack(Span::ZERO)),
        (2, Settlement::Release),
        (2, Settlement::Nack(Span::ZERO)),
        (3, Settlement::Ack),
    ] {
        let delivery = case.one("it is delivered until it is acknowledged").await;
        assert_eq!(delivery.delivery_count, count, "deliveries are counted but for those that were released");
        case.settle(&delivery, how).await;
    }
}

pub(super) async fn a_checkpoint_comes_back_with_every_later_delivery<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let first = case.one("what was sent can be received").await;
    case.save(&first, "a").await;
    case.save(&first, "ab").await;
    case.settle(&first, Settlement::Nack(Span::ZERO)).await;
    let saved = Some("ab".into());
    let second = case.one("a nacked message comes again").await;
    assert_eq!(second.checkpoint, saved, "what was saved last comes back after a nack");
    case.settle(&second, Settlement::Release).await;
    let third = case.one_of(case.lease(1), "a released message comes again").await;
    assert_eq!(third.checkpoint, saved, "what was saved comes back after a release");
    case.pass(2).await;
    let fourth = case.one("a message comes again when its lease has ended").await;
    assert_eq!(fourth.checkpoint, saved, "what was saved comes back after a lease that ended");
    case.save(&fourth, "").await;
    case.settle(&fourth, Settlement::Release).await;
    let fifth = case.one("a released message comes again").await;
    assert_eq!(fifth.checkpoint, Some("".into()), "what was saved takes the place of what was before");
    case.settle(&fifth, Settlement::Ack).await;
    case.send("another").await;
    assert_eq!(
        case.one("what was sent can be received").await.checkpoint,
        None,
        "it is that message's alone"
    );
}

pub(super) async fn a_checkpoint_settles_nothing<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let delivery = case.one_of(case.lease(2), "what was sent can be received").await;
    case.pass(1).await;
    case.save(&delivery, "half").await;
    case.none("a message whose progress was saved stays out of sight").await;
    assert_eq!(case.counts().await, Counts::new(0, 0, 1), "it stays in hand");
    case.pass(2).await;
    let again = case.one("a checkpoint does not extend the lease").await;
    assert_eq!(again.delivery_count, 2, "a checkpoint does not undo the delivery");
}

pub(super) async fn a_checkpoint_beyond_the_limit_of_bodies_is_refused<S: Specimen>(case: &Case<'_, S>) {
    let limit = case.specimen.limits().body;
    case.send("one").await;
    let delivery = case.one("what was sent can be received").await;
    let largest = Bytes::from(vec![1; limit]);
    let saved = case.mailbox.checkpoint(delivery.receipt, largest.clone()).await;
    saved.expect("progress may be as large as a body");
    let refused = case.mailbox.checkpoint(delivery.receipt, Bytes::from(vec![2; limit + 1])).await;
    assert!(
        matches!(refused, Err(SettleError::TooLarge { size, limit: said }) if size == limit + 1 && said == limit),
        "it is said how large it is, and may be: {refused:?}"
    );
    case.settle(&delivery, Settlement::Release).await;
    let again = case.one("a released message comes again").await;
    assert_eq!(again.checkpoint, Some(largest), "what was refused leaves what was saved before");
}

pub(super) async fn counts_say_where_each_message_is<S: Specimen>(case: &Case<'_, S>) {
    assert_eq!(case.counts().await, Counts::new(0, 0, 0), "a fresh mailbox is empty");
    for _ in 0..6 {
        case.send("one").await;
    }
    case.delayed("later", 3).await;
    assert_eq!(case.counts().await, Counts::new(6, 1, 0), "what is sent is pending or delayed");
    let taken = case.receive(case.lease(3).max(5).expect("within the range")).await;
    assert_eq!(case.counts().await, Counts::new(1, 1, 5), "what is received is invisible");
    for (index, how) in
        [Settlement::Ack, Settlement::Nack(Span::ZERO), Settlement::Release].iter().enumerate()
    {
        case.settle(&taken[index], *how).await;
    }
    assert_eq!(case.counts().await, Counts::new(3, 1, 2), "what is settled is gone or pending");
    case.settle(&taken[3], Settlement::Nack(case.span(3))).await;
    assert_eq!(case.counts().await, Counts::new(3, 2, 1), "what is tried again later is delayed");
    case.pass(4).await;
    assert_eq!(case.counts().await, Counts::new(6, 0, 0), "leases and delays that have ended are pending");
}

pub(super) async fn a_purge_takes_everything_out_and_says_how_much<S: Specimen>(case: &Case<'_, S>) {
    case.send("invisible").await;
    case.one_of(case.lease(1), "what was sent can be received").await;
    case.delayed("delayed", 1).await;
    case.send("pending").await;
    let purged = case.mailbox.purge().await.expect("a mailbox can be purged");
    assert_eq!(purged, 3, "a purge says how many there were");
    assert_eq!(case.counts().await, Counts::new(0, 0, 0), "a purged mailbox is empty");
    case.pass(2).await;
    case.none("nothing comes back after a purge").await;
    assert_eq!(
        case.mailbox.purge().await.expect("a mailbox can be purged"),
        0,
        "then there is nothing to purge"
    );
    case.fill().await;
    case.mailbox.purge().await.expect("a mailbox can be purged");
    case.send("another").await;
    let next = case.one("a purged mailbox goes on, and has room").await;
    assert_eq!((&next.body[..], next.delivery_count), (&b"another"[..], 1), "it is a message like any other");
}
