//! Handlers of what bodies say in JSON.

use ebbtide_mailbox::{DeadLetter, Reply, json};
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

/// Gives the total, and fails for bolts.
fn totals(fixture: &Fixture) -> (WorkerBuilder<VirtualClock>, MemoryMailbox<VirtualClock>) {
    let dead = fixture.office.mailbox("dead");
    let handler = json::handler(|order: Order, _job| async move {
        if order.item == "bolts" { Err("none left".into()) } else { Ok(order.count * 3) }
    });
    (fixture.worker(handler).dead_letters(Arc::new(dead.clone())), dead)
}

fn letter(fixture: &Fixture, dead: &MemoryMailbox<VirtualClock>) -> DeadLetter {
    let letters = fixture.clock.block_on(dead.receive(at_once())).unwrap();
    assert_eq!(letters.len(), 1);
    DeadLetter::decode(letters[0].body.clone()).unwrap()
}

#[test]
fn a_typed_handler_is_given_what_was_sent_and_its_output_is_the_reply() {
    let fixture = Fixture::new();
    let replies = fixture.office.mailbox("replies");
    let order = json::message(&Order { item: "nuts".into(), count: 2 }).unwrap();
    fixture.clock.block_on(fixture.mailbox.send(order.reply_to(replies.address().clone()))).unwrap();
    let (builder, _) = totals(&fixture);
    let worker = builder.max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    let reply = fixture.clock.block_on(replies.receive(at_once())).unwrap().remove(0);
    let Reply::Done(total) = Reply::decode(reply.body).unwrap() else { panic!("it was done") };
    assert_eq!(json::read::<u32>(&total).unwrap(), 6);
    assert_eq!(worker.balance().completed, 1);
}

#[test]
fn a_body_that_does_not_parse_is_a_dead_letter_at_once_with_the_reason() {
    for (body, reason) in [
        ("two nuts", "Order in JSON: expected ident at line 1 column 2"),
        (r#"{"item":"nuts"}"#, "Order in JSON: missing field `count` at line 1 column 15"),
        ("", "Order in JSON: EOF while parsing a value at line 1 column 0"),
    ] {
        let fixture = Fixture::new();
        fixture.send(body);
        let (builder, dead) = totals(&fixture);
        // It would be tried again after any other failure.
        let worker = builder.max_iterations(1).build();
        fixture.clock.block_on(worker.work()).unwrap();
        let letter = letter(&fixture, &dead);
        assert!(letter.reason.ends_with(reason), "{}", letter.reason);
        assert_eq!((&letter.body[..], letter.attempts), (body.as_bytes(), 1));
        assert_eq!(fixture.counts(), (0, 0, 0));
    }
}

#[test]
fn a_typed_handler_that_fails_is_tried_again_like_any_other() {
    let fixture = Fixture::new();
    let order = json::message(&Order { item: "bolts".into(), count: 2 }).unwrap();
    fixture.clock.block_on(fixture.mailbox.send(order)).unwrap();
    let (builder, dead) = totals(&fixture);
    let worker =
        builder.retry(ebbtide_mailbox::worker::Retry::default().attempts(3)).max_iterations(3).build();
    fixture.clock.block_on(worker.work()).unwrap();
    let letter = letter(&fixture, &dead);
    assert_eq!((&*letter.reason, letter.attempts), ("none left", 3));
}

#[test]
fn a_value_without_a_form_in_json_is_refused_and_a_reply_without_one_is_not_worked_for_twice() {
    let pairs = || std::collections::BTreeMap::from([((1, 2), 3)]);
    let refused = json::message(&pairs()).unwrap_err().to_string();
    assert!(refused.ends_with("in JSON: key must be a string"), "{refused}");
    let fixture = Fixture::new();
    let replies = fixture.office.mailbox("replies");
    let message = Message::new("1").reply_to(replies.address().clone());
    fixture.clock.block_on(fixture.mailbox.send(message)).unwrap();
    let handler = json::handler(move |_: u32, _job| async move { Ok(pairs()) });
    let worker = fixture.worker(handler).max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    let reply = fixture.clock.block_on(replies.receive(at_once())).unwrap().remove(0);
    let Reply::Failed(reason) = Reply::decode(reply.body).unwrap() else { panic!("it has no reply") };
    assert!(reason.ends_with("in JSON: key must be a string"), "{reason}");
    assert_eq!(fixture.counts(), (0, 0, 0));
}
