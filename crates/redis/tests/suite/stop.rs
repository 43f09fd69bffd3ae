use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Reason, Stopped,
    conformance::{self, Finish, Specimen},
    time::{Deadline, SystemClock},
};
use ebbtide_redis::{Command, Link, Settings, Unclaimed, Why, testing::Server};

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

/// The end of a server that has answered what a connection for a command that blocks begins with.
fn greeted_as_seven(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().expect("the link connects");
    stream.read_exact(&mut [0; 14 + 24]).expect("a PING, and a CLIENT ID");
    stream.write_all(b"+PONG\r\n:7\r\n").expect("the link reads");
    stream
}

#[test]
fn what_is_unclaimed_is_passed_on_also_when_all_handles_are_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let Site { link, events } = site(listener.local_addr().unwrap(), Settings::default());
    let pass: Unclaimed = Arc::new(|_| Some(Command::new("PASS")));
    let blpop = Command::new("BLPOP").arg("bell").int(20);
    let mut asked = vec![0; blpop.pack().len()];
    let wait = link.wait_or(blpop, Duration::from_secs(20), &pass);
    let mut blocked = greeted_as_seven(&listener);
    blocked.read_exact(&mut asked).unwrap();
    drop(wait);
    drop(link);
    let mut main = greeted(&listener);
    main.read_exact(&mut vec![0; Command::new("CLIENT").arg("UNBLOCK").int(7).pack().len()]).unwrap();
    main.write_all(b":1\r\n").unwrap();
    // As long as something may have to be passed on, there is a connection for it; else it would be closed by then.
    main.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut heard = [0; 100];
    assert!(!matches!(main.read(&mut heard), Ok(0)));
    main.set_read_timeout(Some(crate::AGES)).unwrap();
    blocked.write_all(b"*2\r\n$4\r\nbell\r\n$1\r\n1\r\n").unwrap();
    // The server may be told to unblock more than once meanwhile.
    let (mut all, passed) = (Vec::new(), Command::new("PASS").pack());
    while !all.ends_with(&passed) {
        let count = main.read(&mut heard).unwrap();
        assert_ne!(count, 0, "it is not passed on: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&heard[..count]);
    }
    events.stop();
}

/// On two connections, what was sent first need not be done first.
#[test]
fn a_command_that_does_not_block_yet_when_it_is_to_be_unblocked_is_unblocked_later() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), Settings::default());
    let blpop = Command::new("BLPOP").arg("bell").int(300);
    let mut asked = vec![0; blpop.pack().len()];
    let wait = site.link.wait(blpop, Duration::from_secs(300));
    let mut blocked = greeted_as_seven(&listener);
    blocked.read_exact(&mut asked).unwrap();
    drop(wait);
    let mut main = greeted(&listener);
    main.set_read_timeout(Some(crate::AGES)).unwrap();
    let mut unblock = vec![0; Command::new("CLIENT").arg("UNBLOCK").int(7).pack().len()];
    for did in [":0\r\n", ":0\r\n", ":1\r\n"] {
        main.read_exact(&mut unblock).unwrap();
        main.write_all(did.as_bytes()).unwrap();
    }
    blocked.write_all(b"*-1\r\n").unwrap();
    let soon = Deadline::after(SystemClock, crate::AGES);
    assert_eq!(site.link.stop(soon, &Reason::requested("test")).wait(), Stopped::Clean);
}

/// A server that hangs, or is cut off, does not answer; and a command that blocks may do so for long.
#[test]
fn a_stop_does_not_wait_for_a_server_that_does_not_unblock_what_nobody_waits_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = Settings::default();
    settings.timeout = Duration::from_millis(50);
    for is_parked in [false, true] {
        let site = site(listener.local_addr().unwrap(), settings.clone());
        let wait = site.link.wait(Command::new("BLPOP").arg("bell").int(300), Duration::from_secs(300));
        let mut blocked = greeted_as_seven(&listener);
        blocked.read_exact(&mut [0]).expect("the command");
        // Left with the server, or dropped.
        let _parked = wait.park().filter(|_| is_parked);
        let _main = thread::spawn({
            let listener = listener.try_clone().unwrap();
            move || greeted(&listener)
        });
        let soon = Deadline::after(SystemClock, crate::AGES);
        assert_eq!(site.link.stop(soon, &Reason::requested("test")).wait(), Stopped::Clean);
    }
}

/// What it was told would meet the next command that blocks there.
#[test]
fn a_connection_is_used_again_when_the_server_has_done_what_it_was_told_about_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), Settings::default());
    let blpop = || Command::new("BLPOP").arg("bell").int(300);
    let wait = |unclaimed: &Unclaimed| site.link.wait_or(blpop(), Duration::from_secs(300), unclaimed);
    let (say, said) = mpsc::channel();
    let tells: Unclaimed = Arc::new(move |_| {
        say.send(()).unwrap();
        None
    });
    let read = |stream: &mut TcpStream, command: Command| {
        stream.set_read_timeout(Some(crate::AGES)).unwrap();
        stream.read_exact(&mut vec![0; command.pack().len()])
    };
    let unblock = || Command::new("CLIENT").arg("UNBLOCK").int(7);
    let first = wait(&tells);
    let mut blocked = greeted_as_seven(&listener);
    read(&mut blocked, blpop()).unwrap();
    drop(first);
    let mut main = greeted(&listener);
    read(&mut main, unblock()).unwrap();
    blocked.write_all(b"*-1\r\n").unwrap();
    said.recv_timeout(crate::AGES).unwrap();
    let second = wait(&tells);
    blocked.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(blocked.read(&mut [0]).is_err(), "it may be unblocked in the place of the one before");
    let mut other = greeted_as_seven(&listener);
    read(&mut other, blpop()).unwrap();
    // If it was told more than once meanwhile, it has to answer more than once.
    main.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let again = main.read(&mut [0; 1000]).unwrap_or(0) / unblock().pack().len();
    main.write_all(":0\r\n".repeat(1 + again).as_bytes()).unwrap();
    // The link knows of it as soon as it knows of this.
    let ping = site.link.ask(Command::new("PING"));
    read(&mut main, Command::new("PING")).unwrap();
    main.write_all(b"+PONG\r\n").unwrap();
    finish(ping).unwrap();
    let third = wait(&tells);
    read(&mut blocked, blpop()).unwrap();
    drop((second, third));
}
