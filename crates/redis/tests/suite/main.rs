//! The facts about a link, with a real server.

mod batch;
mod elsewhere;
mod link;
mod outage;
mod slow;
mod stop;

use std::{
    future::Future,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use ebbtide_lifecycle::{
    time::{Deadline, SystemClock},
    wait::block_on_by,
};
use ebbtide_reactor::{Async, EventLoop};
use ebbtide_redis::{Command, Link, Settings};

/// Longer than anything here takes, and shorter than anybody's patience.
const AGES: Duration = Duration::from_secs(30);

/// A loop, and a link on it.
struct Site {
    link: Link,
    events: EventLoop,
}

fn site(server: SocketAddr, settings: Settings) -> Site {
    let events = EventLoop::new();
    events.start().expect("it was not started before");
    let spawner = events.handle();
    let link = Link::new(
        server.to_string(),
        settings,
        events.handle(),
        move || Async::<TcpStream>::connect(server),
        move |driver| drop(spawner.spawn(driver)),
    );
    Site { link, events }
}

fn finish<F: Future>(future: F) -> F::Output {
    block_on_by(future, Deadline::after(SystemClock, AGES)).expect("it ends")
}

fn impatient(patience: u64) -> Settings {
    let mut settings = Settings::default();
    settings.patience = Duration::from_millis(patience);
    settings.backoff = Duration::from_millis(10);
    settings
}

/// Until the server blocks one of its clients.
fn until_blocked(link: &Link) {
    loop {
        let info = finish(link.ask(Command::new("INFO").arg("clients"))).expect("the server is there");
        if String::from_utf8_lossy(&info.bytes().expect("a text")).contains("blocked_clients:1\r\n") {
            return;
        }
    }
}

/// The end of a server that has answered what a connection begins with, and nothing else.
fn greeted(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().expect("the link connects");
    stream.read_exact(&mut [0; 14]).expect("a PING");
    stream.write_all(b"+PONG\r\n").expect("the link reads");
    stream
}
