//! Endpoints from a file.

use std::{
    error, fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use ebbtide_redis::{Link, Settings};
use serde_json::{Map, Value};

use super::{Endpoint, Endpoints, redis::IN_FLIGHT, server::Server};
use crate::{hint::did_you_mean, store::Store, text::text_of};

/// What is wrong with a file of endpoints, or with a file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointsError {
    file: PathBuf,
    message: String,
    is_unreadable: bool,
}

/// How large a file of endpoints may be: some thousands of them.
const BYTES_MAX: u64 = 1 << 20;

const FIELDS: [&str; 5] = ["store", "redis", "max_in_flight", "connect_timeout_ms", "request_timeout_ms"];

/// How long a server may take to be connected to, and to answer, unless an endpoint says otherwise: a request that
/// waits longer is late in any case.
const PATIENCE: Duration = Duration::from_secs(1);

/// A link takes so many commands at most: more would only wait elsewhere.
const IN_FLIGHT_MAX: u64 = 10_000;

/// An hour: what is longer was made by mistake.
const MILLISECONDS_MAX: u64 = 3_600_000;

impl Endpoints {
    /// Reads endpoints by id:
    ///
    /// ```json
    /// {
    ///     "default": {"redis": "redis://127.0.0.1:6379", "max_in_flight": 64,
    ///                 "connect_timeout_ms": 200, "request_timeout_ms": 100},
    ///     "demo": {"store": "demo.json"}
    /// }
    /// ```
    ///
    /// A store's file is looked for beside this one. A server's link is made by `connect`, on the executor of the
    /// caller's choice, with these settings. If there is no `default`, that is the embedded data set.
    ///
    /// # Errors
    /// Says what is wrong: with which file, endpoint and field.
    pub fn open(path: &Path, connect: impl FnMut(&Server, Settings) -> Link) -> Result<Self, EndpointsError> {
        let error = |message, is_unreadable| EndpointsError { file: path.to_owned(), message, is_unreadable };
        let text = text_of(path, BYTES_MAX).map_err(|why| error(why.to_string(), true))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::read(&text, folder, connect).map_err(|why| error(why, false))
    }

    fn read(
        text: &str,
        folder: &Path,
        mut connect: impl FnMut(&Server, Settings) -> Link,
    ) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text).map_err(|why| format!("it is not JSON: {why}"))?;
        let Value::Object(by_id) = json else {
            return Err("expected an object with endpoints by id".to_owned());
        };
        let mut endpoints = Self::demo();
        for (id, fields) in by_id {
            let endpoint = read_endpoint(&id, &fields, folder, &mut connect);
            endpoints = endpoints.with(endpoint.map_err(|why| format!("endpoint {id:?}: {why}"))?);
        }
        Ok(endpoints)
    }
}

fn read_endpoint(
    id: &str,
    json: &Value,
    folder: &Path,
    connect: &mut impl FnMut(&Server, Settings) -> Link,
) -> Result<Endpoint, String> {
    let fields = json.as_object().ok_or("expected an object, such as {\"store\": \"demo.json\"}")?;
    if let Some(other) = fields.keys().find(|field| !FIELDS.contains(&&***field)) {
        return Err(format!("there is no field {other:?}{}", did_you_mean(other, FIELDS)));
    }
    match (string(fields, "store")?, string(fields, "redis")?) {
        (Some(file), None) => {
            if let Some(other) = fields.keys().find(|field| *field != "store") {
                return Err(format!("`{other}` is for servers, and this is a store"));
            }
            let store = Store::open(&folder.join(file)).map_err(|why| format!("`store`: {why}"))?;
            Ok(Endpoint::store(id, store))
        }
        (None, Some(address)) => {
            let server: Server = address.parse().map_err(|why| format!("`redis`: {address:?}: {why}"))?;
            let in_flight =
                integer(fields, "max_in_flight", IN_FLIGHT_MAX)?.map_or(IN_FLIGHT, |most| most as usize);
            let patience = |field| {
                let read = integer(fields, field, MILLISECONDS_MAX)?;
                Ok::<_, String>(read.map_or(PATIENCE, Duration::from_millis))
            };
            let mut settings = Settings::default();
            settings.patience = patience("connect_timeout_ms")?;
            settings.timeout = patience("request_timeout_ms")?;
            settings.greeting = server.greeting();
            Ok(Endpoint::redis(id, connect(&server, settings), in_flight))
        }
        (None, None) => Err("it has neither `store` nor `redis`: say where it is".to_owned()),
        (Some(_), Some(_)) => Err("it has both `store` and `redis`: leave one of them out".to_owned()),
    }
}

fn string<'j>(fields: &'j Map<String, Value>, name: &str) -> Result<Option<&'j str>, String> {
    let Some(value) = fields.get(name) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| format!("`{name}`: expected a string, got {value}"))
}

fn integer(fields: &Map<String, Value>, name: &str, most: u64) -> Result<Option<u64>, String> {
    let Some(value) = fields.get(name) else { return Ok(None) };
    let number = value.as_u64().filter(|number| (1..=most).contains(number));
    number.map(Some).ok_or_else(|| format!("`{name}`: expected an integer of 1 to {most}, got {value}"))
}

impl EndpointsError {
    /// Whether the file itself could not be read, rather than understood.
    #[must_use]
    pub const fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }
}

impl fmt::Display for EndpointsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = if self.is_unreadable { "cannot read " } else { "" };
        write!(f, "{begin}{}: {}", self.file.display(), self.message)
    }
}

impl error::Error for EndpointsError {}
