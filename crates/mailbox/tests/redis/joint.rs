//! Acknowledgements, and receives, that go to the server together.

use std::{
    future::Future,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Waker},
    thread,
};

use ebbtide_lifecycle::{Reason, Runnable};
use ebbtide_mailbox::{
    Mailbox, Message, Receipt, RedisMailbox, SettleError, Settlement, Span, worker::Worker,
};
use ebbtide_redis::Command;
use futures_util::future::join_all;

use crate::{AGES, Site, connect, finish, one, pass, receive, ten, units, waiting};

/// Has the loop of the link do nothing until what it gives is dropped.
fn held_up(site: &Site) -> mpsc::Sender<()> {
    let ((begun, is_begun), (go, is_going)) = (mpsc::channel(), mpsc::channel());
    let hold = move || {
        begun.send(()).unwrap();
        let _: Result<(), _> = is_going.recv();
    };
    site.events.handle().post(hold).ok().unwrap();
    // What it was about to do before that is done.
    is_begun.recv().unwrap();
    go
}

/// Asks for all in one turn of the link's loop, and waits for the answers.
fn together<F: Future>(site: &Site, asked: impl Iterator<Item = F>) -> Vec<F::Output> {
    let go = held_up(site);
    let mut answers = Box::pin(join_all(asked));
    assert!(answers.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(go);
    finish(answers)
}

fn ack_all(site: &Site, mailbox: &RedisMailbox, receipts: &[Receipt]) -> Vec<Result<(), SettleError>> {
    together(site, receipts.iter().map(|receipt| mailbox.settle(*receipt, Settlement::Ack)))
}

fn receipts(mailbox: &RedisMailbox, count: usize) -> Vec<Receipt> {
    for _ in 0..count {
        finish(mailbox.send(Message::new("a"))).unwrap();
    }
    let mut received = Vec::new();
    while received.len() < count {
        received.extend(receive(mailbox, ten()).iter().map(|delivery| delivery.receipt));
    }
    received
}

#[test]
fn those_of_one_turn_are_one_command() {
    let site = Site::new();
    let mailbox = site.open("orders");
    // The server knows the script from here on.
    let first = receipts(&mailbox, 3);
    assert!(ack_all(&site, &mailbox, &first).iter().all(Result::is_ok));
    let batch = receipts(&mailbox, 100);
    let before = site.commands();
    assert!(ack_all(&site, &mailbox, &batch).iter().all(Result::is_ok));
    assert_eq!(site.commands() - before, 1);
    assert_eq!(finish(mailbox.counts()).unwrap().all(), 0);
    let keys = site.ask(Command::new("KEYS").arg("*")).array().unwrap();
    assert!(keys.len() <= 3, "nothing is left but the numbers, the limits and the bell: {keys:?}");
}

#[test]
fn each_is_told_what_became_of_its_own() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let mut batch = receipts(&mailbox, 4);
    finish(mailbox.settle(batch[1], Settlement::Release)).unwrap();
    finish(mailbox.checkpoint(batch[2], "half".into())).unwrap();
    let other = receive(&mailbox, one()).remove(0).receipt;
    // One that is stale, whose message is in other hands, and one that comes twice.
    batch.push(batch[3]);
    let settled: Vec<_> = ack_all(&site, &mailbox, &batch).iter().map(Result::is_ok).collect();
    assert_eq!(settled, [true, false, true, true, false]);
    assert_eq!(finish(mailbox.counts()).unwrap().invisible, 1);
    finish(mailbox.settle(other, Settlement::Nack(Span::ZERO))).unwrap();
    let again = receive(&mailbox, one()).remove(0);
    assert_eq!((again.id(), again.checkpoint), (other.id, None));
}

#[test]
fn one_whose_lease_is_over_is_not_settled_with_the_others() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for body in ["late", "in time"] {
        finish(mailbox.send(Message::new(body))).unwrap();
    }
    let late = receive(&mailbox, one().visibility(units(1))).remove(0).receipt;
    let in_time = receive(&mailbox, one()).remove(0).receipt;
    // Nobody has looked since, so the server still has it among those in hand.
    pass(&site, 2);
    let settled: Vec<_> = ack_all(&site, &mailbox, &[late, in_time]).iter().map(Result::is_ok).collect();
    assert_eq!(settled, [false, true]);
    assert_eq!(receive(&mailbox, ten()).len(), 1);
}

#[test]
fn receives_of_one_turn_are_one_command_and_each_gets_its_own_in_order() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let sent: Vec<_> = (0..13).map(|number| number.to_string()).collect();
    for body in &sent {
        finish(mailbox.send(Message::new(body.clone()))).unwrap();
    }
    // The server knows the script from here on.
    let first = receive(&mailbox, one()).remove(0);
    let before = site.commands();
    let (five, ten) = (ten().max(5).unwrap(), ten());
    let received = together(&site, [five, ten, ten].into_iter().map(|pull| mailbox.receive(pull)));
    assert_eq!(site.commands() - before, 1);
    let received: Vec<_> = received.into_iter().map(Result::unwrap).collect();
    assert_eq!(received.iter().map(Vec::len).collect::<Vec<_>>(), [5, 7, 0]);
    let bodies: Vec<_> =
        [first].iter().chain(received.iter().flatten()).map(|got| got.body.clone()).collect();
    assert_eq!(bodies, sent);
    // Those of different visibility are received apart.
    let apart =
        together(&site, [one(), one().visibility(units(50))].into_iter().map(|pull| mailbox.receive(pull)));
    assert!(apart.into_iter().all(|received| received.unwrap().is_empty()));
}

#[test]
fn what_one_of_them_has_left_is_released_and_the_others_keep_theirs() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for _ in 0..20 {
        finish(mailbox.send(Message::new("a"))).unwrap();
    }
    let go = held_up(&site);
    let cx = &mut Context::from_waker(Waker::noop());
    let (mut leaves, mut stays) = (mailbox.receive(ten()), mailbox.receive(ten()));
    assert!(leaves.as_mut().poll(cx).is_pending() && stays.as_mut().poll(cx).is_pending());
    drop(leaves);
    drop(go);
    assert_eq!(finish(stays).unwrap().len(), 10);
    let again = receive(&mailbox, waiting(20));
    assert_eq!((again.len(), again[0].delivery_count), (10, 1));
}

#[test]
fn a_thousand_at_once_are_a_few_commands() {
    let site = Site::new();
    let mailbox = site.open("orders");
    let first = receipts(&mailbox, 1);
    assert!(ack_all(&site, &mailbox, &first).iter().all(Result::is_ok));
    let batch = receipts(&mailbox, 1000);
    let before = site.commands();
    assert!(ack_all(&site, &mailbox, &batch).iter().all(Result::is_ok));
    assert_eq!(site.commands() - before, 8, "of at most 128 each");
    assert_eq!(finish(mailbox.counts()).unwrap().all(), 0);
}

/// As after a restart: those that were asked together ask again, each in full.
#[test]
fn those_of_one_turn_are_all_done_also_when_the_server_has_forgotten_the_scripts() {
    let site = Site::new();
    let mailbox = site.open("orders");
    for _ in 0..30 {
        finish(mailbox.send(Message::new("a"))).unwrap();
    }
    let forget = || site.ask(Command::new("SCRIPT").arg("FLUSH"));
    forget();
    let received = together(&site, (0..3).map(|_| mailbox.receive(ten())));
    let batch: Vec<_> = received.into_iter().flat_map(Result::unwrap).map(|got| got.receipt).collect();
    assert_eq!(batch.len(), 30);
    forget();
    assert!(ack_all(&site, &mailbox, &batch).iter().all(Result::is_ok));
    assert_eq!(finish(mailbox.counts()).unwrap().all(), 0);
}

#[test]
fn a_worker_whose_connection_breaks_while_it_acknowledges_does_so_again() {
    let site = Site::new();
    let (other, _events) = connect(site.server.address());
    let orders = site.open("orders");
    let told = Arc::new(Mutex::new(Vec::new()));
    let (observed, clients) = (told.clone(), other.clone());
    let (said, says) = mpsc::channel();
    let worker = Worker::builder(Arc::new(orders.clone()), site.link.timer().clone(), move |_| {
        let (clients, said) = (clients.clone(), said.clone());
        async move {
            // What is acknowledged from here on is sent, and not done.
            clients.ask(Command::new("CLIENT").arg("PAUSE").int(30_000).arg("WRITE")).await?;
            said.send(()).unwrap();
            Ok(None)
        }
    })
    .observer(move |event| observed.lock().unwrap().push(event.to_string()))
    .pull(waiting(200).visibility(Span::secs(300)))
    .max_iterations(1)
    .build();
    thread::scope(|scope| {
        let runs = scope.spawn(|| worker.run().unwrap());
        finish(orders.send(Message::new("a"))).unwrap();
        says.recv_timeout(AGES).unwrap();
        // The acknowledgement is with the server, which keeps it.
        pass(&site, 2);
        let kill = Command::new("CLIENT").arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes");
        finish(other.ask(kill)).unwrap();
        finish(other.ask(Command::new("CLIENT").arg("UNPAUSE"))).unwrap();
        runs.join().unwrap();
        worker.stop(Reason::requested("test"));
    });
    assert_eq!(*told.lock().unwrap(), [""; 0]);
    assert_eq!(finish(orders.counts()).unwrap().all(), 0, "it is not handled twice");
    assert_eq!(worker.balance().to_string(), "accepted 1, completed 1");
}
