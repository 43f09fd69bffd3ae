//! The plan as one would write it by hand on tokio.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use ebbtide_rank::{Endpoint, Endpoints, Expr, Fields, Kind, Order, Pred, Request, Rows, Vars};
use futures_util::{StreamExt, future::join, stream::FuturesUnordered};
use tokio::{
    runtime::Runtime,
    task::{spawn_blocking, yield_now},
    time::timeout,
};

use super::crowd::{Contender, Crowd};

/// How long an answer may take, as the plan says.
const DEADLINE: Duration = Duration::from_secs(1);

/// How many of whom the user follows, of those recommended, and of the posts of each; how many are shown.
const FOLLOWS: usize = 20;
const RECOMMENDATIONS: usize = 10;
const FOLLOWED_MEDIA: usize = 10;
const RECOMMENDED_MEDIA: usize = 5;
const TOP: usize = 10;

/// Where rows come from.
pub(super) trait Source: Send + Sync + 'static {
    fn viewer(&self, user: i64) -> impl Future<Output = Rows> + Send;

    /// Users: the lists `name:id` of these ids.
    fn users(&self, name: &'static str, ids: &[i64], most: usize) -> impl Future<Output = Rows> + Send;

    fn media(&self, ids: &[i64], most: usize) -> impl Future<Output = Rows> + Send;
}

/// The embedded data set, with the columns that are wanted.
pub(super) struct Embedded {
    store: Arc<Endpoint>,
    viewer: Fields,
    media: Fields,
    none: Fields,
}

impl Embedded {
    pub(super) fn new() -> Self {
        Self {
            store: Endpoints::demo().get(ebbtide_rank::DEFAULT).expect("it is always there").clone(),
            viewer: Fields::default()
                .field("age", Kind::Int)
                .field("premium", Kind::Bool)
                .field("country", Kind::Text)
                .field("language", Kind::Text),
            media: Fields::default()
                .field("author", Kind::Int)
                .field("likes", Kind::Int)
                .field("age_hours", Kind::Int)
                .field("score", Kind::Float)
                .field("title", Kind::Text)
                .field("country", Kind::Text),
            none: Fields::default(),
        }
    }
}

impl Source for Embedded {
    async fn viewer(&self, user: i64) -> Rows {
        self.store.hash("user", user, &self.viewer).await.expect("it is there")
    }

    async fn users(&self, name: &'static str, ids: &[i64], most: usize) -> Rows {
        self.store.lists(name, ids, most, &self.none).await.expect("they are lists")
    }

    async fn media(&self, ids: &[i64], most: usize) -> Rows {
        self.store.lists("media", ids, most, &self.media).await.expect("they are lists")
    }
}

/// The expressions of the plan, and its data.
pub(super) struct Feed<S> {
    source: S,
    rank: Expr,
    fresh: Pred,
}

impl<S: Source> Feed<S> {
    pub(super) fn new(source: S) -> Arc<Self> {
        let rank = "coalesce(score, 0.1) * 10 + min(likes, 100) * 0.05 - age_hours * 0.02";
        let fresh = "age_hours <= coalesce($max_age_hours, 72) and rank > 0";
        let (rank, fresh) = (rank.parse().expect("an expression"), fresh.parse().expect("a predicate"));
        Arc::new(Self { source, rank, fresh })
    }

    fn rank(&self, rows: Rows, vars: &Vars) -> Rows {
        rows.compute("rank", &self.rank, vars).expect("it has the columns")
    }

    fn fresh(&self, rows: &Rows, vars: &Vars) -> Rows {
        rows.filter(&self.fresh, vars).expect("it has the columns")
    }
}

fn concat(parts: [&Rows; 2]) -> Rows {
    Rows::concat(&parts).expect("they have the same columns")
}

fn sort(rows: &Rows) -> Rows {
    rows.sort("rank", Order::Descending).expect("it has the column")
}

fn ids(rows: &Rows) -> Vec<i64> {
    rows.ids().collect()
}

/// A way to answer.
pub(super) trait Program: Send + Sync + 'static {
    fn feed(self: Arc<Self>, request: Arc<Request>) -> impl Future<Output = Rows> + Send;
}

/// Its best form: what is cheap in place, and in parallel what can be.
pub(super) struct Inline<S>(pub(super) Arc<Feed<S>>);

impl<S: Source> Program for Inline<S> {
    async fn feed(self: Arc<Self>, request: Arc<Request>) -> Rows {
        let Feed { source, .. } = &*self.0;
        let viewer = ids(&source.viewer(request.user_id).await);
        let followed = async {
            let follows = source.users("follow", &viewer, FOLLOWS).await;
            source.media(&ids(&follows), FOLLOWED_MEDIA).await
        };
        let recommended = async {
            let users = source.users("recommendation", &viewer, RECOMMENDATIONS).await;
            source.media(&ids(&users), RECOMMENDED_MEDIA).await
        };
        let (followed, recommended) = join(followed, recommended).await;
        let ranked = self.0.rank(concat([&followed, &recommended]), &request.params);
        sort(&self.0.fresh(&ranked, &request.params)).take(TOP)
    }
}

/// A future for each node, and a thread for each that computes.
pub(super) struct Nodes<S>(pub(super) Arc<Feed<S>>);

/// What has ended.
enum Ended {
    Viewer(Rows),
    Follow(Rows),
    Recommendation(Rows),
    FollowedMedia(Rows),
    RecommendedMedia(Rows),
    Candidates(Rows),
    Ranked(Rows),
    Fresh(Rows),
    Sorted(Rows),
    Top(Rows),
}

type Running = FuturesUnordered<Pin<Box<dyn Future<Output = Ended> + Send>>>;

async fn blocking(compute: impl FnOnce() -> Rows + Send + 'static) -> Rows {
    spawn_blocking(compute).await.expect("runs")
}

impl<S: Source> Program for Nodes<S> {
    async fn feed(self: Arc<Self>, request: Arc<Request>) -> Rows {
        let mut running = Running::new();
        let (mut followed, mut recommended) = (None, None);
        let feed = self.0.clone();
        let user = request.user_id;
        running.push(Box::pin(async move { Ended::Viewer(feed.source.viewer(user).await) }));
        loop {
            let (feed, request) = (self.0.clone(), request.clone());
            match running.next().await.expect("the last one gives the answer") {
                Ended::Viewer(rows) => {
                    let (user, other) = (ids(&rows), feed.clone());
                    running.push(Box::pin(async move {
                        Ended::Follow(feed.source.users("follow", &user, FOLLOWS).await)
                    }));
                    let user = ids(&rows);
                    running.push(Box::pin(async move {
                        let rows = other.source.users("recommendation", &user, RECOMMENDATIONS).await;
                        Ended::Recommendation(rows)
                    }));
                }
                Ended::Follow(rows) => running.push(Box::pin(async move {
                    Ended::FollowedMedia(feed.source.media(&ids(&rows), FOLLOWED_MEDIA).await)
                })),
                Ended::Recommendation(rows) => running.push(Box::pin(async move {
                    Ended::RecommendedMedia(feed.source.media(&ids(&rows), RECOMMENDED_MEDIA).await)
                })),
                Ended::FollowedMedia(rows) => followed = Some(rows),
                Ended::RecommendedMedia(rows) => recommended = Some(rows),
                Ended::Candidates(rows) => running.push(Box::pin(async move {
                    Ended::Ranked(blocking(move || feed.rank(rows, &request.params)).await)
                })),
                Ended::Ranked(rows) => running.push(Box::pin(async move {
                    Ended::Fresh(blocking(move || feed.fresh(&rows, &request.params)).await)
                })),
                Ended::Fresh(rows) => {
                    running.push(Box::pin(async move { Ended::Sorted(blocking(move || sort(&rows)).await) }));
                }
                Ended::Sorted(rows) => running.push(Box::pin(async move { Ended::Top(rows.take(TOP)) })),
                Ended::Top(rows) => return rows,
            }
            if followed.is_some() && recommended.is_some() {
                let (Some(followed), Some(recommended)) = (followed.take(), recommended.take()) else {
                    continue;
                };
                running.push(Box::pin(async move { Ended::Candidates(concat([&followed, &recommended])) }));
            }
        }
    }
}

/// A program on its runtime.
pub(super) struct ByHand<P> {
    runtime: Runtime,
    program: Arc<P>,
}

impl<P: Program> ByHand<P> {
    pub(super) fn new(runtime: Runtime, program: P) -> Self {
        Self { runtime, program: Arc::new(program) }
    }
}

async fn answer<P: Program>(program: Arc<P>, request: Arc<Request>, mut buffer: Vec<u8>) -> Vec<u8> {
    let rows = timeout(DEADLINE, program.feed(request.clone())).await.expect("it comes in time");
    rows.write_json(&request.request_id, &mut buffer);
    buffer
}

impl<P: Program> Contender for ByHand<P> {
    fn round(&mut self, crowd: &Arc<Crowd>, concurrency: usize) {
        self.runtime.block_on(async {
            let asker = |_| {
                let program = self.program.clone();
                tokio::spawn(
                    crowd
                        .clone()
                        .ask(move |request, buffer| answer(program.clone(), request, buffer), yield_now),
                )
            };
            let askers: Vec<_> = (0..concurrency).map(asker).collect();
            for asker in askers {
                asker.await.expect("ends");
            }
        });
    }

    fn answers(&mut self, crowd: &Arc<Crowd>) -> Vec<String> {
        let program = self.program.clone();
        self.runtime.block_on(
            crowd.clone().all_answers(move |request, buffer| answer(program.clone(), request, buffer)),
        )
    }
}
