//! What users hold.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use ebbtide_lifecycle::{
    Balance, Component, Gate, Intake, Reason, Stopped, Stopping, Terms,
    blame::Stragglers,
    time::{Clock, Deadline, Timer},
};
use futures_io::{AsyncRead, AsyncWrite};

use crate::{
    answer::{Answer, Unclaimed},
    batch::Batch,
    command::Command,
    core::{Core, Driver, Lanes, Question},
    driver::drive,
    error::{Error, Why},
    lane::{Lane, Orders},
    script::{Call, Part},
    settings::Settings,
    timer::LinkTimer,
    value::Value,
    wire::Stream,
};

/// A link to one server. A clone is another handle to the same link.
///
/// Commands of all tasks and threads go over one connection, without waiting for each other's answers; they are sent,
/// and done by the server, in the order in which they were [asked](Link::ask). Those that [block](Link::wait) have
/// connections of their own. It connects when there is something to send, and again when a connection is lost; what
/// was sent on that fails, because nobody knows what became of it, and what was not sent waits.
///
/// When the last handle is dropped, what is in flight is ended, and then the connections are closed. To stop by a
/// deadline, or to know what became of everything, stop it as a [`Component`].
#[derive(Clone)]
pub struct Link {
    core: Arc<Core>,
    _owner: Arc<Owner>,
}

/// Tells the drivers to end when the last handle is gone.
struct Owner {
    core: Arc<Core>,
}

impl Link {
    /// A link to the server that `connect` connects to, and that is called `address` in errors.
    ///
    /// Nothing is connected before it is needed: a server that is down is no error here. `spawn` runs what it is
    /// given on an executor, the one that `connect` needs for its streams; if it drops it instead, or the executor
    /// does later, whoever waits for an answer gets an error.
    pub fn new<S, C, T>(
        address: impl Into<Arc<str>>,
        settings: Settings,
        timer: T,
        connect: impl Fn() -> C + Send + Sync + 'static,
        spawn: impl Fn(Driver) + Send + Sync + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
        C: Future<Output = io::Result<S>> + Send + 'static,
        T: Timer + Send + Sync + 'static,
        T::Sleep: Send + 'static,
    {
        let timer = LinkTimer::new(timer);
        let boxed = move || -> crate::core::Connecting {
            let connecting = connect();
            Box::pin(async move { Ok(Box::pin(connecting.await?) as Pin<Box<dyn Stream>>) })
        };
        let main = Arc::new(Lane::new(false));
        let core = Arc::new(Core {
            address: address.into(),
            intake: Intake::with_limit(timer.clone(), settings.in_flight),
            waits: Gate::with(Terms { limit: Some(settings.waits), ..Terms::default() }),
            settings,
            timer,
            connect: Box::new(boxed),
            spawn: Box::new(spawn),
            main: main.clone(),
            lanes: Mutex::new(Lanes { all: vec![main.clone()], free: Vec::new() }),
            cut_off: false.into(),
        });
        (core.spawn)(Box::pin(drive(core.clone(), main, 0)));
        Self { _owner: Arc::new(Owner { core: core.clone() }), core }
    }

    /// Sends a command. It is on its way when this returns, in the order of the calls; await its answer, or drop it.
    pub fn ask(&self, command: Command) -> Answer {
        self.question(command, None, None)
    }

    /// The same. If nobody takes the answer when it comes, `unclaimed` gets it, and what that gives is sent: also
    /// while the link stops, as a part of what is in flight.
    pub fn ask_or(&self, command: Command, unclaimed: &Unclaimed) -> Answer {
        self.question(command, None, Some(unclaimed))
    }

    /// Sends several commands in a row. The answer is an array with that to each, of which some may be
    /// [refusals](Value::Refusal): what one comes to does not concern the others. It counts as one that is in flight,
    /// and costs much less than as many answers would.
    pub fn ask_all(&self, batch: Batch) -> Answer {
        match batch.freeze() {
            Some(command) => self.core.ask(Question { command, unclaimed: None, wait: None }),
            None => Answer::given(self.core.clone(), Ok(Value::Array(Vec::new()))),
        }
    }

    /// Sends a command whose answer nobody waits for.
    ///
    /// # Errors
    /// If the link does not take it. Once taken it is sent, unless there is no connection for too long.
    pub fn tell(&self, command: Command) -> Result<(), Error> {
        self.core.tell(command.freeze())
    }

    /// Sends a command that blocks for up to `wait`, such as `BLPOP`, on a connection that it has for itself. It has
    /// to say to the server itself how long it blocks.
    ///
    /// When the answer is dropped the server is told to unblock, so that the connection is soon free again. If it does
    /// not within [`timeout`](Settings::timeout), the connection is given up.
    pub fn wait(&self, command: Command, wait: Duration) -> Answer {
        self.question(command, Some(wait), None)
    }

    /// The same. If nobody takes the answer when it comes, `unclaimed` gets it, as in [`ask_or`](Link::ask_or).
    pub fn wait_or(&self, command: Command, wait: Duration, unclaimed: &Unclaimed) -> Answer {
        self.question(command, Some(wait), Some(unclaimed))
    }

    fn question(&self, command: Command, wait: Option<Duration>, unclaimed: Option<&Unclaimed>) -> Answer {
        let (command, unclaimed) = (command.freeze(), unclaimed.cloned());
        self.core.ask(Question { command, unclaimed, wait })
    }

    /// Runs a script: by its hash, and if the server does not know that, once more with its text.
    ///
    /// # Errors
    /// As any command; the script's own are those of the server.
    pub async fn run(&self, call: Call) -> Result<Value, Error> {
        self.run_with(call, None).await
    }

    /// The same. If nobody takes the answer when it comes, `unclaimed` gets it, as in [`ask_or`](Link::ask_or).
    ///
    /// # Errors
    /// As any command; the script's own are those of the server.
    pub async fn run_or(&self, call: Call, unclaimed: &Unclaimed) -> Result<Value, Error> {
        self.run_with(call, Some(unclaimed)).await
    }

    /// Runs a script for one of many: see [`Joint`](crate::Joint). It is on its way when this returns. The answer is
    /// what the script gives for this one.
    ///
    /// # Errors
    /// As any command; the script's own, which are those of the server, go to all that were asked with it.
    pub fn run_part(&self, part: Part) -> impl Future<Output = Result<Value, Error>> + use<> {
        self.run_part_with(part, None)
    }

    /// The same. If nobody takes the answer when it comes, `unclaimed` gets it, as in [`ask_or`](Link::ask_or).
    ///
    /// # Errors
    /// As [`run_part`](Link::run_part).
    pub fn run_part_or(
        &self,
        part: Part,
        unclaimed: &Unclaimed,
    ) -> impl Future<Output = Result<Value, Error>> + use<> {
        self.run_part_with(part, Some(unclaimed))
    }

    fn run_part_with(
        &self,
        part: Part,
        unclaimed: Option<&Unclaimed>,
    ) -> impl Future<Output = Result<Value, Error>> + use<> {
        let asked = self.question(part.by_hash(), None, unclaimed);
        let (link, unclaimed) = (self.clone(), unclaimed.cloned());
        async move {
            match asked.await {
                Err(error) if is_unknown(&error) => {
                    link.question(part.in_full(), None, unclaimed.as_ref()).await
                }
                answer => answer,
            }
        }
    }

    async fn run_with(&self, call: Call, unclaimed: Option<&Unclaimed>) -> Result<Value, Error> {
        match self.question(call.by_hash(), None, unclaimed).await {
            Err(error) if is_unknown(&error) => self.question(call.in_full(), None, unclaimed).await,
            answer => answer,
        }
    }

    /// An error of a command of this link: for what is found in the [answers](Link::ask_all) to several.
    #[must_use]
    pub fn error(&self, command: &'static str, why: Why) -> Error {
        Error::new(command, &self.core.address, why)
    }

    /// What the server is called in errors.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.core.address
    }

    /// The timer that it was given.
    #[must_use]
    pub fn timer(&self) -> &LinkTimer {
        &self.core.timer
    }

    /// How many commands are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.core.intake.gate().in_flight()
    }
}

/// Whether the server does not know a script by its hash.
fn is_unknown(error: &Error) -> bool {
    error.server().is_some_and(|error| error.code() == "NOSCRIPT")
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Nobody is left to ask.
        self.core.intake.gate().seal();
        self.core.order(Orders::Finish);
    }
}

/// Waits for the answers to what was sent, and for what waits to be sent. What is left at the deadline gets an error,
/// and counts as cancelled. Then the connections are closed.
///
/// A stop blocks a thread, in the system's time; in virtual time it is a future.
impl Component for Link {
    fn stop(&self, deadline: Deadline, _reason: &Reason) -> Stopping {
        let core = self.core.clone();
        core.intake.gate().seal();
        core.recall();
        // Also ends when another stop, with an earlier deadline, cuts off what is left.
        let drained = core.intake.gate().drained();
        let timer = core.timer.clone();
        let end = move |in_time: bool| {
            if !in_time {
                core.cut();
                // Answers that lie there until they are taken, and whoever is just coming in.
                core.intake.gate().abandon();
            }
            core.order(Orders::End);
            let clean = !core.cut_off.load(Ordering::Acquire) && !core.intake.gate().is_abandoned();
            if clean { Stopped::Clean } else { Stopped::Overdue }
        };
        if timer.is_virtual() {
            let drained = drained.by(timer, deadline);
            return Stopping::future(async move { end(drained.await.is_ok()) });
        }
        Stopping::blocking(move || end(drained.wait_by(deadline).is_ok()))
    }

    fn balance(&self) -> Balance {
        self.core.intake.balance()
    }

    fn stragglers(&self) -> Stragglers {
        self.core.intake.stragglers()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("address", &self.core.address)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
