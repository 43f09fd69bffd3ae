//! What time does.

use std::{net::TcpStream, thread};

use ebbtide_lifecycle::time::VirtualClock;
use ebbtide_mailbox::{Mailbox, Message, RedisMailbox, SettleError, Settlement, Span};
use ebbtide_reactor::Async;
use ebbtide_redis::{Link, Settings};

use crate::{Site, UNIT, bodies, finish, one, pass, receive, ten, timed, units, waiting};

#[test]
fn a_lease_that_is_over_brings_the_message_back_counted_and_expires_its_receipt() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a"))).unwrap();
    let first = receive(&mailbox, one().visibility(units(2))).remove(0);
    assert!(receive(&mailbox, one()).is_empty());
    pass(&site, 3);
    let counts = finish(mailbox.counts()).unwrap();
    assert_eq!((counts.pending, counts.invisible), (1, 0), "also before anybody has received it");
    let late = finish(mailbox.settle(first.receipt, Settlement::Ack)).unwrap_err();
    assert!(matches!(late, SettleError::ReceiptExpired));
    let second = receive(&mailbox, one()).remove(0);
    assert_eq!((second.delivery_count, second.id()), (2, first.id()));
    assert!(second.age >= UNIT * 3, "{:?}", second.age);
    assert!(
        finish(mailbox.settle(first.receipt, Settlement::Ack)).is_err(),
        "a stale receipt settles nothing"
    );
    finish(mailbox.settle(second.receipt, Settlement::Ack)).unwrap();
}

#[test]
fn no_visibility_at_all_has_a_message_come_back_at_once() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a"))).unwrap();
    for count in 1..4 {
        let delivery = receive(&mailbox, one().visibility(Span::ZERO)).remove(0);
        assert_eq!(delivery.delivery_count, count);
        assert!(finish(mailbox.settle(delivery.receipt, Settlement::Ack)).is_err());
    }
}

#[test]
fn an_extension_lengthens_and_never_shortens() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for body in ["longer", "shorter"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    let longer = receive(&mailbox, one().visibility(units(2))).remove(0).receipt;
    let shorter = receive(&mailbox, one()).remove(0).receipt;
    finish(mailbox.settle(longer, Settlement::Extend(Span::secs(60)))).unwrap();
    finish(mailbox.settle(shorter, Settlement::Extend(Span::ZERO))).unwrap();
    pass(&site, 3);
    assert!(receive(&mailbox, ten()).is_empty());
    for receipt in [longer, shorter] {
        finish(mailbox.settle(receipt, Settlement::Ack)).unwrap();
    }
}

#[test]
fn a_delay_keeps_a_message_back_when_it_is_sent_and_when_it_has_failed() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a").delayed(units(2)))).unwrap();
    assert!(receive(&mailbox, one()).is_empty());
    let (received, took) = timed(|| receive(&mailbox, waiting(100)));
    assert_eq!(bodies(&received), ["a"]);
    assert!(took >= UNIT && took < UNIT * 20, "{took:?}");
    finish(mailbox.settle(received[0].receipt, Settlement::Nack(units(2)))).unwrap();
    assert!(receive(&mailbox, one()).is_empty());
    let again = receive(&mailbox, waiting(100));
    assert_eq!(again[0].delivery_count, 2);
}

#[test]
fn those_that_come_back_come_in_the_order_of_their_times() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for body in ["first sent", "second sent"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    // Far enough apart that a busy machine does not change their order.
    receive(&mailbox, one().visibility(units(10)));
    receive(&mailbox, one().visibility(units(2)));
    finish(mailbox.send(Message::new("delayed").delayed(units(6)))).unwrap();
    pass(&site, 11);
    finish(mailbox.send(Message::new("last"))).unwrap();
    let received = receive(&mailbox, ten());
    // What was sent meanwhile was there before anybody moved those that came back.
    assert_eq!(bodies(&received), ["last", "second sent", "delayed", "first sent"]);
}

#[test]
fn whoever_waits_for_a_lease_that_is_extended_is_there_at_its_new_end() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a"))).unwrap();
    let receipt = receive(&mailbox, one().visibility(units(2))).remove(0).receipt;
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&mailbox, waiting(200))));
        site.until_waiting(1);
        finish(mailbox.settle(receipt, Settlement::Extend(units(4)))).unwrap();
        let (received, took) = waits.join().unwrap();
        assert_eq!(received[0].delivery_count, 2);
        assert!(took >= UNIT * 3 && took < UNIT * 20, "{took:?}");
    });
}

/// That of this link stands still.
#[test]
fn times_are_the_servers_whatever_the_clock_of_a_link_says() {
    let site = Site::new();
    let (spawner, server) = (site.events.handle(), site.server.address());
    let link = Link::new(
        server.to_string(),
        Settings::default(),
        VirtualClock::new(),
        move || Async::<TcpStream>::connect(server),
        move |driver| drop(spawner.spawn(driver)),
    );
    let mailbox = finish(RedisMailbox::open(&link, "orders")).unwrap();
    finish(mailbox.send(Message::new("a"))).unwrap();
    let first = receive(&mailbox, one().visibility(units(2))).remove(0);
    assert!(receive(&mailbox, one()).is_empty());
    pass(&site, 3);
    assert!(finish(mailbox.settle(first.receipt, Settlement::Ack)).is_err(), "it came too late");
    let again = receive(&mailbox, one()).remove(0);
    assert_eq!(again.delivery_count, 2);
    assert!(again.age >= 3 * UNIT, "{:?}", again.age);
}
