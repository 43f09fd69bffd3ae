//! The way of an answer to whoever asked, and what becomes of one that nobody takes.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use ebbtide_lifecycle::{Admission, Outcome};

use crate::{command::Command, core::Core, error::Error, lane::Lane, timer::LinkTimer, value::Value};

/// Says what to send on, if anything, when an answer has come and whoever asked for it has gone.
pub type Unclaimed = Arc<dyn Fn(Value) -> Option<Command> + Send + Sync>;

/// The answer to a command, in the future.
///
/// # Cancel safety
/// Dropped before its end, the command may have been done or not. One that was not sent yet is not sent. If something
/// was to be done with an unclaimed answer, it is done when that comes.
#[must_use = "an answer is not waited for unless awaited"]
pub struct Answer {
    slot: Arc<Slot>,
    core: Arc<Core>,
    /// The connection that the command has for itself, if it has one.
    lane: Option<Arc<Lane>>,
}

/// Where an answer is put, and taken.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<State>,
}

enum State {
    Asked(Option<Waker>),
    Given(Result<Value, Error>, Option<Held>),
    /// The answer was taken, or whoever asked has gone.
    Gone,
}

impl Default for State {
    fn default() -> Self {
        Self::Asked(None)
    }
}

/// What is kept with an answer until it is taken: it is in flight until then.
struct Held {
    unclaimed: Unclaimed,
    admission: Admission<LinkTimer>,
}

/// What an answer is owed by the one who gives it.
pub(crate) struct Debt {
    /// None if nobody waits for it from the start.
    pub(crate) slot: Option<Arc<Slot>>,
    pub(crate) unclaimed: Option<Unclaimed>,
    pub(crate) admission: Admission<LinkTimer>,
}

impl Debt {
    /// Gives the answer.
    pub(crate) fn pay(self, core: &Core, result: Result<Value, Error>, outcome: Outcome) {
        let Self { slot, unclaimed, admission } = self;
        let Some(slot) = slot else { return admission.settle(outcome) };
        let mut state = slot.lock();
        match &mut *state {
            State::Asked(waker) => {
                let waker = waker.take();
                let (held, settled) = match unclaimed {
                    Some(unclaimed) => (Some(Held { unclaimed, admission }), None),
                    None => (None, Some(admission)),
                };
                *state = State::Given(result, held);
                drop(state);
                settled.into_iter().for_each(|admission| admission.settle(outcome));
                waker.into_iter().for_each(Waker::wake);
            }
            State::Given(..) | State::Gone => {
                drop(state);
                pass_on(core, result, unclaimed, admission, outcome);
            }
        }
    }

    /// Whether somebody waited who has gone.
    pub(crate) fn is_void(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| matches!(&*slot.lock(), State::Gone))
    }
}

fn pass_on(
    core: &Core,
    result: Result<Value, Error>,
    unclaimed: Option<Unclaimed>,
    admission: Admission<LinkTimer>,
    outcome: Outcome,
) {
    if let (Ok(value), Some(unclaimed)) = (result, unclaimed)
        && let Some(command) = unclaimed(value)
    {
        return core.follow(command, admission);
    }
    admission.settle(if outcome == Outcome::Completed { Outcome::Late } else { outcome });
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answer {
    pub(crate) fn new(slot: Arc<Slot>, core: Arc<Core>, lane: Option<Arc<Lane>>) -> Self {
        Self { slot, core, lane }
    }

    /// One that is there already.
    pub(crate) fn failed(core: Arc<Core>, error: Error) -> Self {
        let slot = Slot { state: Mutex::new(State::Given(Err(error), None)) };
        Self { slot: Arc::new(slot), core, lane: None }
    }
}

impl Future for Answer {
    type Output = Result<Value, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = cx.waker().clone();
        let mut state = self.slot.lock();
        match &mut *state {
            State::Asked(kept) => {
                let old = kept.replace(waker);
                drop(state);
                drop(old);
                Poll::Pending
            }
            taken => match mem::replace(taken, State::Gone) {
                State::Given(result, held) => {
                    drop(state);
                    let outcome = if result.is_ok() { Outcome::Completed } else { Outcome::Failed };
                    held.into_iter().for_each(|held| held.admission.settle(outcome));
                    Poll::Ready(result)
                }
                // Awaited again after it has been taken.
                _ => Poll::Pending,
            },
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // The lock is released before anything is made of it.
        let state = mem::replace(&mut *self.slot.lock(), State::Gone);
        match state {
            State::Given(result, Some(Held { unclaimed, admission })) => {
                pass_on(&self.core, result, Some(unclaimed), admission, Outcome::Completed);
            }
            State::Asked(_) => {
                if let Some(lane) = &self.lane {
                    self.core.interrupt(lane, &self.slot);
                }
            }
            State::Given(_, None) | State::Gone => {}
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("address", &self.core.address).finish_non_exhaustive()
    }
}
