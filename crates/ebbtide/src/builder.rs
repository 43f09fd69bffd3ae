//! The choices that a program has, and how it is put together.

#[cfg(feature = "http")]
use std::net::SocketAddr;
use std::{fmt, future::Future, mem, sync::Arc, time::Duration};

use ebbtide_lifecycle::{
    Component, Outcome, Reason,
    blame::Origin,
    time::{Tempo, VirtualClock},
};
#[cfg(feature = "offload")]
use ebbtide_offload::Pool;
use ebbtide_reactor::{EventLoop, Handle};
use ebbtide_shutdown::{
    Coordinator, DrainTimeout, Event, Priority, Signals,
    health::{Heartbeat, ZeroLimit},
};
#[cfg(feature = "timeout")]
use ebbtide_timeout::Runners;

use crate::{
    Error, Exit,
    handle::{App, Parts},
    loops::Loops,
    member::{Member, Role},
    resources::Resources,
};

/// So that one that comes late is no stall.
const BEATS_WITHIN_LIMIT: u32 = 3;

/// Runs a program, with other choices than [`run`](crate::run()).
///
/// ```
/// use std::time::Duration;
/// use ebbtide::{App, Exit};
///
/// fn main() -> Exit {
///     App::builder()
///         .name("orders")
///         .drain_timeout(Duration::from_secs(10))
///         .pool(|pool| pool.cpu_threads(2))
///         .run(async |_app| Ok(()))
/// }
/// ```
#[must_use = "a builder does nothing until `run`"]
pub struct Builder {
    name: Arc<str>,
    tempo: Tempo,
    timeout: Option<DrainTimeout>,
    /// None for a program that listens to none.
    signals: Option<Signals>,
    coordinator: ebbtide_shutdown::Builder,
    events: ebbtide_reactor::Builder,
    #[cfg(feature = "offload")]
    pool: ebbtide_offload::Builder,
    heartbeat: Option<Duration>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            name: "ebbtide".into(),
            tempo: Tempo::Real,
            timeout: None,
            signals: Some(Signals::default()),
            coordinator: Coordinator::builder(),
            events: EventLoop::builder(),
            #[cfg(feature = "offload")]
            pool: Pool::builder(),
            heartbeat: None,
        }
    }

    /// What the program is called, and its threads: the loop's by this name, those of the pool with `-cpu-0` or
    /// `-blocking-0` behind it. A NUL is left out.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.name = name.as_ref().replace('\0', "").into();
        self
    }

    /// How long the drain and all phases may take together; a `Duration` will do. Unless this is said, the
    /// environment variable [`DrainTimeout::VARIABLE`] says it, or else it is 30 seconds.
    pub fn drain_timeout(mut self, timeout: impl Into<DrainTimeout>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// How long it goes on serving after it has said that it is not ready any more: as long as a load balancer needs
    /// to see it. Not at all unless told otherwise.
    pub fn readiness_delay(mut self, delay: Duration) -> Self {
        self.coordinator = self.coordinator.readiness_delay(delay);
        self
    }

    /// Listens to these signals; to SIGTERM and SIGINT unless told otherwise.
    pub fn signals(mut self, signals: Signals) -> Self {
        self.signals = Some(signals);
        self
    }

    /// Listens to no signals.
    pub fn without_signals(mut self) -> Self {
        self.signals = None;
        self
    }

    /// Serves its health over HTTP, at `/health/live` and `/health/ready`, from before `main` to the end of the stop.
    #[cfg(feature = "http")]
    pub fn health_server(mut self, at: SocketAddr) -> Self {
        self.coordinator = self.coordinator.health_server(at);
        self
    }

    /// Has the loop give a sign of life three times within each `limit`: if it does not turn for that long, the
    /// program is not live any more. See [`OnStall`](crate::shutdown::OnStall) for what can be done about that.
    pub fn heartbeat(mut self, limit: Duration) -> Self {
        self.heartbeat = Some(limit);
        self
    }

    /// Has the whole program live in virtual time; for tests.
    pub fn clock(mut self, clock: &VirtualClock) -> Self {
        self.tempo = Tempo::Virtual(clock.clone());
        self
    }

    /// Has `observer` told of every step of the stop, instead of standard error or, with the feature `tracing`, that.
    /// Can be said more than once. One that does nothing has a program say nothing but what was not clean, at its
    /// end.
    pub fn observer(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.coordinator = self.coordinator.observer(observer);
        self
    }

    /// Makes further choices for the coordinator: how often it tells what is left, what is done about a stall, what
    /// ends the process.
    pub fn coordinator(
        mut self,
        choose: impl FnOnce(ebbtide_shutdown::Builder) -> ebbtide_shutdown::Builder,
    ) -> Self {
        self.coordinator = choose(self.coordinator);
        self
    }

    /// Makes further choices for the loop: a hook for panics. Its name is the program's.
    pub fn event_loop(
        mut self,
        choose: impl FnOnce(ebbtide_reactor::Builder) -> ebbtide_reactor::Builder,
    ) -> Self {
        self.events = choose(self.events);
        self
    }

    /// Makes choices for the pool: how many threads, how long its queues are. Its name is the program's.
    #[cfg(feature = "offload")]
    pub fn pool(mut self, choose: impl FnOnce(ebbtide_offload::Builder) -> ebbtide_offload::Builder) -> Self {
        self.pool = choose(self.pool);
        self
    }

    /// Runs `main` until it has ended and everything has stopped, and says how that went.
    ///
    /// # Which thread runs what
    ///
    /// | thread | what it runs |
    /// |---|---|
    /// | the caller's | waits for the report. It runs nothing of the program, so it can return whatever hangs there |
    /// | the loop's | `main`, and all tasks, by turns |
    /// | those of the pool | jobs |
    /// | the coordinator's | the stop, step by step, by its own timer. It runs no code of the program either |
    /// | one for each stop, callback | what is registered with the coordinator |
    ///
    /// So `main` is called on another thread than this one, which is why it has to be `Send` and `'static`; the
    /// future that it gives need not be `Send`. The loop's thread has a stack of 2 MiB, or of `RUST_MIN_STACK`.
    ///
    /// # How it stops
    /// When `main` ends; when it, or a [component](App::spawn_component), fails or panics; when a signal comes; when
    /// the program [says so](App::stop). Always in this order, and within one deadline:
    ///
    /// 1. Tokens fire, readiness goes off, callbacks are called; it goes on serving for the delay.
    /// 2. No more requests are let in; those that are in flight come to their end.
    /// 3. Servers are stopped, then workers; with these `main` is waited for, if it has not ended: so it may await a
    ///    worker.
    /// 4. Late runners come to their end.
    /// 5. The pool runs what it has; the loop still turns, so that results arrive.
    /// 6. The loop's tasks come to their end, and it stops.
    /// 7. Resources are dropped, the last first.
    ///
    /// What has not ended when its time is up is abandoned and named. `main` is never interrupted before the loop
    /// stops: one that does not end by itself when [`token`](App::token) or [`closing`](App::closing) fires takes all
    /// the time there is, and makes the exit code 75.
    ///
    /// # Blocking
    /// This blocks the calling thread until the end: do not call it on a loop.
    #[track_caller]
    pub fn run<M, F>(self, main: M) -> Exit
    where
        M: FnOnce(App) -> F + Send + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        match self.start(main, Origin::here()) {
            Ok(Started { coordinator, loops, main }) => {
                let report = coordinator.run();
                loops.drop_stopped();
                Exit::stopped(report, main)
            }
            Err(error) => Exit::not_started(error),
        }
    }

    /// The coordinator first: from then on a signal is a stop.
    fn start<M, F>(mut self, main: M, origin: Origin) -> Result<Started, StartError>
    where
        M: FnOnce(App) -> F + Send + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        // In virtual time nothing passes before `main` is there.
        let hold = self.tempo.hold();
        let coordinator = self.start_coordinator()?;
        // Starting is work: a stop that comes meanwhile waits for it before it stops what was started.
        let Ok(start) = coordinator.intake().admit_as(&origin.clone().named("start")) else {
            return Ok(Started { coordinator, loops: Loops::default(), main: None });
        };
        let loops = Loops::default();
        let app = match self.start_parts(&coordinator, &loops) {
            Ok(started) => started,
            Err(error) => {
                drop((start, hold));
                // What was started is stopped; the report says nothing that the error does not.
                let _ = coordinator.stop(Reason::failed("start", &error)).wait();
                return Err(error);
            }
        };
        let handle = app.handle().clone();
        let member = Member::new("main".into(), &handle);
        enroll(&coordinator, "main", Priority::WORKERS, member.clone());
        let started = member.start(Role::Main, &coordinator, &handle, origin, move || main(app));
        debug_assert!(started.is_ok(), "the loop is stopped after the start has ended");
        start.settle(Outcome::Completed);
        Ok(Started { coordinator, loops, main: Some(member) })
    }

    fn start_coordinator(&mut self) -> Result<Coordinator, StartError> {
        let mut builder = mem::replace(&mut self.coordinator, Coordinator::builder());
        let timeout = self.timeout.take();
        builder =
            builder.drain_timeout(timeout.unwrap_or_else(|| DrainTimeout::from_env(DrainTimeout::VARIABLE)));
        if let Some(signals) = self.signals.take() {
            builder = builder.signals(signals);
        }
        if let Tempo::Virtual(clock) = &self.tempo {
            builder = builder.clock(clock);
        }
        #[cfg(all(unix, feature = "systemd"))]
        let builder = builder.systemd();
        builder.start().map_err(StartError::Coordinator)
    }

    /// Each is registered as soon as it is there.
    fn start_parts(self, coordinator: &Coordinator, loops: &Loops) -> Result<App, StartError> {
        let mut events = self.events.name(&self.name);
        if let Tempo::Virtual(clock) = &self.tempo {
            events = events.clock(clock);
        }
        let events = Arc::new(events.event_loop());
        let handle = events.handle();
        events.start().map_err(StartError::Loop)?;
        loops.keep(events.clone());
        enroll(coordinator, "loop", Priority::LOOPS, events);
        if let Some(limit) = self.heartbeat {
            let heartbeat = coordinator.health().heartbeat("loop", limit).map_err(StartError::Heartbeat)?;
            spawn_heartbeat(&handle, heartbeat, limit);
        }
        #[cfg(feature = "offload")]
        let pool = {
            let mut pool = self.pool.name(self.name.clone());
            if let Tempo::Virtual(clock) = &self.tempo {
                pool = pool.clock(clock);
            }
            pool.start().map_err(StartError::Pool)?
        };
        #[cfg(feature = "offload")]
        enroll(coordinator, "pool", Priority::POOLS, pool.clone());
        #[cfg(feature = "timeout")]
        let runners = Runners::new(&handle, handle.clone()).map_err(|_| StartError::Runners)?;
        #[cfg(feature = "timeout")]
        enroll(coordinator, "late runners", Priority::LATE, runners.tracker().clone());
        Ok(App::new(Parts {
            name: self.name,
            tempo: self.tempo.clone(),
            coordinator: coordinator.clone(),
            handle,
            loops: loops.clone(),
            #[cfg(feature = "offload")]
            pool,
            #[cfg(feature = "timeout")]
            runners,
            resources: Resources::new(self.tempo),
        }))
    }
}

/// A program that runs. Without loops and a `main` if a signal was quicker than they were.
struct Started {
    coordinator: Coordinator,
    loops: Loops,
    main: Option<Arc<Member>>,
}

#[track_caller]
fn enroll(coordinator: &Coordinator, name: &str, priority: Priority, component: impl Component + 'static) {
    coordinator.register(name, priority, component).expect("a new coordinator knows nobody").keep();
}

/// Beats for as long as the loop is to turn.
fn spawn_heartbeat(handle: &Handle, heartbeat: Heartbeat, limit: Duration) {
    let (timer, stop) = (handle.clone(), handle.shutdown_handle().as_trigger().token());
    let beat = async move {
        loop {
            heartbeat.beat();
            if stop.wrap(timer.sleep(limit / BEATS_WITHIN_LIMIT)).await.is_err() {
                return;
            }
        }
    };
    // The loop has just been started; if it stops already, there is nothing to watch.
    drop(handle.spawn_named("heartbeat", beat));
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a program was not started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Its coordinator was not: no thread, a signal that cannot be listened to, a port in use.
    Coordinator(ebbtide_shutdown::StartError),
    /// Its loop was not.
    Loop(ebbtide_reactor::StartError),
    /// Its pool was not.
    #[cfg(feature = "offload")]
    Pool(ebbtide_offload::StartError),
    /// Its late runners have nobody to drive them, because the loop does not take their task.
    #[cfg(feature = "timeout")]
    Runners,
    /// Its loop cannot give a sign of life in no time.
    Heartbeat(ZeroLimit),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the program was not started: ")?;
        match self {
            Self::Coordinator(error) => error.fmt(f),
            Self::Loop(error) => error.fmt(f),
            #[cfg(feature = "offload")]
            Self::Pool(error) => error.fmt(f),
            #[cfg(feature = "timeout")]
            Self::Runners => f.write_str("the loop does not take the task that drives late runners"),
            Self::Heartbeat(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}
