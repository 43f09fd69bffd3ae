//! `ebbtide serve`: a stop in the middle of work.

use rustix::process::Signal;

use super::{
    files::Folder,
    http::Client,
    loader::Loader,
    program::{PATIENCE, Said, deaf_to_hangups},
    site::{REQUEST, Site},
};

const CLIENTS: usize = 8;

#[test]
fn a_stop_under_load_fails_no_request() {
    let folder = Folder::new();
    // The first keeps the loop busy; of the second all clients have a request in flight nearly all of the time.
    let nap = folder.sleeping("nap", 10);
    for (signal, plan, path) in [(Signal::TERM, "feed", "/plans/feed"), (Signal::INT, &nap, "/plans/nap")] {
        let site = Site::start([plan]);
        let loader = Loader::start(site.address, CLIENTS, path);
        loader.is_warm();
        site.process.gets(signal);
        assert!(loader.ends() > 0);
        let said = site.process.ends();
        assert_eq!(said.code, Some(0), "{said:#?}");
        said.complains(["stopping: SIG"]);
        assert!(Client::connect(site.address).is_err(), "nobody listens any more");
    }
}

#[test]
fn all_that_was_answered_under_load_is_counted_and_nothing_else() {
    let folder = Folder::new();
    let stuck = folder.sleeping("stuck", 60_000);
    let site = Site::start(["hello", &*stuck, "--drain-timeout-seconds", "1"]);
    // With this one the stop is not clean, and so the books are told.
    let _client = site.begin("stuck");
    let loader = Loader::start(site.address, CLIENTS, "/plans/hello");
    loader.is_warm();
    site.process.gets(Signal::TERM);
    let answered = loader.ends();
    let said = site.process.ends();
    assert_eq!(said.code, Some(75), "{said:#?}");
    assert_eq!(books(&said, "hello").iter().sum::<u64>(), answered, "{said:#?}");
}

/// How many requests for a plan each loop has accepted and completed, in order: those of the report.
fn books(said: &Said, plan: &str) -> Vec<u64> {
    let begin = format!("plan {plan}");
    let lines = said.err.lines().filter(|line| line.trim_start().starts_with(&begin));
    let counts = lines.map(|line| {
        let (_, sums) = line.split_once("; accepted ").unwrap_or_else(|| panic!("no books: {line}"));
        let (accepted, completed) = sums.split_once(", completed ").unwrap_or_else(|| panic!("lost: {line}"));
        assert_eq!(accepted, completed, "{line}");
        accepted.parse().unwrap()
    });
    counts.collect()
}

#[test]
fn connections_are_spread_over_the_loops_and_counted_together() {
    let folder = Folder::new();
    let stuck = folder.sleeping("stuck", 60_000);
    let site = Site::start(["hello", &*stuck, "--loops", "3", "--drain-timeout-seconds", "1"]);
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = site.connect();
        for _ in 0..4 {
            assert_eq!(client.ask("POST", "/plans/hello", REQUEST).unwrap().status, 200);
        }
        clients.push(client);
    }
    let metrics = site.metrics();
    assert_eq!(metrics["ebbtide_connections"], 4.0, "the one that asks is one of them");
    assert_eq!(metrics["ebbtide_requests_total{plan=\"hello\",outcome=\"ok\"}"], 12.0);
    let _client = site.begin("stuck");
    site.process.gets(Signal::TERM);
    let said = site.process.ends();
    assert_eq!(books(&said, "hello"), [4, 4, 4], "{said:#?}");
}

#[test]
fn a_request_that_is_being_answered_when_the_stop_begins_is_answered() {
    let folder = Folder::new();
    let slow = folder.sleeping("slow", 1000);
    let mut site = Site::start([&*slow]);
    let mut client = site.begin("slow");
    site.process.gets(Signal::TERM);
    site.process.tells("stopping: SIGTERM");
    let answer = client.answer(false).unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert_eq!(site.process.ends().code, Some(0));
}

#[test]
fn a_connection_is_told_which_answer_is_its_last_and_a_silent_one_is_closed() {
    let mut site = Site::start(["hello"]);
    let (mut asks, silent) = (site.connect(), site.connect());
    assert_eq!(asks.ask("POST", "/plans/hello", REQUEST).unwrap().status, 200);
    site.process.gets(Signal::TERM);
    site.process.tells("stopping: SIGTERM");
    // The stop is told a moment before the listener closes.
    loop {
        let answer = asks.ask("POST", "/plans/hello", REQUEST).unwrap();
        assert_eq!(answer.status, 200);
        if answer.header("connection") == Some("close") {
            break;
        }
    }
    // This one never says anything: it does not hold the stop up.
    let said = site.process.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
    drop(silent);
}

#[test]
fn a_body_that_is_sent_during_the_stop_is_answered() {
    let mut site = Site::start(["hello"]);
    let mut client = site.connect();
    let head =
        format!("POST /plans/hello HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", REQUEST.len());
    client.send(head.as_bytes()).unwrap();
    while site.metrics()["ebbtide_requests_in_flight"] < 1.0 {}
    site.process.gets(Signal::TERM);
    site.process.tells("stopping: SIGTERM");
    client.send(REQUEST).unwrap();
    assert_eq!(client.answer(false).unwrap().status, 200);
    assert_eq!(site.process.ends().code, Some(0));
}

#[test]
fn a_client_that_does_not_send_its_head_or_take_its_answer_holds_up_no_stop() {
    let folder = Folder::new();
    // More than the system keeps for a client that does not read.
    let large = folder.plan("large", "fixed_source", r#"{"row_count": 1000000}"#);
    let site = Site::start([&*large]);
    let mut mute = site.connect();
    mute.send(b"POST /plans/large HTTP/1.1\r\nho").unwrap();
    let mut deaf = site.connect();
    deaf.send(b"POST /plans/large HTTP/1.1\r\nhost: test\r\ncontent-length: 14\r\n\r\n").unwrap();
    deaf.send(REQUEST).unwrap();
    assert!(!deaf.hears_nothing(PATIENCE), "its answer has begun");
    site.process.gets(Signal::TERM);
    let said = site.process.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
}

#[test]
fn a_server_drains_when_its_terminal_goes_unless_it_was_started_to_stay() {
    let mut site = Site::start(["hello"]);
    site.process.gets(Signal::HUP);
    site.process.tells("stopping: SIGHUP");
    assert_eq!(site.process.ends().code, Some(0));

    let site = Site::of(deaf_to_hangups(["serve", "hello", "--listen", "127.0.0.1:0"]));
    site.process.gets(Signal::HUP);
    assert_eq!(site.post("/plans/hello", REQUEST).status, 200);
    site.process.gets(Signal::TERM);
    let said = site.process.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
    said.complains(["stopping: SIGTERM"]);
}
