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

use crate::{
    command::Command,
    core::Core,
    error::{Error, Why},
    lane::Lane,
    timer::LinkTimer,
    value::Value,
};

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
pub(crate) struct Slot {
    /// The command.
    what: &'static str,
    state: Mutex<State>,
}

enum State {
    Asked(Option<Waker>),
    /// It is [parked](Parked).
    Away,
    Given(Result<Value, Error>, Option<Held>),
    /// Whoever was to give it was dropped.
    Forsaken,
    /// The answer was taken, or whoever asked has gone.
    Gone,
}

/// What is kept with an answer until it is taken: it is in flight until then.
struct Held {
    unclaimed: Unclaimed,
    admission: Admission<LinkTimer>,
}

/// What an answer is owed by the one who gives it.
pub(crate) struct Debt {
    pub(crate) owed: Owed,
    pub(crate) unclaimed: Option<Unclaimed>,
    pub(crate) admission: Admission<LinkTimer>,
}

/// To whom an answer is owed; none if nobody waits for it from the start. Whoever waits for one that is dropped unpaid,
/// because something panicked on the way, gets an error.
pub(crate) struct Owed(pub(crate) Option<Arc<Slot>>);

impl Drop for Owed {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.forsake();
        }
    }
}

impl Debt {
    /// Gives the answer.
    pub(crate) fn pay(self, core: &Core, result: Result<Value, Error>, outcome: Outcome) {
        let Self { mut owed, unclaimed, admission } = self;
        let Some(slot) = owed.0.take() else { return admission.settle(outcome) };
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
                wake(waker);
            }
            State::Away => {
                *state = State::Given(result.clone(), None);
                drop(state);
                if matches!(result, Ok(Value::Nil)) {
                    return admission.settle(outcome);
                }
                pass_on(core, result, unclaimed, admission, outcome);
            }
            State::Given(..) | State::Forsaken | State::Gone => {
                drop(state);
                pass_on(core, result, unclaimed, admission, outcome);
            }
        }
    }

    /// Whether nobody waits for it at present, and somebody may come back for it.
    pub(crate) fn is_parked(&self) -> bool {
        self.owed.0.as_ref().is_some_and(|slot| matches!(&*slot.lock(), State::Away))
    }

    /// Whether somebody waited who has gone.
    pub(crate) fn is_void(&self) -> bool {
        self.owed.0.as_ref().is_some_and(|slot| matches!(&*slot.lock(), State::Gone))
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
        // Whoever is told last drops it, which is foreign code as well.
        let told = contain(move || {
            let command = unclaimed(value);
            drop(unclaimed);
            command
        });
        match told {
            Ok(Some(command)) => return core.follow(command, admission),
            Ok(None) => {}
            Err(_panicked) => return admission.settle(Outcome::Failed),
        }
    }
    admission.settle(if outcome == Outcome::Completed { Outcome::Late } else { outcome });
}

/// A waker is foreign code: one that panics takes nobody else's answer with it.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        drop(contain(|| waker.wake()));
    }
}

impl Slot {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, state: Mutex::new(State::Asked(None)) }
    }

    /// Nobody will give the answer.
    fn forsake(&self) {
        let mut state = self.lock();
        let waker = match &mut *state {
            State::Asked(waker) => waker.take(),
            State::Away => None,
            State::Given(..) | State::Forsaken | State::Gone => return,
        };
        *state = State::Forsaken;
        drop(state);
        wake(waker);
    }

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
        let slot = Slot { what: "", state: Mutex::new(State::Given(result, None)) };
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
                State::Forsaken => {
                    drop(state);
                    Poll::Ready(Err(Error::new(self.slot.what, &self.core.address, Why::Undriven)))
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
            State::Given(_, None) | State::Away | State::Forsaken | State::Gone => {}
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("address", &self.core.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        task::Wake,
    };

    use super::*;

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn whoever_is_owed_what_is_dropped_unpaid_is_woken_and_forsaken() {
        let (slot, woken) = (Arc::new(Slot::new("GET")), Arc::new(Woken(AtomicBool::new(false))));
        *slot.lock() = State::Asked(Some(Waker::from(woken.clone())));
        drop(Owed(Some(slot.clone())));
        assert!(woken.0.load(Ordering::Relaxed));
        assert!(matches!(&*slot.lock(), State::Forsaken));
    }

    #[test]
    fn an_answer_that_was_given_stays_when_what_was_owed_is_dropped() {
        for before in [State::Given(Ok(Value::Nil), None), State::Gone] {
            let slot = Arc::new(Slot { what: "GET", state: Mutex::new(before) });
            drop(Owed(Some(slot.clone())));
            assert!(!matches!(&*slot.lock(), State::Forsaken));
        }
    }
}
