//! `ebbtide serve`: what is too much.

use std::time::Duration;

use super::{
    files::Folder,
    site::{REQUEST, Site},
};

#[test]
fn a_body_that_is_too_large_is_413() {
    let site = Site::start(["hello", "--max-body", "100"]);
    let message = site.post("/plans/hello", &[b' '; 101]).is_error(413, "too_large");
    assert!(message.contains("may have 100 bytes"), "{message}");
    let mut fits = REQUEST.to_vec();
    fits.resize(100, b' ');
    assert_eq!(site.post("/plans/hello", &fits).status, 200);

    let mut client = site.connect();
    let head = "POST /plans/hello HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n";
    client.send(format!("{head}65\r\n{}\r\n0\r\n\r\n", " ".repeat(0x65)).as_bytes()).unwrap();
    client.answer(false).unwrap().is_error(413, "too_large");
    assert_eq!(site.metrics()["ebbtide_requests_total{plan=\"hello\",outcome=\"wrong\"}"], 2.0);
}

#[test]
fn a_body_of_10_megabytes_is_413_and_the_server_goes_on() {
    let site = Site::start(["hello"]);
    let message = site.post("/plans/hello", &vec![b'x'; 10 << 20]).is_error(413, "too_large");
    assert!(message.contains("may have 1048576 bytes"), "{message}");
    assert_eq!(site.post("/plans/hello", REQUEST).status, 200);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let site = Site::start(["hello"]);
    let heads = [
        format!("GET /{} HTTP/1.1\r\nhost: test\r\n\r\n", "x".repeat(100_000)),
        format!("GET /plans HTTP/1.1\r\nhost: test\r\nlong: {}\r\n\r\n", "x".repeat(100_000)),
        format!("GET /plans HTTP/1.1\r\nhost: test\r\n{}\r\n", "a: b\r\n".repeat(100)),
    ];
    for head in heads {
        let mut client = site.connect();
        // It may be refused before it is sent.
        let _ = client.send(head.as_bytes());
        let answer = client.answer(false).unwrap();
        assert!([400, 414, 431].contains(&answer.status), "{answer:#?}");
    }
    assert_eq!(site.get("/plans").status, 200);
}

#[test]
fn what_is_no_http_is_refused() {
    let site = Site::start(["hello"]);
    let mut client = site.connect();
    client.send(b"HELLO\r\n\r\n").unwrap();
    assert_eq!(client.answer(false).unwrap().status, 400);
    assert_eq!(site.get("/plans").status, 200);
}

#[test]
fn more_than_may_be_in_flight_are_refused_and_told_when_to_come_again() {
    let folder = Folder::new();
    let slow = folder.sleeping("slow", 60_000);
    let site = Site::start(["hello", &*slow, "--max-in-flight", "2", "--drain-timeout-seconds", "1"]);
    let _held = [site.begin("slow"), site.begin("slow")];
    let answer = site.post("/plans/hello", REQUEST);
    let message = answer.is_error(503, "overloaded");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(message.contains("2 requests are being answered"), "{message}");
    let metrics = site.metrics();
    assert_eq!(metrics["ebbtide_requests_refused_total"], 1.0);
    assert_eq!(metrics["ebbtide_requests_in_flight"], 2.0);
    assert_eq!(site.get("/health/live").status, 200, "who asks for health is not refused");
}

#[test]
fn room_that_a_client_leaves_is_given_to_the_next() {
    let folder = Folder::new();
    let slow = folder.sleeping("slow", 60_000);
    let site = Site::start(["hello", &*slow, "--max-in-flight", "1"]);
    let held = site.begin("slow");
    site.post("/plans/hello", REQUEST).is_error(503, "overloaded");
    drop(held);
    while site.metrics()["ebbtide_requests_in_flight"] > 0.0 {}
    assert_eq!(site.metrics()["ebbtide_requests_total{plan=\"slow\",outcome=\"cancelled\"}"], 1.0);
    assert_eq!(site.post("/plans/hello", REQUEST).status, 200);
}

#[test]
fn connections_above_the_limit_wait_for_their_turn() {
    let site = Site::start(["hello", "--max-connections", "1"]);
    let mut first = site.connect();
    assert_eq!(first.ask("GET", "/plans", b"").unwrap().status, 200);
    let mut second = site.connect();
    second.send(b"GET /health/live HTTP/1.1\r\nhost: test\r\n\r\n").unwrap();
    assert!(second.hears_nothing(Duration::from_millis(200)));
    assert_eq!(first.ask("GET", "/plans", b"").unwrap().status, 200);
    drop(first);
    assert_eq!(second.answer(false).unwrap().status, 200);
}

#[test]
fn a_body_that_does_not_come_gives_its_place_back() {
    let site = Site::start(["hello", "--max-in-flight", "1", "--body-timeout-ms", "200"]);
    let mut slow = site.connect();
    slow.send(b"POST /plans/hello HTTP/1.1\r\nhost: test\r\ncontent-length: 14\r\n\r\n{").unwrap();
    let message = slow.answer(false).unwrap().is_error(408, "too_slow");
    assert!(message.contains("within 200ms"), "{message}");
    assert_eq!(site.post("/plans/hello", REQUEST).status, 200);
}

#[test]
fn a_body_that_is_said_to_be_too_large_is_not_waited_for() {
    let site = Site::start(["hello"]);
    let mut client = site.connect();
    client.send(b"POST /plans/hello HTTP/1.1\r\nhost: test\r\ncontent-length: 1048577\r\n\r\n").unwrap();
    client.answer(false).unwrap().is_error(413, "too_large");
}
