use std::{
    future::ready,
    io::{self, Read as _, Write as _},
    mem,
    net::TcpListener,
    pin::Pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::Component;
use ebbtide_reactor::EventLoop;
use ebbtide_redis::{Command, Link, Script, Settings, Unclaimed, Value, Why, testing::Server};
use futures_io::{AsyncRead, AsyncWrite};

use crate::{finish, greeted, impatient, site, until_blocked};

#[test]
fn a_server_that_is_down_at_the_start_is_an_error_that_says_so() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site = site(nobody, impatient(50));
    let error = finish(site.link.ask(Command::new("PING"))).unwrap_err();
    assert!(matches!(error.why(), Why::Unreachable { trouble: Some(_), .. }), "{error}");
    let said = error.to_string();
    assert!(said.starts_with(&format!("PING at {nobody}: not sent, no connection within 50ms")), "{said}");
    assert_eq!(site.link.balance().handed_back, 1);
}

#[test]
fn what_was_not_sent_waits_for_a_server_that_comes() {
    let mut server = Server::start();
    server.kill();
    let site = site(server.address(), impatient(20_000));
    let early = site.link.ask(Command::new("PING"));
    server.restart();
    finish(early).unwrap();
}

#[test]
fn what_nobody_waits_for_any_more_is_not_sent() {
    let mut server = Server::start();
    server.kill();
    let site = site(server.address(), impatient(20_000));
    drop(site.link.ask(Command::new("INCR").arg("n")));
    let counted = site.link.ask(Command::new("GET").arg("n"));
    server.restart();
    assert_eq!(finish(counted).unwrap(), Value::Nil);
    assert_eq!(site.link.balance().cancelled, 1);
}

#[test]
fn a_link_connects_again_after_the_server_was_killed() {
    let mut server = Server::start();
    let site = site(server.address(), impatient(20_000));
    for round in 1..=3 {
        let counted = finish(site.link.ask(Command::new("INCR").arg("n"))).unwrap();
        assert_eq!(counted.int(), Some(round), "what was answered is kept");
        server.restart();
        // The first to go out may find the old connection.
        while finish(site.link.ask(Command::new("PING"))).is_err() {}
    }
}

#[test]
fn what_was_sent_when_the_server_dies_fails_at_once() {
    let mut server = Server::start();
    let site = site(server.address(), Settings::default());
    finish(site.link.ask(Command::new("PING"))).unwrap();
    let wait = site.link.wait(Command::new("BLPOP").arg("bell").arg("20"), Duration::from_secs(20));
    until_blocked(&site.link);
    server.kill();
    let error = finish(wait).unwrap_err();
    assert!(matches!(error.why(), Why::Lost(_)), "{error}");
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = impatient(1000);
    settings.timeout = Duration::from_millis(50);
    let site = site(listener.local_addr().unwrap(), settings);
    let answers = [0, 1].map(|_| site.link.ask(Command::new("PING")));
    let _silent = greeted(&listener);
    for answer in answers {
        let error = finish(answer).unwrap_err();
        assert_eq!(error.why(), &Why::Silent(Duration::from_millis(50)));
    }
}

#[test]
fn a_server_that_does_not_greet_is_no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = impatient(100);
    settings.timeout = Duration::from_millis(20);
    let site = site(listener.local_addr().unwrap(), settings);
    let said = finish(site.link.ask(Command::new("PING"))).unwrap_err().to_string();
    assert!(said.ends_with("not sent, no connection within 100ms: not connected within 20ms"), "{said}");
}

/// What a connection to oneself does: on the loopback it comes about while nobody listens at the port.
#[test]
fn a_peer_that_says_what_it_was_told_is_no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), impatient(100));
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut heard = [0; 64];
            while let Ok(count @ 1..) = stream.read(&mut heard) {
                let _ = stream.write_all(&heard[..count]);
            }
        }
    });
    let error = finish(site.link.ask(Command::new("GET").arg("n"))).unwrap_err();
    assert!(matches!(error.why(), Why::Unreachable { .. }), "{error}");
    let said = error.to_string();
    assert!(said.ends_with("PING is not answered with PONG: it is no Redis server"), "{said}");
}

#[test]
fn a_loop_that_stops_leaves_nobody_waiting() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site = site(nobody, impatient(20_000));
    let early = site.link.ask(Command::new("PING"));
    site.events.stop();
    assert_eq!(finish(early).unwrap_err().why(), &Why::Undriven);
    let late = [site.link.ask(Command::new("PING")), site.link.wait(Command::new("BLPOP"), Duration::ZERO)];
    for answer in late {
        assert_eq!(finish(answer).unwrap_err().why(), &Why::Undriven);
    }
    assert!(site.link.balance().check().is_ok());
}

#[test]
fn what_was_answered_before_the_server_talks_nonsense_is_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), impatient(20_000));
    let asked = [0, 1].map(|_| site.link.ask(Command::new("PING")));
    let server = thread::spawn(move || {
        let mut stream = greeted(&listener);
        stream.read_exact(&mut [0; 28]).unwrap();
        stream.write_all(b"+PONG\r\n!?\r\n").unwrap();
        stream.read_to_end(&mut Vec::new())
    });
    let [first, second] = asked.map(finish);
    server.join().unwrap().unwrap();
    assert_eq!(first.unwrap(), Value::Bytes("PONG".into()));
    let error = second.unwrap_err();
    assert!(matches!(error.why(), Why::Lost(_)), "{error}");
}

/// A connection that breaks at its third write, when the answer to what was written before has just come.
struct Breaking {
    writes: usize,
    /// Told of each write.
    written: mpsc::Sender<()>,
    said: &'static [u8],
    reader: Option<Waker>,
}

impl AsyncWrite for Breaking {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writes += 1;
        if self.writes == 2 {
            // The answer to this one comes later.
            self.written.send(()).expect("the test listens");
            return Poll::Ready(Ok(bytes.len()));
        }
        self.said = b"+PONG\r\n";
        self.reader.take().into_iter().for_each(Waker::wake);
        let broken = self.writes > 2;
        Poll::Ready(if broken { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Breaking {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.said.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let said = mem::take(&mut self.said);
        into[..said.len()].copy_from_slice(said);
        Poll::Ready(Ok(said.len()))
    }
}

#[test]
fn what_was_answered_before_a_connection_breaks_is_answered() {
    let events = EventLoop::new();
    events.start().unwrap();
    let (spawner, (say, written)) = (events.handle(), mpsc::channel());
    let link = Link::new(
        "nowhere",
        impatient(20_000),
        events.handle(),
        move || ready(Ok(Breaking { writes: 0, written: say.clone(), said: b"", reader: None })),
        move |driver| drop(spawner.spawn(driver)),
    );
    let first = link.ask(Command::new("PING"));
    written.recv().unwrap();
    let second = link.ask(Command::new("PING"));
    assert_eq!(finish(first).unwrap(), Value::Bytes("PONG".into()));
    let error = finish(second).unwrap_err();
    assert!(matches!(error.why(), Why::Lost(_)), "{error}");
}

#[test]
fn an_error_counts_as_what_it_is_also_where_an_answer_is_passed_on() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site = site(nobody, impatient(50));
    let unclaimed: Unclaimed = Arc::new(|_| None);
    let ask = || site.link.ask_or(Command::new("PING"), &unclaimed);
    let (taken, left) = (ask(), ask());
    finish(taken).unwrap_err();
    finish(site.link.ask(Command::new("PING"))).unwrap_err();
    drop(left);
    assert_eq!(site.link.balance().to_string(), "accepted 3, handed back 3");
}

#[test]
fn one_who_panics_over_an_unclaimed_answer_takes_no_others_with_him() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), impatient(20_000));
    let panics: Unclaimed = Arc::new(|_| panic!("as a test wants it"));
    let left = site.link.ask_or(Command::new("PING"), &panics);
    let next = site.link.ask(Command::new("PING"));
    let server = thread::spawn(move || {
        let mut stream = greeted(&listener);
        stream.read_exact(&mut [0; 28]).unwrap();
        drop(left);
        stream.write_all(b"+PONG\r\n+PONG\r\n").unwrap();
        stream.read_to_end(&mut Vec::new())
    });
    finish(next).unwrap();
    assert_eq!(site.link.balance().to_string(), "accepted 2, completed 1, failed 1");
    drop(site);
    server.join().unwrap().unwrap();
}

/// A waker that panics.
struct Angry;

impl Wake for Angry {
    fn wake(self: Arc<Self>) {
        panic!("as a test wants it");
    }
}

#[test]
fn one_whose_waker_panics_takes_no_others_with_him() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = site(listener.local_addr().unwrap(), impatient(20_000));
    let [mut angry, calm] = [0, 1].map(|_| site.link.ask(Command::new("PING")));
    let waker = Waker::from(Arc::new(Angry));
    assert!(Pin::new(&mut angry).poll(&mut Context::from_waker(&waker)).is_pending());
    let mut stream = greeted(&listener);
    stream.read_exact(&mut [0; 28]).unwrap();
    stream.write_all(b"+PONG\r\n+PONG\r\n").unwrap();
    for answer in [calm, angry] {
        assert_eq!(finish(answer).unwrap(), Value::Bytes("PONG".into()));
    }
    let later = site.link.ask(Command::new("PING"));
    stream.read_exact(&mut [0; 14]).unwrap();
    stream.write_all(b"+PONG\r\n").unwrap();
    finish(later).unwrap();
}

/// Refused for as long as the connection lives: whoever is the master is found by connecting again.
#[test]
fn a_server_that_has_become_a_replica_is_left() {
    let server = Server::start();
    let link = &site(server.address(), impatient(20_000)).link;
    let client = || finish(link.ask(Command::new("CLIENT").arg("ID"))).unwrap();
    finish(link.ask(Command::new("REPLICAOF").arg("127.0.0.1").arg("1"))).unwrap();
    let script = Script::new("return redis.call('SET', KEYS[1], 'v')");
    for is_script in [false, true] {
        let before = client();
        let refused = if is_script {
            finish(link.run(script.call(["k"])))
        } else {
            finish(link.ask(Command::new("SET").arg("k").arg("v")))
        };
        assert_eq!(refused.unwrap_err().server().unwrap().code(), "READONLY");
        assert_ne!(client(), before, "it is the same connection");
    }
}
