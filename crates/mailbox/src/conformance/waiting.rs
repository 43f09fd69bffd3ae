//! Who waits is woken by whatever can be received, once for each message.

use std::{future::poll_fn, task::Poll};

use super::{
    Specimen,
    case::{Case, Receiving, only},
};
use crate::{
    message::{Delivery, Settlement},
    span::Span,
};

pub(super) async fn a_send_wakes_who_waits<S: Specimen>(case: &Case<'_, S>) {
    let mut receiving = case.waiting(case.pull()).await;
    case.send("one").await;
    case.woken(2, &mut receiving, "a send").await;
}

pub(super) async fn a_delay_that_ends_wakes_who_waits<S: Specimen>(case: &Case<'_, S>) {
    case.delayed("later", 2).await;
    let mut receiving = case.waiting(case.pull()).await;
    case.woken(3, &mut receiving, "the end of a delay").await;
}

pub(super) async fn a_delay_that_begins_while_one_waits_wakes_him_at_its_end<S: Specimen>(
    case: &Case<'_, S>,
) {
    case.put(crate::Message::new("much later").delayed(Span::MAX)).await;
    let mut receiving = case.waiting(case.pull()).await;
    case.delayed("later", 1).await;
    let woken = case.woken(3, &mut receiving, "the end of a delay").await;
    assert_eq!(woken.body, "later", "who waits gets what has come");
}

pub(super) async fn a_nack_wakes_who_waits<S: Specimen>(case: &Case<'_, S>) {
    let (delivery, mut receiving) = one_in_hand(case).await;
    case.settle(&delivery, Settlement::Nack(Span::ZERO)).await;
    let woken = case.woken(2, &mut receiving, "a nack").await;
    assert_eq!(woken.delivery_count, 2, "a delivery that failed is counted");
}

pub(super) async fn a_nack_with_a_delay_wakes_who_waits_at_its_end<S: Specimen>(case: &Case<'_, S>) {
    let (delivery, mut receiving) = one_in_hand(case).await;
    case.settle(&delivery, Settlement::Nack(case.span(2))).await;
    assert!(case.within(1, &mut receiving).await.is_none(), "a delay is kept while somebody waits");
    case.woken(2, &mut receiving, "the end of a nack's delay").await;
}

pub(super) async fn a_release_wakes_who_waits<S: Specimen>(case: &Case<'_, S>) {
    let (delivery, mut receiving) = one_in_hand(case).await;
    case.settle(&delivery, Settlement::Release).await;
    let woken = case.woken(2, &mut receiving, "a release").await;
    assert_eq!(woken.delivery_count, 1, "a delivery that was released is not counted");
}

/// A message in one pair of hands, for long, and another that waits for it.
async fn one_in_hand<'c, S: Specimen>(case: &'c Case<'_, S>) -> (Delivery, Receiving<'c>) {
    case.send("one").await;
    let delivery = case.one("what was sent can be received").await;
    (delivery, case.waiting(case.pull()).await)
}

pub(super) async fn a_lease_that_ends_wakes_who_waits<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    case.one_of(case.lease(2), "what was sent can be received").await;
    let mut receiving = case.waiting(case.pull()).await;
    let woken = case.woken(3, &mut receiving, "the end of a lease").await;
    assert_eq!(woken.delivery_count, 2, "a lease that ended is counted");
}

pub(super) async fn a_lease_that_begins_while_one_waits_wakes_him_at_its_end<S: Specimen>(
    case: &Case<'_, S>,
) {
    let mut receiving = case.waiting(case.pull()).await;
    case.send("one").await;
    // Either of them may get it first; if it was not who waits, he gets it next.
    let first = case.receive(case.lease(1)).await;
    let woken = case.woken(3, &mut receiving, "the end of a lease that began while he waited").await;
    assert_eq!(woken.delivery_count as usize, 1 + first.len(), "a lease that ended is counted");
}

pub(super) async fn a_lease_that_is_extended_does_not_wake_who_waits<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    let delivery = case.one_of(case.lease(2), "what was sent can be received").await;
    let mut receiving = case.waiting(case.pull()).await;
    case.settle(&delivery, Settlement::Extend(case.span(3))).await;
    assert!(case.within(2, &mut receiving).await.is_none(), "what is extended stays out of sight");
    case.woken(2, &mut receiving, "the end of an extended lease").await;
}

/// What each of two has come to when some units have passed.
async fn both<'r, S: Specimen>(
    case: &Case<'_, S>,
    units: u32,
    two: &mut [Receiving<'r>; 2],
) -> [Option<Vec<Delivery>>; 2] {
    let mut passed = case.specimen.pass(case.units(units));
    let mut seen = [None, None];
    poll_fn(|cx| {
        for (receiving, seen) in two.iter_mut().zip(&mut seen) {
            if seen.is_none()
                && let Poll::Ready(received) = receiving.poll(cx)
            {
                *seen = Some(received.expect("an open mailbox can be received from"));
            }
        }
        passed.as_mut().poll(cx)
    })
    .await;
    seen
}

/// Two who wait for one message each, for two units more.
async fn two<'c, S: Specimen>(case: &'c Case<'_, S>) -> [Receiving<'c>; 2] {
    let pull = case.wait(case.pull().max(1).expect("one is within the range"), 5);
    let mut two = [case.begin(pull), case.begin(pull)];
    assert_eq!(both(case, 1, &mut two).await, [None, None], "who waits gets nothing while there is nothing");
    two
}

pub(super) async fn of_two_who_wait_one_gets_the_message<S: Specimen>(case: &Case<'_, S>) {
    let mut two = two(case).await;
    case.send("one").await;
    let [first, second] = both(case, 2, &mut two).await;
    let received: Vec<_> = first.into_iter().chain(second).collect();
    assert_eq!(received.len(), 1, "one message ends one wait, and the other goes on: {received:?}");
    only(received.into_iter().flatten().collect(), "of two who wait one gets the message");
}

pub(super) async fn of_two_who_wait_each_gets_one_of_two_messages<S: Specimen>(case: &Case<'_, S>) {
    let mut two = two(case).await;
    let sent = [case.send("one").await, case.send("two").await];
    let received = both(case, 2, &mut two).await;
    let mut ids = received.map(|received| {
        only(received.expect("two messages end two waits"), "who wants one message gets one").id()
    });
    if ids[0] != sent[0] {
        ids.reverse();
    }
    assert_eq!(ids, sent, "each gets another");
}

pub(super) async fn of_two_who_wait_each_gets_one_of_two_that_come_back_at_once<S: Specimen>(
    case: &Case<'_, S>,
) {
    case.send("one").await;
    case.send("two").await;
    assert_eq!(case.receive(case.lease(2)).await.len(), 2, "what was sent can be received");
    let mut two = two(case).await;
    for received in both(case, 3, &mut two).await {
        let received = received.expect("two leases that end wake two who wait");
        assert_eq!(
            only(received, "who wants one message gets one").delivery_count,
            2,
            "it was delivered before"
        );
    }
}

pub(super) async fn who_counts_does_not_take_the_wake_up_of_who_waits<S: Specimen>(case: &Case<'_, S>) {
    case.delayed("later", 2).await;
    let mut receiving = case.waiting(case.pull()).await;
    case.pass(2).await;
    // Whoever looks first may be who finds that it has come, or who waits may have it already.
    assert_eq!(case.counts().await.delayed, 0, "its time has come");
    case.woken(1, &mut receiving, "the end of a delay that another has seen first").await;
}

pub(super) async fn who_gives_up_does_not_take_the_wake_up_of_another_with_him<S: Specimen>(
    case: &Case<'_, S>,
) {
    for (first_gives_up, before_the_send) in [(true, true), (true, false), (false, true), (false, false)] {
        let [first, second] = two(case).await;
        let (given_up, mut goes_on) = if first_gives_up { (first, second) } else { (second, first) };
        if before_the_send {
            drop(given_up);
            case.send("one").await;
        } else {
            case.send("one").await;
            drop(given_up);
        }
        let woken = case.woken(3, &mut goes_on, "a send, whoever else gives up").await;
        case.settle(&woken, Settlement::Ack).await;
    }
}
