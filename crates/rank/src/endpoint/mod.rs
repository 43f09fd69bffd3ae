//! Where sources read: a store in memory, or a Redis server.

mod file;
mod redis;
mod server;
mod turnstile;

use std::{collections::BTreeMap, error, fmt, sync::Arc};

use ebbtide_dag::{Env, Reach, json::Registry};
use ebbtide_lifecycle::time::{Deadline, Timer};
use ebbtide_redis::Link;

pub use self::{
    file::EndpointsError,
    redis::IN_FLIGHT,
    server::{Server, ServerError},
};
use crate::{
    demo,
    rows::{Fields, Rows, ShapeError},
    store::{Store, WrongType},
};

/// The endpoint of sources that name none.
pub const DEFAULT: &str = "default";

/// A place that sources read from, known by an id in errors.
#[derive(Debug)]
pub struct Endpoint {
    id: Arc<str>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Store(Arc<Store>),
    Redis(redis::Redis),
}

/// A source could not read: says where, what, and why.
#[derive(Clone, Debug)]
pub struct ReadError {
    endpoint: Arc<str>,
    key: String,
    why: ReadWhy,
}

/// Why a source could not read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReadWhy {
    /// The server did not answer, or said no.
    Redis(ebbtide_redis::Error),
    /// As many commands as there may be were in flight until its deadline, or for too long. Nothing was sent.
    NoTurn,
    /// The key holds a list where a hash was asked for, or the other way round.
    WrongType(WrongType),
    /// What the key holds cannot be read as rows.
    Content(String),
    /// The rows have other columns than were declared.
    Shape(ShapeError),
}

impl Endpoint {
    /// An endpoint that is a store.
    #[must_use]
    pub fn store(id: impl Into<Arc<str>>, store: impl Into<Arc<Store>>) -> Self {
        Self { id: id.into(), place: Place::Store(store.into()) }
    }

    /// An endpoint that is a server, with at most so many commands in flight. Others wait for their turn, for five
    /// seconds at most. Its timeouts are those of the link.
    ///
    /// The link has to take as many, or those above its own limit are refused.
    #[must_use]
    pub fn redis(id: impl Into<Arc<str>>, link: Link, max_in_flight: usize) -> Self {
        Self { id: id.into(), place: Place::Redis(redis::Redis::new(link, max_in_flight)) }
    }

    /// What it is called.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The link to its server, if it is one.
    #[must_use]
    pub fn link(&self) -> Option<&Link> {
        match &self.place {
            Place::Store(_) => None,
            Place::Redis(redis) => Some(redis.link()),
        }
    }

    /// The hash `name:id`, as one row of that id with the declared columns. If it is not there, they are null.
    ///
    /// # Errors
    /// If it cannot be read, or is something else than was declared.
    pub async fn hash(&self, name: &str, id: i64, fields: &Fields) -> Result<Rows, ReadError> {
        self.hash_by(name, id, fields, Deadline::never()).await
    }

    /// The same for a request with a deadline: a read that still waits for its turn then is given up, unsent. One that
    /// was sent waits for its answer, so that no more commands are in flight than there may be.
    ///
    /// # Errors
    /// As [`hash`](Endpoint::hash).
    pub async fn hash_by(
        &self,
        name: &str,
        id: i64,
        fields: &Fields,
        deadline: Deadline,
    ) -> Result<Rows, ReadError> {
        let error = |why| ReadError { endpoint: self.id.clone(), key: format!("{name}:{id}"), why };
        match &self.place {
            Place::Store(store) => {
                let rows = store.hash(name, id).map_err(|why| error(ReadWhy::WrongType(why)))?;
                rows.project(fields).map_err(|why| error(ReadWhy::Shape(why)))
            }
            Place::Redis(redis) => redis.hash(name, id, fields, deadline).await.map_err(error),
        }
    }

    /// The lists `name:id` of these ids, one behind the other, the first `most` rows of each, with the declared
    /// columns. On a server all are asked for at once. Those that are not there have no rows.
    ///
    /// # Errors
    /// If one cannot be read, or is something else than was declared.
    pub async fn lists(
        &self,
        name: &str,
        ids: &[i64],
        most: usize,
        fields: &Fields,
    ) -> Result<Rows, ReadError> {
        self.lists_by(name, ids, most, fields, Deadline::never()).await
    }

    /// The same for a request with a deadline, as [`hash_by`](Endpoint::hash_by).
    ///
    /// # Errors
    /// As [`lists`](Endpoint::lists).
    pub async fn lists_by(
        &self,
        name: &str,
        ids: &[i64],
        most: usize,
        fields: &Fields,
        deadline: Deadline,
    ) -> Result<Rows, ReadError> {
        let error = |id: Option<i64>, why| {
            let key = id.map_or_else(|| format!("{name}:*"), |id| format!("{name}:{id}"));
            ReadError { endpoint: self.id.clone(), key, why }
        };
        match &self.place {
            Place::Store(store) => {
                let rows = store.lists(name, ids, most);
                let rows = rows.map_err(|why| error(Some(why.id), ReadWhy::WrongType(why)))?;
                rows.project(fields).map_err(|why| error(None, ReadWhy::Shape(why)))
            }
            Place::Redis(redis) => {
                redis.lists(name, ids, most, fields, deadline).await.map_err(|(id, why)| error(Some(id), why))
            }
        }
    }
}

/// Endpoints by id. There is always one that is the [default](DEFAULT): the embedded data set, unless another takes its
/// place.
///
/// ```
/// use ebbtide_rank::{Endpoint, Endpoints, Store};
///
/// let store = Store::from_json(r#"{"follow:1": [2, 3]}"#)?;
/// let endpoints = Endpoints::demo().with(Endpoint::store("small", store));
/// assert_eq!(endpoints.ids().collect::<Vec<_>>(), ["default", "small"]);
/// # Ok::<(), ebbtide_rank::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Endpoints(BTreeMap<Arc<str>, Arc<Endpoint>>);

impl Endpoints {
    /// The embedded data set, as the default.
    #[must_use]
    pub fn demo() -> Self {
        Self(BTreeMap::new()).with(Endpoint::store(DEFAULT, demo::store()))
    }

    /// The same, with one more, or another one of its id.
    #[must_use]
    pub fn with(mut self, endpoint: Endpoint) -> Self {
        self.0.insert(endpoint.id.clone(), Arc::new(endpoint));
        self
    }

    /// The endpoint of this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Arc<Endpoint>> {
        self.0.get(id)
    }

    /// Their ids, sorted.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.keys().map(|id| &**id)
    }

    /// The links to servers, to be stopped with the program.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.0.values().filter_map(|endpoint| endpoint.link())
    }

    /// Lets plans name them.
    pub fn declare<R, V>(&self, registry: &mut Registry<R, V>)
    where
        R: Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        for id in self.0.keys() {
            registry.endpoint(id.clone());
        }
    }

    /// Gives them to the engines that are bound to this environment.
    #[must_use]
    pub fn bind<T: Timer, M: Reach>(&self, env: Env<T, M>) -> Env<T, M> {
        self.0.iter().fold(env, |env, (id, endpoint)| env.endpoint(id.clone(), endpoint.clone()))
    }
}

impl ReadError {
    /// Why.
    #[must_use]
    pub const fn why(&self) -> &ReadWhy {
        &self.why
    }

    /// The id of the endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint \"{}\", key \"{}\": ", self.endpoint, self.key)?;
        match &self.why {
            ReadWhy::Redis(error) => error.fmt(f),
            ReadWhy::NoTurn => f.write_str(
                "not sent, as many commands were in flight all the time as `max_in_flight` of the endpoint allows",
            ),
            ReadWhy::WrongType(error) => error.fmt(f),
            ReadWhy::Content(message) => message.fmt(f),
            ReadWhy::Shape(error) => error.fmt(f),
        }
    }
}

impl error::Error for ReadError {}
