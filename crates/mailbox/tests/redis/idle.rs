//! Waiting at an empty mailbox, again and again: what that costs the server, and that nothing is missed by it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Waker},
    thread,
};

use ebbtide_lifecycle::{Component, Reason, Runnable, Stopped, time::Deadline, time::SystemClock};
use ebbtide_mailbox::{Mailbox, Message, RedisMailbox, Settlement, worker::Worker};
use ebbtide_redis::Command;

use crate::{AGES, Site, UNIT, bodies, connect, finish, one, pass, receive, timed, units, waiting};

#[test]
fn a_wait_at_an_empty_mailbox_is_one_command() {
    let site = Site::new();
    let mailbox = site.open("orders");
    // The first looks, and hangs up the bell.
    assert!(receive(&mailbox, waiting(1)).is_empty());
    for _ in 0..5 {
        let before = site.commands();
        let (received, took) = timed(|| receive(&mailbox, waiting(1)));
        assert!(received.is_empty() && took >= UNIT, "{took:?}");
        assert_eq!(site.commands() - before, 1);
    }
}

#[test]
fn a_wait_that_has_to_hang_up_the_bell_does_not_look() {
    let site = Site::new();
    let mailbox = site.open("orders");
    receive(&mailbox, waiting(1));
    take_down(&site, &mailbox);
    let before = site.commands();
    let (received, took) = timed(|| receive(&mailbox, waiting(1)));
    assert!(received.is_empty() && took >= UNIT, "{took:?}");
    assert_eq!(site.commands() - before, 1);
    site.until_waiting(1);
}

/// Has a receiver leave who waits, and who takes the bell down with it.
pub(crate) fn take_down(site: &Site, mailbox: &RedisMailbox) {
    let mut leaves = mailbox.receive(waiting(200));
    assert!(leaves.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // Its answer is there after that of a later question.
    site.ask(Command::new("PING"));
    assert!(leaves.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(leaves);
    site.until_waiting(0);
    while site.link.in_flight() > 0 {}
}

#[test]
fn a_wait_that_the_server_lets_go_of_too_early_goes_on() {
    let site = Site::new();
    let mailbox = site.open("orders");
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&mailbox, waiting(10))));
        for _ in 0..3 {
            site.until_waiting(1);
            site.unblock_all();
        }
        site.until_waiting(1);
        pass(&site, 10);
        let (received, took) = waits.join().unwrap();
        assert!(received.is_empty() && took >= UNIT * 10, "{took:?}");
    });
}

#[test]
fn a_worker_that_idles_makes_one_call_for_each_wait() {
    const WAITS: u64 = 8;
    let site = Site::new();
    let mailbox = site.open("orders");
    receive(&mailbox, waiting(1));
    let before = site.commands();
    let worker = Worker::builder(Arc::new(mailbox), site.link.timer().clone(), |_| async { Ok(None) })
        .pull(waiting(1))
        .max_iterations(WAITS)
        .build();
    worker.run().unwrap();
    assert!(site.commands() - before <= i64::try_from(WAITS).unwrap());
}

#[test]
fn what_is_sent_between_two_waits_is_received_by_the_next_and_by_others_at_once() {
    let site = Site::new();
    let (link, _events) = connect(site.server.address());
    let elsewhere = finish(RedisMailbox::open(&link, "orders")).unwrap();
    let mailbox = site.open("orders");
    // Its bell hangs there from here on, with nobody beside it.
    receive(&mailbox, waiting(1));
    finish(mailbox.send(Message::new("a"))).unwrap();
    let (received, took) = timed(|| receive(&mailbox, waiting(100)));
    assert_eq!(bodies(&received), ["a"]);
    assert!(took < UNIT * 10, "{took:?}");
    finish(mailbox.settle(received[0].receipt, Settlement::Ack)).unwrap();
    receive(&mailbox, waiting(1));
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&elsewhere, waiting(200))));
        site.until_waiting(2);
        // It rings the bell that has hung for longer, where nobody is.
        finish(mailbox.send(Message::new("b"))).unwrap();
        let (received, took) = waits.join().unwrap();
        assert_eq!(bodies(&received), ["b"]);
        assert!(took < UNIT * 10, "{took:?}");
    });
}

#[test]
fn whoever_does_not_wait_looks_however_lately_somebody_has() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let elsewhere = site.open("orders");
    receive(&mailbox, waiting(1));
    take_down(&site, &mailbox);
    finish(elsewhere.send(Message::new("a"))).unwrap();
    assert_eq!(bodies(&receive(&mailbox, one())), ["a"]);
}

#[test]
fn what_comes_back_is_there_in_time_for_those_who_wait_again_and_again() {
    let site = Site::new();
    let mailbox = site.open("orders");
    receive(&mailbox, waiting(1));
    finish(mailbox.send(Message::new("a").delayed(units(5)))).unwrap();
    let again = || {
        timed(|| {
            loop {
                let received = receive(&mailbox, waiting(2));
                if !received.is_empty() {
                    return received;
                }
            }
        })
    };
    let (received, took) = again();
    assert_eq!(bodies(&received), ["a"]);
    assert!(took >= UNIT * 4 && took < UNIT * 10, "{took:?}");
    finish(mailbox.settle(received[0].receipt, Settlement::Nack(units(5)))).unwrap();
    let (received, took) = again();
    assert_eq!(received[0].delivery_count, 2);
    assert!(took >= UNIT * 4 && took < UNIT * 10, "{took:?}");
}

#[test]
fn whoever_leaves_at_the_end_of_his_wait_has_another_be_there_in_time() {
    let site = Site::new();
    let (mailbox, elsewhere) = (site.open("orders"), site.open("orders"));
    thread::scope(|scope| {
        let leaves = scope.spawn(|| receive(&mailbox, waiting(4)));
        site.until_waiting(1);
        let waits = scope.spawn(|| timed(|| receive(&elsewhere, waiting(200))));
        site.until_waiting(2);
        // Tells the one who has waited for longest, and who will have left by then.
        finish(mailbox.send(Message::new("a").delayed(units(8)))).unwrap();
        assert!(leaves.join().unwrap().is_empty());
        let (received, took) = waits.join().unwrap();
        assert_eq!(bodies(&received), ["a"]);
        assert!(took < UNIT * 40, "{took:?}");
    });
}

#[test]
fn a_bell_that_nobody_is_at_holds_up_neither_a_stop_nor_a_close() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let other = site.open("others");
    receive(&mailbox, waiting(1));
    receive(&other, waiting(1));
    site.until_waiting(2);
    other.close();
    site.until_waiting(1);
    let (stopped, took) =
        timed(|| site.link.stop(Deadline::after(SystemClock, AGES), &Reason::requested("test")).wait());
    assert_eq!(stopped, Stopped::Clean);
    assert!(took < UNIT * 10, "{took:?}");
}

#[test]
fn a_bell_that_nobody_is_at_goes_with_the_mailbox() {
    let site = Site::new();
    let mailbox = site.open("orders");
    receive(&mailbox, waiting(1));
    site.until_waiting(1);
    drop(mailbox);
    site.until_waiting(0);
}

#[test]
fn a_connection_that_breaks_between_two_waits_is_no_error() {
    let mut site = Site::new();
    let mailbox = site.open("orders");
    receive(&mailbox, waiting(1));
    site.until_waiting(1);
    site.server.restart();
    while finish(mailbox.send(Message::new("a"))).is_err() {}
    assert_eq!(bodies(&receive(&mailbox, waiting(100))), ["a"]);
}

#[test]
fn a_crowd_that_waits_in_turn_leaves_room_for_others() {
    let site = Site::new();
    // As many bells as may block at a time on one link.
    let crowd: Vec<_> = (0..64).map(|number| site.open(&format!("box {number}"))).collect();
    thread::scope(|scope| {
        for mailbox in &crowd {
            scope.spawn(|| receive(mailbox, waiting(3)));
        }
    });
    site.until_waiting(64);
    let late = site.open("late");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let received = receive(&late, waiting(100));
            is_over.store(true, Ordering::SeqCst);
            received
        });
        pass(&site, 3);
        assert!(!is_over.load(Ordering::SeqCst), "it waits");
        finish(late.send(Message::new("a"))).unwrap();
        assert_eq!(bodies(&waits.join().unwrap()), ["a"]);
    });
}
