//! Handlers that fail: retries, dead letters, replies.

use ebbtide_mailbox::{DeadLetter, NotAnEnvelope, Reply, worker::Retry};

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
}
