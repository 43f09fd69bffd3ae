//! `ebbtide serve`, and `bench`, on a real server that goes away and comes back.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    time::Duration,
};

use ebbtide::{
    lifecycle::{
        time::{Clock as _, SystemClock, ThreadTimer, Timer as _},
        wait::block_on,
    },
    redis::testing::Server,
};
use rustix::process::Signal;

use super::{
    loader::crowd,
    program::{PATIENCE, ebbtide},
    site::{REQUEST, Site},
};

/// How many users a server was asked for, which requests for the feed do once each.
fn asked(server: &Server) -> u64 {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"INFO commandstats\r\nQUIT\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let stats = lines.find_map(|line| line.strip_prefix("cmdstat_hgetall:calls=").map(str::to_owned));
    stats.map_or(0, |stats| stats.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn a_server_that_is_killed_fails_its_node_and_one_that_is_back_is_used_again() {
    let mut server = Server::start();
    let url = format!("redis://{}", server.address());
    let site = Site::start(["feed", "hello", "--redis", &url, "--load-demo-data"]);
    let answer = site.post("/plans/feed", br#"{"user_id": 1, "request_id": "f"}"#);
    assert_eq!(answer.status, 200, "{answer:#?}");
    let embedded = ebbtide(["run", "feed", "--request", r#"{"user_id": 1, "request_id": "f"}"#]).ends_with(0);
    assert_eq!(answer.body, embedded.out, "as from the embedded data");

    server.kill();
    // Well before the plan's deadline, which would only say that it took too long.
    let answer = site.post("/plans/feed", REQUEST);
    let message = answer.is_error(500, "R004");
    assert!(message.contains("node \"viewer\"") && message.contains("endpoint \"default\""), "{message}");
    assert_eq!(site.post("/plans/hello", REQUEST).status, 200, "who needs no server needs no server");
    assert_eq!(site.get("/health/live").status, 200);

    server.restart();
    let until = SystemClock.now() + PATIENCE;
    while site.post("/plans/feed", REQUEST).status != 200 {
        assert!(SystemClock.now() < until, "it is never used again");
    }
    site.process.gets(Signal::TERM);
    let said = site.process.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
}

#[test]
fn a_server_that_is_killed_under_load_costs_answers_only_while_it_is_away() {
    let mut server = Server::start();
    let url = format!("redis://{}", server.address());
    let site = Site::start(["feed", "--redis", &url, "--load-demo-data"]);
    let statuses = crowd(site.address, 16, "/plans/feed", || {
        while site.post("/plans/feed", REQUEST).status != 200 {}
        server.kill();
        while site.post("/plans/feed", REQUEST).status == 200 {}
        server.restart();
        let until = SystemClock.now() + PATIENCE;
        while site.post("/plans/feed", REQUEST).status != 200 {
            assert!(SystemClock.now() < until, "it is never used again");
        }
    });
    assert!(statuses.is_subset(&[200, 500, 503, 504].into()), "{statuses:?}");
    assert!(statuses.contains(&200) && statuses.contains(&500), "{statuses:?}");
    site.process.gets(Signal::TERM);
    let said = site.process.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
}

#[test]
fn a_bench_counts_what_fails_while_its_server_is_away_and_goes_on() {
    let mut server = Server::start();
    let url = format!("redis://{}", server.address());
    let args = ["bench", "feed", "--redis", &url, "--load-demo-data", "--requests", "1000000000", "--json"];
    let mut bench = ebbtide(args).start();
    bench.close_input();
    while asked(&server) < 100 {}
    server.kill();
    // For longer than a command waits for a connection.
    let timer = ThreadTimer::start().unwrap();
    block_on(timer.sleep_until(timer.now() + Duration::from_millis(600)));
    server.restart();
    while asked(&server) < 100 {}
    bench.gets(Signal::INT);
    let said = bench.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
    let json = said.json();
    assert!(json["failed"].as_u64() > Some(0) && json["ok"].as_u64() > Some(0), "{json}");
    assert_eq!(
        json["ok"].as_u64().zip(json["failed"].as_u64()).map(|(ok, failed)| ok + failed),
        json["requests"].as_u64()
    );
}

#[test]
fn an_endpoints_file_names_servers_with_their_timeouts() {
    let server = Server::start();
    let (url, folder) = (format!("redis://{}", server.address()), super::files::Folder::new());
    ebbtide(["run", "feed", "--redis", &url, "--load-demo-data"]).ends_with(0);
    let endpoints = folder.file(
        "endpoints.json",
        format!(r#"{{"default": {{"redis": "{url}", "max_in_flight": 4, "request_timeout_ms": 5000}}}}"#),
    );
    let request = r#"{"user_id": 9, "request_id": "e"}"#;
    let said =
        ebbtide(["run", "feed", "--endpoints", &endpoints, "--request", request, "--deadline-ms", "20000"]);
    assert_eq!(said.ends_with(0).out, ebbtide(["run", "feed", "--request", request]).ends_with(0).out);
    let said =
        ebbtide(["bench", "feed", "--redis", &url, "--requests", "50", "--concurrency", "10", "--json"]);
    let json = said.ends_with(0).json();
    assert_eq!((&json["requests"], &json["failed"]), (&50.into(), &0.into()), "{json}");
}
