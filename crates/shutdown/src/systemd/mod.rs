//! Tells systemd how the program is doing: ready, stopping, alive, in need of more time. See `sd_notify(3)`.

mod attach;

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt, io,
    os::unix::{
        ffi::OsStrExt as _,
        net::{SocketAddr, UnixDatagram},
    },
    path::Path,
    process,
    time::Duration,
};

pub(crate) use self::attach::{Pings, Wishes, tell};

/// The socket that systemd listens at. Each message is one datagram.
///
/// Nothing here blocks. A message that cannot be sent at this moment is an error of the kind `WouldBlock`, and lost;
/// a program need not care, but for [`ready`](Notifier::ready), which systemd waits for.
#[derive(Debug)]
pub struct Notifier {
    socket: UnixDatagram,
    to: SocketAddr,
}

impl Notifier {
    /// The socket of `$NOTIFY_SOCKET`. None where that is not set: systemd did not start the program, or does not want
    /// to be told.
    ///
    /// # Errors
    /// [`NotifyError`], if the variable names no socket that can be used; a program goes on without it.
    pub fn from_env() -> Result<Option<Self>, NotifyError> {
        Self::from_vars(|name| env::var_os(name))
    }

    /// The same, with the variables from elsewhere.
    ///
    /// # Errors
    /// As [`from_env`](Notifier::from_env).
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, NotifyError> {
        let Some(value) = var("NOTIFY_SOCKET") else { return Ok(None) };
        let opened = address(&value).and_then(Self::open);
        opened.map(Some).map_err(|error| NotifyError { value, error })
    }

    /// The socket at `path`.
    ///
    /// # Errors
    /// That of the system: the path is too long for a socket, or there is no file left to open.
    pub fn to(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open(SocketAddr::from_pathname(path)?)
    }

    fn open(to: SocketAddr) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, to })
    }

    /// `READY=1`: the program has started.
    ///
    /// # Errors
    /// That of the system, if it could not be sent.
    pub fn ready(&self) -> io::Result<()> {
        self.send("READY=1")
    }

    /// `STOPPING=1`: the program has begun to stop.
    ///
    /// # Errors
    /// As [`ready`](Notifier::ready).
    pub fn stopping(&self) -> io::Result<()> {
        self.send("STOPPING=1")
    }

    /// `STATUS=`: how it is doing, in one line for people. The lines of `text` become one.
    ///
    /// # Errors
    /// As [`ready`](Notifier::ready).
    pub fn status(&self, text: &str) -> io::Result<()> {
        // A line of its own would be a message of its own.
        self.send(&format!("STATUS={}", text.replace(['\n', '\r'], " ")))
    }

    /// `WATCHDOG=1`: the program is alive. To be said once in every [`watchdog_interval`].
    ///
    /// # Errors
    /// As [`ready`](Notifier::ready).
    pub fn alive(&self) -> io::Result<()> {
        self.send("WATCHDOG=1")
    }

    /// `EXTEND_TIMEOUT_USEC=`: the start or the stop that is going on will take up to `time` from this moment, unless
    /// that is said again.
    ///
    /// # Errors
    /// As [`ready`](Notifier::ready).
    pub fn extend_timeout(&self, time: Duration) -> io::Result<()> {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.send(&format!("EXTEND_TIMEOUT_USEC={micros}"))
    }

    fn send(&self, message: &str) -> io::Result<()> {
        // A datagram goes as a whole or not at all.
        self.socket.send_to_addr(message.as_bytes(), &self.to).map(drop)
    }
}

/// Where a value of `$NOTIFY_SOCKET` points: a path, or the name of an abstract socket after `@`.
fn address(value: &OsStr) -> io::Result<SocketAddr> {
    match value.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(value),
        [b'@', name @ ..] => abstract_address(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it begins with neither / nor @")),
    }
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has abstract sockets"))
}

/// How often systemd is to be told that the program is [alive](Notifier::alive): twice in the time after which it
/// would take it for dead. None where it does not ask for that, or asks another process.
///
/// # Errors
/// [`BadVariable`], if `$WATCHDOG_USEC` or `$WATCHDOG_PID` is not a number as it should be; a program goes on as if it
/// were not asked.
pub fn watchdog_interval() -> Result<Option<Duration>, BadVariable> {
    watchdog_interval_from(|name| env::var_os(name))
}

/// The same, with the variables from elsewhere.
///
/// # Errors
/// As [`watchdog_interval`].
pub fn watchdog_interval_from(
    var: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<Duration>, BadVariable> {
    let number = |name: &'static str| {
        let Some(value) = var(name) else { return Ok(None) };
        let number = value.to_str().and_then(|text| text.parse::<u64>().ok()).filter(|number| *number > 0);
        number.map(Some).ok_or(BadVariable { name, value })
    };
    let Some(micros) = number("WATCHDOG_USEC")? else { return Ok(None) };
    let is_ours = number("WATCHDOG_PID")?.is_none_or(|pid| pid == u64::from(process::id()));
    Ok(is_ours.then(|| Duration::from_micros(micros) / 2))
}

/// `$NOTIFY_SOCKET` names no socket that can be used.
#[derive(Debug)]
pub struct NotifyError {
    value: OsString,
    error: io::Error,
}

/// Its text says all: there is no source to say it again.
impl std::error::Error for NotifyError {}

impl fmt::Display for NotifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, error } = self;
        write!(f, "systemd is not told anything: NOTIFY_SOCKET is {value:?}, which cannot be used: {error}")
    }
}

/// A variable of systemd's watchdog has a value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadVariable {
    name: &'static str,
    value: OsString,
}

impl std::error::Error for BadVariable {}

impl fmt::Display for BadVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value } = self;
        write!(
            f,
            "systemd's watchdog is ignored: {name} is {value:?}, which is not a whole number above zero"
        )
    }
}
