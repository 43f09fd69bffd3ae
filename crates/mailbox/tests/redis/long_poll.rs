//! Waiting, being woken, and leaving.

use std::{
    pin::pin,
    sync::mpsc,
    task::{Context, Waker},
    thread,
};

use ebbtide_lifecycle::{Component, Reason, Stopped, time::Deadline, time::SystemClock};
use ebbtide_mailbox::{Mailbox, Message, ReceiveError, Settlement, Span};
use ebbtide_redis::Command;

use crate::{AGES, Site, UNIT, bodies, finish, one, receive, ten, timed, units, waiting};

#[test]
fn a_receiver_that_waits_gets_what_is_sent_and_none_if_none_comes() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let (received, took) = timed(|| receive(&mailbox, waiting(2)));
    assert!(received.is_empty() && took >= UNIT * 2, "{took:?}");
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&mailbox, waiting(200))));
        site.until_waiting(1);
        finish(mailbox.send(Message::new("a"))).unwrap();
        let (received, took) = waits.join().unwrap();
        assert_eq!(bodies(&received), ["a"]);
        assert!(took < UNIT * 20, "{took:?}");
    });
}

#[test]
fn a_message_costs_one_command_to_send_one_to_receive_a_batch_and_one_to_settle() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let round = || {
        for _ in 0..10 {
            finish(mailbox.send(Message::new("a"))).unwrap();
        }
        for delivery in receive(&mailbox, waiting(100)) {
            finish(mailbox.settle(delivery.receipt, Settlement::Ack)).unwrap();
        }
    };
    // The first has to tell the server the scripts.
    round();
    let before = site.commands();
    round();
    assert_eq!(site.commands() - before, 10 + 1 + 10);
}

#[test]
fn every_receiver_that_waits_gets_one_of_those_that_are_sent() {
    let site = Site::new();
    let mailbox = site.open("orders");
    thread::scope(|scope| {
        let wait = || receive(&mailbox, waiting(200).max(1).unwrap()).len();
        let waits: Vec<_> = (0..4).map(|_| scope.spawn(wait)).collect();
        site.until_waiting(4);
        let sends: Vec<_> = (0..4).map(|_| mailbox.send(Message::new("a"))).collect();
        for send in sends {
            finish(send).unwrap();
        }
        for wait in waits {
            assert_eq!(wait.join().unwrap(), 1);
        }
    });
}

#[test]
fn whoever_waits_is_there_when_a_lease_ends_that_began_later() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a"))).unwrap();
    let receipt = receive(&mailbox, one()).remove(0).receipt;
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&mailbox, waiting(200))));
        site.until_waiting(1);
        finish(mailbox.settle(receipt, Settlement::Nack(units(2)))).unwrap();
        let (received, took) = waits.join().unwrap();
        assert_eq!(received[0].delivery_count, 2);
        assert!(took < UNIT * 20, "{took:?}");
    });
}

#[test]
fn whoever_waits_is_there_when_a_delay_ends_that_began_later() {
    let site = Site::new();
    let mailbox = site.open("orders");
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&mailbox, waiting(200))));
        site.until_waiting(1);
        finish(mailbox.send(Message::new("a").delayed(units(2)))).unwrap();
        let (received, took) = waits.join().unwrap();
        assert_eq!(bodies(&received), ["a"]);
        assert!(took < UNIT * 20, "{took:?}");
    });
}

#[test]
fn whoever_waits_is_there_when_a_message_comes_back_that_another_took_meanwhile() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a"))).unwrap();
    let id = receive(&mailbox, one())[0].id();
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&mailbox, waiting(200))));
        site.until_waiting(1);
        // As if it had come between the look of the one and that of the other, with no bell for either.
        site.ask(Command::new("DEL").arg("{orders}:leased"));
        site.ask(Command::new("RPUSH").arg("{orders}:pending").arg(format!("{id}:1")));
        assert_eq!(receive(&mailbox, one().visibility(units(2)))[0].delivery_count, 2);
        let (received, took) = waits.join().unwrap();
        assert_eq!(received[0].delivery_count, 3);
        assert!(took < UNIT * 20, "{took:?}");
    });
}

#[test]
fn what_one_receiver_leaves_another_gets() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for body in ["a", "b", "c"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    receive(&mailbox, ten());
    thread::scope(|scope| {
        let wait = || timed(|| receive(&mailbox, waiting(200).max(1).unwrap()));
        let waits = [0, 1, 2].map(|_| scope.spawn(wait));
        site.until_waiting(3);
        // All come back at the same moment, and one receiver looks.
        site.eval(
            "for _, member in ipairs(redis.call('ZRANGE', '{orders}:leased', 0, -1)) do
                 redis.call('ZADD', '{orders}:leased', 1, member)
             end
             return redis.call('RPUSH', '{orders}:bell', '1')",
        );
        for wait in waits {
            let (received, took) = wait.join().unwrap();
            assert_eq!(received.len(), 1);
            assert!(took < UNIT * 20, "{took:?}");
        }
    });
}

#[test]
fn a_receiver_that_leaves_has_another_be_there_in_time() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let mut leaves = mailbox.receive(waiting(200));
    while site.waiting() < 1 {
        assert!(leaves.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&mailbox, waiting(200))));
        site.until_waiting(2);
        // Tells the one who has waited for longest.
        finish(mailbox.send(Message::new("a").delayed(units(3)))).unwrap();
        site.until_waiting(1);
        drop(leaves);
        let (received, took) = waits.join().unwrap();
        assert_eq!(bodies(&received), ["a"]);
        assert!(took < UNIT * 40, "{took:?}");
    });
}

#[test]
fn a_receive_that_is_cancelled_orphans_nothing() {
    let site = Site::new();
    let mailbox = site.open("orders");
    // The server knows the script from here on.
    receive(&mailbox, one());
    for body in ["a", "b", "c"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    let in_line = || site.ask(Command::new("LRANGE").arg("{orders}:pending").arg("0").arg("-1"));
    let before = in_line();
    for _ in 0..50 {
        // Dropped at every moment: before it is sent, on its way, and when the answer lies there.
        let mut receiving = mailbox.receive(waiting(1));
        assert!(receiving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(receiving);
        let mut receiving = mailbox.receive(waiting(1));
        assert!(receiving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        site.ask(Command::new("PING"));
        drop(receiving);
        // Whatever is still to be released is on the same connection, and so was sent before this.
        site.ask(Command::new("PING"));
        assert_eq!(in_line(), before, "in the same order, and not counted");
    }
    let received = receive(&mailbox, ten());
    assert_eq!(bodies(&received), ["a", "b", "c"]);
    assert!(received.iter().all(|delivery| delivery.delivery_count == 1));
}

#[test]
fn what_a_cancelled_receive_was_handed_is_released_also_while_the_link_stops() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a"))).unwrap();
    receive(&mailbox, one().visibility(Span::ZERO));
    let mut receiving = mailbox.receive(ten());
    assert!(receiving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // The answer is there after that of a later question.
    site.ask(Command::new("PING"));
    let stopping = site.link.stop(Deadline::after(SystemClock, AGES), &Reason::requested("test"));
    drop(receiving);
    assert_eq!(stopping.wait(), Stopped::Clean);
    let (link, _events) = crate::connect(site.server.address());
    let elsewhere = finish(ebbtide_mailbox::RedisMailbox::open(&link, "orders")).unwrap();
    assert_eq!(bodies(&receive(&elsewhere, one())), ["a"]);
}

#[test]
fn closing_wakes_whoever_waits_at_once() {
    let site = Site::new();
    let mailbox = site.open("orders");
    thread::scope(|scope| {
        let waits = scope.spawn(|| finish(mailbox.receive(waiting(200))));
        site.until_waiting(1);
        let (_, took) = timed(|| {
            mailbox.close();
            assert!(matches!(waits.join().unwrap(), Err(ReceiveError::Closed)));
        });
        assert!(took < UNIT * 10, "{took:?}");
    });
    // Nobody is left on the server, so that the link stops at once.
    site.until_waiting(0);
    let (stopped, took) =
        timed(|| site.link.stop(Deadline::after(SystemClock, AGES), &Reason::requested("test")).wait());
    assert_eq!(stopped, Stopped::Clean);
    assert!(took < UNIT * 10, "{took:?}");
}

#[test]
fn two_processes_never_have_the_same_message() {
    let site = Site::new();
    let (link, _events) = crate::connect(site.server.address());
    let elsewhere = finish(ebbtide_mailbox::RedisMailbox::open(&link, "orders")).unwrap();
    let mailbox = site.open("orders");
    let (seen, all) = mpsc::channel();
    const COUNT: usize = 200;
    thread::scope(|scope| {
        for mailbox in [&mailbox, &elsewhere] {
            let seen = seen.clone();
            scope.spawn(move || {
                loop {
                    let received = receive(mailbox, waiting(3));
                    if received.is_empty() {
                        return;
                    }
                    for delivery in received {
                        seen.send(delivery.id()).unwrap();
                        finish(mailbox.settle(delivery.receipt, Settlement::Ack)).unwrap();
                    }
                }
            });
        }
        for _ in 0..COUNT {
            finish(pin!(mailbox.send(Message::new("a")))).unwrap();
        }
    });
    drop(seen);
    let mut ids: Vec<_> = all.into_iter().collect();
    ids.sort();
    let received = ids.len();
    ids.dedup();
    assert_eq!((received, ids.len()), (COUNT, COUNT));
}
