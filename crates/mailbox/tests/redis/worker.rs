//! A worker on a server, and what goes wrong with it.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Reason, Runnable, Stopped, contain,
    time::{Clock as _, Deadline, SystemClock, Timer as _},
};
use ebbtide_mailbox::{
    DeadLetter, Limits, Mailbox, Message, Pull, Reply,
    worker::{HandlerResult, Job, Retry, Worker, WorkerBuilder},
};
use ebbtide_redis::{Command, LinkTimer};

use crate::{AGES, Site, UNIT, finish, one, receive, ten, units, waiting};

/// What a worker has told, in order.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A worker on the mailbox `orders`.
fn worker<F>(
    site: &Site,
    handler: impl Fn(Job) -> F + Send + Sync + 'static,
) -> (WorkerBuilder<LinkTimer>, Told)
where
    F: Future<Output = HandlerResult> + Send + 'static,
{
    let told = Told::default();
    let tells = told.clone();
    let worker = Worker::builder(Arc::new(site.open("orders")), site.link.timer().clone(), handler);
    (worker.observer(move |event| tells.0.lock().unwrap().push(event.to_string())), told)
}

/// Blocks until it is so.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

/// Runs the worker while the test goes on, and then shuts it down.
fn while_it_runs(worker: &Worker<LinkTimer>, act: impl FnOnce()) {
    thread::scope(|scope| {
        let run = scope.spawn(|| worker.run().map_err(|error| error.to_string()));
        let acted = contain(act);
        let reason = Reason::requested("test");
        let stopped = worker.shutdown(Deadline::after(SystemClock, AGES), &reason);
        run.join().unwrap().unwrap();
        acted.unwrap();
        assert_eq!(stopped, Stopped::Clean);
    });
}

#[test]
fn m4_a_handler_that_panics_is_tried_again_and_then_is_a_dead_letter_with_its_reason() {
    let site = Site::new();
    let (orders, dead) = (site.open("orders"), site.open("dead"));
    finish(orders.send(Message::new("bad"))).unwrap();
    let (builder, told) = worker(&site, |job| async move { panic!("no, {}", job.delivery().delivery_count) });
    let retry = Retry::default().attempts(2).backoff(Duration::from_millis(10), Duration::from_millis(10));
    let worker = builder.retry(retry).dead_letters(Arc::new(dead.clone())).build();
    let mut letters = Vec::new();
    while_it_runs(&worker, || letters = receive(&dead, waiting(200)));
    let letter = DeadLetter::decode(letters[0].body.clone()).unwrap();
    assert_eq!((&letter.body[..], &*letter.reason, letter.attempts), (&b"bad"[..], "it panicked: no, 2", 2));
    assert_eq!(finish(orders.counts()).unwrap().all(), 0);
    assert_eq!(worker.balance().to_string(), "accepted 2, failed 2");
    assert_eq!(told.lines().len(), 2, "{:?}", told.lines());
}

#[test]
fn m5_and_on_a_server_too() {
    let site = Site::new();
    let orders = site.open("orders");
    finish(orders.send(Message::new("slow"))).unwrap();
    let timer = site.link.timer().clone();
    let (builder, _) = worker(&site, move |_| {
        let sleep = timer.sleep_until(timer.now() + 15 * UNIT);
        async move {
            sleep.await;
            Ok(None)
        }
    });
    let worker = builder.pull(Pull::default().visibility(units(6))).build();
    while_it_runs(&worker, || {
        until(|| worker.balance().accepted == 1);
        let others = receive(&orders, waiting(10));
        assert!(others.is_empty(), "after more than its time out of sight: {others:?}");
    });
    assert_eq!(worker.balance().to_string(), "accepted 1, completed 1");
    assert_eq!(finish(orders.counts()).unwrap().all(), 0);
}

#[test]
fn a_reply_that_is_refused_is_told_and_the_message_is_done() {
    let site = Site::new();
    let orders = site.open("orders");
    site.open_with("full", Limits { capacity: 0, body: 100 });
    site.open_with("small", Limits { capacity: 10, body: 3 });
    // For this handle alone: whoever has another one may still read it.
    let closed = site.open("closed");
    closed.close();
    for address in ["nobody", "full", "small", "closed"] {
        finish(orders.send(Message::new("good").reply_to(address.into()))).unwrap();
    }
    let (builder, told) = worker(&site, |_| async { Ok(Some("thanks".into())) });
    let worker = builder.pull(waiting(1)).max_iterations(1).build();
    worker.run().unwrap();
    assert_eq!(worker.balance().to_string(), "accepted 4, completed 4");
    let told = told.lines();
    for (line, why) in told.iter().zip([
        "has no reply: there is no mailbox nobody to reply to",
        "has no reply: the reply was refused: the mailbox is full: it holds 0 messages at most",
        "has no reply: the reply was refused: a body of 7 bytes is too large: the mailbox takes 3 at most",
    ]) {
        assert!(line.ends_with(why), "{line}");
    }
    assert_eq!(told.len(), 3, "{told:?}");
    let reply = receive(&site.open("closed"), one()).remove(0);
    assert_eq!(Reply::decode(reply.body), Ok(Reply::Done("thanks".into())));
}

#[test]
fn a_worker_whose_server_dies_in_a_long_poll_is_not_ready_and_goes_on_when_it_is_back() {
    let mut site = Site::new();
    let orders = site.open("orders");
    let (builder, told) = worker(&site, |_| async { Ok(None) });
    let worker = builder.build();
    while_it_runs(&worker, || {
        site.until_waiting(1);
        assert!(worker.is_ready());
        site.server.kill();
        until(|| !told.lines().is_empty());
        assert!(!worker.is_ready());
        assert!(told.lines()[0].contains("the connection broke"), "{:?}", told.lines());
        site.server.restart();
        while finish(orders.send(Message::new("a"))).is_err() {}
        until(|| worker.balance().completed == 1 && worker.is_ready());
    });
    assert_eq!(finish(orders.counts()).unwrap().all(), 0);
}

#[test]
fn a_worker_stops_also_while_its_server_is_down() {
    let mut site = Site::new();
    let (builder, _) = worker(&site, |_| async { Ok(None) });
    let worker = builder.build();
    site.server.kill();
    while_it_runs(&worker, || until(|| !worker.is_ready()));
}

#[test]
fn a_worker_that_finds_a_key_of_another_type_says_which_and_goes_on_when_it_is_mended() {
    let site = Site::new();
    let orders = site.open("orders");
    site.ask(Command::new("SET").arg("{orders}:pending").arg("something else"));
    let (builder, told) = worker(&site, |_| async { Ok(None) });
    let worker = builder.build();
    while_it_runs(&worker, || {
        until(|| !told.lines().is_empty());
        assert!(!worker.is_ready());
        let said = told.lines().remove(0);
        assert!(
            said.contains("the key {orders}:pending holds a string, where a mailbox has a list"),
            "{said}"
        );
        site.ask(Command::new("DEL").arg("{orders}:pending"));
        finish(orders.send(Message::new("a"))).unwrap();
        until(|| worker.balance().completed == 1);
    });
}

#[test]
fn a_key_of_another_type_is_named_by_whoever_comes_across_it() {
    let site = Site::new();
    let orders = site.open("orders");
    finish(orders.send(Message::new("a"))).unwrap();
    let receipt = receive(&orders, ten())[0].receipt;
    site.ask(Command::new("RENAME").arg("{orders}:bodies").arg("{orders}:aside"));
    site.ask(Command::new("SET").arg("{orders}:bodies").arg("something else"));
    let named = |error: String| {
        assert!(
            error.contains("the key {orders}:bodies holds a string, where a mailbox has a hash"),
            "{error}"
        );
    };
    let refused = finish(orders.send(Message::new("b"))).unwrap_err();
    named(refused.to_string());
    assert_eq!(refused.message, Message::new("b"), "it comes back");
    named(finish(orders.settle(receipt, ebbtide_mailbox::Settlement::Ack)).unwrap_err().to_string());
    named(finish(orders.reply("orders".into(), "c".into())).unwrap_err().to_string());
    site.ask(Command::new("RPUSH").arg("{odd}:limits").arg("1"));
    let said = finish(ebbtide_mailbox::RedisMailbox::open(&site.link, "odd")).unwrap_err().to_string();
    assert!(said.contains("the key {odd}:limits holds a list, where a mailbox has a string"), "{said}");
}
