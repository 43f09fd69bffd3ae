//! Loops that work through a mailbox.
//!
//! ```text
//!            receive            room for one more           handler ends
//!  mailbox ──────────► in hand ──────────────────► under way ───────────► ack, and a reply
//!     ▲                   │ stop, too long: release   │ fails: nack, or a dead letter
//!     └───────────────────┴───────────────────────────┘
//! ```

mod attempt;
mod builder;
mod job;
mod lease;
mod retry;
mod work;

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ebbtide_lifecycle::{
    Balance, Component, Gate, Lifecycle, Reason, RunError, Runnable, State, Step, Stopped, Stopping, Token,
    Trigger,
    blame::{Roster, Stragglers},
    contain,
    time::{Deadline, Timer},
    wait::block_on,
};

use self::builder::Settings;
pub use self::{
    builder::{HandlerResult, WorkerBuilder},
    job::{Failure, GiveUp, Job},
    lease::Leases,
    retry::Retry,
};
use crate::{
    error::{ReceiveError, ReplyError, SendError, SettleError},
    mailbox::Mailbox,
    message::MessageId,
};

/// Pulls messages, has each handled, and settles it; several at a time, if told so. A clone is another handle to the
/// same worker.
///
/// Run it on a thread of its own, as a [`Runnable`], alone or in a group; or await [`work`](Worker::work) on any
/// executor.
///
/// ```
/// use std::sync::Arc;
/// use ebbtide_lifecycle::{Reason, Runnable, time::{Deadline, ThreadTimer}};
/// use ebbtide_mailbox::{Mailbox, Message, Office, worker::Worker};
///
/// let timer = ThreadTimer::start()?;
/// let orders = Arc::new(Office::new(timer.clone()).mailbox("orders"));
/// let worker = Worker::builder(orders.clone(), timer, |job| async move {
///     println!("{:?}", job.body());
///     Ok(None) // no reply
/// })
/// .max_iterations(1)
/// .build();
/// drop(orders.send(Message::new("two apples")));
/// worker.run()?;
/// assert_eq!(worker.balance().completed, 1);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # What it asks for
/// One receive waits at a time. After a full batch it asks at once for as many further ones as it has room for, so that
/// a mailbox that is far away is asked once for all of them. What it cannot begin in time it gives back when a quarter
/// of its time out of sight is left, uncounted, so that others can have it.
///
/// # When it stops
/// What is under way goes on to its end, and is settled; what it has received but not begun is released, all of it,
/// and can be received by others at once. A receive that waits ends at once.
pub struct Worker<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    settings: Settings,
    timer: T,
    mailbox: Arc<dyn Mailbox>,
    dead_letters: Option<Arc<dyn Mailbox>>,
    stop: Trigger,
    life: Lifecycle,
    /// Every message that was received is a permit until it is settled.
    gate: Gate,
    roster: Roster,
    /// Whether the last receive was answered.
    answered: AtomicBool,
}

/// What a worker has to tell.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Something in how it was set up is not as it should be.
    Warning(&'a str),
    /// Messages cannot be received; it tries again.
    NotReceived(&'a ReceiveError),
    /// A handler failed; the message is tried again, or is given up on.
    Failed {
        /// Which message.
        id: MessageId,
        /// How often it was tried so far.
        attempts: u32,
        /// Why.
        failure: &'a Failure,
        /// In how long it is tried again, if it is.
        retry: Option<Duration>,
    },
    /// A message could not be settled, twice if it is not known whether it was: it may be delivered again.
    NotSettled {
        /// Which message.
        id: MessageId,
        /// Why.
        error: &'a SettleError,
    },
    /// A message is given up on, and could not be put among the dead letters: it is tried again instead.
    NotBuried {
        /// Which message.
        id: MessageId,
        /// Why.
        error: &'a SendError,
    },
    /// A reply could not be sent.
    NotReplied {
        /// To which message.
        id: MessageId,
        /// Why.
        error: &'a ReplyError,
    },
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warning(warning) => f.write_str(warning),
            Self::NotReceived(error) => error.fmt(f),
            Self::Failed { id, attempts, failure, retry: Some(retry) } => {
                write!(f, "message {id} failed, attempt {attempts}, next in {retry:.1?}: {failure}")
            }
            Self::Failed { id, attempts, failure, retry: None } => {
                write!(f, "message {id} is given up on after attempt {attempts}: {failure}")
            }
            Self::NotSettled { id, error } => write!(f, "message {id}: {error}"),
            Self::NotBuried { id, error } => write!(f, "message {id} is not among the dead letters: {error}"),
            Self::NotReplied { id, error } => write!(f, "message {id} has no reply: {error}"),
        }
    }
}

impl<T> Worker<T>
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    /// A worker that has `handler` called for each message of `mailbox`, on `timer`'s time. What the handler gives is
    /// the reply, for those who wanted one.
    #[track_caller]
    pub fn builder<H, F>(mailbox: Arc<dyn Mailbox>, timer: T, handler: H) -> WorkerBuilder<T>
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        WorkerBuilder::new(mailbox, timer, handler)
    }

    /// Works until it is told to stop, the mailbox is closed, or it has received as often as it was told to. Dropped
    /// before, it leaves what it had in hand to be delivered again.
    ///
    /// # Errors
    /// If it works already, or has before.
    pub async fn work(&self) -> Result<(), RunError> {
        let life = &self.shared.life;
        if let Err(illegal) = life.step(Step::Start) {
            // A stop that came first is no error.
            return if self.shared.stop.is_triggered() { Ok(()) } else { Err(illegal.into()) };
        }
        let _end = End { shared: &self.shared };
        if self.shared.gate.open() && life.step(Step::Ready).is_ok() {
            work::work(&self.shared).await;
        }
        Ok(())
    }
}

impl<T> Worker<T> {
    /// Fires when it is told to stop.
    #[must_use]
    pub fn token(&self) -> Token {
        self.shared.stop.token()
    }

    /// Whether it works, and its mailbox answers.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let answered = self.shared.answered.load(Ordering::Relaxed);
        self.shared.life.state() == State::Running && answered
    }

    /// The sums of its ledger: every message that it received was handled, failed, or was handed back.
    #[must_use]
    pub fn balance(&self) -> Balance {
        self.shared.gate.balance().expect("it has a ledger")
    }

    /// Tells it to stop, and returns.
    pub fn stop(&self, reason: Reason) {
        self.shared.order(&reason);
    }
}

impl<T> Shared<T> {
    fn order(&self, reason: &Reason) {
        self.gate.seal();
        self.stop.fire(reason.clone());
        // Whoever comes first takes the step.
        let _ = self.life.step(Step::Stop);
    }

    fn tell(&self, event: &Event<'_>) {
        drop(contain(|| (self.settings.observer)(event)));
    }
}

/// Ends the life of a worker, however its work ends.
struct End<'a, T> {
    shared: &'a Shared<T>,
}

impl<T> Drop for End<'_, T> {
    fn drop(&mut self) {
        self.shared.gate.seal();
        // One of the two has been taken if it was told to stop.
        let _ = self.shared.life.step(Step::Stop);
        let _ = self.shared.life.step(Step::End);
    }
}

impl<T> Runnable for Worker<T>
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    fn run(&self) -> Result<(), RunError> {
        block_on(self.work())
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        Component::stop(self, deadline, reason).wait()
    }

    fn is_running(&self) -> bool {
        !matches!(self.shared.life.state(), State::Idle | State::Stopped)
    }
}

/// A stop blocks a thread, in the system's time; in virtual time it is a future.
impl<T> Component for Worker<T>
where
    T: Timer + Clone + Send + Sync + 'static,
    T::Sleep: Send,
{
    fn stop(&self, deadline: Deadline, reason: &Reason) -> Stopping {
        self.shared.order(reason);
        let shared = self.shared.clone();
        let ended = shared.life.reached(State::Stopped);
        let end = move |in_time: bool| {
            if !in_time {
                shared.gate.abandon();
            }
            if shared.gate.is_abandoned() { Stopped::Overdue } else { Stopped::Clean }
        };
        if self.shared.timer.is_virtual() {
            let ended = ended.by(self.shared.timer.clone(), deadline);
            return Stopping::future(async move { end(ended.await.is_ok()) });
        }
        Stopping::blocking(move || end(ended.wait_by(deadline).is_ok()))
    }

    fn balance(&self) -> Balance {
        Self::balance(self)
    }

    fn stragglers(&self) -> Stragglers {
        let named = self.shared.roster.stragglers(self.shared.timer.now());
        let untracked = self.shared.gate.outstanding().saturating_sub(named.len());
        named.and_untracked(untracked)
    }
}

impl<T> Clone for Worker<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("name", &self.shared.settings.name)
            .field("state", &self.shared.life.state())
            .field("balance", &self.balance())
            .finish_non_exhaustive()
    }
}
