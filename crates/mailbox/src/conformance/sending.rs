//! What goes in, comes out.

use bytes::Bytes;

use super::{Specimen, case::Case};
use crate::{
    error::{NotSent, SendError},
    message::{Message, Settlement},
    pull::Pull,
    span::Span,
};

pub(super) async fn messages_come_in_the_order_in_which_they_were_sent<S: Specimen>(case: &Case<'_, S>) {
    let sent: Vec<Bytes> = (0..Pull::BATCH_MAX as u8).map(|number| Bytes::from(vec![number])).collect();
    for body in &sent {
        case.put(Message::new(body.clone())).await;
    }
    assert_eq!(case.bodies().await, sent, "a batch is in the order in which it was sent");
    for body in &sent {
        case.put(Message::new(body.clone())).await;
    }
    for body in &sent {
        let pull = case.pull().max(1).expect("one is within the range");
        let next = case.one_of(pull, "what was sent can be received").await;
        assert_eq!(next.body, body, "messages come in the order in which they were sent");
    }
}

pub(super) async fn a_body_comes_out_as_it_went_in<S: Specimen>(case: &Case<'_, S>) {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let largest = vec![b'x'; case.specimen.limits().body];
    for body in [Bytes::new(), Bytes::from(every_byte), Bytes::from(largest)] {
        case.put(Message::new(body.clone())).await;
        let delivery = case.one("what was sent can be received").await;
        assert_eq!(delivery.body, body, "a body comes out as it went in");
        assert_eq!(delivery.delivery_count, 1, "a first delivery is the first");
        assert_eq!(delivery.checkpoint, None, "nothing has been saved before the first delivery");
        assert_eq!(delivery.reply_to, None, "no reply is wanted if none was asked for");
    }
}

pub(super) async fn a_message_has_one_id_of_its_own_in_every_delivery<S: Specimen>(case: &Case<'_, S>) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = case.send("one").await;
        assert!(!ids.contains(&id), "no two messages have the same id");
        ids.push(id);
        for how in [Settlement::Nack(Span::ZERO), Settlement::Release, Settlement::Ack] {
            let delivery = case.one("it is delivered until it is acknowledged").await;
            assert_eq!(delivery.id(), id, "a message has the same id in every delivery");
            case.settle(&delivery, how).await;
        }
    }
}

pub(super) async fn a_delayed_message_comes_when_its_time_has_come<S: Specimen>(case: &Case<'_, S>) {
    case.delayed("later", 2).await;
    case.send("at once").await;
    let first = case.one("a delayed message is overtaken by one that is not").await;
    assert_eq!(first.body, "at once", "a delayed message is overtaken by one that is not");
    case.pass(1).await;
    case.none("a delayed message does not come before its time").await;
    case.pass(2).await;
    let second = case.one("a delayed message comes when its time has come").await;
    assert_eq!((&second.body[..], second.delivery_count), (&b"later"[..], 1), "a delay is no delivery");
}

pub(super) async fn delayed_messages_come_in_the_order_of_their_times<S: Specimen>(case: &Case<'_, S>) {
    for (body, units) in [("third", 3), ("first", 1), ("second", 2)] {
        case.delayed(body, units).await;
    }
    case.pass(4).await;
    let bodies = case.bodies().await;
    assert_eq!(bodies, ["first", "second", "third"], "delayed messages come in the order of their times");
}

pub(super) async fn an_age_is_the_time_since_the_message_was_sent<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let fresh = case.one("what was sent can be received").await;
    assert!(fresh.age < case.units(1), "a message that was just sent is young: {:?}", fresh.age);
    case.settle(&fresh, Settlement::Nack(case.span(1))).await;
    case.pass(3).await;
    let again = case.one("a nacked message comes again").await;
    assert!(again.age >= case.units(2), "an age goes on in later deliveries: {:?}", again.age);
    case.delayed("two", 1).await;
    case.pass(3).await;
    let delayed = case.one("a delayed message comes").await;
    assert!(delayed.age >= case.units(2), "an age counts from the send: {:?}", delayed.age);
}

/// The message has come back, because the mailbox is full.
fn full(refused: SendError, sent: &Message, capacity: usize) {
    assert_eq!(refused.message, *sent, "a message that is refused comes back as it was");
    assert!(
        matches!(refused.why, NotSent::Full { capacity: said } if said == capacity),
        "a full mailbox says so, and how many it holds: {:?}",
        refused.why
    );
}

pub(super) async fn a_full_mailbox_refuses_and_hands_the_message_back<S: Specimen>(case: &Case<'_, S>) {
    let capacity = case.specimen.limits().capacity;
    for _ in 0..capacity {
        case.send("filler").await;
    }
    let more = Message::new("more").delayed(case.span(1)).reply_to("somewhere".into());
    for _ in 0..2 {
        let refused = case.mailbox.send(more.clone()).await;
        full(refused.expect_err("a full mailbox takes nothing"), &more, capacity);
    }
    assert_eq!(case.counts().await.all(), capacity as u64, "what was refused is not in it");
}

pub(super) async fn capacity_counts_what_is_pending_delayed_and_invisible<S: Specimen>(case: &Case<'_, S>) {
    let capacity = case.specimen.limits().capacity;
    case.send("invisible").await;
    case.one("what was sent can be received").await;
    case.send("to be tried again").await;
    let failed = case.one("what was sent can be received").await;
    case.settle(&failed, Settlement::Nack(Span::MAX)).await;
    case.put(Message::new("delayed").delayed(Span::MAX)).await;
    for _ in 3..capacity {
        case.send("filler").await;
    }
    let more = Message::new("more");
    let refused = case.mailbox.send(more.clone()).await;
    full(refused.expect_err("pending, delayed and invisible messages fill a mailbox"), &more, capacity);
}

pub(super) async fn an_acknowledgement_makes_room<S: Specimen>(case: &Case<'_, S>) {
    case.fill().await;
    let taken = case.receive(case.pull()).await;
    assert!(case.mailbox.send(Message::new("more")).await.is_err(), "what is in hand takes its room");
    case.settle(&taken[0], Settlement::Ack).await;
    case.send("more").await;
    assert!(case.mailbox.send(Message::new("more")).await.is_err(), "one that is gone makes room for one");
}

pub(super) async fn a_body_beyond_the_limit_is_refused_and_handed_back<S: Specimen>(case: &Case<'_, S>) {
    let limit = case.specimen.limits().body;
    let sent = Message::new(vec![0; limit + 1]);
    let refused = case.mailbox.send(sent.clone()).await.expect_err("a body beyond the limit is refused");
    assert_eq!(refused.message, sent, "a message that is refused comes back as it was");
    assert!(
        matches!(refused.why, NotSent::TooLarge { size, limit: said } if size == limit + 1 && said == limit),
        "it is said how large it is, and may be: {:?}",
        refused.why
    );
    case.none("what was refused is not in it").await;
}
