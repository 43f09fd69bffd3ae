//! What a program holds of itself.

use std::{fmt, future::Future, net::TcpListener, sync::Arc};

use ebbtide_lifecycle::{
    Admission, Component, Gate, Reason, Refusal, Refused, Token,
    blame::Origin,
    time::{Deadline, Tempo},
};
#[cfg(feature = "offload")]
use ebbtide_offload::Pool;
use ebbtide_reactor::{Async, Handle, Task};
use ebbtide_shutdown::{CallbackId, Coordinator, Duplicate, Priority, StopError};
#[cfg(feature = "timeout")]
use ebbtide_timeout::Runners;

use crate::{
    Error,
    admitted::Admitted,
    app::{Builder, Listener},
    loops::{LoopNotStarted, Loops},
    member::{Member, NotSpawned, Role},
    resources::Resources,
};

/// A program from the inside: its loop, its pool, its late runners, and the coordinator that stops them. Given to the
/// `main` of [`run`](crate::run()). A clone is another handle to the same program, for any thread.
///
/// # Where work goes
///
/// | work | brought by | waited for |
/// |---|---|---|
/// | a request, or what must not be cut off | [`spawn`](App::spawn), [`admit`](App::admit) | by the drain |
/// | a connection | [`listen`](App::listen) | by the drain |
/// | what runs as long as the program | [`spawn_component`](App::spawn_component) | in the phase that it was given |
/// | what serves a task: a part of it, a timer | [`spawn`](crate::spawn()) | at the very end, with the loop |
///
/// By the drain: while loop, pool and runners still run, so that it can use them to its end.
///
/// # Names
/// `main`, `late runners`, `pool`, `loop` and `resources` are the components that are there already.
#[derive(Clone)]
pub struct App {
    parts: Arc<Parts>,
}

pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    pub(crate) tempo: Tempo,
    pub(crate) coordinator: Coordinator,
    pub(crate) handle: Handle,
    pub(crate) loops: Loops,
    #[cfg(feature = "offload")]
    pub(crate) pool: Pool,
    #[cfg(feature = "timeout")]
    pub(crate) runners: Runners<Handle>,
    pub(crate) resources: Resources,
}

impl App {
    /// The choices there are.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// The loop: what `main` runs on. It is a timer and a spawner for whatever needs one.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.parts.handle
    }

    /// Starts another loop, on a thread of its own, for a program that has more to do than one CPU can. It is stopped
    /// with the first one, in the phase of the loops, and is called `name` in reports, as is its thread.
    ///
    /// What is spawned on a loop stays there: who serves requests spreads them over the handles that this gives. The
    /// choices of `events` are its own; in virtual time it lives in that of the program.
    ///
    /// ```
    /// use ebbtide::reactor::EventLoop;
    ///
    /// let exit = ebbtide::run(async |app| {
    ///     let second = app.start_loop("second loop", EventLoop::builder())?;
    ///     let answer = second.spawn(async { 6 * 7 })?.await?;
    ///     assert_eq!(answer, 42);
    ///     Ok(())
    /// });
    /// assert!(exit.is_clean(), "{exit}");
    /// ```
    ///
    /// # Errors
    /// If there is a component of that name, if there is no thread to be had, or if the program stops.
    #[track_caller]
    pub fn start_loop(
        &self,
        name: impl Into<Arc<str>>,
        events: ebbtide_reactor::Builder,
    ) -> Result<Handle, LoopNotStarted> {
        if self.handle().shutdown_handle().is_shutdown() {
            return Err(LoopNotStarted::Stopping);
        }
        let name = name.into();
        let mut events = events.name(&name);
        if let Tempo::Virtual(clock) = &self.parts.tempo {
            events = events.clock(clock);
        }
        let events = Arc::new(events.event_loop());
        let handle = events.handle();
        // Before it starts: a stop that comes meanwhile knows of it, and stops it at once if those of the others have
        // passed. A loop that was stopped before does not start.
        let registration = self.coordinator().register(name, Priority::LOOPS, events.clone());
        let registration = registration.map_err(|duplicate| LoopNotStarted::Duplicate(duplicate.name))?;
        events.start().map_err(LoopNotStarted::Loop)?;
        self.parts.loops.keep(events);
        registration.keep();
        Ok(handle)
    }

    /// The pool: for what keeps a CPU busy, and for what blocks.
    #[cfg(feature = "offload")]
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.parts.pool
    }

    /// Timeouts whose losers go on, and are waited for at a stop.
    #[cfg(feature = "timeout")]
    #[must_use]
    pub fn runners(&self) -> &Runners<Handle> {
        &self.parts.runners
    }

    /// Who stops all this: for health, for a pause, and for what is not here.
    #[must_use]
    pub fn coordinator(&self) -> &Coordinator {
        &self.parts.coordinator
    }

    /// Says that the program has started, and can serve.
    pub fn ready(&self) {
        self.coordinator().ready();
    }

    /// Asks for the stop, and returns. Gives whether `reason` is the one that counts: the first one does.
    pub fn stop(&self, reason: Reason) -> bool {
        self.coordinator().trigger(reason)
    }

    /// Fires when the stop is asked for. Requests may still come in for a while.
    #[must_use]
    pub fn token(&self) -> Token {
        self.coordinator().token()
    }

    /// Fires when no more requests are let in. What has to do with each of them, such as a connection that serves one
    /// after the other, ends at this. Who accepts connections need not look: [`listen`](App::listen) does.
    #[must_use]
    pub fn closing(&self) -> Token {
        self.coordinator().closing()
    }

    /// Admits a request, known by the caller's location: the drain waits until it is
    /// [settled](Admission::settle), or dropped.
    ///
    /// # Errors
    /// Refuses from [`closing`](App::closing) on: the request must then not be answered but with "no".
    #[track_caller]
    pub fn admit(&self) -> Result<Admission<Tempo>, Refusal> {
        self.admit_as(&Origin::here())
    }

    /// Admits a request that is known by `origin`.
    ///
    /// # Errors
    /// As [`admit`](App::admit).
    pub fn admit_as(&self, origin: &Origin) -> Result<Admission<Tempo>, Refusal> {
        self.coordinator().intake().admit_as(origin)
    }

    /// The gate of the requests: admits without a record of who it is, which is cheaper.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        self.coordinator().intake().gate()
    }

    /// Accepts connections from `socket` until [`closing`](App::closing), and loses none: see [`Listener`].
    ///
    /// ```
    /// use std::net::{Ipv4Addr, SocketAddr, TcpListener};
    /// use ebbtide::reactor::Async;
    /// use futures_lite::AsyncWriteExt as _;
    ///
    /// let exit = ebbtide::run(async |app| {
    ///     let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    ///     let mut listener = app.listen(Async::<TcpListener>::bind(any)?);
    ///     app.ready();
    /// #   app.stop(ebbtide::lifecycle::Reason::requested("it is an example"));
    ///     while let Some(connection) = listener.accept().await {
    ///         connection.spawn(async |mut stream| stream.write_all(b"high tide at noon\n").await);
    ///     }
    ///     Ok(())
    /// });
    /// assert!(exit.is_clean(), "{exit}");
    /// ```
    #[must_use = "nobody is accepted unless asked for"]
    #[track_caller]
    pub fn listen(&self, socket: Async<TcpListener>) -> Listener {
        Listener::new(self, socket, Origin::here())
    }

    /// Spawns `future` on the loop as a request: the drain waits for it. Callable from any thread.
    ///
    /// # Errors
    /// Hands `future` back from [`closing`](App::closing) on. What is under way by then, and needs a task in order to
    /// end, uses [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Result<Task<F::Output>, Refused<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let future = self.admitted(future, &Origin::here())?;
        self.handle().spawn(future).map_err(Admitted::hand_back)
    }

    /// The same, for a task that is called `name` in reports.
    ///
    /// # Errors
    /// As [`spawn`](App::spawn).
    #[track_caller]
    pub fn spawn_named<F>(&self, name: impl Into<Arc<str>>, future: F) -> Result<Task<F::Output>, Refused<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let name = name.into();
        let future = self.admitted(future, &Origin::here().named(name.clone()))?;
        self.handle().spawn_named(name, future).map_err(Admitted::hand_back)
    }

    /// As [`spawn`](App::spawn), for a future that stays on its thread: only on the loop, which `main` runs on.
    ///
    /// # Errors
    /// As [`spawn`](App::spawn), and on another thread than the loop's.
    #[track_caller]
    pub fn spawn_local<F: Future + 'static>(&self, future: F) -> Result<Task<F::Output>, Refused<F>> {
        let future = self.admitted(future, &Origin::here())?;
        ebbtide_reactor::spawn(future).map_err(Admitted::hand_back)
    }

    fn admitted<F>(&self, future: F, origin: &Origin) -> Result<Admitted<F>, Refused<F>> {
        match self.admit_as(origin) {
            Ok(admission) => Ok(Admitted::new(future, admission)),
            Err(why) => Err(Refused { why, work: future }),
        }
    }

    /// Runs the future that `make` gives on the loop, as a component: the token that `make` gets fires when the phase
    /// of `priority` comes, and the future is waited for then.
    ///
    /// If it fails or panics, the program stops, and its report says why. If it ends, the program goes on. Callable
    /// from any thread; `make` is called on the loop's.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ebbtide::{shutdown::Priority, sleep};
    ///
    /// let exit = ebbtide::run(async |app| {
    ///     app.spawn_component("ticker", Priority::WORKERS, async |stop| {
    ///         while stop.wrap(sleep(Duration::from_millis(1))).await.is_ok() {
    ///             println!("tick");
    ///         }
    ///         Ok(())
    ///     })?;
    ///     sleep(Duration::from_millis(5)).await;
    ///     Ok(())
    /// });
    /// assert!(exit.is_clean(), "{exit}");
    /// ```
    ///
    /// # Errors
    /// If there is one of that name, or the loop stops.
    #[track_caller]
    pub fn spawn_component<M, F>(
        &self,
        name: impl Into<Arc<str>>,
        priority: impl Into<Priority>,
        make: M,
    ) -> Result<(), NotSpawned>
    where
        M: FnOnce(Token) -> F + Send + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let (name, origin) = (name.into(), Origin::here());
        let member = Member::new(name.clone(), self.handle());
        let token = member.token();
        let registration = self.coordinator().register(name.clone(), priority, member.clone());
        let registration = registration.map_err(|duplicate| NotSpawned::Duplicate(duplicate.name))?;
        let make = move || make(token);
        let started = member.start(Role::Part, self.coordinator(), self.handle(), origin, make);
        started.map_err(|_| NotSpawned::Closed(name))?;
        registration.keep();
        Ok(())
    }

    /// Has `component` stopped in the phase of `priority`.
    ///
    /// # Errors
    /// Hands the component back if there is one of that name.
    #[track_caller]
    pub fn register<C: Component + 'static>(
        &self,
        name: impl Into<Arc<str>>,
        priority: impl Into<Priority>,
        component: C,
    ) -> Result<(), Duplicate<C>> {
        self.coordinator().register(name, priority, component).map(|registration| registration.keep())
    }

    /// Has `act` done in the phase of `priority`, on a thread of its own, which it may block.
    ///
    /// # Errors
    /// If there is one of that name.
    #[track_caller]
    pub fn on_stop<F>(
        &self,
        name: impl Into<Arc<str>>,
        priority: impl Into<Priority>,
        act: F,
    ) -> Result<(), Duplicate>
    where
        F: FnOnce(Deadline, &Reason) -> Result<(), StopError> + Send + 'static,
    {
        self.coordinator().on_stop(name, priority, act).map(|registration| registration.keep())
    }

    /// Has `act` called when the stop is asked for, before anything is stopped: see
    /// [`Coordinator::on_trigger`].
    pub fn on_trigger(&self, name: impl Into<Arc<str>>, act: impl FnOnce() + Send + 'static) -> CallbackId {
        self.coordinator().on_trigger(name, act)
    }

    /// Keeps `value` until nothing runs any more, and drops it then: after the loop has stopped, the last that was
    /// kept first. What tasks use is put into an `Arc`, of which one is kept here.
    ///
    /// Drops that panic are told, and keep no other from being dropped. What is left when the time is up is named,
    /// and leaked. Of a program that has stopped, `value` is dropped at once.
    #[track_caller]
    pub fn keep(&self, name: impl Into<Arc<str>>, value: impl Send + 'static) {
        let resources = &self.parts.resources;
        if resources.keep(Origin::here().named(name), Box::new(value)) {
            let registered = self.register("resources", Priority::RESOURCES, resources.clone());
            debug_assert!(registered.is_ok(), "the name is ours");
        }
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("name", &self.parts.name)
            .field("stage", &self.coordinator().stage())
            .finish_non_exhaustive()
    }
}
