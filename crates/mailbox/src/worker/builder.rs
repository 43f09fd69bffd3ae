//! The choices that a worker has.

use std::{
    fmt,
    future::Future,
    num::NonZero,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use bytes::Bytes;
use ebbtide_lifecycle::{
    Gate, Ledger, Lifecycle, Terms, Trigger,
    blame::{Origin, Roster},
    time::Timer,
};

use super::{Event, Job, Leases, Retry, Shared, Worker};
use crate::{
    mailbox::{Boxed, Mailbox},
    pull::Pull,
};

/// What a handler gives: a reply, for those who want one; or an error.
pub type HandlerResult = Result<Option<Bytes>, Box<dyn std::error::Error + Send + Sync>>;

/// What is the same for all messages of a worker.
pub(super) struct Settings {
    pub(super) name: Arc<str>,
    pub(super) origin: Origin,
    pub(super) handler: Box<dyn Fn(Job) -> Boxed<'static, HandlerResult> + Send + Sync>,
    pub(super) concurrency: usize,
    pub(super) pull: Pull,
    pub(super) retry: Retry,
    pub(super) leases: Leases,
    pub(super) max_deliveries: Option<NonZero<u32>>,
    pub(super) max_iterations: Option<u64>,
    pub(super) observer: Box<dyn Fn(&Event<'_>) + Send + Sync>,
}

/// How long a stop is expected to take, unless told otherwise: what a coordinator gives.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes a [`Worker`].
#[must_use = "a builder does nothing until `build`"]
pub struct WorkerBuilder<T> {
    mailbox: Arc<dyn Mailbox>,
    dead_letters: Option<Arc<dyn Mailbox>>,
    timer: T,
    settings: Settings,
    shutdown_timeout: Duration,
    handler_bound: Duration,
}

impl<T> WorkerBuilder<T>
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    #[track_caller]
    pub(super) fn new<H, F>(mailbox: Arc<dyn Mailbox>, timer: T, handler: H) -> Self
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let settings = Settings {
            name: "worker".into(),
            origin: Origin::here(),
            handler: Box::new(move |job| Box::pin(handler(job))),
            concurrency: 1,
            pull: Pull::default(),
            retry: Retry::default(),
            leases: Leases::default(),
            max_deliveries: None,
            max_iterations: None,
            observer: Box::new(|event| eprintln!("{event}")),
        };
        Self {
            mailbox,
            dead_letters: None,
            timer,
            settings,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            handler_bound: Duration::ZERO,
        }
    }

    /// What it is called where it is named.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// How many messages are handled at a time, by turns, on the thread that runs the worker: one unless told
    /// otherwise.
    pub fn concurrency(mut self, concurrency: NonZero<usize>) -> Self {
        self.settings.concurrency = concurrency.get();
        self
    }

    /// How messages are received.
    pub fn pull(mut self, pull: Pull) -> Self {
        self.settings.pull = pull;
        self
    }

    /// What becomes of messages whose handler failed.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.settings.retry = retry;
        self
    }

    /// Gives up on messages that were delivered more often than that, without having them handled again: whoever had
    /// them was lost with them, or never settled them in time. [`Retry`] counts only what comes to an end, and without
    /// this they are delivered for ever. At least as many as there are attempts, or those are fewer.
    pub fn max_deliveries(mut self, deliveries: NonZero<u32>) -> Self {
        self.settings.max_deliveries = Some(deliveries);
        self
    }

    /// Puts messages that are given up on there, as [`DeadLetter`](crate::DeadLetter)s. Without that they are told
    /// of, and gone.
    ///
    /// It has to take bodies that are 8 bytes larger than those of the worker's mailbox, and more for the reason, of
    /// which as much is kept as fits. A message that it does not take is tried again.
    pub fn dead_letters(mut self, mailbox: Arc<dyn Mailbox>) -> Self {
        self.dead_letters = Some(mailbox);
        self
    }

    /// Whether messages are kept out of sight for longer than their visibility while they are worked on.
    pub fn leases(mut self, leases: Leases) -> Self {
        self.settings.leases = leases;
        self
    }

    /// Ends by itself after it has received so often, whether there was anything or not.
    pub fn max_iterations(mut self, iterations: u64) -> Self {
        self.settings.max_iterations = Some(iterations);
        self
    }

    /// Has `observer` told of what goes wrong, instead of standard error.
    pub fn observer(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.settings.observer = Box::new(observer);
        self
    }

    /// How long a stop may take, 30 seconds unless told otherwise, and how long a handler takes at most: messages
    /// have to stay out of sight for longer than both together, or there is a warning.
    pub fn bounds(mut self, shutdown_timeout: Duration, handler: Duration) -> Self {
        (self.shutdown_timeout, self.handler_bound) = (shutdown_timeout, handler);
        self
    }

    /// The worker, which does not work yet.
    pub fn build(self) -> Worker<T> {
        let ledger = Some(Ledger::new());
        let gate = Gate::with(Terms { closed: true, limit: None, ledger });
        let roster = Roster::new(self.timer.now());
        let warning = self.warning();
        let shared = Shared {
            settings: self.settings,
            timer: self.timer,
            mailbox: self.mailbox,
            dead_letters: self.dead_letters,
            stop: Trigger::new(),
            life: Lifecycle::new(),
            gate,
            roster,
            answered: AtomicBool::new(true),
        };
        if let Some(warning) = warning {
            shared.tell(&Event::Warning(&warning));
        }
        Worker { shared: Arc::new(shared) }
    }

    fn warning(&self) -> Option<String> {
        let visibility = self.settings.pull.lease().duration();
        let (stop, handler) = (self.shutdown_timeout, self.handler_bound);
        (visibility <= stop.saturating_add(handler)).then(|| {
            format!(
                "{}: messages are out of sight for {visibility:?}, which is not longer than a stop ({stop:?}) and a handler \
                 ({handler:?}) may take: some may be handled twice",
                self.settings.name
            )
        })
    }
}

impl<T> fmt::Debug for WorkerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder").field("name", &self.settings.name).finish_non_exhaustive()
    }
}
