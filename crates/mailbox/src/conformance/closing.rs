//! A closed mailbox takes nothing in and gives nothing out, and what is in hand can be settled.

use super::{Specimen, case::Case};
use crate::{
    error::{NotSent, ReceiveError},
    message::{Counts, Message, Settlement},
    span::Span,
};

pub(super) async fn only_the_first_close_finds_it_open<S: Specimen>(case: &Case<'_, S>) {
    assert!(!case.mailbox.is_closed(), "a fresh mailbox is open");
    assert!(case.mailbox.close(), "the first close finds it open");
    assert!(case.mailbox.is_closed(), "a closed mailbox says so");
    assert!(!case.mailbox.close(), "the second close does not find it open");
    assert!(case.mailbox.is_closed(), "it stays closed");
}

pub(super) async fn a_closed_mailbox_refuses_and_hands_the_message_back<S: Specimen>(case: &Case<'_, S>) {
    case.mailbox.close();
    let sent = Message::new("late").delayed(case.span(1)).reply_to("somewhere".into());
    let refused = case.mailbox.send(sent.clone()).await.expect_err("a closed mailbox takes nothing in");
    assert_eq!(refused.message, sent, "a message that is refused comes back as it was");
    assert!(matches!(refused.why, NotSent::Closed), "it is said why: {:?}", refused.why);
    assert_eq!(case.counts().await.all(), 0, "what was refused is not in it");
}

pub(super) async fn a_closed_mailbox_gives_nothing_out<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    case.mailbox.close();
    for pull in [case.pull(), case.wait(case.pull(), 5)] {
        let mut receiving = case.begin(pull);
        let received = case.within(2, &mut receiving).await.expect("nobody waits at a closed mailbox");
        assert!(matches!(received, Err(ReceiveError::Closed)), "it gives nothing out: {received:?}");
    }
    assert_eq!(case.counts().await, Counts::new(1, 0, 0), "what was in it stays there");
}

pub(super) async fn a_close_wakes_all_who_wait<S: Specimen>(case: &Case<'_, S>) {
    let mut first = case.waiting(case.pull()).await;
    let mut second = case.waiting(case.pull()).await;
    case.mailbox.close();
    for receiving in [&mut first, &mut second] {
        let received = case.within(2, receiving).await.expect("who waits is woken by a close");
        assert!(matches!(received, Err(ReceiveError::Closed)), "a close ends a wait: {received:?}");
    }
}

pub(super) async fn a_delivery_can_be_settled_after_the_close<S: Specimen>(case: &Case<'_, S>) {
    for _ in 0..5 {
        case.send("one").await;
    }
    let taken = case.receive(case.lease(2)).await;
    case.mailbox.close();
    case.settle(&taken[0], Settlement::Extend(Span::MAX)).await;
    case.save(&taken[0], "half").await;
    case.settle(&taken[1], Settlement::Ack).await;
    case.settle(&taken[2], Settlement::Release).await;
    case.settle(&taken[3], Settlement::Nack(Span::MAX)).await;
    assert_eq!(case.counts().await, Counts::new(1, 1, 2), "what is settled after the close is settled");
    case.pass(3).await;
    assert_eq!(case.counts().await, Counts::new(2, 1, 1), "leases end after the close, too");
    case.refuses(taken[4].receipt, "after its lease, when the mailbox is closed").await;
    case.settle(&taken[0], Settlement::Ack).await;
}
