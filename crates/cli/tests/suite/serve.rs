//! `ebbtide serve`: what is answered where.

use std::time::Duration;

use rustix::process::Signal;

use super::{
    files::Folder,
    http::Client,
    program::ebbtide,
    site::{REQUEST, Site},
};

#[test]
fn plans_are_answered_by_their_names() {
    let site = Site::start(["hello", "plans/feed.json"]);
    let answer = site.post("/plans/hello", br#"{"user_id": 1, "request_id": "mine"}"#);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let printed =
        ebbtide(["run", "hello", "--request", r#"{"user_id": 1, "request_id": "mine"}"#]).ends_with(0);
    assert_eq!(answer.body, printed.out, "as it is printed");
    assert_eq!(site.post("/plans/feed", REQUEST).json()["candidates"].as_array().unwrap().len(), 10);

    let plans = site.get("/plans");
    assert_eq!(plans.status, 200);
    let plans = plans.json();
    assert_eq!((&plans["plans"][0]["name"], &plans["plans"][1]["name"]), (&"hello".into(), &"feed".into()));
    assert_eq!(plans["plans"][1]["deadline_ms"], 1000.0);
    assert_eq!(plans["plans"][0]["sample_request"]["request_id"], "hello");
}

#[test]
fn many_requests_are_answered_on_one_connection() {
    let site = Site::start(["hello"]);
    let mut client = site.connect();
    for _ in 0..20 {
        assert_eq!(client.ask("POST", "/plans/hello", REQUEST).unwrap().status, 200);
        assert_eq!(client.ask("POST", "/plans/hello", b"{").unwrap().status, 400);
        assert_eq!(client.ask("HEAD", "/plans", b"").unwrap().status, 200);
    }
}

#[test]
fn a_path_that_is_not_there_is_told_with_the_nearest() {
    let site = Site::start(["hello", "feed"]);
    let message = site.post("/plans/fed", REQUEST).is_error(404, "not_found");
    assert!(message.ends_with("(did you mean /plans/feed?)"), "{message}");
    for path in ["/", "/zzzzzzzzzzz", "/plans/zzzzzzzz", "/plans/hello/"] {
        let message = site.get(path).is_error(404, "not_found");
        assert!(message.contains(&format!("there is nothing at {path}")), "{message}");
    }
}

#[test]
fn a_method_that_is_not_allowed_is_told_with_those_that_are() {
    let site = Site::start(["hello"]);
    for (method, path, allowed) in [
        ("GET", "/plans/hello", "POST"),
        ("PUT", "/plans/hello", "POST"),
        ("POST", "/plans", "GET, HEAD"),
        ("DELETE", "/metrics", "GET, HEAD"),
        ("POST", "/health/live", "GET, HEAD"),
    ] {
        let answer = site.ask(method, path, b"");
        answer.is_error(405, "not_allowed");
        assert_eq!(answer.header("allow"), Some(allowed));
    }
}

#[test]
fn requests_that_are_wrong_are_told_why_with_400() {
    let site = Site::start(["hello"]);
    let table: [(&[u8], &str); 5] = [
        (b"", "the request is not JSON"),
        (b"{\"user_id\": ", "the request is not JSON"),
        (b"[]", "expected an object"),
        (b"{\"user\": 1}", "the request has no field \"user\""),
        (b"{\"user_id\": \xff}", "the request is not UTF-8 text"),
    ];
    for (body, why) in table {
        let message = site.post("/plans/hello", body).is_error(400, "bad_request");
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn a_deadline_is_504_and_a_failure_500_with_the_node() {
    let folder = Folder::new();
    let (slow, broken) = (folder.sleeping("slow", 60_000), folder.failing("broken"));
    let site = Site::start([&*slow, &*broken, "--deadline-ms", "30"]);
    site.post("/plans/slow", REQUEST).is_error(504, "R001");
    let message = site.post("/plans/broken", REQUEST).is_error(500, "R004");
    assert!(message.contains("\"broken\"") && message.contains("told to fail after its sleep"), "{message}");
    let site = Site::start([&*slow, "--node-timeout-ms", "30"]);
    let message = site.post("/plans/slow", REQUEST).is_error(504, "R003");
    assert!(message.contains("\"slow\""), "{message}");
}

#[test]
fn metrics_count_what_was_answered() {
    let folder = Folder::new();
    let broken = folder.failing("broken");
    let site = Site::start(["late", "hello", &*broken]);
    for _ in 0..5 {
        site.post("/plans/hello", REQUEST);
    }
    for _ in 0..2 {
        site.post("/plans/hello", b"nonsense");
    }
    site.post("/plans/late", REQUEST);
    site.post("/plans/broken", REQUEST);
    site.post("/plans/nowhere", REQUEST);
    let metrics = site.metrics();
    let count = |plan: &str, outcome: &str| {
        metrics[&format!("ebbtide_requests_total{{plan=\"{plan}\",outcome=\"{outcome}\"}}")]
    };
    assert_eq!((count("hello", "ok"), count("hello", "wrong")), (5.0, 2.0));
    assert_eq!((count("late", "timed_out"), count("late", "ok")), (1.0, 0.0));
    assert_eq!((count("broken", "failed"), count("broken", "ok")), (1.0, 0.0));
    for (plan, all) in [("hello", 7.0), ("late", 1.0), ("broken", 1.0)] {
        assert_eq!(metrics[&format!("ebbtide_request_seconds_count{{plan=\"{plan}\"}}")], all);
        let begin = format!("ebbtide_request_seconds_bucket{{plan=\"{plan}\",le=\"");
        let mut buckets: Vec<(f64, f64)> = metrics
            .iter()
            .filter_map(|(name, count)| {
                let end = name.strip_prefix(&begin)?.strip_suffix("\"}")?;
                Some((end.replace("+Inf", "inf").parse().unwrap(), *count))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.is_sorted_by_key(|(_, count)| *count), "{buckets:?}");
        assert_eq!(*buckets.last().unwrap(), (f64::INFINITY, all));
    }
    assert!(metrics["ebbtide_request_seconds_sum{plan=\"late\"}"] >= 0.05, "{metrics:#?}");
    assert_eq!(metrics["ebbtide_requests_in_flight"], 0.0);
    assert_eq!(metrics["ebbtide_requests_refused_total"], 0.0);
}

#[test]
fn health_is_told_here_and_by_a_thread_of_its_own() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site = Site::start(["hello", "--health", &port.to_string()]);
    for (path, body) in [("/health/live", "live\n"), ("/health/ready", "ready\n")] {
        let answer = site.get(path);
        assert_eq!((answer.status, &*answer.body), (200, body));
        assert_eq!(Client::connect(port).unwrap().ask("GET", path, b"").unwrap().status, 200, "{path}");
    }
}

#[test]
fn readiness_goes_off_before_the_listener_does() {
    let mut site = Site::start(["hello", "--readiness-delay-ms", "1500"]);
    site.process.gets(Signal::TERM);
    site.process.tells("stopping: SIGTERM");
    let ready = site.get("/health/ready");
    assert_eq!((ready.status, &*ready.body), (503, "stopping\n"));
    assert_eq!(site.get("/health/live").status, 200);
    assert_eq!(site.post("/plans/hello", REQUEST).status, 200, "still served");
    let said = site.process.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
}

#[test]
fn two_plans_of_one_name_are_refused() {
    let said = ebbtide(["serve", "hello", "plans/hello.json", "--listen", "127.0.0.1:0"]).ends_with(65);
    said.complains(["there are two plans \"hello\""]);
}

#[test]
fn a_plan_is_found_by_its_name_as_a_url_has_to_write_it() {
    let folder = Folder::new();
    let plan = folder.file(
        "odd.json",
        r#"{"schema_version": 1, "plan_name": "größe/1 %", "outputs": ["s"],
            "nodes": [{"node_id": "s", "op": "sleep", "params": {"duration_ms": 0}}]}"#,
    );
    let site = Site::start([&*plan]);
    for path in ["/plans/gr%C3%B6%C3%9Fe%2F1%20%25", "/plans/gr%c3%b6%c3%9fe/1%20%25"] {
        assert_eq!(site.post(path, REQUEST).status, 200, "{path}");
    }
    site.post("/plans/gr%FF", REQUEST).is_error(404, "not_found");
}

#[test]
fn a_body_may_come_in_pieces() {
    let (site, body) = (Site::start(["hello"]), br#"{"user_id":1,"request_id":"mine"}"#);
    let expected = site.post("/plans/hello", body).body;
    let (one, other) = body.split_at(body.len() / 2);
    let mut client = site.connect();
    let head = format!("POST /plans/hello HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", body.len());
    for piece in [head.as_bytes(), one] {
        client.send(piece).unwrap();
        assert!(client.hears_nothing(Duration::from_millis(20)));
    }
    client.send(other).unwrap();
    assert_eq!(client.answer(false).unwrap().body, expected);

    let chunks: String = body.iter().map(|byte| format!("1\r\n{}\r\n", char::from(*byte))).collect();
    let head = "POST /plans/hello HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n";
    for end in ["0\r\n\r\n", "0\r\nx-trailer: it ends\r\n\r\n"] {
        client.send(format!("{head}{chunks}{end}").as_bytes()).unwrap();
        assert_eq!(client.answer(false).unwrap().body, expected);
    }
}

#[test]
fn requests_may_be_sent_before_the_last_is_answered() {
    let site = Site::start(["hello"]);
    let mut client = site.connect();
    let request = |nth: usize| {
        let body = format!(r#"{{"user_id":1,"request_id":"r{nth:02}"}}"#);
        format!("POST /plans/hello HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    // More than hyper answers at a time.
    client.send((0..50).map(request).collect::<String>().as_bytes()).unwrap();
    for nth in 0..50 {
        assert_eq!(client.answer(false).unwrap().json()["request_id"], format!("r{nth:02}"));
    }
}
