//! Replies go to the mailbox at an address.

use bytes::Bytes;

use super::{
    Specimen,
    case::{Case, only},
};
use crate::{
    error::{NotSent, ReplyError},
    message::{Message, Settlement},
};

pub(super) async fn a_reply_arrives_where_it_was_wanted<S: Specimen>(case: &Case<'_, S>) {
    let (address, asker) = case.specimen.other("asker");
    case.put(Message::new("question").reply_to(address.clone())).await;
    let first = case.one("what was sent can be received").await;
    assert_eq!(first.reply_to, Some(address.clone()), "the address comes with the delivery");
    case.settle(&first, Settlement::Release).await;
    let again = case.one("a released message comes again").await;
    assert_eq!(again.reply_to, Some(address.clone()), "the address comes with every delivery");
    case.mailbox.reply(address, Bytes::from_static(b"answer")).await.expect("an asker can be replied to");
    let pull = case.wait(case.pull(), 5);
    let answer = asker.receive(pull).await.expect("an open mailbox can be received from");
    let answer = only(answer, "a reply arrives where it was wanted");
    assert_eq!((&answer.body[..], answer.delivery_count), (&b"answer"[..], 1), "it is what was replied");
    case.none("a reply goes nowhere else").await;
}

pub(super) async fn a_reply_to_nobody_is_refused<S: Specimen>(case: &Case<'_, S>) {
    let nobody = case.specimen.nobody();
    let refused = case.mailbox.reply(nobody.clone(), Bytes::from_static(b"answer")).await;
    assert!(
        matches!(&refused, Err(ReplyError::Unknown(address)) if *address == nobody),
        "a reply to nobody is refused, and says to whom: {refused:?}"
    );
}

pub(super) async fn a_reply_that_is_too_large_is_refused<S: Specimen>(case: &Case<'_, S>) {
    let (address, _asker) = case.specimen.other("asker");
    let body = Bytes::from(vec![0; case.specimen.limits().body + 1]);
    match case.mailbox.reply(address, body.clone()).await {
        Err(ReplyError::Refused(refused)) => {
            assert_eq!(refused.message.body, body, "a reply that is refused comes back");
            assert!(matches!(refused.why, NotSent::TooLarge { .. }), "it is said why: {:?}", refused.why);
        }
        outcome => panic!("a reply is refused that its mailbox would not take: {outcome:?}"),
    }
}
