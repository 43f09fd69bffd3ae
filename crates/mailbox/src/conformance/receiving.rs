//! Batches, waits that end, and receives that are given up.

use std::time::Duration;

use super::{Specimen, case::Case};

pub(super) async fn who_does_not_wait_gets_none_at_once<S: Specimen>(case: &Case<'_, S>) {
    let mut receiving = case.begin(case.pull().wait(Duration::ZERO).expect("no wait is one"));
    let received = case.within(1, &mut receiving).await.expect("who does not wait is answered at once");
    let received = received.expect("an open mailbox can be received from");
    assert!(received.is_empty(), "an empty mailbox has nothing to give: {received:?}");
}

pub(super) async fn a_batch_is_no_larger_than_what_was_asked_for<S: Specimen>(case: &Case<'_, S>) {
    for _ in 0..12 {
        case.send("one").await;
    }
    for (asked, left) in [(1, 11), (3, 8), (7, 1)] {
        let pull = case.pull().max(asked).expect("within the range");
        let received = case.receive(pull).await.len();
        assert_eq!(received, asked, "as many are given as there are and were asked for");
        assert_eq!(case.counts().await.pending, left, "what was not asked for stays");
    }
}

pub(super) async fn a_batch_that_is_not_full_is_given_at_once<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    case.send("two").await;
    let mut receiving = case.begin(case.wait(case.pull(), 5));
    let received = case.within(2, &mut receiving).await.expect("nobody waits for the rest of a batch");
    assert_eq!(received.expect("an open mailbox can be received from").len(), 2, "all there are, are given");
}

pub(super) async fn what_is_received_is_out_of_sight_of_others<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    case.one_of(case.lease(3), "what was sent can be received").await;
    case.none("what is in hand is out of sight").await;
    case.pass(2).await;
    case.none("what is in hand is out of sight until its lease ends").await;
}

pub(super) async fn a_wait_ends_with_none_at_its_time<S: Specimen>(case: &Case<'_, S>) {
    let mut receiving = case.begin(case.wait(case.pull(), 3));
    assert!(case.within(2, &mut receiving).await.is_none(), "a wait does not end before its time");
    let received = case.within(3, &mut receiving).await.expect("a wait ends at its time");
    let received = received.expect("that nothing came is no error");
    assert!(received.is_empty(), "a wait in which nothing came gives none: {received:?}");
}

/// The message can still be received; perhaps it has to be handed back first.
async fn is_still_there<S: Specimen>(case: &Case<'_, S>) {
    let pull = case.wait(case.pull(), 5);
    let delivery = case.one_of(pull, "a receive that was dropped has taken nothing").await;
    assert_eq!(delivery.delivery_count, 1, "a receive that was dropped is not counted");
}

pub(super) async fn a_receive_that_never_began_has_taken_nothing<S: Specimen>(case: &Case<'_, S>) {
    case.send("one").await;
    drop(case.mailbox.receive(case.pull()));
    is_still_there(case).await;
}

pub(super) async fn a_receive_dropped_while_it_waits_takes_nothing_later<S: Specimen>(case: &Case<'_, S>) {
    drop(case.waiting(case.pull()).await);
    case.send("one").await;
    is_still_there(case).await;
}

pub(super) async fn a_receive_dropped_when_a_message_has_come_has_taken_nothing<S: Specimen>(
    case: &Case<'_, S>,
) {
    let receiving = case.waiting(case.pull()).await;
    case.send("one").await;
    case.pass(1).await;
    drop(receiving);
    is_still_there(case).await;
}
