use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Reason, Stopped,
    conformance::{self, Finish, Specimen},
    time::{Deadline, SystemClock},
};
use ebbtide_redis::{Command, Link, Settings, Why, testing::Server};

use crate::{Site, finish, greeted, site};

/// A link to a server that answers when it is told to.
struct Slow {
    site: Site,
    listener: TcpListener,
}

impl Specimen for Slow {
    type Component = Link;

    fn component(&self) -> &Link {
        &self.site.link
    }

    fn submit(&self) -> Option<Finish> {
        let answer = self.site.link.ask(Command::new("PING"));
        if self.site.link.in_flight() == 0 {
            assert!(finish(answer).is_err());
            return None;
        }
        let mut stream = greeted(&self.listener);
        stream.read_exact(&mut [0; 14]).expect("a PING");
        Some(Box::new(move || {
            // One that was given up does not listen any more.
            let _ = stream.write_all(b"+PONG\r\n");
            let _ = finish(answer);
        }))
    }

    fn soon(&self) -> Deadline {
        Deadline::after(SystemClock, Duration::from_millis(20))
    }
}

#[test]
fn a_link_conforms() {
    conformance::component(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Slow { site: site(listener.local_addr().unwrap(), Settings::default()), listener }
    });
}

#[test]
fn what_is_left_at_the_deadline_is_named_before_and_gets_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), Settings::default());
    let (answer, line) = (site.link.ask(Command::new("PING")), line!());
    let named = site.link.stragglers().to_string();
    assert!(named.contains(&format!("stop.rs:{line}")), "{named}");
    let soon = Deadline::after(SystemClock, Duration::from_millis(20));
    assert_eq!(site.link.stop(soon, &Reason::requested("test")).wait(), Stopped::Overdue);
    assert_eq!(finish(answer).unwrap_err().why(), &Why::Stopped);
    assert_eq!(site.link.balance().cancelled, 1);
}

#[test]
fn a_stopped_link_closes_its_connections() {
    let server = Server::start();
    let site = site(server.address(), Settings::default());
    finish(site.link.ask(Command::new("PING"))).unwrap();
    assert_eq!(site.link.stop(Deadline::never(), &Reason::requested("test")).wait(), Stopped::Clean);
    assert!(site.events.stop_by(Deadline::after(SystemClock, crate::AGES)), "its drivers have ended");
}

#[test]
fn a_link_whose_handles_are_gone_ends_when_its_answers_are_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let Site { link, events } = site(listener.local_addr().unwrap(), Settings::default());
    let answer = link.ask(Command::new("PING"));
    drop(link);
    let (closed, is_closed) = mpsc::channel();
    thread::spawn(move || {
        let mut stream = greeted(&listener);
        stream.read_exact(&mut [0; 14]).unwrap();
        stream.write_all(b"+PONG\r\n").unwrap();
        closed.send(stream.read(&mut [0]).unwrap()).unwrap();
    });
    finish(answer).unwrap();
    assert_eq!(is_closed.recv_timeout(crate::AGES), Ok(0));
    events.stop();
}

#[test]
fn a_stop_does_not_wait_for_what_is_parked() {
    let server = Server::start();
    let site = site(server.address(), Settings::default());
    let parked = site.link.wait(Command::new("BLPOP").arg("list").arg("300"), crate::AGES).park();
    crate::until_blocked(&site.link);
    let late = site.link.wait(Command::new("BLPOP").arg("list").arg("300"), crate::AGES);
    let stopping = site.link.stop(Deadline::after(SystemClock, crate::AGES), &Reason::requested("test"));
    assert!(late.park().is_none(), "nothing is parked any more");
    assert_eq!(stopping.wait(), Stopped::Clean);
    drop(parked);
}
