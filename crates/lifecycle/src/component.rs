//! What a coordinator can stop, and ask what became of its work.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::{balance::Balance, blame::Stragglers, time::Deadline, trigger::Reason, wait::block_on};

/// Something that accepts work and can be stopped: a loop, a pool, an intake, a worker.
///
/// Implementors check themselves with `conformance::component` (feature `conformance`).
pub trait Component: Send + Sync {
    /// Begins to stop, and gives what ends when the stop does.
    ///
    /// Callable from any thread, any number of times; every call's [`Stopping`] ends only when the stop has. In
    /// this order:
    /// 1. Admission is closed before this returns: what comes in from outside afterwards is refused.
    /// 2. Accepted work is run, or handed back to whoever brought it, until `deadline`.
    /// 3. What is left at `deadline` is abandoned: counted in [`balance`](Component::balance), and still named by
    ///    [`stragglers`](Component::stragglers) for as long as it goes on.
    ///
    /// The stop goes on only while the returned value is driven. A later call may bring an earlier deadline; which
    /// deadline the earlier calls then honour is up to the component.
    fn stop(&self, deadline: Deadline, reason: &Reason) -> Stopping;

    /// The sums of its ledger. Callable at any time, also when everything hangs and after the stop.
    fn balance(&self) -> Balance;

    /// Who is in flight. Callable at any time, also when everything hangs; it may wait briefly, never for the
    /// work itself.
    fn stragglers(&self) -> Stragglers;

    /// Why it failed, if it did: asked once its stop has ended, because a component that abandoned nothing may have
    /// failed all the same. Work that failed is no failure of the component.
    fn failure(&self) -> Option<String> {
        None
    }
}

impl<C: Component + ?Sized> Component for Arc<C> {
    fn stop(&self, deadline: Deadline, reason: &Reason) -> Stopping {
        C::stop(self, deadline, reason)
    }

    fn balance(&self) -> Balance {
        C::balance(self)
    }

    fn stragglers(&self) -> Stragglers {
        C::stragglers(self)
    }

    fn failure(&self) -> Option<String> {
        C::failure(self)
    }
}

/// A stop in progress. Whoever asked for it drives it.
#[must_use = "a stop goes on only while it is driven"]
pub enum Stopping {
    /// Blocks a thread until the stop has ended. Give it one of its own.
    Blocking(Box<dyn FnOnce() -> Stopped + Send>),
    /// Can be polled on any thread, outside of any executor. A component that stops on an executor of its own
    /// spawns the stop there, and gives the handle that joins it.
    Future(Pin<Box<dyn Future<Output = Stopped> + Send>>),
}

impl Stopping {
    /// A stop that blocks.
    pub fn blocking(stop: impl FnOnce() -> Stopped + Send + 'static) -> Self {
        Self::Blocking(Box::new(stop))
    }

    /// A stop that is polled.
    pub fn future(stop: impl Future<Output = Stopped> + Send + 'static) -> Self {
        Self::Future(Box::pin(stop))
    }

    /// Drives the stop on the calling thread until it has ended.
    ///
    /// Never call it on a thread that the component needs in order to stop.
    pub fn wait(self) -> Stopped {
        match self {
            Self::Blocking(stop) => stop(),
            Self::Future(stop) => block_on(stop),
        }
    }
}

impl fmt::Debug for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocking(_) => "Stopping::Blocking",
            Self::Future(_) => "Stopping::Future",
        })
    }
}

/// How a stop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stopped {
    /// All accepted work was run or handed back.
    Clean,
    /// The deadline came first: some work was abandoned.
    Overdue,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "stopped cleanly",
            Self::Overdue => "stopped at the deadline, with work abandoned",
        })
    }
}
