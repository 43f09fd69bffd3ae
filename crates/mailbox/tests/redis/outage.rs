//! What goes wrong.

use std::{
    io::{self, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use ebbtide_mailbox::{Mailbox, Message, NotSent, ReceiveError, RedisMailbox, Settlement, Span};
use ebbtide_redis::Command;

use crate::{Site, bodies, connect, finish, one, receive, ten, units, waiting};

#[test]
fn a_server_that_is_down_at_the_start_is_an_error_that_says_where() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (link, _events) = connect(nobody);
    let said = finish(RedisMailbox::open(&link, "orders")).unwrap_err().to_string();
    assert!(said.starts_with(&format!("EVALSHA at {nobody}: not sent, no connection")), "{said}");
}

#[test]
fn a_server_that_dies_in_mid_receive_is_an_error_and_what_was_sent_is_there_when_it_is_back() {
    let mut site = Site::new();
    let mailbox = site.open("orders");
    let received = thread::scope(|scope| {
        let waits = scope.spawn(|| finish(mailbox.receive(waiting(200))));
        site.until_waiting(1);
        site.server.kill();
        waits.join().unwrap()
    });
    let said = received.unwrap_err().to_string();
    assert!(said.contains("BLPOP at") && said.contains("the connection broke"), "{said}");
    site.server.restart();
    while finish(mailbox.send(Message::new("a"))).is_err() {}
    assert_eq!(bodies(&receive(&mailbox, one())), ["a"]);
}

#[test]
fn messages_and_leases_outlive_a_server_that_is_killed() {
    let mut site = Site::new();
    let mailbox = site.open("orders");
    for body in ["acked", "leased", "pending"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    let received = receive(&mailbox, one().max(2).unwrap());
    finish(mailbox.settle(received[0].receipt, Settlement::Ack)).unwrap();
    site.server.restart();
    let pending = loop {
        if let Ok(received) = finish(mailbox.receive(one())) {
            break received;
        }
    };
    assert_eq!(bodies(&pending), ["pending"]);
    finish(mailbox.settle(received[1].receipt, Settlement::Release)).unwrap();
    assert_eq!(bodies(&receive(&mailbox, one())), ["leased"]);
    assert!(finish(mailbox.settle(received[0].receipt, Settlement::Ack)).is_err());
}

#[test]
fn a_send_that_fails_hands_the_message_back() {
    let mut site = Site::new();
    let mailbox = site.open("orders");
    site.server.kill();
    let error = finish(mailbox.send(Message::new("a"))).unwrap_err();
    assert!(matches!(error.why, NotSent::Backend(_)), "{error}");
    assert_eq!(error.message, Message::new("a"));
    assert!(finish(mailbox.counts()).is_err() && finish(mailbox.purge()).is_err());
}

#[test]
fn a_key_of_another_type_is_named_and_nothing_is_lost() {
    for (part, kind) in
        [("pending", "list"), ("leased", "zset"), ("bodies", "hash"), ("saved", "hash"), ("delayed", "zset")]
    {
        let site = Site::new();
        let mailbox = site.open("orders");
        finish(mailbox.send(Message::new("a"))).unwrap();
        let key = format!("{{orders}}:{part}");
        let (aside, before) = (format!("{{orders}}:aside:{part}"), Command::new("RENAME").arg(&key));
        let moved = finish(site.link.ask(before.arg(&aside))).is_ok();
        site.ask(Command::new("SET").arg(&key).arg("something else"));
        let error = finish(mailbox.receive(one())).unwrap_err();
        assert!(matches!(error, ReceiveError::Backend(_)));
        let said = error.to_string();
        assert!(
            said.contains(&format!("the key {key} holds a string, where a mailbox has a {kind}")),
            "{said}"
        );
        site.ask(Command::new("DEL").arg(&key));
        if moved {
            site.ask(Command::new("RENAME").arg(&aside).arg(&key));
        }
        assert_eq!(bodies(&receive(&mailbox, one())), ["a"], "{part}");
    }
}

#[test]
fn a_bell_of_another_type_harms_nobody() {
    let site = Site::new();
    let mailbox = site.open("orders");
    site.ask(Command::new("DEL").arg("{orders}:bell"));
    thread::scope(|scope| {
        let waits = scope.spawn(|| finish(mailbox.receive(waiting(2))));
        site.until_waiting(1);
        site.ask(Command::new("SET").arg("{orders}:bell").arg("x"));
        assert!(waits.join().unwrap().unwrap().is_empty(), "whoever waits goes on");
    });
    finish(mailbox.send(Message::new("a"))).unwrap();
    assert_eq!(bodies(&receive(&mailbox, one())), ["a"], "and so does the rest");
}

#[test]
fn a_name_that_a_cluster_could_not_keep_together_is_refused() {
    let site = Site::new();
    for name in ["", "}x"] {
        let said = finish(RedisMailbox::open(&site.link, name)).unwrap_err().to_string();
        assert!(said.starts_with("a mailbox cannot be called"), "{said}");
    }
    site.open("a {b} c");
}

#[test]
fn a_server_that_is_full_takes_no_message_and_can_be_emptied() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for body in ["a", "b", "c", "d"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    receive(&mailbox, one().visibility(Span::ZERO));
    let held = receive(&mailbox, one().max(3).unwrap());
    site.ask(Command::new("CONFIG").arg("SET").arg("maxmemory").int(1));
    let refused = finish(mailbox.send(Message::new("e"))).unwrap_err().to_string();
    assert!(refused.contains("OOM"), "{refused}");
    for (delivery, how) in held.iter().zip([Settlement::Extend(Span::MAX), Settlement::Release]) {
        finish(mailbox.settle(delivery.receipt, how)).unwrap();
    }
    finish(mailbox.settle(held[2].receipt, Settlement::Nack(Span::ZERO))).unwrap();
    finish(mailbox.settle(held[0].receipt, Settlement::Ack)).unwrap();
    let left = receive(&mailbox, ten());
    assert_eq!(bodies(&left), ["c", "a", "d"]);
    for delivery in left {
        finish(mailbox.settle(delivery.receipt, Settlement::Ack)).unwrap();
    }
    assert_eq!(finish(mailbox.counts()).unwrap().all(), 0);
}

/// What was delayed is moved to those that can be received, which is a write that may need room.
#[test]
fn what_comes_back_on_a_server_that_is_full_is_received_by_who_waits() {
    let site = Site::new();
    let mailbox = site.open("orders");
    finish(mailbox.send(Message::new("a").delayed(units(2)))).unwrap();
    site.ask(Command::new("CONFIG").arg("SET").arg("maxmemory").int(1));
    assert_eq!(bodies(&receive(&mailbox, waiting(100))), ["a"]);
}

/// A way to a server on which answers can be lost. Gives where it begins, and what says whether they are.
fn lossy(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let (listener, loses) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(AtomicBool::new(false)));
    let (address, is_lost) = (listener.local_addr().unwrap(), loses.clone());
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(mut answers) = TcpStream::connect(server) else { return };
            let (mut asked, mut asks) = (client.try_clone().unwrap(), answers.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut asked, &mut asks));
            let (mut client, is_lost) = (client, is_lost.clone());
            thread::spawn(move || {
                let mut said = [0; 4096];
                while let Ok(count @ 1..) = answers.read(&mut said) {
                    if is_lost.load(Ordering::SeqCst) || client.write_all(&said[..count]).is_err() {
                        break;
                    }
                }
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
    (address, loses)
}

#[test]
fn m2_a_batch_whose_answer_is_lost_comes_back_in_its_order() {
    let site = Site::new();
    let (address, loses) = lossy(site.server.address());
    let (link, _events) = connect(address);
    let mailbox = finish(RedisMailbox::open(&link, "orders")).unwrap();
    // The server knows the script from here on.
    assert!(receive(&mailbox, ten()).is_empty());
    for body in ["a", "b", "c"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    loses.store(true, Ordering::SeqCst);
    let lost = finish(mailbox.receive(ten().visibility(units(2)))).unwrap_err();
    assert!(lost.to_string().contains("the connection broke"), "{lost}");
    loses.store(false, Ordering::SeqCst);
    assert_eq!(finish(site.open("orders").counts()).unwrap().invisible, 3);
    let again = receive(&mailbox, waiting(100));
    assert_eq!(bodies(&again), ["a", "b", "c"]);
    assert!(
        again.iter().all(|delivery| delivery.delivery_count == 2),
        "whether anybody had them is not known"
    );
}
