//! `ebbtide serve` on a real server that goes away and comes back.

use ebbtide::{
    lifecycle::time::{Clock as _, SystemClock},
    redis::testing::Server,
};
use rustix::process::Signal;

use super::{
    program::{PATIENCE, ebbtide},
    site::{REQUEST, Site},
};

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
