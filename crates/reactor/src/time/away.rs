//! A sleep on another thread than that of its loop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Wake, Waker},
};

use super::Key;
use crate::{
    core::Core,
    errand,
    shared::Shared,
    sync::{Mutex, lock},
};

/// A time that the loop has not said yet.
const UNKNOWN: u64 = u64::MAX;

/// What a sleep and its loop share while they are on different threads.
pub(super) struct Away {
    host: Arc<Shared>,
    /// When its time comes, in nanoseconds since the loop's epoch.
    at: AtomicU64,
    fired: AtomicBool,
    orphaned: AtomicBool,
    /// The sleep was dropped.
    gone: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// Its place in the wheel. Read and written on the loop's thread.
    key: Mutex<Option<Key>>,
}

impl Away {
    /// Has a loop wake `waker` at its time. Gives none if the loop has ended.
    pub(super) fn send(host: &Arc<Shared>, nanos: u64, waker: &Waker) -> Option<Arc<Self>> {
        Self::new(host, nanos, waker)
            .install(move |core, waker| core.arm(nanos, waker).map(|key| (key, nanos)))
    }

    /// Has a loop wake `waker` at the time of a timer that it has already. Gives none if the loop has ended.
    pub(super) fn take_over(host: &Arc<Shared>, key: Key, waker: &Waker) -> Option<Arc<Self>> {
        Self::new(host, UNKNOWN, waker)
            .install(move |core, waker| core.hand_over(key, waker).map(|at| (key, at)))
    }

    /// Sends `arm` to the loop, which gives a place in the wheel and its time, unless that has come.
    fn install(
        self: Arc<Self>,
        arm: impl FnOnce(&Core, &Waker) -> Option<(Key, u64)> + Send + 'static,
    ) -> Option<Arc<Self>> {
        let sending = Sending(Some(self.clone()));
        let sent = errand::send(&self.host, move |core| {
            let Some(theirs) = sending.arrive() else { return };
            let waker = Waker::from(theirs.clone());
            match arm(core, &waker) {
                Some((key, at)) => {
                    theirs.at.store(at, Ordering::Release);
                    theirs.set_key(Some(key));
                }
                None => return waker.wake(),
            }
            if theirs.gone.load(Ordering::Acquire) {
                theirs.leave(core);
            }
        });
        sent.then_some(self)
    }

    /// When its time comes, as far as the loop has said.
    pub(super) fn due(&self) -> Option<u64> {
        Some(self.at.load(Ordering::Acquire)).filter(|at| *at != UNKNOWN)
    }

    fn tell(&self, what: &AtomicBool) {
        what.store(true, Ordering::Release);
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// Takes the timer out of the wheel.
    fn leave(&self, core: &Core) {
        if let Some(key) = self.set_key(None) {
            core.disarm(key);
        }
    }

    /// The sleep is dropped: takes it out of the wheel of its loop, and drops its waker at once.
    pub(super) fn call_back(self: Arc<Self>, host: &Shared) {
        self.gone.store(true, Ordering::Release);
        drop(self.take_waker());
        errand::send(host, move |core| self.leave(core));
    }

    fn new(host: &Arc<Shared>, at: u64, waker: &Waker) -> Arc<Self> {
        Arc::new(Self {
            host: host.clone(),
            at: AtomicU64::new(at),
            fired: AtomicBool::new(false),
            orphaned: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            waker: Mutex::new(Some(waker.clone())),
            key: Mutex::new(None),
        })
    }

    fn set_key(&self, key: Option<Key>) -> Option<Key> {
        std::mem::replace(&mut *lock(&self.key), key)
    }

    fn take_waker(&self) -> Option<Waker> {
        lock(&self.waker).take()
    }

    /// What has happened; and if nothing has, whom to wake then.
    pub(super) fn look(&self, waker: &Waker) -> Seen {
        let waker = waker.clone();
        let unneeded = lock(&self.waker).replace(waker);
        drop(unneeded);
        if self.fired.load(Ordering::Acquire) {
            Seen::ItsTime
        } else if self.orphaned.load(Ordering::Acquire) {
            Seen::TheEndOfItsLoop
        } else {
            Seen::Nothing
        }
    }
}

pub(super) enum Seen {
    Nothing,
    ItsTime,
    TheEndOfItsLoop,
}

/// A sleep on its way to its loop. If it does not arrive, the loop never ran, and its end is told.
struct Sending(Option<Arc<Away>>);

impl Sending {
    fn arrive(mut self) -> Option<Arc<Away>> {
        self.0.take()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some(away) = self.0.take() {
            away.tell(&away.orphaned);
        }
    }
}

/// Called by the loop when the time has come, or when it ends.
impl Wake for Away {
    fn wake(self: Arc<Self>) {
        self.tell(if self.host.timers_have_ended() { &self.orphaned } else { &self.fired });
    }
}
