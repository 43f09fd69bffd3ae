//! `ebbtide worker` and `ebbtide send` with a queue on a real server.

use std::collections::BTreeSet;

use rustix::process::Signal;

use super::{
    files::Folder,
    program::{Program, Running, ebbtide},
    redis::Post,
    worker::{ids, requests},
};

/// A worker on the queue. It works when this returns.
fn worker(post: &Post, plan: &str, more: &[&str]) -> Running {
    let mut worker = ebbtide(post.args(&[&["worker", plan], more].concat())).start();
    let line = worker.line();
    assert_eq!(line.as_deref(), Some(&*format!("working off feed at {}", post.url)));
    worker
}

fn send(post: &Post, more: &[&str]) -> Program {
    ebbtide(post.args(&[&["send"], more].concat()))
}

/// A worker stops well, whatever it was at.
fn stops(worker: Running) {
    worker.gets(Signal::TERM);
    let said = worker.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
}

#[test]
fn what_is_sent_is_answered_to_whoever_waits() {
    let post = Post::start();
    let worker = worker(&post, "hello", &[]);
    let said = send(&post, &["--request", r#"{"user_id": 1, "request_id": "one"}"#, "--wait-seconds", "30"]);
    let said = said.ends_with(0);
    assert_eq!(said.json()["request_id"], "one");
    said.complains(["1 sent"]);
    let said = send(&post, &["--wait-seconds", "30"]).input(requests(50)).ends_with(0);
    let answered: BTreeSet<String> =
        said.json_lines().iter().map(|answer| answer["request_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(answered, ids(50));
    stops(worker);
    assert_eq!((post.count("feed"), post.count("feed:dead")), (0, 0));
}

#[test]
fn answers_are_printed_while_requests_are_still_sent() {
    let post = Post::start();
    let worker = worker(&post, "hello", &[]);
    let mut sender = send(&post, &["--wait-seconds", "30"]).start();
    for number in 0..3 {
        sender.feed(format!("{{\"user_id\": 1, \"request_id\": \"{number}\"}}\n").as_bytes());
        let answer = sender.line().unwrap();
        assert!(answer.contains(&format!("\"request_id\":\"{number}\"")), "{answer}");
    }
    let said = sender.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
    stops(worker);
}

#[test]
fn what_was_answered_is_printed_also_if_the_server_goes_before_all_is_sent() {
    let mut post = Post::start();
    let worker = worker(&post, "hello", &[]);
    let mut sender = send(&post, &["--wait-seconds", "30"]).input(requests(3)).start();
    let answers: BTreeSet<_> = (0..3).map(|_| sender.line().unwrap()).collect();
    assert_eq!(answers.len(), 3);
    post.server.kill();
    sender.feed(b"{\"user_id\": 1}\n");
    let said = sender.ends_unasked();
    assert_eq!(said.code, Some(69), "{said:#?}");
    said.complains(["was not sent"]);
    drop(worker);
}

#[test]
fn nothing_is_lost_when_a_worker_is_stopped_in_the_middle() {
    let (post, folder) = (Post::start(), Folder::new());
    let plan = folder.sleeping("slow", 20);
    let first = worker(&post, &plan, &["--concurrency", "4"]);
    let mut sender = send(&post, &["--wait-seconds", "50"]).input(requests(100)).start();
    sender.close_input();
    let mut answered: Vec<String> = (0..10).map(|_| sender.line().unwrap()).collect();
    stops(first);
    let left = post.count("feed");
    assert!(left > 0, "it was in the middle");
    let second = worker(&post, &plan, &["--concurrency", "4"]);
    answered.extend(std::iter::from_fn(|| sender.line()));
    let said = sender.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
    let told = |line: &String| -> String {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["request_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(answered.len(), 100, "each is answered once: {left} were left");
    assert_eq!(answered.iter().map(told).collect::<BTreeSet<_>>(), ids(100));
    stops(second);
    assert_eq!((post.count("feed"), post.count("feed:dead")), (0, 0));
}

#[test]
fn what_is_no_request_becomes_a_dead_letter() {
    let post = Post::start();
    post.put("feed", "nonsense");
    post.put("feed", "{\"user\": 1}");
    let mut worker = worker(&post, "hello", &[]);
    worker.tells("is given up on after attempt 1");
    worker.tells("is given up on after attempt 1");
    let said = send(&post, &["--request", r#"{"user_id": 1}"#, "--wait-seconds", "30"]).ends_with(0);
    assert_eq!(said.json_lines().len(), 1, "the worker goes on");
    stops(worker);
    assert_eq!((post.count("feed"), post.count("feed:dead")), (0, 2));
}

#[test]
fn a_request_that_fails_is_tried_again_and_then_told_to_whoever_waits() {
    let (post, folder) = (Post::start(), Folder::new());
    let worker = worker(&post, &folder.failing("broken"), &["--attempts", "2"]);
    let said = send(&post, &["--request", r#"{"user_id": 1}"#, "--wait-seconds", "30"]).ends_with(1);
    let message = &said.json()["error"]["message"];
    assert!(message.as_str().unwrap().contains("told to fail after its sleep"), "{message}");
    said.complains(["error: 1 sent; 1 failed, 0 have no answer yet"]);
    stops(worker);
    assert_eq!((post.count("feed"), post.count("feed:dead")), (0, 1));
}

#[test]
fn what_nobody_answers_in_time_is_missing_and_stays_in_the_queue() {
    let post = Post::start();
    let said = send(&post, &["--wait-seconds", "1"]).input(requests(3)).ends_with(1);
    said.complains(["error: 3 sent; 0 failed, 3 have no answer yet"]);
    assert_eq!((said.out.as_str(), post.count("feed")), ("", 3));
}

#[test]
fn lines_that_are_no_requests_are_not_sent() {
    let post = Post::start();
    let said = send(&post, &[]).input("{\"user_id\": 1}\nnonsense\n\n{\"user_id\": 2}\n").ends_with(65);
    said.complains(["warning: line 2 was not sent: the request is not JSON", "error: 2 sent; 1 lines"]);
    assert_eq!(post.count("feed"), 2);
    send(&post, &["--request", "{}"]).ends_with(65).complains(["has no `user_id`"]);
    assert_eq!(post.count("feed"), 2);
}

#[test]
fn a_sender_whose_input_stays_open_ends_at_a_signal_and_tells_what_it_has_sent() {
    let post = Post::start();
    let mut sender = send(&post, &[]).input("nonsense\n{\"user_id\": 1}\n").start();
    sender.tells("line 1 was not sent");
    while post.count("feed") == 0 {}
    sender.gets(Signal::TERM);
    let said = sender.ends_unasked();
    assert_eq!(said.code, Some(65), "{said:#?}");
    said.complains(["error: 1 sent; 1 lines"]);

    let sender = send(&post, &[]).input("{\"user_id\": 1}\n").start();
    while post.count("feed") == 1 {}
    sender.gets(Signal::INT);
    let said = sender.ends_unasked();
    assert_eq!(said.code, Some(1), "{said:#?}");
    said.complains(["error: 1 sent; SIGINT came before the end of the input"]);
}

#[test]
fn a_sender_waits_on_when_the_server_is_killed_and_back() {
    let mut post = Post::start();
    let args = ["--request", r#"{"user_id": 1, "request_id": "one"}"#, "--wait-seconds", "50"];
    let mut sender = send(&post, &args).start();
    while post.count("feed") == 0 {}
    post.server.kill();
    post.server.restart();
    let worker = worker(&post, "hello", &[]);
    let answer = sender.line();
    let said = sender.ends();
    assert!(answer.is_some_and(|line| line.contains("\"request_id\":\"one\"")), "{said:#?}");
    assert_eq!(said.code, Some(0), "{said:#?}");
    stops(worker);
}
