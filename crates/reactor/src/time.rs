//! Sleeping on a loop.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::{Clock, SystemClock};

use crate::{
    core::Core,
    errand,
    orphan::Orphan,
    shared::Shared,
    sync::{Mutex, lock},
    wheel::Key,
};

/// The time by the clock of the loop that runs here, or else by the system's.
#[must_use]
pub fn now() -> Instant {
    Core::current().map_or_else(|| SystemClock.now(), Core::now)
}

/// Sleeps for `duration`, never less. One that leads beyond the range of an `Instant` never ends.
///
/// For work on a loop: see [`Sleep`].
pub fn sleep(duration: Duration) -> Sleep {
    match Core::current() {
        Some(core) => Sleep::new(core.now().checked_add(duration), None),
        // Whose clock it is to be counted by shows when it is polled.
        None => Sleep { at: None, after: Some(duration), ended: false, host: None, armed: Armed::No },
    }
}

/// Sleeps until `at`, never less. For work on a loop: see [`Sleep`].
pub fn sleep_until(at: Instant) -> Sleep {
    Sleep::new(Some(at), None)
}

/// A sleep; from [`sleep`], [`sleep_until`] and `Handle::sleep_until`.
///
/// It ends at its time, never before; also if its loop ends first: then it goes on by a timer thread that all
/// such sleeps share. Dropping it cancels it at once and releases its waker. It belongs to the loop of its
/// handle, or else to the one that polls it first, and may then be polled and dropped on any thread.
///
/// # Panics
/// When it belongs to no loop, and is polled first where none runs.
#[must_use = "a sleep does nothing unless awaited"]
pub struct Sleep {
    /// None if it never ends, or if that is not known yet.
    at: Option<Instant>,
    /// How long it is, until it is polled on a loop: for one that was made elsewhere.
    after: Option<Duration>,
    ended: bool,
    host: Option<Arc<Shared>>,
    armed: Armed,
}

enum Armed {
    No,
    /// In the loop's wheel, put there on its thread.
    Here(Key),
    /// On its way to the loop's wheel, or there, from another thread.
    Away(Arc<Away>),
    /// Its loop has ended.
    Orphaned(Orphan),
}

impl Sleep {
    pub(crate) fn new(at: Option<Instant>, host: Option<Arc<Shared>>) -> Self {
        Self { at, after: None, ended: false, host, armed: Armed::No }
    }

    fn arm(&mut self, at: Instant, waker: &Waker) -> Poll<()> {
        let host = self.host.get_or_insert_with(|| {
            let core = Core::current().expect("a sleep without a handle is polled on a loop");
            core.shared().clone()
        });
        if let Some(core) = Core::current_of(host) {
            let Some(key) = core.arm(at, waker) else {
                self.ended = true;
                return Poll::Ready(());
            };
            self.armed = Armed::Here(key);
            return Poll::Pending;
        }
        let away = Arc::new(Away::new(host.clone(), waker.clone()));
        self.armed = Armed::Away(away.clone());
        let sent = errand::send(host, move |core| {
            if !away.gone.load(Ordering::Acquire) {
                let waker = Waker::from(away.clone());
                match core.arm(at, &waker) {
                    Some(key) => drop(away.set_key(Some(key))),
                    None => waker.wake(),
                }
            }
        });
        if sent { Poll::Pending } else { self.orphan(at, waker) }
    }

    /// Goes on without its loop.
    fn orphan(&mut self, at: Instant, waker: &Waker) -> Poll<()> {
        let clock = self.host.as_ref().and_then(|host| host.clock.as_ref());
        let mut orphan = Orphan::new(at, clock);
        let poll = orphan.poll(waker);
        self.ended = poll.is_ready();
        self.armed = Armed::Orphaned(orphan);
        poll
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(());
        }
        if let Some(duration) = this.after.take() {
            this.at = now().checked_add(duration);
        }
        let Some(at) = this.at else { return Poll::Pending };
        match (&mut this.armed, &this.host) {
            (Armed::Here(key), Some(host)) => match Core::current_of(host) {
                // It is in the wheel until it fires.
                Some(core) => {
                    if let Some(_unneeded) = core.rearm(*key, cx.waker().clone()) {
                        return Poll::Pending;
                    }
                }
                // It has moved to another thread: begin anew there.
                None => {
                    this.disarm();
                    return this.arm(at, cx.waker());
                }
            },
            (Armed::Away(away), _) => match away.look(cx.waker()) {
                Seen::Nothing => return Poll::Pending,
                Seen::TheEndOfItsLoop => return this.orphan(at, cx.waker()),
                Seen::ItsTime => {}
            },
            (Armed::Orphaned(orphan), _) => {
                if orphan.poll(cx.waker()).is_pending() {
                    return Poll::Pending;
                }
            }
            (Armed::No, _) | (_, None) => return this.arm(at, cx.waker()),
        }
        this.armed = Armed::No;
        this.ended = true;
        Poll::Ready(())
    }
}

impl Sleep {
    fn disarm(&mut self) {
        let Some(host) = &self.host else { return };
        match std::mem::replace(&mut self.armed, Armed::No) {
            Armed::No | Armed::Orphaned(_) => {}
            Armed::Here(key) => match Core::current_of(host) {
                Some(core) => core.disarm(key),
                None => drop(errand::send(host, move |core| core.disarm(key))),
            },
            Armed::Away(away) => {
                away.gone.store(true, Ordering::Release);
                drop(away.take_waker());
                errand::send(host, move |core| {
                    if let Some(key) = away.set_key(None) {
                        core.disarm(key);
                    }
                });
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.disarm();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("at", &self.at).finish_non_exhaustive()
    }
}

/// What a sleep and its loop share while they are on different threads.
struct Away {
    host: Arc<Shared>,
    fired: AtomicBool,
    orphaned: AtomicBool,
    /// The sleep was dropped.
    gone: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// Its place in the wheel. Read and written on the loop's thread.
    key: Mutex<Option<Key>>,
}

impl Away {
    fn new(host: Arc<Shared>, waker: Waker) -> Self {
        Self {
            host,
            fired: AtomicBool::new(false),
            orphaned: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            waker: Mutex::new(Some(waker)),
            key: Mutex::new(None),
        }
    }

    fn set_key(&self, key: Option<Key>) -> Option<Key> {
        std::mem::replace(&mut *lock(&self.key), key)
    }

    fn take_waker(&self) -> Option<Waker> {
        lock(&self.waker).take()
    }

    /// What has happened; and if nothing has, whom to wake then.
    fn look(&self, waker: &Waker) -> Seen {
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

enum Seen {
    Nothing,
    ItsTime,
    TheEndOfItsLoop,
}

/// Called by the loop when the time has come, or when it ends.
impl Wake for Away {
    fn wake(self: Arc<Self>) {
        let what = if self.host.timers_have_ended() { &self.orphaned } else { &self.fired };
        what.store(true, Ordering::Release);
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }
}

/// What an [`Interval`] does with the ticks that it missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// It gives them at once, one after the other, until it has caught up.
    #[default]
    Burst,
    /// It leaves them out, and keeps to its times.
    Skip,
    /// It gives one at once, and counts its period from then on.
    Delay,
}

/// Ticks every `period`, for the first time after one. For work on a loop.
///
/// A period of zero ticks whenever it is asked.
pub fn interval(period: Duration) -> Interval {
    let sleep = sleep(period);
    Interval { period, missed: Missed::default(), sleep }
}

/// Ticks; from [`interval`].
#[derive(Debug)]
pub struct Interval {
    period: Duration,
    missed: Missed,
    sleep: Sleep,
}

impl Interval {
    /// The same, which does `missed` with the ticks that it missed.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Waits for the next tick, and gives the time for which it was meant.
    ///
    /// # Cancel safety
    /// No tick is lost when this is dropped before its end.
    pub async fn tick(&mut self) -> Instant {
        let Some(due) = self.sleep.at else {
            return std::future::pending().await;
        };
        (&mut self.sleep).await;
        let next = match self.missed {
            Missed::Burst => due.checked_add(self.period),
            Missed::Delay => now().checked_add(self.period),
            Missed::Skip => self.next_after(due, now()),
        };
        self.sleep = Sleep::new(next, self.sleep.host.take());
        due
    }

    /// The first time after `now` that is a whole number of periods after `due`.
    fn next_after(&self, due: Instant, now: Instant) -> Option<Instant> {
        let (late, period) = (now.saturating_duration_since(due).as_nanos(), self.period.as_nanos());
        let periods = late.checked_div(period).map_or(0, |missed| missed + 1);
        let ahead = u64::try_from(periods.checked_mul(period)?).ok()?;
        due.checked_add(Duration::from_nanos(ahead))
    }
}
