//! Sources on a real server.

use std::{
    fs,
    future::{pending, poll_fn},
    io, mem,
    net::TcpStream,
    path::Path,
    pin::pin,
    time::Duration,
};

use ebbtide_dag::Env;
use ebbtide_lifecycle::{
    time::{Clock as _, Deadline, SystemClock, VirtualClock},
    wait::block_on_by,
};
use ebbtide_offload::Pool;
use ebbtide_rank::{DEFAULT, Endpoint, Endpoints, Fields, Kind, ReadWhy, Request, Rows, demo, registry};
use ebbtide_reactor::{Async, EventLoop};
use ebbtide_redis::{Command, Link, Settings, testing::Server};

use super::{ids, scalars, values};

/// Longer than anything here takes, and shorter than anybody's patience.
const AGES: Duration = Duration::from_secs(30);

/// A server, and a loop with a link to it.
struct Site {
    link: Link,
    events: EventLoop,
    server: Server,
}

fn site() -> Site {
    let server = Server::start();
    let events = EventLoop::new();
    events.start().expect("it was not started before");
    let (spawner, address) = (events.handle(), server.address());
    let mut settings = Settings::default();
    settings.patience = Duration::from_millis(200);
    settings.backoff = Duration::from_millis(10);
    let link = Link::new(
        address.to_string(),
        settings,
        events.handle(),
        move || Async::<TcpStream>::connect(address),
        move |driver| drop(spawner.spawn(driver)),
    );
    Site { link, events, server }
}

impl Site {
    fn endpoint(&self, max_in_flight: usize) -> Endpoint {
        Endpoint::redis("cache", self.link.clone(), max_in_flight)
    }

    fn put(&self, command: Command) {
        finish(self.link.ask(command)).unwrap();
    }
}

fn finish<F: Future>(future: F) -> F::Output {
    block_on_by(future, Deadline::after(SystemClock, AGES)).expect("it ends")
}

#[test]
fn a_hash_on_a_server_is_guessed_or_read_as_declared() {
    let site = site();
    site.put(
        Command::new("HSET").arg("user:1").arg("age").arg("31").arg("zip").arg("007").arg("new").arg("true"),
    );
    let endpoint = site.endpoint(4);
    let rows = finish(endpoint.hash("user", 1, &Fields::default())).unwrap();
    assert_eq!((values(&rows, "age"), values(&rows, "zip")), (scalars([31]), scalars(["007"])));
    assert_eq!(values(&rows, "new"), scalars([true]));

    let declared = Fields::default().field("age", Kind::Text).field("city", Kind::Text);
    let rows = finish(endpoint.hash("user", 1, &declared)).unwrap();
    assert_eq!((values(&rows, "age"), values(&rows, "city")), (scalars(["31"]), scalars([None::<&str>])));
    assert_eq!(rows.columns().len(), 2, "what is not declared is left out");
    let missing = finish(endpoint.hash("user", 2, &declared)).unwrap();
    assert_eq!((ids(&missing), values(&missing, "age")), (vec![2], scalars([None::<&str>])));

    let error = finish(endpoint.hash("user", 1, &Fields::default().field("zip", Kind::Int))).unwrap_err();
    assert_eq!(error.to_string(), "endpoint \"cache\", key \"user:1\": field \"zip\" is not int but 007");
}

#[test]
fn lists_on_a_server_are_read_in_order_however_few_may_be_in_flight() {
    let site = site();
    for id in 0..50_u64 {
        let item = |nth: u64| format!("{{\"id\": {}, \"score\": 0.{nth}5}}", id * 10 + nth);
        site.put(
            Command::new("RPUSH")
                .arg(format!("media:{id}"))
                .arg(item(0))
                .arg(item(1))
                .arg((id * 10 + 2).to_string()),
        );
    }
    let all: Vec<i64> = (0..60).collect();
    let expected: Vec<i64> = (0..50).flat_map(|id| [id * 10, id * 10 + 1]).collect();
    for max_in_flight in [1, 7, 1000] {
        let endpoint = site.endpoint(max_in_flight);
        let rows = finish(endpoint.lists("media", &all, 2, &Fields::default())).unwrap();
        assert_eq!(ids(&rows), expected);
        assert_eq!(rows.get(1, "score"), Some(0.15.into()));
    }
}

#[test]
fn what_is_wrong_on_a_server_is_told_with_endpoint_and_key() {
    let site = site();
    site.put(Command::new("SET").arg("media:2").arg("x"));
    site.put(Command::new("RPUSH").arg("media:3").arg("{\"id\": 1, \"x\": 2").arg("1"));
    site.put(Command::new("RPUSH").arg("media:4").arg("hello"));
    site.put(
        Command::new("RPUSH").arg("media:5").arg("{\"id\": 1, \"x\": 1}").arg("{\"id\": 2, \"x\": \"a\"}"),
    );
    let endpoint = site.endpoint(8);
    let read = |id: i64| finish(endpoint.lists("media", &[1, id], 9, &Fields::default())).unwrap_err();
    let address = site.link.address();
    let wrong = format!("endpoint \"cache\", key \"media:2\": LRANGE at {address}: WRONGTYPE");
    assert!(read(2).to_string().starts_with(&wrong), "{}", read(2));
    let table = [
        (3, "EOF while parsing an object"),
        (4, "an item cannot be read: expected value"),
        (5, "column \"x\": a value is text"),
    ];
    for (id, expected) in table {
        let error = read(id);
        assert_eq!((error.endpoint(), error.key()), ("cache", &*format!("media:{id}")));
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = finish(endpoint.hash("media", 3, &Fields::default())).unwrap_err();
    assert!(matches!(error.why(), ReadWhy::Redis(_)), "{error}");
}

#[test]
fn the_feed_is_the_same_on_a_server_as_on_the_embedded_store() {
    let site = site();
    assert_eq!(finish(demo::load(&site.link)).unwrap(), 800);
    assert_eq!(finish(demo::load(&site.link)).unwrap(), 800, "again, in the place of what is there");
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/feed.json")).unwrap();
    let pool = Pool::new().unwrap();
    let run = |endpoints: &Endpoints, user: i64| -> Rows {
        let timer = site.events.handle();
        let plan = registry(timer.clone(), endpoints).plan(&text).unwrap();
        let engine = plan.bind(endpoints.bind(Env::new(timer).pool(&pool))).unwrap();
        finish(engine.run(Request::new(user))).unwrap().remove(0).into_inner()
    };
    let embedded = Endpoints::demo();
    let server = Endpoints::demo().with(Endpoint::redis(DEFAULT, site.link.clone(), 64));
    for user in [1, 2, 17, 50, 100, 199, 200, 777] {
        let rows = run(&server, user);
        assert_eq!(rows.to_json("r"), run(&embedded, user).to_json("r"), "user {user}");
    }
}

#[test]
fn a_server_that_is_gone_fails_the_read_and_one_that_is_back_is_read_again() {
    let mut site = site();
    site.put(Command::new("RPUSH").arg("follow:1").arg("2"));
    let endpoint = site.endpoint(8);
    let read = || finish(endpoint.lists("follow", &[1], 9, &Fields::default()));
    assert_eq!(ids(&read().unwrap()), [2]);
    site.server.kill();
    let error = read().unwrap_err();
    assert!(error.to_string().starts_with("endpoint \"cache\", key \"follow:1\": LRANGE at "), "{error}");
    site.server.restart();
    // It may meet the end of the old connection once more.
    let back = (0..20).find_map(|_| read().ok());
    assert_eq!(ids(&back.expect("the link connects again")), [2]);
}

#[test]
fn a_read_that_still_waits_for_its_turn_at_its_deadline_is_given_up_and_not_sent() {
    // A server that takes connections and never answers, in virtual time.
    let clock = VirtualClock::new();
    let mut settings = Settings::default();
    settings.timeout = Duration::from_secs(60);
    settings.patience = Duration::from_secs(60);
    let silent = || pending::<io::Result<Async<TcpStream>>>();
    let link = Link::new("silent", settings, clock.clone(), silent, mem::forget);
    let endpoint = Endpoint::redis("cache", link.clone(), 1);
    let within = |time| Deadline::after(&clock, time);
    let none = Fields::default();
    let mut sent = pin!(endpoint.hash_by("user", 1, &none, within(Duration::from_secs(1))));
    let mut waits = pin!(endpoint.lists_by("follow", &[2], 9, &none, within(Duration::from_secs(1))));
    let mut patient = pin!(endpoint.hash("user", 3, &none));
    let begin = clock.now();
    let error = clock.block_on(poll_fn(|cx| {
        assert!(
            sent.as_mut().poll(cx).is_pending(),
            "it was sent: its place is its own until it is answered"
        );
        assert!(patient.as_mut().poll(cx).is_pending());
        waits.as_mut().poll(cx)
    }));
    assert!(matches!(error.unwrap_err().why(), ReadWhy::NoTurn));
    let waited = clock.now() - begin;
    assert!((1000..1100).contains(&waited.as_millis()), "{waited:?}");
    let error = clock.block_on(poll_fn(|cx| {
        assert!(sent.as_mut().poll(cx).is_pending());
        patient.as_mut().poll(cx)
    }));
    assert!(error.unwrap_err().to_string().contains("key \"user:3\": not sent, as many commands"));
    assert_eq!(clock.now() - begin, Duration::from_secs(5), "without a deadline, too");
    assert_eq!(link.in_flight(), 1, "nothing else was sent");
}
