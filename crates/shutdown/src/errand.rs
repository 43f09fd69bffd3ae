//! Foreign code on a thread of its own, so that whoever wants it done can stop waiting for it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
};

use ebbtide_lifecycle::{
    Panicked, contain,
    time::Tempo,
    wait::{Bell, Wait, Watch},
};

use crate::pace::Pace;

/// Something that is being done elsewhere.
pub(crate) struct Errand<T> {
    slot: Arc<Slot<T>>,
}

struct Slot<T> {
    /// What it gave, until somebody takes it.
    given: Mutex<Option<Result<T, Panicked>>>,
    ended: Bell,
}

/// What is left to be done when there is no thread for it.
pub(crate) type Undone = Box<dyn FnOnce() + Send>;

impl<T: Send + 'static> Errand<T> {
    /// Has `act` done on a thread called `name`. In virtual time it takes part, and time stands still while it does not
    /// wait by its pace. If the system has no thread to give, it is for the caller to have it done.
    pub(crate) fn begin(
        name: &str,
        tempo: &Tempo,
        act: impl FnOnce(&mut Pace) -> T + Send + 'static,
    ) -> (Self, Result<(), Undone>) {
        let (errand, act) = Self::new(tempo, act);
        // Kept outside as well, because a thread that cannot be started takes what it was given with it.
        let act = Arc::new(Mutex::new(Some(act)));
        let theirs = act.clone();
        let take = |act: &Mutex<Option<Undone>>| act.lock().unwrap_or_else(PoisonError::into_inner).take();
        let run = move || {
            if let Some(act) = take(&theirs) {
                act();
            }
        };
        // A thread's name cannot have a NUL in it.
        let spawned = thread::Builder::new().name(name.replace('\0', "\u{fffd}")).spawn(run);
        let undone = spawned.err().and_then(|_| take(&act));
        (errand, undone.map_or(Ok(()), Err))
    }

    /// Something that is to be done somewhere.
    pub(crate) fn new(tempo: &Tempo, act: impl FnOnce(&mut Pace) -> T + Send + 'static) -> (Self, Undone) {
        let slot = Arc::new(Slot { given: Mutex::new(None), ended: Bell::new() });
        let mut pace = Pace::new(tempo);
        let mark = slot.clone();
        let act = move || {
            let given = contain(|| act(&mut pace));
            *mark.lock() = Some(given);
            mark.ended.ring();
            // Whoever waits in virtual time has to be told before time may move.
            drop(pace);
        };
        (Self { slot }, Box::new(act))
    }

    /// Waits for its end, and takes what it gave.
    pub(crate) fn ended(&self) -> Wait<Ended<T>> {
        Wait::new(Ended { slot: self.slot.clone() })
    }
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, Option<Result<T, Panicked>>> {
        // Nothing that can panic runs under the lock.
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What [`Errand::ended`] waits for.
pub(crate) struct Ended<T> {
    slot: Arc<Slot<T>>,
}

impl<T> Watch for Ended<T> {
    type Seen = Result<T, Panicked>;

    fn look(&self) -> Option<Result<T, Panicked>> {
        self.slot.lock().take()
    }

    fn bell(&self) -> &Bell {
        &self.slot.ended
    }
}

impl<T> fmt::Debug for Ended<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended").finish_non_exhaustive()
    }
}

/// A thread that is there from the start: for what is quick as a rule, and for when the system has none to give later.
/// What it is given it does one after the other.
pub(crate) struct Spare {
    work: mpsc::Sender<Undone>,
}

impl Spare {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (work, given) = mpsc::channel::<Undone>();
        let run = move || given.into_iter().for_each(|act| drop(contain(act)));
        thread::Builder::new().name("ebbtide-spare".into()).spawn(run)?;
        Ok(Self { work })
    }

    /// Has it done after what it does.
    pub(crate) fn take(&self, act: Undone) {
        // It is there for as long as this is.
        let _ = self.work.send(act);
    }
}
