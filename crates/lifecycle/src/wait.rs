//! Waiting for something to become true: awaited or blocking, with a deadline or without.
//!
//! Every wait of the crate is a [`Wait`], so the one place where a wake-up could be lost is in this file. A
//! waiter *listens*, then *announces* itself, then *looks* once more; whoever makes the thing true changes
//! the state first and rings the [`Bell`] after. Either the waiter's last look sees the change, or the ring
//! finds the listener.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::PoisonError,
    task::{Context, Poll, Waker},
};

use pin_project_lite::pin_project;

use crate::{
    park::{self, wake_all},
    sync::{AtomicU64, Mutex, MutexGuard, Ordering},
    time::{Alarm, Deadline, Timer},
};

/// Wakes all who wait: ring it after the change that they wait for.
///
/// Wakers are called with no lock held, so one that drops the task it wakes, and with it the wait, does no
/// harm. (That is why this is not an `event_listener::Event`, which wakes under its lock.) One that panics
/// keeps no other waiter from being woken.
#[derive(Default)]
pub struct Bell {
    waiters: Mutex<Waiters>,
    /// The last ticket that was issued before the last ring: who has that or an earlier one has been rung for. Stored
    /// under the lock; read without it, because when a crowd is woken each of them looks.
    rung: AtomicU64,
}

#[derive(Default)]
struct Waiters {
    /// Those who wait, in the order in which they came. Who is not here any more has been rung for.
    wakers: BTreeMap<Ticket, Waker>,
    issued: u64,
}

/// One waiter's place at a bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket(u64);

impl Bell {
    /// A bell with nobody listening.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes every waiter that listens at this moment, tasks and threads alike.
    ///
    /// Takes a lock: where it would be rung often and waited for seldom, ring only when somebody has
    /// [announced](Watch::announce) himself.
    pub fn ring(&self) {
        let mut waiters = self.lock();
        let rung = mem::take(&mut waiters.wakers);
        // Release: the change that is rung for, to a waiter that does not take the lock.
        self.rung.store(waiters.issued, Ordering::Release);
        drop(waiters);
        wake_all(rung.into_values());
    }

    #[inline]
    fn was_rung_for(&self, ticket: Ticket) -> bool {
        ticket.0 <= self.rung.load(Ordering::Acquire)
    }

    fn listen(&self, waker: &Waker) -> Ticket {
        let waker = waker.clone();
        let mut waiters = self.lock();
        waiters.issued += 1;
        let ticket = Ticket(waiters.issued);
        waiters.wakers.insert(ticket, waker);
        ticket
    }

    /// Whether it has not been rung since, and if so whom to wake then.
    fn still_listens(&self, ticket: Ticket, waker: &Waker) -> bool {
        let mut waiters = self.lock();
        let Some(kept) = waiters.wakers.get_mut(&ticket) else { return false };
        // A waker is foreign code, its clone and its drop too: no lock is held meanwhile.
        if !kept.will_wake(waker) {
            drop(waiters);
            let mut changed = waker.clone();
            let mut waiters = self.lock();
            match waiters.wakers.get_mut(&ticket) {
                Some(kept) => mem::swap(kept, &mut changed),
                None => return false,
            }
            drop(waiters);
        }
        true
    }

    fn leave(&self, ticket: Ticket) {
        let left = self.lock().wakers.remove(&ticket);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        // Nothing that can panic runs under the lock.
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}

/// Something that can be waited for with a [`Wait`].
pub trait Watch {
    /// What the waiter gets.
    type Seen;

    /// What the waiter gets if it is there now.
    fn look(&self) -> Option<Self::Seen>;

    /// The bell that is rung after each change that [`look`](Watch::look) can see.
    fn bell(&self) -> &Bell;

    /// Called between listening and the last look, for things that ring only when told that somebody waits.
    fn announce(&self) {}
}

/// A wait in progress: `.await` it, or block the thread with [`wait`](Wait::wait) or
/// [`wait_by`](Wait::wait_by).
///
/// Any number of waits may go on for the same thing; each is woken.
///
/// # Cancel safety
/// A wait that is dropped has no effect on what it waited for.
#[must_use = "a wait does nothing unless awaited or blocked on"]
pub struct Wait<W: Watch> {
    watch: W,
    /// The place at the watch's bell, while it listens there.
    ticket: Option<Ticket>,
}

impl<W: Watch> Wait<W> {
    /// A wait for what `watch` looks for.
    pub fn new(watch: W) -> Self {
        Self { watch, ticket: None }
    }

    /// Blocks the calling thread until it is there.
    ///
    /// Never call it on the thread that has to make it true.
    pub fn wait(self) -> W::Seen {
        block_on(self)
    }

    /// Blocks the calling thread until it is there or `deadline` has passed, in the system's time.
    ///
    /// What is already there is seen even when the deadline has passed.
    ///
    /// # Errors
    /// [`Elapsed`] when it was still not there at the deadline.
    pub fn wait_by(mut self, deadline: Deadline) -> Result<W::Seen, Elapsed> {
        let seen = park::block_on(&mut self, deadline.instant());
        seen.or_else(|| self.watch.look()).ok_or(Elapsed)
    }

    /// The same wait, given up when `timer` reaches `deadline`. The timer is armed only if there is something
    /// to wait for, and a time to give up at.
    pub fn by<T: Timer>(self, timer: T, deadline: Deadline) -> WaitBy<W, T> {
        WaitBy { wait: self, alarm: Alarm::by(timer, deadline) }
    }

    fn stop_listening(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.watch.bell().leave(ticket);
        }
    }
}

// The watch is never pinned: only its own methods, by reference, are ever called.
impl<W: Watch> Unpin for Wait<W> {}

impl<W: Watch> Future for Wait<W> {
    type Output = W::Seen;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<W::Seen> {
        if let Some(ticket) = self.ticket {
            let bell = self.watch.bell();
            if !bell.was_rung_for(ticket) && bell.still_listens(ticket, cx.waker()) {
                return Poll::Pending;
            }
            self.ticket = None;
        }
        if let Some(seen) = self.watch.look() {
            return Poll::Ready(seen);
        }
        self.ticket = Some(self.watch.bell().listen(cx.waker()));
        self.watch.announce();
        match self.watch.look() {
            Some(seen) => {
                self.stop_listening();
                Poll::Ready(seen)
            }
            None => Poll::Pending,
        }
    }
}

impl<W: Watch> Drop for Wait<W> {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

impl<W: Watch + fmt::Debug> fmt::Debug for Wait<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wait").field(&self.watch).finish()
    }
}

pin_project! {
    /// A [`Wait`] that gives up at a deadline; made by [`Wait::by`].
    #[must_use = "a wait does nothing unless awaited"]
    pub struct WaitBy<W: Watch, T: Timer> {
        wait: Wait<W>,
        #[pin]
        alarm: Alarm<T>,
    }
}

impl<W: Watch, T: Timer> Future for WaitBy<W, T> {
    type Output = Result<W::Seen, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(seen) = Pin::new(&mut *this.wait).poll(cx) {
            return Poll::Ready(Ok(seen));
        }
        // A last look, as the blocking wait takes it: the ring may still be on its way.
        this.alarm.poll(cx).map(|()| this.wait.watch.look().ok_or(Elapsed))
    }
}

impl<W: Watch + fmt::Debug, T: Timer> fmt::Debug for WaitBy<W, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitBy").field("wait", &self.wait).field("alarm", &self.alarm).finish()
    }
}

/// Blocks the calling thread until `future` has ended, which it polls here.
///
/// Never call it on the thread that has to bring it to its end.
pub fn block_on<F: Future>(future: F) -> F::Output {
    park::block_on(future, None).expect("without a deadline it is waited for")
}

/// The same until `deadline`, in the system's time. What is ready at the first look is seen even when the deadline
/// has passed.
///
/// # Errors
/// [`Elapsed`] when it had not ended at the deadline.
pub fn block_on_by<F: Future>(future: F, deadline: Deadline) -> Result<F::Output, Elapsed> {
    park::block_on(future, deadline.instant()).ok_or(Elapsed)
}

/// The deadline came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed before the wait ended")
    }
}

impl std::error::Error for Elapsed {}
