//! The way of an answer to whoever asked, and what becomes of one that nobody takes.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use ebbtide_lifecycle::{Admission, Outcome, contain};

use crate::{command::Command, core::Core, error::Error, lane::Lane, timer::LinkTimer, value::Value};

/// Says what to send on, if anything, when an answer has come and whoever asked for it has gone. If it panics, nothing
/// is, and what was asked counts as failed.
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
    /// It is [parked](Parked).
    Away,
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
                    Some(unclaimed) if result.is_ok() => (Some(Held { unclaimed, admission }), None),
                    // Of an error there is nothing to pass on.
                    _ => (None, Some(admission)),
                };
                *state = State::Given(result, held);
                drop(state);
                settled.into_iter().for_each(|admission| admission.settle(outcome));
                waker.into_iter().for_each(Waker::wake);
            }
            State::Away => {
                *state = State::Given(result.clone(), None);
                drop(state);
                if matches!(result, Ok(Value::Nil)) {
                    return admission.settle(outcome);
                }
                pass_on(core, result, unclaimed, admission, outcome);
            }
            State::Given(..) | State::Gone => {
                drop(state);
                pass_on(core, result, unclaimed, admission, outcome);
            }
        }
    }

    /// Whether nobody waits for it at present, and somebody may come back for it.
    pub(crate) fn is_parked(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| matches!(&*slot.lock(), State::Away))
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
    if let (Ok(value), Some(unclaimed)) = (result, unclaimed) {
        match contain(|| unclaimed(value)) {
            Ok(Some(command)) => return core.follow(command, admission),
            Ok(None) => {}
            Err(_panicked) => return admission.settle(Outcome::Failed),
        }
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
    pub(crate) fn given(core: Arc<Core>, result: Result<Value, Error>) -> Self {
        let slot = Slot { state: Mutex::new(State::Given(result, None)) };
        Self { slot: Arc::new(slot), core, lane: None }
    }

    /// Leaves a command that blocks with the server, for somebody to come back to.
    ///
    /// None if there is an answer already, which then is unclaimed; if the command does not block; and once the link
    /// stops.
    pub fn park(self) -> Option<Parked> {
        let mut state = self.slot.lock();
        let is_asked = self.lane.is_some() && matches!(&*state, State::Asked(_));
        let waker = if is_asked { Some(mem::replace(&mut *state, State::Away)) } else { None };
        drop(state);
        drop(waker);
        // A stop recalls those that it finds parked. Whoever parks after it has looked finds the gate closed here.
        (is_asked && !self.core.intake.gate().is_closed()).then_some(Parked { answer: self })
    }
}

/// A command that blocks, and that nobody waits for at present.
///
/// What is answered meanwhile is unclaimed, and dealt with as such at once; but for nothing, which is the server's
/// answer when the time is over that it was given. It is ended when the link stops, or when another command that
/// blocks would be refused in its place; and when it is dropped.
#[must_use = "dropped, the command is ended"]
#[derive(Debug)]
pub struct Parked {
    answer: Answer,
}

impl Parked {
    /// Waits for it again. If it was answered meanwhile, that is the answer here too, although it was passed on.
    pub fn resume(self) -> Answer {
        let mut state = self.answer.slot.lock();
        if matches!(&*state, State::Away) {
            *state = State::Asked(None);
        }
        drop(state);
        self.answer
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
                    held.into_iter().for_each(|held| held.admission.settle(Outcome::Completed));
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
        let mut state = self.slot.lock();
        if matches!(&*state, State::Away) {
            drop(state);
            // It stays parked: nothing is the expected answer.
            return self.lane.iter().for_each(|lane| self.core.interrupt(lane, &self.slot));
        }
        // The lock is released before anything is made of it.
        let left = mem::replace(&mut *state, State::Gone);
        drop(state);
        match left {
            State::Given(result, Some(Held { unclaimed, admission })) => {
                pass_on(&self.core, result, Some(unclaimed), admission, Outcome::Completed);
            }
            State::Asked(_) => {
                if let Some(lane) = &self.lane {
                    self.core.interrupt(lane, &self.slot);
                }
            }
            State::Given(_, None) | State::Away | State::Gone => {}
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("address", &self.core.address).finish_non_exhaustive()
    }
}
