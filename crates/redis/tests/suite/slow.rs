//! Answers and commands that take long, in virtual time.

use std::{
    collections::VecDeque,
    future::{Future, ready},
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    time::Duration,
};

use ebbtide_lifecycle::time::VirtualClock;
use ebbtide_redis::{Answer, Command, Driver, Error, Link, Settings, Value, Why};
use futures_io::{AsyncRead, AsyncWrite};

const SECOND: Duration = Duration::from_secs(1);

/// How long a server has, unless a link is told otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A connection whose other end is the test.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Ends>>);

#[derive(Default)]
struct Ends {
    /// What the server has said.
    said: VecDeque<u8>,
    /// For how much more there is room on the way to it.
    room: usize,
}

impl Pipe {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().expect("nothing panics")
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut ends = self.ends();
        let count = into.len().min(ends.said.len());
        into.iter_mut().zip(ends.said.drain(..count)).for_each(|(into, byte)| *into = byte);
        if count == 0 { Poll::Pending } else { Poll::Ready(Ok(count)) }
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut ends = self.ends();
        let count = bytes.len().min(ends.room);
        ends.room -= count;
        if count == 0 { Poll::Pending } else { Poll::Ready(Ok(count)) }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A link that is connected, and driven by the test.
struct Slow {
    clock: VirtualClock,
    link: Link,
    driver: Driver,
    pipe: Pipe,
}

impl Slow {
    fn new() -> Self {
        let (clock, pipe, drivers) = (VirtualClock::new(), Pipe::default(), Arc::new(Mutex::new(Vec::new())));
        let (connects, spawned) = (pipe.clone(), drivers.clone());
        let link = Link::new(
            "slow",
            Settings::default(),
            clock.clone(),
            move || ready(Ok(connects.clone())),
            move |driver| spawned.lock().expect("nothing panics").push(driver),
        );
        let driver = drivers.lock().expect("nothing panics").pop().expect("a link has one from the start");
        let mut slow = Self { clock, link, driver, pipe };
        slow.give_room(1000);
        let mut first = slow.link.ask(Command::new("PING"));
        slow.turn();
        slow.says("+PONG\r\n+PONG\r\n");
        assert!(slow.poll(&mut first).is_ready());
        slow
    }

    fn turn(&mut self) {
        let _ = self.driver.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }

    fn says(&mut self, bytes: &str) {
        self.pipe.ends().said.extend(bytes.as_bytes());
        self.turn();
    }

    fn give_room(&mut self, bytes: usize) {
        self.pipe.ends().room += bytes;
        self.turn();
    }

    fn pass(&mut self, time: Duration) {
        self.clock.advance(time);
        self.turn();
    }

    fn ask(&mut self, command: Command) -> Answer {
        let answer = self.link.ask(command);
        self.turn();
        answer
    }

    fn poll(&mut self, answer: &mut Answer) -> Poll<Result<Value, Error>> {
        Pin::new(answer).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn is_silent(&mut self, answer: &mut Answer) -> bool {
        let silent = Why::Silent(TIMEOUT);
        matches!(self.poll(answer), Poll::Ready(Err(error)) if *error.why() == silent)
    }
}

#[test]
fn an_answer_that_goes_on_coming_is_no_silence() {
    let mut slow = Slow::new();
    let mut answers = [0, 1].map(|_| slow.ask(Command::new("GET").arg("k")));
    slow.says("$5\r\n");
    for byte in ["s", "t", "e", "a", "d"] {
        slow.pass(TIMEOUT - SECOND);
        slow.says(byte);
    }
    slow.pass(TIMEOUT - SECOND);
    slow.says("\r\n");
    let steady = Poll::Ready(Value::Bytes("stead".into()));
    assert_eq!(slow.poll(&mut answers[0]).map(Result::unwrap), steady);
    // Whoever asked behind it has not been answered in time, but his answer could not come before.
    slow.pass(TIMEOUT - SECOND);
    assert!(slow.poll(&mut answers[1]).is_pending());
    slow.pass(SECOND);
    assert!(slow.is_silent(&mut answers[1]));
}

#[test]
fn a_command_that_goes_on_being_taken_is_no_silence() {
    let mut slow = Slow::new();
    let mut large = slow.ask(Command::new("SET").arg("k").arg(vec![0; 50_000]));
    for _ in 0..5 {
        slow.pass(TIMEOUT - SECOND);
        slow.give_room(10_000);
    }
    slow.pass(TIMEOUT - SECOND);
    assert!(slow.poll(&mut large).is_pending());
    slow.says("+OK\r\n");
    assert!(slow.poll(&mut large).is_ready());
}

/// There is room for much on the way to a server that hangs.
#[test]
fn what_is_sent_to_a_server_that_says_nothing_does_not_make_it_speak() {
    let mut slow = Slow::new();
    let mut first = slow.ask(Command::new("PING"));
    for _ in 0..5 {
        assert!(slow.poll(&mut first).is_pending());
        slow.pass(SECOND);
        drop(slow.ask(Command::new("PING")));
    }
    assert!(slow.is_silent(&mut first));
}
