//! A mailbox on a real server. What time does is shown in units of 100 ms.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod bells;
mod clauses;
mod cluster;
mod conformance;
mod groups;
mod idle;
mod joint;
mod leases;
mod long_poll;
mod numbers;
mod outage;
mod process;
mod recovery;
mod removal;
mod twins;
mod worker;

use std::{
    future::Future,
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use ebbtide_lifecycle::{
    time::{Clock, Deadline, SystemClock, Timer},
    wait::block_on_by,
};
use ebbtide_mailbox::{Delivery, Limits, Mailbox, Pull, RedisMailbox, Span};
use ebbtide_reactor::{Async, EventLoop};
use ebbtide_redis::{Command, Link, Settings, Value, testing::Server};

/// Long enough that a busy machine keeps apart what is a unit apart.
const UNIT: Duration = Duration::from_millis(100);

/// Longer than anything here takes.
const AGES: Duration = Duration::from_secs(30);

/// A server, a loop, and a link between them.
struct Site {
    link: Link,
    server: Server,
    events: EventLoop,
}

impl Site {
    fn new() -> Self {
        Self::at(Server::start())
    }

    fn at(server: Server) -> Self {
        let (link, events) = connect(server.address());
        Self { link, server, events }
    }

    fn open(&self, name: &str) -> RedisMailbox {
        finish(RedisMailbox::open(&self.link, name)).unwrap()
    }

    fn open_with(&self, name: &str, limits: Limits) -> RedisMailbox {
        finish(RedisMailbox::open_with(&self.link, name, limits)).unwrap()
    }

    fn ask(&self, command: Command) -> Value {
        finish(self.link.ask(command)).unwrap()
    }

    /// How many commands of clients the server has done, scripts as one, the asking ones left out.
    fn commands(&self) -> i64 {
        let stats = self.ask(Command::new("INFO").arg("commandstats")).bytes().unwrap();
        let stats = String::from_utf8_lossy(&stats).into_owned();
        let counted = stats.lines().filter(|line| {
            ["evalsha", "eval", "blpop", "client|unblock"]
                .iter()
                .any(|name| line.starts_with(&format!("cmdstat_{name}:")))
        });
        counted.map(|line| line.split(['=', ',']).nth(1).unwrap().parse::<i64>().unwrap()).sum()
    }

    /// Does with the keys what the mailbox itself would not do.
    fn eval(&self, script: &str) {
        self.ask(Command::new("EVAL").arg(script).arg("0"));
    }

    /// How many receivers wait at their bells.
    fn waiting(&self) -> usize {
        let info = self.ask(Command::new("INFO").arg("clients")).bytes().unwrap();
        let info = String::from_utf8_lossy(&info).into_owned();
        info.lines().find_map(|line| line.strip_prefix("blocked_clients:")).unwrap().parse().unwrap()
    }

    /// Has the server let go of all who wait at their bells, as when their time is over.
    fn unblock_all(&self) {
        let clients = self.ask(Command::new("CLIENT").arg("LIST")).bytes().unwrap();
        let clients = String::from_utf8_lossy(&clients).into_owned();
        for client in clients.lines().filter(|line| line.contains(" cmd=blpop")) {
            let id = client.split(['=', ' ']).nth(1).unwrap();
            self.ask(Command::new("CLIENT").arg("UNBLOCK").arg(id));
        }
    }

    fn until_waiting(&self, count: usize) {
        while self.waiting() != count {}
    }
}

fn connect(server: SocketAddr) -> (Link, EventLoop) {
    let events = EventLoop::new();
    events.start().unwrap();
    let spawner = events.handle();
    let mut settings = Settings::default();
    settings.backoff = Duration::from_millis(10);
    settings.patience = Duration::from_millis(500);
    let link = Link::new(
        server.to_string(),
        settings,
        events.handle(),
        move || Async::<TcpStream>::connect(server),
        move |driver| drop(spawner.spawn(driver)),
    );
    (link, events)
}

fn finish<F: Future>(future: F) -> F::Output {
    block_on_by(future, Deadline::after(SystemClock, AGES)).expect("it ends")
}

/// Lets time pass, on the server too.
fn pass(site: &Site, units: u32) {
    finish(site.link.timer().sleep(UNIT * units).unwrap());
}

fn units(count: u32) -> Span {
    Span::new(UNIT * count).unwrap()
}

/// One at a time, for a minute, without waiting.
fn one() -> Pull {
    Pull::default().max(1).unwrap().visibility(Span::secs(60)).wait(Duration::ZERO).unwrap()
}

/// Ten at a time, for a minute, without waiting.
fn ten() -> Pull {
    one().max(10).unwrap()
}

fn waiting(count: u32) -> Pull {
    ten().wait(UNIT * count).unwrap()
}

fn receive(mailbox: &RedisMailbox, pull: Pull) -> Vec<Delivery> {
    finish(mailbox.receive(pull)).unwrap()
}

fn bodies(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| std::str::from_utf8(&delivery.body).unwrap()).collect()
}

/// How long it takes.
fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let start = SystemClock.now();
    (act(), SystemClock.now() - start)
}
