//! Addresses of Redis servers.

use std::{error, fmt, str::FromStr};

use ebbtide_redis::Command;

/// A Redis server: `redis://user:password@host:port/database`, where all but the host may be left out.
///
/// ```
/// use ebbtide_rank::Server;
///
/// let server: Server = "redis://:secret@cache.local/2".parse()?;
/// assert_eq!((server.host(), server.port()), ("cache.local", 6379));
/// assert_eq!(server.to_string(), "redis://cache.local:6379/2");
/// # Ok::<(), ebbtide_rank::ServerError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    database: u32,
}

/// A text that is not the address of a Redis server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError(&'static str);

/// Where a Redis server listens unless told otherwise.
const PORT: u16 = 6379;

impl Server {
    /// Its name, or its address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What every connection has to begin with: who it is, and which database it wants.
    #[must_use]
    pub fn greeting(&self) -> Vec<Command> {
        let mut greeting = Vec::new();
        if let Some(password) = &self.password {
            let command = Command::new("AUTH");
            let command = if let Some(user) = &self.user { command.arg(user) } else { command };
            greeting.push(command.arg(password));
        }
        if self.database != 0 {
            greeting.push(Command::new("SELECT").int(self.database.into()));
        }
        greeting
    }
}

impl FromStr for Server {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        if text.starts_with("rediss://") {
            return Err(ServerError(
                "there is no TLS here: use redis://, and a tunnel where that is not enough",
            ));
        }
        let Some(rest) = text.strip_prefix("redis://") else {
            return Err(ServerError("it does not begin with redis://, as in redis://127.0.0.1:6379"));
        };
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = place.rsplit_once('@').map_or((None, place), |(who, place)| (Some(who), place));
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            // An address with colons in it.
            Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
            None => place.rsplit_once(':').unwrap_or((place, "")),
        };
        if host.is_empty() {
            return Err(ServerError("it has no host"));
        }
        let (user, password) = who.map_or(Ok((None, None)), credentials)?;
        Ok(Self {
            host: host.to_owned(),
            port: number(port, PORT).ok_or(ServerError("its port is not a number of 1 to 65535"))?,
            user,
            password,
            database: number(database, 0).ok_or(ServerError("its database is not a number"))?,
        })
    }
}

fn number<N: FromStr>(text: &str, otherwise: N) -> Option<N> {
    if text.is_empty() { Some(otherwise) } else { text.parse().ok() }
}

/// `user:password`, or only a password.
fn credentials(who: &str) -> Result<(Option<String>, Option<String>), ServerError> {
    let (user, password) = who.split_once(':').unwrap_or(("", who));
    let decoded = |text: &str| match decode(text) {
        Some(text) => Ok((!text.is_empty()).then_some(text)),
        None => Err(ServerError("a % in its user or password is not followed by two hexadecimal digits")),
    };
    Ok((decoded(user)?, decoded(password)?))
}

/// `%40` is an at sign.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?].map(char::from);
                let [high, low] = digits.map(|digit| digit.to_digit(16));
                (high? * 16 + low?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Without user and password.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "redis://{open}{}{close}:{}", self.host, self.port)?;
        if self.database == 0 { Ok(()) } else { write!(f, "/{}", self.database) }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl error::Error for ServerError {}
