//! On a server of Redis.

use std::{collections::HashMap, net::SocketAddr};

use ebbtide_rank::{Column, Rows};
use ebbtide_redis::testing::Server;
use redis::{AsyncCommands, aio::MultiplexedConnection};
use serde::Deserialize;
use tokio::runtime::{Builder, Runtime};

use super::{
    by_hand::{ByHand, Feed, Inline, Source},
    crowd::{Match, against, play},
    ours::Ours,
};
use crate::contest::Table;

const PEER: &str = "tokio + redis, by hand at its best";

pub(super) fn run() -> Vec<Table> {
    let server = Server::start();
    let one = Match { concurrency: 1, requests: 200, rounds: 31 };
    let many = Match { concurrency: 100, requests: 600, rounds: 31 };
    let mut tables = Vec::new();
    let titles = [
        ("the feed on Redis, one at a time, a request", "the feed on Redis, one at a time, p99"),
        ("the feed on Redis, 100 at a time, a request", "the feed on Redis, 100 at a time, p99"),
    ];
    for (terms, (title, p99)) in [one, many].iter().zip(titles) {
        eprintln!("{title} …");
        // It fills the server.
        let mut ours = Ours::redis(server.address());
        let runtime = current_thread();
        let source = runtime.block_on(Multiplexed::connect(server.address()));
        let mut by_hand = ByHand::new(runtime, Inline(Feed::new(source)));
        let shown = play(terms, &mut [&mut by_hand, &mut ours]);
        tables.push(against(title, "ns", [PEER], [&shown.times[0]], &shown.times[1], Some(0.77)));
        tables.push(against(p99, "µs", [PEER], [&shown.p99[0]], &shown.p99[1], Some(1.0)));
    }
    tables
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime of one thread")
}

/// One connection for all requests; what one request wants at a time is a pipeline.
struct Multiplexed(MultiplexedConnection);

/// A post, as it is kept.
#[derive(Deserialize)]
struct Post<'a> {
    id: i64,
    author: i64,
    likes: i64,
    age_hours: i64,
    score: Option<f64>,
    title: &'a str,
    country: &'a str,
}

impl Multiplexed {
    async fn connect(address: SocketAddr) -> Self {
        let client = redis::Client::open(format!("redis://{address}")).expect("an address");
        Self(client.get_multiplexed_async_connection().await.expect("the server is there"))
    }

    /// The lists `name:id` of these ids.
    async fn lists(&self, name: &str, ids: &[i64], most: usize) -> Vec<Vec<Vec<u8>>> {
        if ids.is_empty() {
            return Vec::new();
        }
        let mut pipeline = redis::pipe();
        for id in ids {
            pipeline.lrange(format!("{name}:{id}"), 0, most as isize - 1);
        }
        pipeline.query_async(&mut self.0.clone()).await.expect("they are lists")
    }
}

impl Source for Multiplexed {
    async fn viewer(&self, user: i64) -> Rows {
        let hash: HashMap<String, String> =
            self.0.clone().hgetall(format!("user:{user}")).await.expect("it is a hash");
        let text = |name: &str| hash.get(name).map(String::as_str);
        let age: Option<i64> = hash.get("age").map(|age| age.parse().expect("a number"));
        let premium: Option<bool> = hash.get("premium").map(|premium| premium == "true");
        let columns = [
            ("age", Column::collect([age])),
            ("premium", Column::collect([premium])),
            ("country", Column::collect([text("country")])),
            ("language", Column::collect([text("language")])),
        ];
        let rows = Rows::new(vec![user]).expect("one");
        columns.into_iter().fold(rows, |rows, (name, column)| {
            rows.with(name, column.expect("of one kind")).expect("as long as the others")
        })
    }

    async fn users(&self, name: &'static str, ids: &[i64], most: usize) -> Rows {
        let lists = self.lists(name, ids, most).await;
        let id = |item: &Vec<u8>| serde_json::from_slice(item).expect("an id");
        Rows::new(lists.iter().flatten().map(id).collect()).expect("some")
    }

    async fn media(&self, ids: &[i64], most: usize) -> Rows {
        let lists = self.lists("media", ids, most).await;
        let post = |item| serde_json::from_slice::<Post<'_>>(item).expect("a post");
        let posts: Vec<Post<'_>> = lists.iter().flatten().map(|item| post(item)).collect();
        let ints = |field: fn(&Post<'_>) -> i64| Column::ints(posts.iter().map(field).collect());
        let score = Column::collect(posts.iter().map(|post| post.score)).expect("of one kind");
        let columns = [
            ("author", ints(|post| post.author)),
            ("likes", ints(|post| post.likes)),
            ("age_hours", ints(|post| post.age_hours)),
            ("score", score),
            ("title", Column::texts(posts.iter().map(|post| post.title))),
            ("country", Column::texts(posts.iter().map(|post| post.country))),
        ];
        let rows = Rows::new(posts.iter().map(|post| post.id).collect()).expect("some");
        columns
            .into_iter()
            .fold(rows, |rows, (name, column)| rows.with(name, column).expect("as long as the others"))
    }
}
