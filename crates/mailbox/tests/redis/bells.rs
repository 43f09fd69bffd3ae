//! Several who wait at the same mailbox: each message is somebody's in time, whoever leaves, works or dies meanwhile.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Reason, Runnable,
    time::{Clock, Deadline, SystemClock},
    wait::block_on_by,
};
use ebbtide_mailbox::{Delivery, Mailbox, Message, RedisMailbox, Settlement, Span, worker::Worker};

use crate::{AGES, Site, UNIT, bodies, connect, finish, idle::take_down, receive, timed, units, waiting};

#[test]
fn whoever_leaves_with_a_message_has_another_be_there_for_the_next_that_comes_back() {
    let site = Site::new();
    let (knows, idles) = (site.open("orders"), site.open("orders"));
    // It has looked, and does not look again when it waits the next time.
    receive(&idles, waiting(1));
    take_down(&site, &idles);
    thread::scope(|scope| {
        let long = waiting(200).visibility(Span::secs(300));
        let knows = scope.spawn(move || receive(&knows, long));
        site.until_waiting(1);
        // Tells the only one who waits.
        let sender = site.open("orders");
        finish(sender.send(Message::new("later").delayed(units(10)))).unwrap();
        crate::pass(&site, 2);
        let idles = scope.spawn(|| timed(|| receive(&idles, waiting(200))));
        site.until_waiting(2);
        finish(sender.send(Message::new("now"))).unwrap();
        assert_eq!(bodies(&knows.join().unwrap()), ["now"]);
        let (received, took) = idles.join().unwrap();
        assert_eq!(bodies(&received), ["later"]);
        assert!(took < UNIT * 30, "{took:?}");
    });
}

#[test]
fn two_workers_that_idle_are_there_in_time_for_what_was_delayed() {
    let site = Site::new();
    let (link, _events) = connect(site.server.address());
    let elsewhere = finish(RedisMailbox::open(&link, "orders")).unwrap();
    let orders = site.open("orders");
    let (said, says) = mpsc::channel();
    let worker = |mailbox: RedisMailbox| {
        let said = said.clone();
        let clock = site.link.timer().clone();
        Worker::builder(Arc::new(mailbox), site.link.timer().clone(), move |_| {
            said.send(clock.now()).unwrap();
            async { Ok(None) }
        })
        .pull(waiting(4).visibility(Span::secs(300)))
        .build()
    };
    let workers = [worker(orders.clone()), worker(elsewhere)];
    thread::scope(|scope| {
        for worker in &workers {
            scope.spawn(|| worker.run().unwrap());
        }
        site.until_waiting(2);
        for _ in 0..3 {
            let due = site.link.timer().now() + Duration::from_secs(2);
            finish(orders.send(Message::new("a").delayed(Span::secs(2)))).unwrap();
            let handled = says.recv_timeout(AGES).unwrap();
            assert!(handled >= due && handled < due + UNIT * 5, "{:?} late", handled - due);
        }
        workers.iter().for_each(|worker| worker.stop(Reason::requested("test")));
    });
}

#[test]
fn workers_that_wait_while_their_server_restarts_get_what_is_sent_after_it() {
    let mut site = Site::new();
    let (link, _events) = connect(site.server.address());
    let orders = [site.open("orders"), finish(RedisMailbox::open(&link, "orders")).unwrap()];
    let handled = Arc::new(AtomicUsize::new(0));
    let workers = orders.clone().map(|mailbox| {
        let handled = handled.clone();
        Worker::builder(Arc::new(mailbox), site.link.timer().clone(), move |_| {
            handled.fetch_add(1, Ordering::SeqCst);
            async { Ok(None) }
        })
        .observer(|_| ())
        .pull(waiting(3).visibility(Span::secs(300)))
        .build()
    });
    thread::scope(|scope| {
        for worker in &workers {
            scope.spawn(|| worker.run().unwrap());
        }
        for round in 1..=3 {
            site.until_waiting(2);
            site.server.restart();
            while finish(orders[0].send(Message::new("a"))).is_err() {}
            let ((), took) = timed(|| while handled.load(Ordering::SeqCst) < round {});
            assert!(took < UNIT * 20, "{took:?}");
            while finish(orders[0].counts()).is_err() {}
        }
        workers.iter().for_each(|worker| worker.stop(Reason::requested("test")));
    });
}

#[test]
fn more_who_wait_than_a_link_has_places_for_get_their_messages_all_the_same() {
    const CROWD: usize = 200;
    let site = Site::new();
    let crowd: Vec<_> = (0..CROWD).map(|number| site.open(&format!("box {number}"))).collect();
    let handled = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::new(Mutex::new(Vec::new()));
    let workers: Vec<_> = crowd
        .iter()
        .enumerate()
        .map(|(number, mailbox)| {
            let (handled, told) = (handled.clone(), told.clone());
            Worker::builder(Arc::new(mailbox.clone()), site.link.timer().clone(), move |_| {
                handled.lock().unwrap().push(number);
                async { Ok(None) }
            })
            .observer(move |event| told.lock().unwrap().push(event.to_string()))
            .pull(waiting(10).visibility(Span::secs(300)))
            .build()
        })
        .collect();
    thread::scope(|scope| {
        for worker in &workers {
            scope.spawn(|| worker.run().unwrap());
        }
        crate::pass(&site, 15);
        for mailbox in &crowd {
            finish(mailbox.send(Message::new("a"))).unwrap();
        }
        let (is_done, took) = timed(|| {
            (0..100).any(|_| {
                crate::pass(&site, 1);
                handled.lock().unwrap().len() >= CROWD
            })
        });
        workers.iter().for_each(|worker| worker.stop(Reason::requested("test")));
        // Those without a place ask again after a pause of five seconds at most.
        assert!(is_done, "not in {took:?}");
    });
    let mut handled = handled.lock().unwrap().clone();
    handled.sort_unstable();
    assert_eq!(handled, (0..CROWD).collect::<Vec<_>>());
    let told = told.lock().unwrap();
    let says = |line: &String| line.contains("BLPOP") && line.contains("`waits` of the link's Settings");
    assert!(!told.is_empty() && told.iter().all(says), "{:?}", told.first());
}

#[test]
fn those_that_were_never_sent_do_not_hide_those_that_were() {
    let site = Site::new();
    let mailbox = site.open("orders");
    // As a send leaves it whose script failed halfway.
    site.eval("for id = 101, 125 do redis.call('RPUSH', '{orders}:pending', id .. ':0') end return 1");
    finish(mailbox.send(Message::new("a"))).unwrap();
    let (received, took) = timed(|| receive(&mailbox, waiting(50)));
    assert_eq!(bodies(&received), ["a"]);
    assert!(took < UNIT * 20, "{took:?}");
}

#[test]
fn what_comes_while_others_come_and_go_is_in_the_hands_of_the_one_who_stays_in_time() {
    const ROUNDS: u64 = 40;
    let site = Site::new();
    let (link, _events) = connect(site.server.address());
    let stays = site.open("orders");
    let goes = finish(RedisMailbox::open(&link, "orders")).unwrap();
    // One that is in nobody's hands would not come back here.
    let pull = waiting(200).visibility(Span::secs(300));
    let (said, says) = mpsc::channel();
    let mut missed = None;
    let settle = |mailbox: &RedisMailbox, deliveries: Vec<Delivery>| {
        for delivery in deliveries {
            finish(mailbox.settle(delivery.receipt, Settlement::Ack)).unwrap();
            said.send(delivery.age).unwrap();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(deliveries) = finish(stays.receive(pull)) {
                settle(&stays, deliveries);
            }
        });
        for round in 0..ROUNDS {
            let delay = if round % 4 == 0 { Span::ZERO } else { units(1) };
            thread::scope(|scope| {
                for seed in [1, 2] {
                    let (settle, goes) = (&settle, &goes);
                    scope.spawn(move || {
                        for turn in 0..8 {
                            let patience =
                                Duration::from_micros(scatter(seed << 32 | round << 8 | turn) % 3000);
                            let receives = goes.receive(pull);
                            if let Ok(received) =
                                block_on_by(receives, Deadline::after(SystemClock, patience))
                            {
                                settle(goes, received.unwrap());
                            }
                        }
                    });
                }
                finish(goes.send(Message::new("a").delayed(delay))).unwrap();
            });
            // Nobody else looks from here on.
            let age = says.recv_timeout(UNIT * 80);
            if !age.is_ok_and(|age| age < UNIT * 50) {
                missed = Some((round, age, finish(goes.counts())));
                break;
            }
        }
        stays.close();
    });
    assert!(missed.is_none(), "{missed:?}");
}

/// Numbers that look as if they were drawn.
fn scatter(number: u64) -> u64 {
    let mixed = (number ^ 0x5851_f42d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}
