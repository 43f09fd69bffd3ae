//! What the trait says, but for time.

use ebbtide_mailbox::{
    Address, Bytes, Limits, Mailbox, Message, NotSent, ReceiveError, ReplyError, SettleError, Settlement,
    Span,
};

use crate::{Site, bodies, finish, one, receive, ten, units, waiting};

#[test]
fn what_is_sent_is_received_in_order_with_all_that_belongs_to_it() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let binary: Vec<u8> = (0..=255).collect();
    let messages = [
        Message::new("a"),
        Message::new(Bytes::new()),
        Message::new(binary).reply_to("replies: here".into()),
    ];
    let ids = messages.clone().map(|message| finish(mailbox.send(message)).unwrap());
    assert!(ids.is_sorted());
    let received = receive(&mailbox, ten());
    assert_eq!(received.len(), 3, "a batch that is not full is given at once");
    for ((delivery, message), id) in received.iter().zip(&messages).zip(ids) {
        assert_eq!((&delivery.body, &delivery.reply_to), (&message.body, &message.reply_to));
        assert_eq!((delivery.id(), delivery.delivery_count, &delivery.checkpoint), (id, 1, &None));
    }
    assert!(receive(&mailbox, ten()).is_empty(), "they are out of sight");
}

#[test]
fn no_more_are_received_than_are_wanted() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for body in ["a", "b", "c", "d"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    assert_eq!(bodies(&receive(&mailbox, one())), ["a"]);
    assert_eq!(bodies(&receive(&mailbox, one().max(2).unwrap())), ["b", "c"]);
    assert_eq!(bodies(&receive(&mailbox, ten())), ["d"]);
}

#[test]
fn what_is_acknowledged_is_gone_and_its_receipt_has_expired() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a"))).unwrap();
    let receipt = receive(&mailbox, one())[0].receipt;
    finish(mailbox.settle(receipt, Settlement::Ack)).unwrap();
    assert_eq!(finish(mailbox.counts()).unwrap().all(), 0);
    for how in
        [Settlement::Ack, Settlement::Nack(Span::ZERO), Settlement::Release, Settlement::Extend(Span::MAX)]
    {
        let error = finish(mailbox.settle(receipt, how)).unwrap_err();
        assert!(matches!(error, SettleError::ReceiptExpired), "{how:?}: {error}");
    }
    let error = finish(mailbox.checkpoint(receipt, "x".into())).unwrap_err();
    assert!(matches!(error, SettleError::ReceiptExpired), "{error}");
    let keys = site.ask(ebbtide_redis::Command::new("KEYS").arg("*")).array().unwrap();
    assert!(keys.len() <= 3, "nothing is left but the numbers, the limits and the bell: {keys:?}");
}

#[test]
fn a_nack_counts_and_goes_to_the_back_and_a_release_does_not_and_goes_to_the_front() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for body in ["a", "b", "c"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    let received = receive(&mailbox, one().max(2).unwrap());
    finish(mailbox.settle(received[0].receipt, Settlement::Nack(Span::ZERO))).unwrap();
    finish(mailbox.settle(received[1].receipt, Settlement::Release)).unwrap();
    let again = receive(&mailbox, ten());
    assert_eq!(bodies(&again), ["b", "c", "a"]);
    let counts: Vec<_> = again.iter().map(|delivery| delivery.delivery_count).collect();
    assert_eq!(counts, [1, 1, 2]);
    assert_eq!(again[0].id(), received[1].id(), "the same message in every delivery");
    for (old, new) in [(&received[0], &again[2]), (&received[1], &again[0])] {
        assert_ne!(old.receipt, new.receipt, "fresh for each delivery");
        assert!(finish(mailbox.settle(old.receipt, Settlement::Ack)).is_err());
        finish(mailbox.settle(new.receipt, Settlement::Ack)).unwrap();
    }
}

#[test]
fn a_checkpoint_comes_back_with_the_next_delivery_and_goes_with_the_message() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a"))).unwrap();
    let receipt = receive(&mailbox, one())[0].receipt;
    finish(mailbox.checkpoint(receipt, "half".into())).unwrap();
    finish(mailbox.checkpoint(receipt, "most".into())).unwrap();
    finish(mailbox.settle(receipt, Settlement::Nack(Span::ZERO))).unwrap();
    let again = receive(&mailbox, one()).remove(0);
    assert_eq!(again.checkpoint.as_deref(), Some(&b"most"[..]));
    finish(mailbox.settle(again.receipt, Settlement::Ack)).unwrap();
    finish(mailbox.send(Message::new("b"))).unwrap();
    assert_eq!(receive(&mailbox, one())[0].checkpoint, None);
}

#[test]
fn a_reply_is_sent_to_the_mailbox_of_that_name_by_its_limits() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let replies = site.open_with("replies", Limits { capacity: 1, body: 4 });
    finish(mailbox.reply("replies".into(), "done".into())).unwrap();
    assert_eq!(bodies(&receive(&replies, one())), ["done"]);
    let full = finish(mailbox.reply("replies".into(), "more".into())).unwrap_err();
    assert!(
        matches!(&full, ReplyError::Refused(error) if matches!(error.why, NotSent::Full { capacity: 1 }))
    );
    let large = finish(mailbox.reply("replies".into(), "large".into())).unwrap_err();
    let is_large = |why: &NotSent| matches!(why, NotSent::TooLarge { size: 5, limit: 4 });
    assert!(matches!(&large, ReplyError::Refused(error) if is_large(&error.why)), "{large}");
    for nobody in ["nobody", "", "}"] {
        let unknown = finish(mailbox.reply(nobody.into(), "x".into())).unwrap_err();
        assert!(matches!(&unknown, ReplyError::Unknown(name) if *name == Address::from(nobody)), "{unknown}");
    }
}

#[test]
fn a_purge_takes_out_all_and_expires_their_receipts() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for delay in [0, 0, 60] {
        finish(mailbox.send(Message::new("a").delayed(Span::secs(delay)))).unwrap();
    }
    let receipt = receive(&mailbox, one())[0].receipt;
    assert_eq!(finish(mailbox.purge()).unwrap(), 3);
    assert_eq!(finish(mailbox.counts()).unwrap().all(), 0);
    finish(mailbox.send(Message::new("b"))).unwrap();
    let later = receive(&mailbox, one())[0].receipt;
    assert_ne!(later, receipt);
    assert!(finish(mailbox.settle(receipt, Settlement::Ack)).is_err());
    finish(mailbox.settle(later, Settlement::Ack)).unwrap();
    assert_eq!(finish(mailbox.purge()).unwrap(), 0);
}

#[test]
fn counts_tell_pending_delayed_and_invisible_apart() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for delay in [0, 0, 0, 60] {
        finish(mailbox.send(Message::new("a").delayed(Span::secs(delay)))).unwrap();
    }
    let receipt = receive(&mailbox, one())[0].receipt;
    receive(&mailbox, one());
    finish(mailbox.settle(receipt, Settlement::Nack(Span::secs(60)))).unwrap();
    let counts = finish(mailbox.counts()).unwrap();
    assert_eq!((counts.pending, counts.delayed, counts.invisible), (1, 2, 1));
}

#[test]
fn capacity_counts_all_and_what_is_refused_comes_back() {
    let site = Site::new();
    let mailbox = site.open_with("orders", Limits { capacity: 2, body: 3 });
    finish(mailbox.send(Message::new("a").delayed(Span::secs(60)))).unwrap();
    finish(mailbox.send(Message::new("b"))).unwrap();
    let receipt = receive(&mailbox, one())[0].receipt;
    let message = Message::new("c").reply_to("replies".into());
    let full = finish(mailbox.send(message.clone())).unwrap_err();
    assert!(matches!(full.why, NotSent::Full { capacity: 2 }), "{full}");
    assert_eq!(full.message, message);
    finish(mailbox.settle(receipt, Settlement::Ack)).unwrap();
    finish(mailbox.send(message)).unwrap();
    let large = finish(mailbox.send(Message::new("four"))).unwrap_err();
    assert!(matches!(large.why, NotSent::TooLarge { size: 4, limit: 3 }), "{large}");
}

#[test]
fn a_mailbox_keeps_the_limits_that_it_was_made_with() {
    let site = Site::new();
    let made = site.open_with("orders", Limits { capacity: 5, body: 6 });
    assert_eq!(site.open("orders").limits(), made.limits());
    assert_eq!(site.open("others").limits(), Limits::default());
}

#[test]
fn a_closed_mailbox_takes_and_gives_nothing_but_settles() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let elsewhere = site.open("orders");
    for body in ["a", "b"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    let receipt = receive(&mailbox, one())[0].receipt;
    assert!(!mailbox.is_closed());
    assert!(mailbox.close() && !mailbox.close() && mailbox.clone().is_closed());
    let refused = finish(mailbox.send(Message::new("c"))).unwrap_err();
    assert!(matches!(refused.why, NotSent::Closed));
    for pull in [one(), waiting(100)] {
        assert!(matches!(finish(mailbox.receive(pull)), Err(ReceiveError::Closed)));
    }
    finish(mailbox.settle(receipt, Settlement::Extend(units(600)))).unwrap();
    finish(mailbox.settle(receipt, Settlement::Ack)).unwrap();
    assert_eq!(bodies(&receive(&elsewhere, one())), ["b"], "others go on");
}

#[test]
fn two_mailboxes_share_nothing() {
    let site = Site::new();
    let (a, b) = (site.open("a"), site.open("b"));
    finish(a.send(Message::new("for a"))).unwrap();
    assert!(receive(&b, ten()).is_empty());
    let receipt = receive(&a, one())[0].receipt;
    assert!(finish(b.settle(receipt, Settlement::Ack)).is_err());
    assert_eq!(finish(a.counts()).unwrap().all(), 1);
}
