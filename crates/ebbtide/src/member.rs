//! A future that runs for as long as the program does, as a component: `main` is one.
//!
//! ```text
//!  posted ──the loop gets to it──► polled ──it ends──► Ended · Failed · Panicked ──► its permit is returned
//!     │                              │
//!     └── the loop ends first ───────┴──► dropped: its fate is not known, its permit is cancelled
//! ```

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use ebbtide_lifecycle::{
    Admission, Balance, Component, Intake, Outcome, Panicked, Reason, Refusal, Stopping, Token, Trigger,
    blame::{Origin, Stragglers},
    contain,
    time::Deadline,
};
use ebbtide_reactor::Handle;
use ebbtide_shutdown::Coordinator;

use crate::{Error, exit::text_of};

/// What a coordinator knows of it.
pub(crate) struct Member {
    name: Arc<str>,
    /// Admits one: the future itself.
    intake: Intake<Handle>,
    /// Fired when its phase comes.
    stop: Trigger,
    /// Set before the permit is returned: who has waited for that knows it.
    fate: OnceLock<Fate>,
}

/// How it ended.
pub(crate) enum Fate {
    Ended,
    Failed(Error),
    /// With this message.
    Panicked(String),
}

/// What its end is for the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The program ends with it.
    Main,
    /// The program goes on without it, unless it fails.
    Part,
}

impl Member {
    pub(crate) fn new(name: Arc<str>, handle: &Handle) -> Arc<Self> {
        let (intake, stop) = (Intake::new(handle.clone()), Trigger::new());
        Arc::new(Self { name, intake, stop, fate: OnceLock::new() })
    }

    /// Fires when its phase comes.
    pub(crate) fn token(&self) -> Token {
        self.stop.token()
    }

    /// How it ended, once it has.
    pub(crate) fn fate(&self) -> Option<&Fate> {
        self.fate.get()
    }

    /// Has the future that `make` gives run on the loop. Both are called and polled there, and nowhere else.
    pub(crate) fn start<M, F>(
        self: &Arc<Self>,
        role: Role,
        coordinator: &Coordinator,
        handle: &Handle,
        origin: Origin,
        make: M,
    ) -> Result<(), Refusal>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let admission = Some(self.intake.admit_as(&origin.named(self.name.clone()))?);
        let (member, coordinator) = (self.clone(), coordinator.clone());
        let begin = move || {
            let name = member.name.clone();
            let root = Root { make: Some(make), future: None, admission, member, role, coordinator };
            // Refused only while the loop drops its tasks; what is dropped here is counted by its permit.
            drop(ebbtide_reactor::spawn_named(name, root));
        };
        handle.post(begin).map_err(|refused| refused.why)
    }
}

/// A stop says so, and waits. It does not drop the future: that is for the loop, at the end of its own stop.
impl Component for Member {
    fn stop(&self, deadline: Deadline, reason: &Reason) -> Stopping {
        self.stop.fire(reason.clone());
        self.intake.stop(deadline, reason)
    }

    fn balance(&self) -> Balance {
        self.intake.balance()
    }

    fn stragglers(&self) -> Stragglers {
        self.intake.stragglers()
    }

    fn failure(&self) -> Option<String> {
        match self.fate.get()? {
            Fate::Ended => None,
            Fate::Failed(error) => Some(text_of(error)),
            Fate::Panicked(message) => Some(format!("panicked: {message}")),
        }
    }
}

/// The future on its loop.
struct Root<M, F> {
    /// There until the first poll: what it does before its first `await` is done in the task, and can be named.
    make: Option<M>,
    /// There from then on, until it has ended.
    future: Option<Pin<Box<F>>>,
    /// There until it has ended.
    admission: Option<Admission<Handle>>,
    member: Arc<Member>,
    role: Role,
    coordinator: Coordinator,
}

impl<M, F> Unpin for Root<M, F> {}

impl<M, F> Future for Root<M, F>
where
    M: FnOnce() -> F,
    F: Future<Output = Result<(), Error>>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let root = &mut *self;
        let polled = contain(|| {
            if let Some(make) = root.make.take() {
                root.future = Some(Box::pin(make()));
            }
            root.future.as_mut().map_or(Poll::Pending, |future| future.as_mut().poll(cx))
        });
        let ended = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(()))) => Ok(Fate::Ended),
            Ok(Poll::Ready(Err(error))) => Ok(Fate::Failed(error)),
            Err(panicked) => Err(panicked),
        };
        // What it held is dropped before anybody is told that it has ended.
        let future = root.future.take();
        let dropped = contain(|| drop(future));
        root.end(match (ended, dropped) {
            (Ok(Fate::Ended), Err(panicked)) | (Err(panicked), _) => panicked_with(&panicked),
            (Ok(fate), _) => fate,
        });
        Poll::Ready(())
    }
}

fn panicked_with(panicked: &Panicked) -> Fate {
    Fate::Panicked(panicked.message().to_owned())
}

impl<M, F> Root<M, F> {
    fn end(&mut self, fate: Fate) {
        let Self { member, role, coordinator, .. } = self;
        let failed = |why: &str| Some(Reason::failed(member.name.clone(), &why));
        let (reason, outcome) = match &fate {
            Fate::Ended if *role == Role::Part => (None, Outcome::Completed),
            Fate::Ended => (Some(Reason::requested(format!("{} ended", member.name))), Outcome::Completed),
            Fate::Failed(error) => (failed(&text_of(error)), Outcome::Failed),
            Fate::Panicked(message) => (failed(&format!("panicked: {message}")), Outcome::Failed),
        };
        let stored = member.fate.set(fate);
        debug_assert!(stored.is_ok(), "it ends once");
        if let Some(reason) = reason {
            coordinator.trigger(reason);
        }
        if let Some(admission) = self.admission.take() {
            admission.settle(outcome);
        }
    }
}

impl<M, F> Drop for Root<M, F> {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            let (make, future) = (self.make.take(), self.future.take());
            drop(contain(|| drop((make, future))));
            admission.settle(Outcome::Cancelled);
        }
    }
}

/// A component was not spawned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSpawned {
    /// There is one of that name.
    Duplicate(Arc<str>),
    /// The loop has been told to stop.
    Closed(Arc<str>),
}

impl fmt::Display for NotSpawned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(name) => {
                write!(f, "a component {name:?} is registered already: give this one another name")
            }
            Self::Closed(name) => write!(f, "the component {name:?} is not started: the loop stops"),
        }
    }
}

impl std::error::Error for NotSpawned {}
