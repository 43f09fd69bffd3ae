//! Numbers of messages and deliveries are given out once, whatever the server has forgotten meanwhile.

use ebbtide_mailbox::{Mailbox, Message, Receipt, RedisMailbox, SettleError, Settlement};
use ebbtide_redis::{Command, Value};

use crate::{Site, bodies, finish, one, receive};

/// The receipt of a message that was sent and received.
fn in_hand(mailbox: &RedisMailbox, body: &'static str) -> Receipt {
    finish(mailbox.send(Message::new(body))).unwrap();
    let delivery = receive(mailbox, one()).remove(0);
    assert_eq!(delivery.body, body);
    delivery.receipt
}

/// Whatever comes after it, one whose message is gone settles nothing.
fn settles_nothing(mailbox: &RedisMailbox, stale: Receipt) {
    let fresh = in_hand(mailbox, "another");
    for how in [Settlement::Ack, Settlement::Release] {
        let settled = finish(mailbox.settle(stale, how));
        assert!(matches!(settled, Err(SettleError::ReceiptExpired)), "{how:?} with {stale:?} of {fresh:?}");
    }
    let saved = finish(mailbox.checkpoint(stale, "progress".into()));
    assert!(matches!(saved, Err(SettleError::ReceiptExpired)));
    finish(mailbox.settle(fresh, Settlement::Ack)).unwrap();
}

#[test]
fn a_receipt_of_before_a_removal_settles_nothing_that_comes_after() {
    let site = Site::new();
    let before = site.open("orders");
    let stale = in_hand(&before, "one");
    finish(before.remove()).unwrap();
    settles_nothing(&site.open("orders"), stale);
}

#[test]
fn a_receipt_of_what_the_server_has_forgotten_settles_nothing_that_comes_after() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let stale = in_hand(&mailbox, "one");
    site.ask(Command::new("FLUSHALL"));
    settles_nothing(&mailbox, stale);
}

/// As after a loss of power with `appendfsync everysec`, or when a replica takes over that was behind.
#[test]
fn a_receipt_of_a_moment_that_the_server_has_lost_settles_nothing_that_comes_after() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("kept"))).unwrap();
    let kept = ["issued", "pending", "bodies"].map(|part| {
        let key = format!("{{orders}}:{part}");
        let dump = site.ask(Command::new("DUMP").arg(&key)).bytes().unwrap();
        (key, dump)
    });
    finish(mailbox.send(Message::new("lost"))).unwrap();
    let stale = receive(&mailbox, one().max(2).unwrap()).remove(1);
    assert_eq!(stale.body, "lost");
    site.ask(Command::new("DEL").arg("{orders}:leased"));
    for (key, dump) in kept {
        site.ask(Command::new("RESTORE").arg(key).int(0).arg(dump).arg("REPLACE"));
    }
    finish(mailbox.send(Message::new("new"))).unwrap();
    assert_eq!(bodies(&receive(&mailbox, one().max(2).unwrap())), ["kept", "new"]);
    let settled = finish(mailbox.settle(stale.receipt, Settlement::Ack));
    assert!(matches!(settled, Err(SettleError::ReceiptExpired)), "of another: {:?}", stale.receipt);
}

/// Also where the server's clock has gone back, or more than one is given out in a microsecond.
#[test]
fn a_number_is_more_than_the_last_one_whatever_the_clock_says() {
    const AHEAD: u64 = 1 << 52;
    let site = Site::new();
    let mailbox = site.open("orders");
    site.ask(Command::new("SET").arg("{orders}:issued").int(AHEAD));
    let sent = ["a", "b"].map(|body| finish(mailbox.send(Message::new(body))).unwrap().0);
    assert_eq!(sent, [AHEAD + 1, AHEAD + 2]);
    let received = receive(&mailbox, one().max(2).unwrap());
    let numbers: Vec<_> = received.iter().map(|delivery| delivery.receipt.delivery).collect();
    assert_eq!(numbers, [AHEAD + 3, AHEAD + 4]);
    for delivery in received {
        finish(mailbox.settle(delivery.receipt, Settlement::Ack)).unwrap();
    }
    assert_eq!(
        site.ask(Command::new("GET").arg("{orders}:issued")),
        Value::Bytes((AHEAD + 4).to_string().into())
    );
}
