//! What users hold: the one that stops everything.

#[cfg(feature = "http")]
use std::net::SocketAddr;
use std::{
    fmt,
    future::Future,
    panic::Location,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ebbtide_lifecycle::{
    Component, Drained, Intake, Reason, Token,
    time::{Clock, Deadline, Tempo},
    wait::Wait,
};

#[cfg(feature = "http")]
use crate::health::HealthServer;
use crate::{
    builder::{Builder, StartError},
    desk::{Callback, Entry, Order, Progress},
    event::Event,
    health::Health,
    priority::Priority,
    registration::{CallbackId, Duplicate, Registration},
    report::Report,
    shared::{Ended, Shared},
    stage::Stage,
    subject::{Deed, Part, StopError, Subject},
};

/// How long a component that is registered after the end has in order to stop.
const AFTER_THE_END: Duration = Duration::from_secs(1);

/// Stops a program: in order, within one deadline, once.
///
/// A clone is another handle to the same coordinator. It waits on a thread of its own, which costs nothing until it is
/// called. Once its last handle is dropped it stops everything, though nobody waits for that; one that is
/// [installed](Coordinator::install) is there for good. What is registered should keep a [token](Coordinator::token),
/// and no handle: it would keep the last one from being dropped.
///
/// ```
/// use std::time::Duration;
/// use ebbtide_shutdown::{Coordinator, Priority, Reason};
///
/// let coordinator = Coordinator::builder().drain_timeout(Duration::from_secs(10)).start()?;
/// coordinator.on_trigger("say so", || println!("stopping"));
/// coordinator.on_stop("database", Priority::RESOURCES, |_deadline, _reason| Ok(()))?.keep();
/// coordinator.ready();
///
/// let request = coordinator.intake().admit()?;
/// request.settle(ebbtide_shutdown::lifecycle::Outcome::Completed);
///
/// let report = coordinator.stop(Reason::requested("example")).wait(); // or `.await`
/// assert!(report.is_clean(), "{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Coordinator {
    shared: Arc<Shared>,
    owner: Arc<Owner>,
}

/// Its drop is that of the last handle.
struct Owner {
    shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.trigger.fire(Reason::requested("the coordinator was dropped"));
    }
}

/// The one that is installed.
static INSTALLED: Mutex<Option<Coordinator>> = Mutex::new(None);

impl Coordinator {
    /// The choices there are.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The coordinator of the process: made at the first call, listening to SIGTERM and SIGINT, with a drain timeout
    /// from the environment variable [`DrainTimeout::VARIABLE`](crate::DrainTimeout::VARIABLE). Every call gives the
    /// same.
    ///
    /// # Errors
    /// If it cannot be started, at the first call.
    pub fn install() -> Result<Self, StartError> {
        Self::builder().install()
    }

    /// The coordinator of the process, if one was [installed](Coordinator::install).
    #[must_use]
    pub fn installed() -> Option<Self> {
        INSTALLED.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn install_with(make: impl FnOnce() -> Result<Self, StartError>) -> Result<Self, StartError> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*installed {
            Some(coordinator) => Ok(coordinator.clone()),
            None => Ok(installed.insert(make()?).clone()),
        }
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { owner: Arc::new(Owner { shared: shared.clone() }), shared }
    }

    /// Asks for the stop, and waits until it is over: `.await` it, or block with `.wait()` or `.wait_by(deadline)`.
    /// Every caller gets the same report; the first reason counts.
    ///
    /// The stop goes on whether anybody waits or not. Do not wait for it in a callback or in a component's stop: that
    /// is waited for.
    pub fn stop(&self, reason: Reason) -> Wait<Ended> {
        self.trigger(reason);
        self.shared.ended()
    }

    /// Asks for the stop, and returns. Gives whether `reason` is the one that counts.
    pub fn trigger(&self, reason: Reason) -> bool {
        self.shared.trigger.fire(reason)
    }

    /// Blocks the calling thread until somebody has asked for the stop, and it is over.
    pub fn run(&self) -> Report {
        self.stopped().wait()
    }

    /// Waits until the stop is over, whoever asks for it.
    pub fn stopped(&self) -> Wait<Ended> {
        self.shared.ended()
    }

    /// Fires when the stop is asked for.
    #[must_use]
    pub fn token(&self) -> Token {
        self.shared.trigger.token()
    }

    /// Fires when the intake closes: after the callbacks and the delay. This is what a server that accepts by itself
    /// should stop at.
    #[must_use]
    pub fn closing(&self) -> Token {
        self.shared.closing.token()
    }

    /// How far the stop has come.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.shared.stage()
    }

    /// Whether it stops: from the trigger on until it is over.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.trigger.is_triggered() && self.shared.report.get().is_none()
    }

    /// Admits requests, until the stop closes it: the drain waits for what it has admitted. Its
    /// [gate](Intake::gate) admits without a record of who it is, which is cheaper.
    #[must_use]
    pub fn intake(&self) -> &Intake<Tempo> {
        &self.shared.intake
    }

    /// How many requests are in flight: one load.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.shared.intake.gate().in_flight()
    }

    /// Whether nothing is in flight, and nothing can come in any more. Exact: once it is true it stays so, unless the
    /// intake is [resumed](Coordinator::resume).
    #[must_use]
    pub fn ready_to_stop(&self) -> bool {
        let gate = self.shared.intake.gate();
        gate.is_closed() && gate.is_idle()
    }

    /// Drain mode: closes the intake without stopping anything, and is not ready, until it is
    /// [resumed](Coordinator::resume). What it gives waits until nothing is in flight.
    pub fn pause(&self) -> Wait<Drained> {
        if self.shared.intake.gate().close() {
            self.shared.show_gate();
            self.shared.tell(&Event::Paused);
        }
        self.shared.intake.gate().drained()
    }

    /// Opens the intake again. Gives whether it is open: once it stops it cannot be.
    pub fn resume(&self) -> bool {
        let was_closed = self.shared.intake.gate().is_closed();
        let is_open = self.shared.intake.gate().open();
        if is_open && was_closed {
            self.shared.show_gate();
            self.shared.tell(&Event::Resumed);
        }
        is_open
    }

    /// Says that the program has started, and can serve. Once it stops nobody is told any more.
    pub fn ready(&self) {
        if self.shared.trigger.is_triggered() {
            return;
        }
        self.shared.started.met();
        self.shared.tell(&Event::Ready);
    }

    /// Whether the program lives, and whether it is ready: values with reasons.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.shared.health
    }

    /// Where its health is served over HTTP, if it [is](Builder::health_server).
    #[cfg(feature = "http")]
    #[must_use]
    pub fn health_address(&self) -> Option<SocketAddr> {
        let mut servers =
            self.shared.attachments.get()?.iter().filter_map(|attached| attached.downcast_ref());
        servers.next().map(HealthServer::local_addr)
    }

    /// The report as it is at this moment: who has stopped, and who has not.
    pub fn report_so_far(&self) -> Report {
        self.shared.look()
    }

    /// Has `act` called when the stop is asked for, before anything is stopped; in the order of registration, once,
    /// each on a thread of its own, and isolated from the panics of others. One that takes longer than a second is
    /// not waited for any more, nor are all together for longer than three. Several may have the same name.
    ///
    /// After the trigger it is called at once, on this thread.
    pub fn on_trigger(&self, name: impl Into<Arc<str>>, act: impl FnOnce() + Send + 'static) -> CallbackId {
        let name = name.into();
        let mut desk = self.shared.desk();
        let id = desk.issue();
        if desk.stage == Stage::Running && !self.shared.trigger.is_triggered() {
            desk.callbacks.push_back(Callback { id, name, act: Box::new(act) });
        } else {
            drop(desk);
            self.shared.call_late(name, act);
        }
        CallbackId(id)
    }

    /// Takes a callback out. Gives whether it will never be called.
    pub fn remove_callback(&self, id: CallbackId) -> bool {
        let mut desk = self.shared.desk();
        let found = desk.callbacks.iter().position(|callback| callback.id == id.0);
        let callback = found.and_then(|found| desk.callbacks.remove(found));
        drop(desk);
        callback.is_some()
    }

    /// Has `component` stopped in the phase of `priority`, until the registration is dropped.
    ///
    /// When the phases have begun, and that one has passed, it is stopped at once; after the end too, but no report
    /// has it.
    ///
    /// # Errors
    /// Hands the component back if there is one of that name.
    #[track_caller]
    pub fn register<C: Component + 'static>(
        &self,
        name: impl Into<Arc<str>>,
        priority: impl Into<Priority>,
        component: C,
    ) -> Result<Registration, Duplicate<C>> {
        self.enroll(name.into(), priority.into(), None, component, |component| Arc::new(Part(component)))
    }

    /// The same, with no more than `cap` of the time that there is for all.
    ///
    /// # Errors
    /// As [`register`](Coordinator::register).
    #[track_caller]
    pub fn register_capped<C: Component + 'static>(
        &self,
        name: impl Into<Arc<str>>,
        priority: impl Into<Priority>,
        cap: Duration,
        component: C,
    ) -> Result<Registration, Duplicate<C>> {
        self.enroll(name.into(), priority.into(), Some(cap), component, |component| Arc::new(Part(component)))
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
    ) -> Result<Registration, Duplicate>
    where
        F: FnOnce(Deadline, &Reason) -> Result<(), StopError> + Send + 'static,
    {
        self.enroll(name.into(), priority.into(), None, act, |act| Arc::new(Deed::blocking(act)))
            .map_err(Duplicate::without)
    }

    /// Has the future that `act` gives awaited in the phase of `priority`, outside of any runtime: the handle of a task
    /// can be awaited there.
    ///
    /// # Errors
    /// If there is one of that name.
    #[track_caller]
    pub fn on_stop_async<A, F>(
        &self,
        name: impl Into<Arc<str>>,
        priority: impl Into<Priority>,
        act: A,
    ) -> Result<Registration, Duplicate>
    where
        A: FnOnce(Deadline, Reason) -> F + Send + 'static,
        F: Future<Output = Result<(), StopError>> + Send + 'static,
    {
        self.enroll(name.into(), priority.into(), None, act, |act| Arc::new(Deed::future(act)))
            .map_err(Duplicate::without)
    }

    #[track_caller]
    fn enroll<C>(
        &self,
        name: Arc<str>,
        priority: Priority,
        cap: Option<Duration>,
        component: C,
        subject: impl FnOnce(C) -> Arc<dyn Subject>,
    ) -> Result<Registration, Duplicate<C>> {
        let site = Location::caller();
        let now = self.shared.tempo.now();
        let mut desk = self.shared.desk();
        if desk.entries.iter().any(|entry| entry.name == name) {
            drop(desk);
            return Err(Duplicate { name, component });
        }
        let id = desk.issue();
        let subject = subject(component);
        let order = if desk.stage == Stage::Stopped {
            let (reason, _) = desk.call.clone().expect("it was called");
            let deadline = Deadline::at(now + AFTER_THE_END);
            Some(Order { id, name, subject, since: now, deadline, reason })
        } else {
            let (subject, is_mute, progress) = (Some(subject), false, Progress::Waiting);
            desk.entries.push(Entry { id, name, priority, cap, site, subject, is_mute, progress });
            desk.begin_late(id, now)
        };
        drop(desk);
        if let Some(order) = order {
            self.shared.carry_out(order);
        }
        Ok(Registration::new(&self.shared, id))
    }
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handles = Arc::strong_count(&self.owner);
        f.debug_struct("Coordinator").field("stage", &self.stage()).field("handles", &handles).finish()
    }
}
