//! Handlers that fail: retries, dead letters, replies.

use std::sync::OnceLock;

use ebbtide_mailbox::{
    Bytes, DeadLetter, Limits, NotAnEnvelope, Reply,
    worker::{GiveUp, Retry},
};

use super::*;

/// When a handler was called.
fn failing(fixture: &Fixture) -> (WorkerBuilder<VirtualClock>, Log) {
    let (log, clock, start) = (Log::default(), fixture.clock.clone(), fixture.start);
    let called = log.clone();
    let builder = fixture.worker(move |job| {
        called.add(format!("{:?}", clock.now() - start));
        let attempt = job.delivery().delivery_count;
        async move { if attempt % 2 == 0 { panic!("no") } else { Err("not today".into()) } }
    });
    (builder, log)
}

#[test]
fn m4_an_error_or_a_panic_is_tried_again_with_a_backoff_and_then_is_a_dead_letter_with_its_reason() {
    let fixture = Fixture::new();
    fixture.send("bad");
    let dead = fixture.office.mailbox("dead");
    let (builder, called) = failing(&fixture);
    let retry = Retry::default().attempts(4).backoff(SECOND, 3 * SECOND);
    let worker = builder.retry(retry).dead_letters(Arc::new(dead.clone())).max_iterations(5).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(called.lines(), ["0ns", "1s", "3s", "6s"], "after 1, 2 and 3 seconds");
    let letters = fixture.clock.block_on(dead.receive(at_once())).unwrap();
    let letter = DeadLetter::decode(letters[0].body.clone()).unwrap();
    assert_eq!((&letter.body[..], &*letter.reason, letter.attempts), (&b"bad"[..], "it panicked: no", 4));
    assert_eq!(fixture.counts(), (0, 0, 0));
    assert_eq!(worker.balance().to_string(), "accepted 4, failed 4");
    let told = fixture.told.lines();
    assert!(told[0].ends_with("failed, attempt 1, next in 1.0s: not today"), "{told:?}");
    assert!(told[3].ends_with("is given up on after attempt 4: it panicked: no"), "{told:?}");
}

#[test]
fn m4_failures_that_are_not_worth_it_are_not_tried_again() {
    let fixture = Fixture::new();
    fixture.send("bad");
    let dead = fixture.office.mailbox("dead");
    let (builder, called) = failing(&fixture);
    let retry = Retry::default().only_if(|failure| !failure.to_string().contains("not today"));
    let worker = builder.retry(retry).dead_letters(Arc::new(dead.clone())).max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(called.lines(), ["0ns"]);
    assert_eq!(fixture.clock.block_on(dead.counts()).unwrap().pending, 1);
}

#[test]
fn m4_a_handler_may_give_up_whatever_the_retries() {
    let fixture = Fixture::new();
    fixture.send("bad");
    let dead = fixture.office.mailbox("dead");
    let worker = fixture
        .worker(|_| async { Err(GiveUp::because("for good").into()) })
        .retry(Retry::default().only_if(|_| true))
        .dead_letters(Arc::new(dead.clone()))
        .max_iterations(1)
        .build();
    fixture.clock.block_on(worker.work()).unwrap();
    let letters = fixture.clock.block_on(dead.receive(at_once())).unwrap();
    let letter = DeadLetter::decode(letters[0].body.clone()).unwrap();
    assert_eq!((&*letter.reason, letter.attempts), ("for good", 1));
}

#[test]
fn m4_a_letter_that_is_too_large_with_its_reason_is_buried_with_a_part_of_it() {
    let fixture = Fixture::new();
    fixture.send("bad");
    // Room for the body, two numbers, and ten bytes.
    let dead = fixture.office.mailbox_with("dead", Limits { capacity: 10, body: 3 + 8 + 10 });
    let worker = fixture
        .worker(|_| async { Err(GiveUp::because("this is a long story").into()) })
        .dead_letters(Arc::new(dead.clone()))
        .max_iterations(1)
        .build();
    fixture.clock.block_on(worker.work()).unwrap();
    let letters = fixture.clock.block_on(dead.receive(at_once())).unwrap();
    let letter = DeadLetter::decode(letters[0].body.clone()).unwrap();
    assert_eq!((&letter.body[..], &*letter.reason), (&b"bad"[..], "this is a "));
    assert_eq!(fixture.counts(), (0, 0, 0));
}

#[test]
fn a_message_that_cannot_be_buried_is_tried_again() {
    let fixture = Fixture::new();
    fixture.send("bad");
    let dead = fixture.office.mailbox("dead");
    dead.close();
    let (builder, _) = failing(&fixture);
    let worker = builder
        .retry(Retry::default().attempts(1))
        .dead_letters(Arc::new(dead))
        .pull(at_once())
        .max_iterations(1)
        .build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(fixture.counts(), (0, 1, 0), "it is not lost");
    assert!(fixture.told.lines()[1].contains("is not among the dead letters"), "{:?}", fixture.told.lines());
}

#[test]
fn whoever_wants_a_reply_gets_one_on_success_and_on_the_final_failure() {
    let fixture = Fixture::new();
    let replies = fixture.office.mailbox("replies");
    let worker = fixture
        .worker(|job| async move {
            match &job.body()[..] {
                b"good" => Ok(Some("thanks".into())),
                _ => Err("not today".into()),
            }
        })
        .retry(Retry::default().attempts(2))
        .max_iterations(2)
        .build();
    for body in ["good", "bad"] {
        let message = Message::new(body).reply_to(replies.address().clone());
        fixture.clock.block_on(fixture.mailbox.send(message)).unwrap();
    }
    fixture.clock.block_on(worker.work()).unwrap();
    let got = fixture.clock.block_on(replies.receive(at_once())).unwrap();
    let got: Vec<_> = got.into_iter().map(|delivery| Reply::decode(delivery.body).unwrap()).collect();
    assert_eq!(got, [Reply::Done("thanks".into()), Reply::Failed("not today".into())]);
}

/// What a worker answers whose handler gives `given`, to one who takes bodies of a hundred bytes.
fn reply_of_a_hundred(fixture: &Fixture, given: Result<usize, usize>) -> Reply {
    let replies = fixture.office.mailbox_with("replies", Limits { capacity: 10, body: 100 });
    let builder = fixture.worker(move |_| async move {
        match given {
            Ok(bytes) => Ok(Some("x".repeat(bytes).into())),
            Err(bytes) => Err("y".repeat(bytes).into()),
        }
    });
    let worker = builder.retry(Retry::default().attempts(1)).max_iterations(1).build();
    let message = Message::new("a").reply_to(replies.address().clone());
    fixture.clock.block_on(fixture.mailbox.send(message)).unwrap();
    fixture.clock.block_on(worker.work()).unwrap();
    let reply = fixture.clock.block_on(replies.receive(at_once())).unwrap().remove(0);
    Reply::decode(reply.body).unwrap()
}

#[test]
fn a_reply_of_a_failure_has_as_much_of_its_reason_as_fits() {
    let fixture = Fixture::new();
    assert_eq!(reply_of_a_hundred(&fixture, Err(200)), Reply::Failed("y".repeat(99).into()));
    assert_eq!(fixture.told.lines().len(), 1, "the failure: {:?}", fixture.told.lines());
}

#[test]
fn whoever_gets_no_reply_because_it_is_too_large_is_told_so_in_a_short_one() {
    let fixture = Fixture::new();
    assert_eq!(reply_of_a_hundred(&fixture, Ok(99)), Reply::Done("x".repeat(99).into()));
    let why = "the reply was refused: a body of 101 bytes is too large: the mailbox takes 100 at most";
    assert_eq!(reply_of_a_hundred(&fixture, Ok(100)), Reply::Failed(why.into()));
    let told = fixture.told.lines();
    assert!(told.len() == 1 && told[0].ends_with(&format!("has no reply: {why}")), "{told:?}");
}

#[test]
fn a_reply_to_nobody_is_told_and_the_message_is_done() {
    let fixture = Fixture::new();
    let (builder, _) = fixture.noting();
    let worker = builder.max_iterations(1).build();
    let message = Message::new("good").reply_to("nobody".into());
    fixture.clock.block_on(fixture.mailbox.send(message)).unwrap();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(worker.balance().completed, 1);
    assert!(
        fixture.told.lines()[0].contains("there is no mailbox nobody to reply to"),
        "{:?}",
        fixture.told.lines()
    );
}

#[test]
fn a_reply_that_is_refused_is_told_and_the_message_is_done() {
    let fixture = Fixture::new();
    let closed = fixture.office.mailbox("closed");
    closed.close();
    let full = fixture.office.mailbox_with("full", Limits { capacity: 0, body: 100 });
    let small = fixture.office.mailbox_with("small", Limits { capacity: 10, body: 3 });
    for replies in [&closed, &full, &small] {
        let message = Message::new("good").reply_to(replies.address().clone());
        fixture.clock.block_on(fixture.mailbox.send(message)).unwrap();
    }
    let worker = fixture.worker(|_| async { Ok(Some("thanks".into())) }).max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(worker.balance().to_string(), "accepted 3, completed 3");
    let told = fixture.told.lines();
    for (line, why) in told.iter().zip([
        "has no reply: the reply was refused: the mailbox is closed",
        "has no reply: the reply was refused: the mailbox is full: it holds 0 messages at most",
        "has no reply: the reply was refused: a body of 7 bytes is too large: the mailbox takes 3 at most",
    ]) {
        assert!(line.ends_with(why), "{line}");
    }
    assert_eq!(told.len(), 3);
}

#[test]
fn an_envelope_is_read_as_it_was_written_and_anything_else_is_refused() {
    let letter = DeadLetter::new("body".into(), "because".into(), 7);
    assert_eq!(DeadLetter::decode(letter.encode()), Ok(letter));
    for reply in [Reply::Done("body".into()), Reply::Done("".into()), Reply::Failed("because".into())] {
        assert_eq!(Reply::decode(reply.encode()), Ok(reply));
    }
    for bytes in [&b""[..], b"\x01", b"\x01\0\0\0\xff\xff\xff\xff", b"\0\0\0\0\x01\0\0\0\xff"] {
        assert_eq!(DeadLetter::decode(bytes.into()), Err(NotAnEnvelope), "{bytes:?}");
    }
    for bytes in [&b""[..], b"\x02", b"\x01\xff"] {
        assert_eq!(Reply::decode(bytes.into()), Err(NotAnEnvelope), "{bytes:?}");
    }
    let long = DeadLetter::new("body".into(), "é".repeat(5000).into(), 1);
    let read = DeadLetter::decode(long.encode()).unwrap();
    assert_eq!((&read.body[..], read.reason.len()), (&b"body"[..], 4096));
    let Ok(Reply::Failed(reason)) = Reply::decode(Reply::Failed("é".repeat(5000).into()).encode()) else {
        panic!("it is the reply of a failure")
    };
    assert_eq!(reason.len(), 4096);
}

/// Panics when it is asked what it is, and when it is dropped.
#[derive(Debug)]
struct Mute;

impl std::fmt::Display for Mute {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no comment")
    }
}

impl std::error::Error for Mute {}

impl Drop for Mute {
    fn drop(&mut self) {
        panic!("not even at the end")
    }
}

#[test]
fn m4_an_error_that_panics_fails_its_message_and_not_the_worker() {
    let fixture = Fixture::new();
    fixture.send("one");
    fixture.send("two");
    let dead = fixture.office.mailbox("dead");
    let builder = fixture.worker(|job| {
        let is_first = &job.body()[..] == b"one";
        async move { if is_first { Err(Mute.into()) } else { Ok(None) } }
    });
    let builder = builder.retry(Retry::default().attempts(1)).dead_letters(Arc::new(dead.clone()));
    let worker = builder.max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(worker.balance().to_string(), "accepted 2, completed 1, failed 1");
    let letter = fixture.clock.block_on(dead.receive(at_once())).unwrap().remove(0);
    let letter = DeadLetter::decode(letter.body).unwrap();
    assert!(letter.reason.contains("no comment"), "{}", letter.reason);
}

/// Panics when it is dropped.
struct Brittle;

impl AsRef<[u8]> for Brittle {
    fn as_ref(&self) -> &[u8] {
        b"brittle"
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        // Twice at a time would be the end of all tests.
        assert!(std::thread::panicking(), "it breaks");
    }
}

#[test]
fn bodies_and_replies_that_panic_when_they_are_dropped_do_not_end_the_worker() {
    for (is_stopped, handed_back) in [(false, 0), (true, 2)] {
        let fixture = Fixture::new();
        for _ in 0..3 {
            let brittle = Message::new(Bytes::from_owner(Brittle));
            fixture.clock.block_on(fixture.mailbox.send(brittle)).unwrap();
        }
        let stop = Arc::new(OnceLock::<Worker<VirtualClock>>::new());
        let stops = stop.clone();
        let builder = fixture.worker(move |_| {
            stops.get().into_iter().for_each(|worker| worker.stop(reason()));
            async { Ok(Some(Bytes::from_owner(Brittle))) }
        });
        let worker = builder.max_iterations(1).build();
        if is_stopped {
            assert!(stop.set(worker.clone()).is_ok());
        }
        fixture.clock.block_on(worker.work()).unwrap();
        let balance = worker.balance();
        assert_eq!((balance.completed, balance.handed_back), (3 - handed_back, handed_back));
        // Those that are left would panic in the mailbox.
        std::mem::forget(fixture);
    }
}

/// Whoever had it was lost, or took too long: no handler has failed.
#[test]
fn m4_a_message_that_was_delivered_too_often_is_a_dead_letter_unhandled() {
    let fixture = Fixture::new();
    let (dead, replies) = (fixture.office.mailbox("dead"), fixture.office.mailbox("replies"));
    let message = Message::new("deadly").reply_to(replies.address().clone());
    fixture.clock.block_on(fixture.mailbox.send(message)).unwrap();
    for _ in 0..3 {
        let lost = fixture.mailbox.receive(at_once().visibility(Span::ZERO));
        assert_eq!(fixture.clock.block_on(lost).unwrap().len(), 1);
    }
    let (builder, log) = fixture.noting();
    let builder = builder.max_deliveries(NonZero::new(3).unwrap()).dead_letters(Arc::new(dead.clone()));
    let worker = builder.retry(Retry::default().attempts(9)).max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), [""; 0]);
    assert_eq!(worker.balance().to_string(), "accepted 1, failed 1");
    let letter = fixture.clock.block_on(dead.receive(at_once())).unwrap().remove(0);
    let letter = DeadLetter::decode(letter.body).unwrap();
    let reason = "not handled: it was delivered 3 times before, and 3 are allowed";
    assert_eq!((&letter.body[..], &*letter.reason, letter.attempts), (&b"deadly"[..], reason, 4));
    let reply = fixture.clock.block_on(replies.receive(at_once())).unwrap().remove(0);
    assert_eq!(Reply::decode(reply.body), Ok(Reply::Failed(reason.into())));
    assert_eq!(fixture.counts(), (0, 0, 0));
}

#[test]
fn m4_a_message_that_was_delivered_as_often_as_it_may_be_is_handled() {
    let fixture = Fixture::new();
    fixture.send("one");
    let lost = fixture.mailbox.receive(at_once().visibility(Span::ZERO));
    assert_eq!(fixture.clock.block_on(lost).unwrap().len(), 1);
    let (builder, log) = fixture.noting();
    let worker = builder.max_deliveries(NonZero::new(2).unwrap()).max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), ["one"]);
}

/// It is given back before its time is over, uncounted.
#[test]
fn m4_a_message_that_was_never_begun_was_not_tried() {
    let fixture = Fixture::new();
    fixture.send("long");
    fixture.send("fails once");
    let (clock, log) = (fixture.clock.clone(), Log::default());
    let handled = log.clone();
    let builder = fixture.worker(move |job| {
        let body = String::from_utf8_lossy(job.body()).into_owned();
        handled.add(body.clone());
        let (sleep, tried) = (clock.sleep_until(clock.now() + 60 * SECOND), handled.lines().len());
        async move {
            if body == "long" {
                sleep.await;
            } else if tried == 2 {
                return Err("the first time".into());
            }
            Ok(None)
        }
    });
    let pull = Pull::default().visibility(Span::secs(40));
    let retry = Retry::default().attempts(2);
    let worker = builder.pull(pull).retry(retry).max_iterations(3).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), ["long", "fails once", "fails once"], "{:?}", fixture.told.lines());
}
