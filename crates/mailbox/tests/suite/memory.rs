//! Facts about mailboxes in memory.

use std::{sync::mpsc, task::Poll, thread, time::Duration};

use ebbtide_lifecycle::time::VirtualClock;
use ebbtide_mailbox::{
    Bytes, Counts, Limits, Mailbox, MemoryMailbox, Message, NotSent, Office, Pull, ReplyError, SettleError,
    Settlement, Span,
};

use crate::{SECOND, Wakes, at_once, now, poll_with, receive, send, virtual_mailbox};

/// Bytes that look at a mailbox when they are dropped, as foreign code may.
struct Nosy(MemoryMailbox<VirtualClock>);

impl AsRef<[u8]> for Nosy {
    fn as_ref(&self) -> &[u8] {
        b"nosy"
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        now(self.0.counts()).unwrap();
    }
}

/// Does `act` on a thread of its own, so that one that hangs is a test that fails.
fn ends(act: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel();
    let acting = thread::spawn(move || {
        act();
        ended.send(()).unwrap();
    });
    if end.recv_timeout(10 * SECOND) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs");
    }
    acting.join().unwrap();
}

#[test]
fn what_is_refused_replaced_or_taken_out_is_dropped_without_a_lock() {
    ends(|| {
        let (_clock, mailbox) = virtual_mailbox();
        let nosy = || Bytes::from_owner(Nosy(mailbox.clone()));
        let nosy_message = || Message::new(nosy());
        now(mailbox.send(nosy_message())).unwrap();
        let delivery = receive(&mailbox, at_once()).remove(0);
        now(mailbox.checkpoint(delivery.receipt, nosy())).unwrap();
        now(mailbox.checkpoint(delivery.receipt, nosy())).unwrap();
        now(mailbox.settle(delivery.receipt, Settlement::Release)).unwrap();
        let refused = now(mailbox.checkpoint(delivery.receipt, nosy()));
        assert!(matches!(refused, Err(SettleError::ReceiptExpired)));
        drop(delivery);
        assert_eq!(mailbox.take_unreceived().len(), 1);
        now(mailbox.send(nosy_message())).unwrap();
        assert_eq!(now(mailbox.purge()).unwrap(), 1);
        now(mailbox.send(nosy_message())).unwrap();
        let delivery = receive(&mailbox, at_once()).remove(0);
        now(mailbox.settle(delivery.receipt, Settlement::Ack)).unwrap();
        mailbox.close();
        assert!(now(mailbox.send(nosy_message())).is_err());
    });
}

#[test]
fn who_waits_is_left_alone_by_what_gives_him_nothing() {
    let (_clock, mailbox) = virtual_mailbox();
    for _ in 0..2 {
        send(&mailbox, "one");
    }
    let taken = receive(&mailbox, at_once());
    let (wakes, mut receiving) = (Wakes::new(), mailbox.receive(Pull::default()));
    assert!(poll_with(&wakes, &mut receiving).is_pending());
    now(mailbox.checkpoint(taken[0].receipt, Bytes::new())).unwrap();
    now(mailbox.settle(taken[0].receipt, Settlement::Extend(Span::MAX))).unwrap();
    now(mailbox.settle(taken[0].receipt, Settlement::Ack)).unwrap();
    now(mailbox.counts()).unwrap();
    now(mailbox.purge()).unwrap();
    assert_eq!(wakes.count(), 0);
    send(&mailbox, "one");
    assert_eq!(wakes.count(), 1);
    assert!(matches!(poll_with(&wakes, &mut receiving), Poll::Ready(Ok(batch)) if batch.len() == 1));
}

#[test]
fn who_waits_is_woken_when_what_another_took_meanwhile_comes_back() {
    let (clock, mailbox) = virtual_mailbox();
    now(mailbox.send(Message::new("later").delayed(Span::secs(15)))).unwrap();
    let (wakes, mut receiving) = (Wakes::new(), mailbox.receive(Pull::default()));
    assert!(poll_with(&wakes, &mut receiving).is_pending());
    send(&mailbox, "one");
    // He is woken, but somebody else is faster.
    let lease = at_once().visibility(Span::secs(5));
    assert_eq!(receive(&mailbox, lease).len(), 1);
    assert!(poll_with(&wakes, &mut receiving).is_pending());
    let before = wakes.count();
    clock.advance(5 * SECOND);
    assert!(wakes.count() > before, "nobody told him when the lease ended");
    assert!(matches!(poll_with(&wakes, &mut receiving), Poll::Ready(Ok(batch)) if batch[0].body == "one"));
}

#[test]
fn who_waits_and_was_not_polled_since_another_took_is_woken_when_it_comes_back() {
    let (clock, mailbox) = virtual_mailbox();
    send(&mailbox, "first");
    assert_eq!(receive(&mailbox, at_once().visibility(Span::secs(15))).len(), 1);
    let (wakes, mut receiving) = (Wakes::new(), mailbox.receive(Pull::default()));
    assert!(poll_with(&wakes, &mut receiving).is_pending());
    send(&mailbox, "one");
    assert_eq!(receive(&mailbox, at_once().visibility(Span::secs(5))).len(), 1);
    clock.advance(5 * SECOND);
    assert!(wakes.count() > 0);
    assert!(matches!(poll_with(&wakes, &mut receiving), Poll::Ready(Ok(batch)) if batch[0].body == "one"));
}

#[test]
fn who_waits_gets_what_a_count_has_found_before_him() {
    let (clock, mailbox) = virtual_mailbox();
    now(mailbox.send(Message::new("one").delayed(Span::secs(1)))).unwrap();
    let (wakes, mut receiving) = (Wakes::new(), mailbox.receive(Pull::default()));
    assert!(poll_with(&wakes, &mut receiving).is_pending());
    clock.advance(SECOND);
    assert_eq!(now(mailbox.counts()).unwrap(), Counts::new(1, 0, 0));
    assert!(matches!(poll_with(&wakes, &mut receiving), Poll::Ready(Ok(batch)) if batch.len() == 1));
}

#[test]
fn who_waits_gets_what_another_has_found_before_him_and_left() {
    let (clock, mailbox) = virtual_mailbox();
    for _ in 0..2 {
        send(&mailbox, "one");
    }
    assert_eq!(receive(&mailbox, at_once().visibility(Span::secs(1))).len(), 2);
    let one = Pull::default().max(1).unwrap();
    let (wakes, mut first, mut second) = (Wakes::new(), mailbox.receive(one), mailbox.receive(one));
    assert!(poll_with(&wakes, &mut first).is_pending());
    assert!(poll_with(&wakes, &mut second).is_pending());
    clock.advance(SECOND);
    for receiving in [&mut first, &mut second] {
        assert!(matches!(poll_with(&wakes, receiving), Poll::Ready(Ok(batch)) if batch.len() == 1));
    }
}

#[test]
fn what_has_come_back_is_before_what_is_sent_or_failed_after_that() {
    let (clock, mailbox) = virtual_mailbox();
    send(&mailbox, "failed");
    let failed = receive(&mailbox, at_once()).remove(0);
    now(mailbox.send(Message::new("delayed").delayed(Span::secs(1)))).unwrap();
    // Nobody looks meanwhile.
    clock.advance(2 * SECOND);
    now(mailbox.settle(failed.receipt, Settlement::Nack(Span::ZERO))).unwrap();
    send(&mailbox, "sent");
    let bodies: Vec<_> = receive(&mailbox, at_once()).into_iter().map(|delivery| delivery.body).collect();
    assert_eq!(bodies, ["delayed", "failed", "sent"]);
}

#[test]
fn a_lease_of_no_time_does_not_deliver_twice_in_one_batch() {
    let (_clock, mailbox) = virtual_mailbox();
    for body in ["one", "two"] {
        send(&mailbox, body);
    }
    for count in 1..=3 {
        let batch = receive(&mailbox, at_once().visibility(Span::ZERO));
        assert_eq!(batch.iter().map(|delivery| &delivery.body[..]).collect::<Vec<_>>(), [b"one", b"two"]);
        assert!(batch.iter().all(|delivery| delivery.delivery_count == count));
    }
}

#[test]
fn deliveries_use_up_no_ids() {
    let (_clock, mailbox) = virtual_mailbox();
    let first = send(&mailbox, "one");
    for _ in 0..100 {
        let delivery = receive(&mailbox, at_once()).remove(0);
        now(mailbox.settle(delivery.receipt, Settlement::Extend(Span::secs(600)))).unwrap();
        now(mailbox.settle(delivery.receipt, Settlement::Nack(Span::ZERO))).unwrap();
    }
    let second = send(&mailbox, "two");
    assert_eq!((second.0 >> 32) - (first.0 >> 32), 1, "ids last for four billion messages");
}

#[test]
fn a_clone_and_a_mailbox_of_the_same_name_are_the_same() {
    let office = Office::new(VirtualClock::new());
    let small = Limits { capacity: 1, body: 10 };
    let first = office.mailbox_with("orders", small);
    // The limits are those of whoever made it.
    let again = office.clone().mailbox("orders");
    send(&again, "one");
    let refused = now(first.clone().send(Message::new("two"))).unwrap_err();
    assert!(matches!(refused.why, NotSent::Full { capacity: 1 }));
    assert_eq!(receive(&first, at_once()).len(), 1);
    assert!(first.close());
    assert!(again.is_closed());
    assert!(!office.mailbox("other").is_closed());
    assert_eq!(format!("{office:?}"), r#"Office { mailboxes: [Address("orders"), Address("other")], .. }"#);
}

#[test]
fn a_reply_to_a_mailbox_that_is_full_or_closed_comes_back() {
    let office = Office::new(VirtualClock::new());
    let (orders, asker) =
        (office.mailbox("orders"), office.mailbox_with("asker", Limits { capacity: 1, body: 10 }));
    let reply = || now(orders.reply(asker.address().clone(), Bytes::from_static(b"yes")));
    reply().unwrap();
    let Err(ReplyError::Refused(full)) = reply() else { panic!("it has no room") };
    assert!(matches!(full.why, NotSent::Full { capacity: 1 }));
    assert_eq!(full.message.body, "yes");
    asker.close();
    let Err(ReplyError::Refused(closed)) = reply() else { panic!("it is closed") };
    assert!(matches!(closed.why, NotSent::Closed));
    // Who is closed himself can still reply.
    let open = office.mailbox("open");
    orders.close();
    now(orders.reply(open.address().clone(), Bytes::from_static(b"yes"))).unwrap();
    assert_eq!(now(open.counts()).unwrap(), Counts::new(1, 0, 0));
}

#[test]
fn what_nobody_has_received_can_be_taken_out_of_a_closed_mailbox() {
    let (clock, mailbox) = virtual_mailbox();
    let later = |body: &'static str, seconds| Message::new(body).delayed(Span::secs(seconds));
    send(&mailbox, "in hand");
    let in_hand = receive(&mailbox, at_once()).remove(0);
    send(&mailbox, "expired");
    receive(&mailbox, at_once().visibility(Span::secs(1)));
    for message in [later("last", 30), Message::new("first").reply_to("asker".into()), later("third", 20)] {
        now(mailbox.send(message)).unwrap();
    }
    mailbox.close();
    clock.advance(10 * SECOND);
    let expected = [
        Message::new("first").reply_to("asker".into()),
        Message::new("expired"),
        later("third", 10),
        later("last", 20),
    ];
    assert_eq!(mailbox.take_unreceived(), expected);
    assert_eq!(now(mailbox.counts()).unwrap(), Counts::new(0, 0, 1));
    now(mailbox.settle(in_hand.receipt, Settlement::Ack)).unwrap();
    assert!(mailbox.take_unreceived().is_empty());
}

/// A message that is in nobody's hands costs nothing while it is waited for: no timer but one.
#[test]
fn who_waits_is_woken_by_the_next_lease_that_ends_and_by_no_other() {
    let (clock, mailbox) = virtual_mailbox();
    for _ in 0..10 {
        send(&mailbox, "one");
    }
    for seconds in 1..=10 {
        let pull = at_once().max(1).unwrap().visibility(Span::secs(seconds + 10));
        assert_eq!(receive(&mailbox, pull).len(), 1);
    }
    let (wakes, mut receiving) = (Wakes::new(), mailbox.receive(Pull::default()));
    assert!(poll_with(&wakes, &mut receiving).is_pending());
    clock.advance(10 * SECOND);
    assert_eq!(wakes.count(), 0);
    clock.advance(Duration::from_millis(1001));
    assert_eq!(wakes.count(), 1);
    assert!(matches!(poll_with(&wakes, &mut receiving), Poll::Ready(Ok(batch)) if batch.len() == 1));
}
