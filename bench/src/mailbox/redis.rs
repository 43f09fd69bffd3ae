//! The mailbox on Redis against other queues on Redis: a worker in one process, 64 messages at a time, on one server.

use std::{
    cell::RefCell,
    net::{SocketAddr, TcpStream},
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ebbtide_lifecycle::{
    Reason,
    time::{Clock, SystemClock},
};
use ebbtide_mailbox::{Mailbox, Message, RedisMailbox, worker::Worker};
use ebbtide_reactor::{Async, Runtime, spawn};
use ebbtide_redis::{Command, Link, Settings, testing::Server};
use futures_util::future::join_all;

use super::peers::{Apalis, ByHand, Queue};
use crate::contest::{Contestant, Table, measure};

/// 100 bytes.
pub(super) const BODY: &str =
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";

/// How many messages are handled at a time.
pub(super) const CONCURRENCY: usize = 64;

/// Messages a round.
const MESSAGES: usize = 5_000;

const ROUNDS: usize = 31;

pub(crate) fn run() -> Vec<Table> {
    let server = Server::start();
    let mut office = Office::new(server.address());
    // What it costs to write to a disk is no part of what is compared.
    office.ask(Command::new("CONFIG").arg("SET").arg("appendonly").arg("no"));
    let names = ["apalis-redis", "rsmq_async", "ebbtide"];
    let mut queues: [Box<dyn Queue>; 3] = [
        Box::new(Apalis::new(server.address())),
        Box::new(ByHand::new(server.address())),
        Box::new(Ours::new(server.address())),
    ];
    let mut counts = Vec::new();
    for queue in &mut queues {
        counts.push(office.commands(&mut **queue));
    }
    let office = RefCell::new(office);
    let [peer, rsmq, ours] = &mut queues;
    let handled = measure(
        "handle and acknowledge 100 bytes on Redis, 64 at a time",
        "µs",
        ROUNDS,
        contestant(names[0], &office, &mut **peer),
        [
            contestant(names[1], &office, &mut **rsmq),
            contestant(names[2], &office, &mut **ours).target(1.0 / 1.5),
        ],
    );
    let calls = |of: fn(&Commands) -> f64| [0, 1, 2].map(|which| vec![of(&counts[which])]);
    let none = [None; 3];
    vec![
        handled,
        Table::of("commands of the worker for 1,000 messages", "commands", names, calls(|c| c.sent), none),
        Table::of(
            "commands for 1,000 messages, with those that the server does within scripts",
            "commands",
            names,
            calls(|c| c.done),
            none,
        ),
    ]
}

fn contestant<'a>(
    name: &'static str,
    office: &'a RefCell<Office>,
    queue: &'a mut dyn Queue,
) -> Contestant<'a> {
    Contestant::value(name, || office.borrow_mut().round(queue))
}

pub(super) fn elapsed(act: impl FnOnce()) -> Duration {
    let start = SystemClock.now();
    act();
    SystemClock.now() - start
}

/// A loop of ours with a link to the server.
fn connect(server: SocketAddr) -> (Runtime, Link) {
    let runtime = Runtime::new();
    let (timer, spawner) = (runtime.handle(), runtime.handle());
    let link = Link::new(
        server.to_string(),
        Settings::default(),
        timer,
        move || Async::<TcpStream>::connect(server),
        move |driver| drop(spawner.spawn(driver)),
    );
    (runtime, link)
}

/// A worker of ours, on a loop of ours.
struct Ours {
    runtime: Runtime,
    mailbox: Arc<RedisMailbox>,
}

impl Ours {
    fn new(server: SocketAddr) -> Self {
        let (mut runtime, link) = connect(server);
        let mailbox = runtime.block_on(RedisMailbox::open(&link, "ebbtide")).expect("the server is there");
        Self { runtime, mailbox: Arc::new(mailbox) }
    }
}

impl Queue for Ours {
    fn fill(&mut self, messages: usize) {
        self.runtime.block_on(async {
            for sent in join_all((0..messages).map(|_| self.mailbox.send(Message::new(BODY)))).await {
                sent.expect("the server is there");
            }
        });
    }

    fn work(&mut self, messages: usize) -> Duration {
        let handled = AtomicUsize::new(0);
        let (all, is_all) = async_channel::bounded::<()>(1);
        let handler = move |job: ebbtide_mailbox::worker::Job| {
            assert_eq!(job.body().len(), BODY.len());
            if handled.fetch_add(1, Ordering::Relaxed) + 1 == messages {
                all.close();
            }
            async { Ok(None) }
        };
        let worker = Worker::builder(self.mailbox.clone(), self.runtime.handle(), handler)
            .concurrency(NonZero::new(CONCURRENCY).expect("it is not zero"))
            .build();
        let worker = Arc::new(worker);
        let took = elapsed(|| {
            let at_work = worker.clone();
            self.runtime.block_on(async {
                let working = spawn(async move { at_work.work().await }).expect("a loop runs here");
                // An error once it is closed.
                let _ = is_all.recv().await;
                worker.stop(Reason::requested("all are handled"));
                working.await.expect("it ends").expect("it has not worked before");
            });
        });
        assert_eq!(worker.balance().completed, messages as u64, "all are acknowledged");
        took
    }

    fn commands(&self) -> &'static [&'static str] {
        &["evalsha", "eval", "blpop", "client|unblock"]
    }
}

/// What is asked of the server about it.
struct Office {
    runtime: Runtime,
    link: Link,
}

/// For 1,000 messages.
struct Commands {
    /// By the clients.
    sent: f64,
    /// By the server.
    done: f64,
}

impl Office {
    fn new(server: SocketAddr) -> Self {
        let (runtime, link) = connect(server);
        Self { runtime, link }
    }

    fn ask(&mut self, command: Command) -> String {
        let answer = self.runtime.block_on(self.link.ask(command)).expect("the server is there");
        answer.bytes().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// What a message takes, in microseconds.
    fn round(&mut self, queue: &mut dyn Queue) -> f64 {
        self.ask(Command::new("FLUSHALL"));
        queue.fill(MESSAGES);
        queue.work(MESSAGES).as_nanos() as f64 / 1e3 / MESSAGES as f64
    }

    fn commands(&mut self, queue: &mut dyn Queue) -> Commands {
        self.ask(Command::new("FLUSHALL"));
        queue.fill(MESSAGES);
        self.ask(Command::new("CONFIG").arg("RESETSTAT"));
        queue.work(MESSAGES);
        let stats = self.ask(Command::new("INFO").arg("commandstats"));
        let (mut sent, mut done) = (0.0, 0.0);
        for line in stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")) {
            let Some((name, rest)) = line.split_once(":calls=") else { continue };
            let calls: f64 = rest.split(',').next().and_then(|calls| calls.parse().ok()).unwrap_or_default();
            done += calls;
            if queue.commands().contains(&name) {
                sent += calls;
            }
        }
        let thousands = MESSAGES as f64 / 1e3;
        Commands { sent: sent / thousands, done: done / thousands }
    }
}
