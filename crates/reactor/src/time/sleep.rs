//! A sleep.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use super::{
    Key,
    away::{Away, Seen},
    orphan::Orphan,
};
use crate::{core::Core, errand, lease::Lease, shared::Shared};

/// A sleep; from [`sleep`](super::sleep()), [`sleep_until`](super::sleep_until) and `Handle::sleep_until`.
///
/// It ends at its time, never before; also if its loop ends first: then it goes on by a timer thread that all
/// such sleeps share. Dropping it cancels it, and releases its waker: at once, or, dropped where its loop does
/// not run, when that turns next. It belongs to the loop of its handle, or on which it was made, or else to the
/// one that polls it first; and may be polled and dropped on any thread.
///
/// # Panics
/// When it belongs to no loop, and is polled first where none runs.
#[must_use = "a sleep does nothing unless awaited"]
pub struct Sleep {
    when: When,
    /// The loop that it belongs to.
    host: Option<Lease>,
    armed: Armed,
}

/// When it ends.
#[derive(Debug)]
enum When {
    Never,
    At(Instant),
    /// So many nanoseconds after it was made, if that was on a loop: then its place in the wheel says when that
    /// is. Or else after the first poll, by the clock of whoever polls.
    After(u64),
    /// In nanoseconds since the epoch of its loop. There is a host then.
    Nanos(u64),
}

enum Armed {
    No,
    /// In the loop's wheel, put there on its thread. There is a host then.
    Here(Key),
    /// On its way to the loop's wheel, or there, from another thread.
    Away(Arc<Away>),
    /// Its loop has ended.
    Orphaned(Box<Orphan>),
    /// Its time has come.
    Ended,
}

impl Sleep {
    pub(crate) fn at(at: Option<Instant>, host: Option<Lease>) -> Self {
        Self { when: at.map_or(When::Never, When::At), host, armed: Armed::No }
    }

    #[inline]
    pub(super) fn after(duration: Duration) -> Self {
        let nanos =
            duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into());
        if nanos == u64::MAX {
            return Self::at(None, None);
        }
        match Core::current().filter(|core| !core.shared().timers_have_ended()) {
            Some(core) => {
                let armed = Armed::Here(core.plan(nanos));
                Self { when: When::After(nanos), host: Some(Lease::of(core)), armed }
            }
            // Whose clock it is to be counted by shows when it is polled.
            None => Self { when: When::After(nanos), host: None, armed: Armed::No },
        }
    }

    /// When it ends, of one that was made for a time, or polled where it was not made.
    pub(super) fn due(&self) -> Option<Instant> {
        match (&self.when, &self.host) {
            (When::At(at), _) => Some(*at),
            (When::Nanos(nanos), Some(host)) => host.instant(*nanos),
            _ => None,
        }
    }

    /// The time by its own clock.
    pub(super) fn now(&self) -> Instant {
        self.host.as_ref().map_or_else(super::now, |host| host.now())
    }

    /// The same sleep again, until another time. It has ended.
    pub(super) fn reset(&mut self, at: Option<Instant>) {
        self.when = at.map_or(When::Never, When::At);
        self.armed = Armed::No;
    }

    /// Begins to wait.
    #[inline]
    fn begin(&mut self, waker: &Waker) -> Poll<()> {
        if let When::Never = self.when {
            return Poll::Pending;
        }
        let host = self.host.get_or_insert_with(|| {
            Lease::of(Core::current().expect("a sleep without a handle is polled on a loop"))
        });
        let nanos = match self.when {
            When::Nanos(nanos) => nanos,
            When::At(at) => host.nanos(at),
            When::After(nanos) => host.nanos(host.now()).saturating_add(nanos),
            When::Never => u64::MAX,
        };
        self.when = if nanos == u64::MAX { When::Never } else { When::Nanos(nanos) };
        let Some(core) = Core::current_of(host) else { return self.begin_away(nanos, waker) };
        if !core.is_current() {
            let at = host.instant(nanos);
            return self.begin_above(at, waker);
        }
        if host.timers_have_ended() {
            return self.go_on_alone(waker);
        }
        match core.arm(nanos, waker) {
            Some(key) => {
                self.armed = Armed::Here(key);
                Poll::Pending
            }
            None => self.end(),
        }
    }

    /// Begins to wait on the loop that runs here, within a task of its own, which cannot turn meanwhile.
    #[cold]
    fn begin_above(&mut self, at: Option<Instant>, waker: &Waker) -> Poll<()> {
        *self = Self::at(at, Core::current().map(Lease::of));
        self.begin(waker)
    }

    /// Begins to wait on another thread than that of its loop.
    #[cold]
    fn begin_away(&mut self, nanos: u64, waker: &Waker) -> Poll<()> {
        let away = self.host.as_ref().and_then(|host| Away::send(&host.to_arc(), nanos, waker));
        self.wait_away(away, waker)
    }

    /// Waits by what its loop does for it; alone if the loop has ended.
    fn wait_away(&mut self, away: Option<Arc<Away>>, waker: &Waker) -> Poll<()> {
        match away {
            Some(away) => {
                self.armed = Armed::Away(away);
                Poll::Pending
            }
            None => self.go_on_alone(waker),
        }
    }

    /// Goes on without its loop, which has ended.
    #[cold]
    fn go_on_alone(&mut self, waker: &Waker) -> Poll<()> {
        let Some(host) = &self.host else { return Poll::Pending };
        let at = match (&self.when, &self.armed) {
            (When::Never, _) => None,
            (When::At(at), _) => Some(*at),
            (When::Nanos(nanos), _) => host.instant(*nanos),
            (When::After(_), Armed::Here(key)) => match host.times_left_behind().of(*key) {
                Some(nanos) => host.instant(nanos),
                // It had fired before that.
                None => return self.end(),
            },
            (When::After(_), Armed::Away(away)) => match away.due() {
                Some(nanos) => host.instant(nanos),
                None => return self.end(),
            },
            // It is counted from its first poll, which is this one.
            (When::After(nanos), _) => host.now().checked_add(Duration::from_nanos(*nanos)),
        };
        let Some(at) = at else { return Poll::Pending };
        let clock = self.host.as_ref().and_then(|host| host.clock.as_ref());
        let mut orphan = Box::new(Orphan::new(at, clock));
        let poll = orphan.poll(waker);
        self.armed = if poll.is_ready() { Armed::Ended } else { Armed::Orphaned(orphan) };
        poll
    }

    fn end(&mut self) -> Poll<()> {
        self.armed = Armed::Ended;
        Poll::Ready(())
    }

    /// Polls a sleep that is not in the wheel of the loop that runs here.
    #[cold]
    fn poll_elsewhere(&mut self, waker: &Waker) -> Poll<()> {
        match &mut self.armed {
            Armed::No => self.begin(waker),
            // It has moved to another thread.
            Armed::Here(key) => {
                let away = self.host.as_ref().and_then(|host| Away::take_over(&host.to_arc(), *key, waker));
                self.wait_away(away, waker)
            }
            Armed::Away(away) => match away.look(waker) {
                Seen::Nothing => Poll::Pending,
                Seen::TheEndOfItsLoop => self.go_on_alone(waker),
                Seen::ItsTime => self.end(),
            },
            Armed::Orphaned(orphan) => match orphan.poll(waker) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => self.end(),
            },
            Armed::Ended => Poll::Ready(()),
        }
    }
}

/// Takes a sleep out of where it waits. `core` is its loop, on its own thread.
#[inline]
fn disarm(armed: Armed, host: &Shared, core: Option<&Core>) {
    match (armed, core) {
        (Armed::Here(key), Some(core)) => core.disarm(key),
        (Armed::Here(key), None) => drop(errand::send(host, move |core| core.disarm(key))),
        (Armed::Away(away), _) => away.call_back(host),
        (Armed::No | Armed::Orphaned(_) | Armed::Ended, _) => {}
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        match (&this.armed, &this.host) {
            (Armed::No, _) => this.begin(cx.waker()),
            (Armed::Here(key), Some(host)) if let Some(core) = Core::current_of(host) => {
                if core.is_current() && core.rearm(*key, cx.waker()) {
                    return Poll::Pending;
                }
                if let Some(nanos) = core.take_out(*key) {
                    // Its loop stands still, below the one that runs here.
                    let at = host.instant(nanos);
                    this.armed = Armed::No;
                    return this.begin_above(at, cx.waker());
                }
                // It is in the wheel until it fires, or its loop ends.
                if host.timers_have_ended() { this.go_on_alone(cx.waker()) } else { this.end() }
            }
            _ => this.poll_elsewhere(cx.waker()),
        }
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        let Some(host) = self.host.take() else { return };
        let core = Core::current_of(&host);
        disarm(mem::replace(&mut self.armed, Armed::Ended), &host, core);
        host.end(core);
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("when", &self.when).finish_non_exhaustive()
    }
}
