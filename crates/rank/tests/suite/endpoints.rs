//! Files of endpoints: what they say, and what is wrong with them.

use std::{cell::RefCell, fs, net::TcpStream, path::PathBuf, time::Duration};

use ebbtide_lifecycle::{time::VirtualClock, wait::block_on};
use ebbtide_rank::{Endpoints, Fields, Server};
use ebbtide_reactor::Async;
use ebbtide_redis::{Link, Settings};

use super::ids;

/// A folder of its own for a test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rank-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A link that nobody drives.
fn idle(server: &Server, settings: Settings) -> Link {
    let connect = || async { Err::<Async<TcpStream>, _>(std::io::Error::other("nobody is there")) };
    Link::new(server.to_string(), settings, VirtualClock::new(), connect, drop)
}

#[test]
fn a_file_names_stores_beside_it_and_servers_with_their_limits() {
    let folder = Folder::new("endpoints");
    folder.file("small.json", r#"{"follow:1": [7]}"#);
    let file = folder.file(
        "endpoints.json",
        r#"{
            "small": {"store": "small.json"},
            "cache": {"redis": "redis://u:p%40ss@cache.local:7000/3", "max_in_flight": 64,
                      "connect_timeout_ms": 200, "request_timeout_ms": 100},
            "plain": {"redis": "redis://localhost"}
        }"#,
    );
    let asked = RefCell::new(Vec::new());
    let endpoints = Endpoints::open(&file, |server, settings| {
        asked.borrow_mut().push((server.to_string(), settings.clone()));
        idle(server, settings)
    })
    .unwrap();
    assert_eq!(endpoints.ids().collect::<Vec<_>>(), ["cache", "default", "plain", "small"]);
    assert_eq!(endpoints.links().count(), 2);
    let small = endpoints.get("small").unwrap();
    let rows = block_on(small.lists("follow", &[1], 9, &Fields::default())).unwrap();
    assert_eq!(ids(&rows), [7]);
    let asked = asked.into_inner();
    let find = |address: &str| &asked.iter().find(|(server, _)| server == address).unwrap().1;
    let cache = find("redis://cache.local:7000/3");
    assert_eq!((cache.patience, cache.timeout), (Duration::from_millis(200), Duration::from_millis(100)));
    let greeting: Vec<String> = cache.greeting.iter().map(ToString::to_string).collect();
    assert_eq!(greeting, ["AUTH with 2 arguments", "SELECT with 1 arguments"]);
    assert!(cache.greeting[0].pack().ends_with(b"p@ss\r\n"));
    assert!(find("redis://localhost:6379").greeting.is_empty());
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_file_endpoint_and_field() {
    let folder = Folder::new("bad-endpoints");
    folder.file("broken.json", r#"{"user": {}}"#);
    let table = [
        ("{", "it is not JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "expected an object with endpoints by id"),
        (r#"{"a": 3}"#, "endpoint \"a\": expected an object, such as {\"store\": \"demo.json\"}"),
        (r#"{"a": {}}"#, "endpoint \"a\": it has neither `store` nor `redis`: say where it is"),
        (r#"{"a": {"stor": "x"}}"#, "endpoint \"a\": there is no field \"stor\" (did you mean \"store\"?)"),
        (
            r#"{"a": {"store": "x", "redis": "y"}}"#,
            "endpoint \"a\": it has both `store` and `redis`: leave one of them out",
        ),
        (r#"{"a": {"store": 3}}"#, "endpoint \"a\": `store`: expected a string, got 3"),
        (
            r#"{"a": {"store": "x", "max_in_flight": 3}}"#,
            "endpoint \"a\": `max_in_flight` is for servers, and this is a store",
        ),
        (
            r#"{"a": {"redis": "localhost"}}"#,
            "endpoint \"a\": `redis`: \"localhost\": it does not begin with redis://, as in redis://127.0.0.1:6379",
        ),
        (
            r#"{"a": {"redis": "redis://x", "max_in_flight": 0}}"#,
            "endpoint \"a\": `max_in_flight`: expected an integer of 1 to 10000, got 0",
        ),
        (
            r#"{"a": {"redis": "redis://x", "request_timeout_ms": "1s"}}"#,
            "endpoint \"a\": `request_timeout_ms`: expected an integer of 1 to 3600000, got \"1s\"",
        ),
    ];
    for (text, expected) in table {
        let file = folder.file("endpoints.json", text);
        let error = Endpoints::open(&file, idle).expect_err(text).to_string();
        assert_eq!(error, format!("{}: {expected}", file.display()));
    }
    let file = folder.file("endpoints.json", r#"{"a": {"store": "broken.json"}}"#);
    let error = Endpoints::open(&file, idle).unwrap_err().to_string();
    assert!(
        error.contains("endpoint \"a\": `store`: ") && error.contains("broken.json: key \"user\""),
        "{error}"
    );
    let file = folder.file("endpoints.json", r#"{"a": {"store": "nowhere.json"}}"#);
    let error = Endpoints::open(&file, idle).unwrap_err().to_string();
    assert!(error.contains("nowhere.json: No such file"), "{error}");
    let error = Endpoints::open(&folder.0.join("none.json"), idle).unwrap_err();
    assert!(error.is_unreadable(), "{error}");
    let error = error.to_string();
    assert!(error.starts_with("cannot read ") && error.contains("none.json: No such file"), "{error}");
    let file = folder.file("endpoints.json", &" ".repeat((1 << 20) + 1));
    let error = Endpoints::open(&file, idle).unwrap_err().to_string();
    assert!(error.ends_with("endpoints.json: it has more than 1048576 bytes"), "{error}");
}

#[test]
fn a_server_is_read_from_its_address() {
    let table = [
        ("redis://localhost", Ok("redis://localhost:6379")),
        ("redis://127.0.0.1:7000/2", Ok("redis://127.0.0.1:7000/2")),
        ("redis://[::1]:7000", Ok("redis://[::1]:7000")),
        ("redis://[::1]", Ok("redis://[::1]:6379")),
        ("redis://user:secret@h/", Ok("redis://h:6379")),
        ("redis://", Err("it has no host")),
        ("redis://:7000", Err("it has no host")),
        ("redis://h:x", Err("its port is not a number of 1 to 65535")),
        ("redis://h/x", Err("its database is not a number")),
        ("redis://a%4@h", Err("a % in its user or password is not followed by two hexadecimal digits")),
        ("rediss://h", Err("there is no TLS here: use redis://, and a tunnel where that is not enough")),
        ("http://h", Err("it does not begin with redis://, as in redis://127.0.0.1:6379")),
    ];
    for (text, expected) in table {
        let read = text.parse::<Server>();
        assert!(!format!("{read:?}").contains("secret"), "a password is not shown");
        let read = read.map(|server| server.to_string()).map_err(|error| error.to_string());
        assert_eq!(read, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }
}
