//! The choices that a coordinator has.

#[cfg(all(unix, feature = "systemd"))]
use std::ffi::OsString;
#[cfg(feature = "http")]
use std::net::SocketAddr;
use std::{fmt, io, mem, sync::Arc, thread, time::Duration};

use ebbtide_lifecycle::time::{Tempo, VirtualClock};
use signal_hook::low_level;

#[cfg(feature = "http")]
use crate::health::{HealthServer, ServeError};
use crate::{
    coordinator::Coordinator,
    drain_timeout::DrainTimeout,
    errand::Spare,
    event::{Event, Observer, tell_by_default},
    health::Health,
    sequence::Sequence,
    shared::{Attachment, Settings, Shared},
    signals::{SignalError, Signals},
    stall::{self, OnStall},
};
#[cfg(all(unix, feature = "systemd"))]
use crate::{
    sequence::CALLBACKS_MAX,
    systemd::{self, Pings, Wishes},
};

/// How often it is told what is waited for, unless told otherwise.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// More than an hour of serving after the word to stop is a mistake.
const DELAY_MAX: Duration = Duration::from_secs(3600);

/// Makes a [`Coordinator`].
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    timeout: Option<DrainTimeout>,
    delay: Duration,
    progress_every: Duration,
    observers: Vec<Observer>,
    exit: Arc<dyn Fn(u8) + Send + Sync>,
    signals: Option<Signals>,
    health: Option<Health>,
    on_stall: Option<OnStall>,
    #[cfg(feature = "http")]
    server: Option<SocketAddr>,
    #[cfg(all(unix, feature = "systemd"))]
    systemd: Option<Wishes>,
    /// What is wrong with what it was told.
    warnings: Vec<String>,
    tempo: Tempo,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            timeout: None,
            delay: Duration::ZERO,
            progress_every: PROGRESS_EVERY,
            observers: Vec::new(),
            // Not that of the standard library: what is registered to be run at the exit may hang as well.
            exit: Arc::new(|code| low_level::exit(code.into())),
            signals: None,
            health: None,
            on_stall: None,
            #[cfg(feature = "http")]
            server: None,
            #[cfg(all(unix, feature = "systemd"))]
            systemd: None,
            warnings: Vec::new(),
            tempo: Tempo::Real,
        }
    }

    /// How long the drain and all phases may take together; a `Duration` will do. 30 seconds unless told otherwise.
    pub fn drain_timeout(mut self, timeout: impl Into<DrainTimeout>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// How long it goes on serving after it has said that it is not ready any more, before the drain and its timeout
    /// begin: as long as a load balancer needs to see it. Not at all unless told otherwise, an hour at most.
    pub fn readiness_delay(mut self, delay: Duration) -> Self {
        self.delay = delay.min(DELAY_MAX);
        self
    }

    /// How often it is told what is still waited for; every 5 seconds unless told otherwise, and not more often than
    /// every millisecond.
    pub fn progress_every(mut self, every: Duration) -> Self {
        self.progress_every = every.clamp(Duration::from_millis(1), DELAY_MAX);
        self
    }

    /// Has `observer` told of every step, instead of standard error or, with the feature `tracing`, that. Can be said
    /// more than once. It must not block: the stop waits for it.
    pub fn observer(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Listens to signals: to none unless told so, but see [`install`](Builder::install).
    pub fn signals(mut self, signals: Signals) -> Self {
        self.signals = Some(signals);
        self
    }

    /// Has `exit` called with the exit code when a second signal comes, in place of ending the process.
    pub fn exit(mut self, exit: impl Fn(u8) + Send + Sync + 'static) -> Self {
        self.exit = Arc::new(exit);
        self
    }

    /// What it says of its health is said there, among what others say.
    pub fn health(mut self, health: &Health) -> Self {
        self.health = Some(health.clone());
        self
    }

    /// Watches the heartbeats of its [health](Coordinator::health), and does this about one that does not come.
    pub fn on_stall(mut self, act: OnStall) -> Self {
        self.on_stall = Some(act);
        self
    }

    /// Serves its health over HTTP, at `/health/live` and `/health/ready`, for as long as the coordinator lives:
    /// through the whole stop. With port 0 the system chooses one; see [`Coordinator::health_address`].
    #[cfg(feature = "http")]
    pub fn health_server(mut self, at: SocketAddr) -> Self {
        self.server = Some(at);
        self
    }

    /// Tells systemd that the program is ready, stops, needs more time and is alive, where its environment variables
    /// ask for that. What is wrong with them is a warning.
    #[cfg(all(unix, feature = "systemd"))]
    pub fn systemd(self) -> Self {
        self.systemd_by(|name| std::env::var_os(name))
    }

    /// The same, with the variables from elsewhere.
    #[cfg(all(unix, feature = "systemd"))]
    pub fn systemd_by(mut self, var: impl Fn(&str) -> Option<OsString>) -> Self {
        let (wishes, warnings) = Wishes::from_vars(var);
        self.systemd = Some(wishes);
        self.warnings.extend(warnings);
        self
    }

    /// Lives in virtual time: its thread, and those on which it stops components, take part in `clock`.
    pub fn clock(mut self, clock: &VirtualClock) -> Self {
        self.tempo = Tempo::Virtual(clock.clone());
        self
    }

    /// Starts the coordinator's thread.
    ///
    /// # Errors
    /// If the system has no thread to give, a signal cannot be listened to, or the health cannot be served.
    pub fn start(mut self) -> Result<Coordinator, StartError> {
        if self.observers.is_empty() {
            self.observers.push(Arc::new(tell_by_default));
        }
        let timeout = self.timeout.take().unwrap_or_default();
        self.warnings.extend(timeout.warning().map(str::to_owned));
        #[cfg(all(unix, feature = "systemd"))]
        if let Some(Wishes { notifier: Some(notifier), .. }) = &self.systemd {
            let (notifier, every) = (notifier.clone(), self.progress_every);
            let whole = self.delay.saturating_add(timeout.duration()).saturating_add(CALLBACKS_MAX);
            self.observers.push(Arc::new(move |event| systemd::tell(&notifier, event, every, whole)));
        }
        let settings = Settings {
            timeout: timeout.duration(),
            delay: self.delay,
            progress_every: self.progress_every,
            observers: mem::take(&mut self.observers),
            exit: self.exit.clone(),
        };
        let health = self.health.take().unwrap_or_else(|| Health::with_tempo(self.tempo.clone()));
        let spare = Spare::start().map_err(StartError::Thread)?;
        let shared = Shared::new(self.tempo.clone(), settings, health, spare, self.warnings.clone());
        let shared = Arc::new(shared);
        let attachments = self.attachments(&shared)?;
        let attached = shared.attachments.set(attachments);
        debug_assert!(attached.is_ok(), "this is the start");
        // Before the thread: if that fails there is nothing to stop. What comes in between is seen when it begins.
        if let Some(signals) = self.signals {
            signals.listen(&shared).map_err(StartError::Signal)?;
        }
        let sequence = Sequence::new(shared.clone());
        thread::Builder::new()
            .name("ebbtide-coordinator".into())
            .spawn(|| sequence.run())
            .map_err(StartError::Thread)?;
        Ok(Coordinator::new(shared))
    }

    fn attachments(&self, shared: &Arc<Shared>) -> Result<Vec<Attachment>, StartError> {
        let mut attachments = Vec::<Attachment>::new();
        if let Some(act) = self.on_stall {
            attachments.push(Box::new(stall::watch(shared, act).map_err(StartError::Thread)?));
        }
        #[cfg(feature = "http")]
        if let Some(at) = self.server {
            let server = HealthServer::start_at(&shared.health, at).map_err(StartError::Health)?;
            attachments.push(Box::new(server));
        }
        #[cfg(all(unix, feature = "systemd"))]
        if let Some(Wishes { notifier: Some(notifier), interval: Some(every), .. }) = &self.systemd {
            let pings = Pings::start(notifier.clone(), shared.health.clone(), *every);
            attachments.push(Box::new(pings.map_err(StartError::Thread)?));
        }
        Ok(attachments)
    }

    /// Starts it as the coordinator of the process, unless there is one: then it gives that one, and all that was
    /// said to this builder is forgotten.
    ///
    /// Listens to SIGTERM and SIGINT, and takes its drain timeout from the environment variable
    /// [`DrainTimeout::VARIABLE`], unless told otherwise.
    ///
    /// # Errors
    /// As [`start`](Builder::start).
    pub fn install(mut self) -> Result<Coordinator, StartError> {
        Coordinator::install_with(|| {
            self.signals.get_or_insert_default();
            self.timeout.get_or_insert_with(|| DrainTimeout::from_env(DrainTimeout::VARIABLE));
            self.start()
        })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("timeout", &self.timeout)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// Why a coordinator was not started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The system has no thread to give.
    Thread(io::Error),
    /// A signal cannot be listened to.
    Signal(SignalError),
    /// The health cannot be served.
    #[cfg(feature = "http")]
    Health(ServeError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(error) => write!(f, "cannot start a thread of the coordinator: {error}"),
            Self::Signal(error) => error.fmt(f),
            #[cfg(feature = "http")]
            Self::Health(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}
