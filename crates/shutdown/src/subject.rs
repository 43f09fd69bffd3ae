//! What is registered, whatever it is: something to stop, and to ask about its work.

use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use ebbtide_lifecycle::{
    Balance, Component, Reason, Stopped, Stopping, blame::Stragglers, contain, time::Deadline,
};

use crate::{pace::Pace, report::Ending};

/// Foreign code, called on threads of its own.
pub(crate) trait Subject: Send + Sync {
    /// Stops it, on a thread that lives by `pace`.
    fn stop(&self, deadline: Deadline, reason: &Reason, pace: &mut Pace) -> Ending;

    /// The sums of its ledger, if it has one.
    fn balance(&self) -> Option<Balance>;

    fn stragglers(&self) -> Stragglers;
}

/// A component.
pub(crate) struct Part<C>(pub(crate) C);

impl<C: Component> Subject for Part<C> {
    fn stop(&self, deadline: Deadline, reason: &Reason, pace: &mut Pace) -> Ending {
        let stopped = contain(|| {
            let stopped = match self.0.stop(deadline, reason) {
                Stopping::Blocking(stop) => stop(),
                Stopping::Future(stop) => wait(stop, pace),
            };
            (stopped, self.0.failure())
        });
        match stopped {
            Ok((_, Some(failure))) => Ending::Failed(failure),
            Ok((Stopped::Clean, None)) => Ending::Clean,
            Ok((Stopped::Overdue, None)) => Ending::Overdue,
            Err(panicked) => Ending::Panicked(panicked.message().to_owned()),
        }
    }

    fn balance(&self) -> Option<Balance> {
        Some(self.0.balance())
    }

    fn stragglers(&self) -> Stragglers {
        self.0.stragglers()
    }
}

/// Why something that is done at a stop failed.
pub type StopError = Box<dyn Error + Send + Sync>;

/// Something to be done once.
pub(crate) struct Deed {
    act: Mutex<Option<Act>>,
}

type Act = Box<dyn FnOnce(Deadline, &Reason, &mut Pace) -> Result<(), StopError> + Send>;

impl Deed {
    pub(crate) fn blocking(
        act: impl FnOnce(Deadline, &Reason) -> Result<(), StopError> + Send + 'static,
    ) -> Self {
        Self { act: Mutex::new(Some(Box::new(|deadline, reason, _| act(deadline, reason)))) }
    }

    pub(crate) fn future<F>(act: impl FnOnce(Deadline, Reason) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), StopError>> + Send + 'static,
    {
        let act =
            |deadline, reason: &Reason, pace: &mut Pace| wait(Box::pin(act(deadline, reason.clone())), pace);
        Self { act: Mutex::new(Some(Box::new(act))) }
    }
}

impl Subject for Deed {
    fn stop(&self, deadline: Deadline, reason: &Reason, pace: &mut Pace) -> Ending {
        let act = self.act.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It is stopped once.
        let Some(act) = act else { return Ending::Clean };
        match contain(|| act(deadline, reason, pace)) {
            Ok(Ok(())) => Ending::Clean,
            Ok(Err(error)) => {
                let failed = Ending::Failed(text_of(&*error));
                drop(contain(|| drop(error)));
                failed
            }
            Err(panicked) => Ending::Panicked(panicked.message().to_owned()),
        }
    }

    fn balance(&self) -> Option<Balance> {
        None
    }

    fn stragglers(&self) -> Stragglers {
        Stragglers::none()
    }
}

/// What an error says, which is foreign code.
pub(crate) fn text_of(error: &(impl fmt::Display + ?Sized)) -> String {
    contain(|| error.to_string()).unwrap_or_else(|_| "an error that panics when it is printed".into())
}

fn wait<T>(future: Pin<Box<dyn Future<Output = T> + Send>>, pace: &mut Pace) -> T {
    pace.wait(future, Deadline::never()).expect("without a deadline it is waited for")
}
