//! A clock that stands still until everybody rests, and then jumps to the next thing that is due.
//!
//! Who takes part, a loop for one, is a [`Participant`]. It runs; when it thinks that there is nothing left to
//! do, it [looks](Participant::look) once more at everything that others can put work into, and
//! [rests](Participant::rest). Time moves when all participants rest, *each having looked since the last of
//! them did something*, and nobody has a [`Hold`]. The condition in the middle is what makes it exact: a
//! participant that posts to a resting one and then rests itself has given that one something to do. So whoever
//! has run begins a new round when he starts to look, and the clock has those look again who last looked in an
//! earlier round; only if all of them find nothing is it truly quiet.
//!
//! ```text
//!            look()                rest(look): nothing found
//!  Running ────────► (looking) ───────────────────────────────► Resting, in the round of its look
//!     ▲                  │ found something                          │
//!     └──────────────────┴──────────── run() ◄──────────────────────┘ woken, looked, found something
//! ```

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use super::{
    Clock, SystemClock, Timer,
    sleepers::{Sleepers, Ticket},
};
use crate::{
    panicked::contain,
    park::{Signal, wake_all},
};

/// Virtual time. A clone is another handle to the same clock.
///
/// Move it by hand with [`advance`](VirtualClock::advance), or let it move by itself: inside
/// [`block_on`](VirtualClock::block_on), or in a loop that takes part in it.
///
/// ```
/// use std::time::Duration;
/// use ebbtide_lifecycle::time::{Clock, Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let start = clock.now();
/// let hour = Duration::from_secs(3600);
/// clock.block_on(clock.sleep_until(start + hour)); // takes no time
/// assert_eq!(clock.now(), start + hour);
/// ```
#[derive(Clone)]
pub struct VirtualClock {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Instant,
    /// Nanoseconds since `origin`. Only ever grows, and only under the lock of `state`.
    elapsed: AtomicU64,
    state: Mutex<Timekeeping>,
}

#[derive(Default)]
struct Timekeeping {
    sleepers: Sleepers,
    /// By number, so that a participant keeps its place while others leave.
    participants: BTreeMap<u64, Resting>,
    joined: u64,
    holds: usize,
    /// The round of looking. A participant that rests in an earlier one has to look again.
    round: u64,
}

struct Resting {
    /// In an `Arc`, because a waker's own clone is foreign code, and this is cloned under the lock.
    waker: Arc<Waker>,
    /// The round in which it last looked and found nothing; none while it runs.
    looked: Option<u64>,
    /// When it wants to be woken at the latest, while it rests.
    until: Option<Instant>,
}

impl VirtualClock {
    /// A clock that nobody takes part in.
    #[must_use]
    pub fn new() -> Self {
        let shared =
            Shared { origin: SystemClock.now(), elapsed: AtomicU64::new(0), state: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Moves time on by `by`, whoever holds it, and wakes all whose time has come.
    ///
    /// # Panics
    /// If the clock would have to go more than 500 years beyond its start.
    pub fn advance(&self, by: Duration) {
        // Until all who are due have been told, nobody else may move it on.
        let _hold = self.hold();
        let mut state = self.lock();
        let to = self.now().checked_add(by).filter(|to| self.reaches(*to));
        let Some(to) = to else {
            drop(state);
            panic!("a virtual clock goes at most 500 years beyond its start");
        };
        let (due, again) = self.move_to(&mut state, to);
        drop(state);
        wake_all(due);
        ask_again(&again);
    }

    /// Whether it can tell this time: nanoseconds in 64 bits last for 584 years.
    fn reaches(&self, at: Instant) -> bool {
        at.saturating_duration_since(self.shared.origin) <= Duration::from_nanos(u64::MAX)
    }

    /// Keeps time from moving by itself until the hold is dropped: something goes on that the clock cannot see,
    /// such as a job on another thread.
    pub fn hold(&self) -> Hold {
        self.lock().holds += 1;
        Hold { clock: self.clone() }
    }

    /// Takes part: time does not move by itself while this participant runs. It runs until it first rests.
    ///
    /// `waker` is called when it has to look again: time has moved, or somebody else did something.
    #[must_use]
    pub fn join(&self, waker: Waker) -> Participant {
        let mut state = self.lock();
        state.joined += 1;
        let number = state.joined;
        state.participants.insert(number, Resting { waker: Arc::new(waker), looked: None, until: None });
        Participant { clock: self.clone(), number }
    }

    /// Runs `future` on this thread, as a participant: whenever it waits and nobody else is busy, time jumps to
    /// the next thing that is due.
    ///
    /// Not to be called inside itself: the outer participant would be busy for as long as the inner one waits.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        // Two signals, because being asked to look again is not yet something to do: a participant that took it
        // for work would ask all others to look again in turn, without end.
        let (woken, asked) = (Signal::new(), Signal::new());
        let waker = Waker::from(woken.clone());
        let mut participant = self.join(Waker::from(asked.clone()));
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            loop {
                let look = participant.look();
                if woken.take() {
                    participant.run();
                    break;
                }
                if participant.rest(look, None) == Rest::Wait {
                    while !woken.is_raised() && !asked.take() {
                        thread::park();
                    }
                }
            }
        }
    }

    /// Sets the time and takes out whom to wake: the sleepers that are due, and all who rest, because it may be
    /// their own time that has come.
    fn move_to(&self, state: &mut Timekeeping, to: Instant) -> (Vec<Waker>, Vec<Arc<Waker>>) {
        let elapsed = u64::try_from((to - self.shared.origin).as_nanos()).expect("500 years fit");
        self.shared.elapsed.store(elapsed, Ordering::Release);
        (state.sleepers.take_due(to), state.stir())
    }

    fn lock(&self) -> MutexGuard<'_, Timekeeping> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timekeeping {
    /// Starts a new round of looking, and takes out the wakers of all who have to look again.
    fn stir(&mut self) -> Vec<Arc<Waker>> {
        self.round += 1;
        self.behind()
    }

    /// The wakers of those who rest but have not looked in this round.
    fn behind(&self) -> Vec<Arc<Waker>> {
        let behind = |p: &&Resting| p.looked.is_some_and(|looked| looked < self.round);
        self.participants.values().filter(behind).map(|p| p.waker.clone()).collect()
    }

    fn everybody_rests(&self) -> bool {
        self.participants.values().all(|p| p.looked.is_some())
    }

    /// When time may jump, and to when: everybody rests, has looked in this round, and nobody holds it.
    fn next_jump(&self) -> Option<Instant> {
        let quiet = self.holds == 0 && self.participants.values().all(|p| p.looked == Some(self.round));
        let wanted = self.participants.values().filter_map(|p| p.until);
        wanted.chain(self.sleepers.next()).min().filter(|_| quiet)
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        self.shared.origin + Duration::from_nanos(self.shared.elapsed.load(Ordering::Acquire))
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Timer for VirtualClock {
    type Sleep = VirtualSleep;

    fn sleep_until(&self, at: Instant) -> VirtualSleep {
        VirtualSleep { clock: self.clone(), at, ticket: None }
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = Duration::from_nanos(self.shared.elapsed.load(Ordering::Relaxed));
        f.debug_struct("VirtualClock").field("elapsed", &elapsed).finish_non_exhaustive()
    }
}

/// Keeps virtual time from moving by itself; made by [`VirtualClock::hold`].
#[must_use = "time is held only while the hold is kept"]
#[derive(Debug)]
pub struct Hold {
    clock: VirtualClock,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.clock.lock();
        state.holds -= 1;
        // What was held for may have given anybody something to do.
        let again = if state.holds == 0 { state.stir() } else { Vec::new() };
        drop(state);
        ask_again(&again);
    }
}

/// One who takes part in virtual time; made by [`VirtualClock::join`]. Dropping it leaves.
#[derive(Debug)]
pub struct Participant {
    clock: VirtualClock,
    number: u64,
}

/// The round in which a participant looks; from [`Participant::look`].
#[must_use = "a look is followed by a rest, or by a run"]
#[derive(Clone, Copy, Debug)]
pub struct Look {
    round: u64,
}

/// What [`Participant::rest`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Time has moved, or somebody did something since the look: look again.
    Look,
    /// Sleep until woken, then look again.
    Wait,
}

impl Participant {
    /// Begins to look for something to do: call it *before* looking. Then either [run](Participant::run), or
    /// [rest](Participant::rest) with what it gives.
    pub fn look(&mut self) -> Look {
        let mut state = self.clock.lock();
        // What it did while it ran may have given something to do to those who rest already.
        state.round += u64::from(state.participants[&self.number].looked.is_none());
        Look { round: state.round }
    }

    /// Says that there was something to do: call it before doing it.
    pub fn run(&mut self) {
        let number = self.number;
        let mut state = self.clock.lock();
        state.participants.get_mut(&number).expect("joined").looked = None;
    }

    /// Says that `look` has found nothing to do before `until`. What others put in later must be followed by a
    /// wake-up.
    ///
    /// If this was the last one who was busy, time jumps to the next thing that is due.
    #[must_use]
    pub fn rest(&mut self, look: Look, until: Option<Instant>) -> Rest {
        let number = self.number;
        let mut state = self.clock.lock();
        let round = state.round;
        let me = state.participants.get_mut(&number).expect("joined");
        me.looked = Some(look.round.min(round));
        me.until = until.filter(|until| self.clock.reaches(*until));

        let (rest, due, again) = match state.next_jump() {
            Some(at) if self.clock.reaches(at) => {
                // Whoever moves time has done something: until he has looked again, and everybody after him, it
                // stays where it is. So those whom he wakes now come first.
                state.participants.get_mut(&number).expect("joined").looked = None;
                let to = at.max(self.clock.now());
                let (due, again) = self.clock.move_to(&mut state, to);
                (Rest::Look, due, again)
            }
            _ if look.round < state.round => (Rest::Look, Vec::new(), Vec::new()),
            _ if state.everybody_rests() => (Rest::Wait, Vec::new(), state.behind()),
            _ => (Rest::Wait, Vec::new(), Vec::new()),
        };
        drop(state);
        wake_all(due);
        ask_again(&again);
        rest
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        let mut state = self.clock.lock();
        let left = state.participants.remove(&self.number);
        // It may have been the one that all others waited for.
        let again = state.stir();
        drop(state);
        drop(left);
        ask_again(&again);
    }
}

/// A sleep in virtual time.
#[must_use = "a sleep does nothing unless awaited"]
#[derive(Debug)]
pub struct VirtualSleep {
    clock: VirtualClock,
    at: Instant,
    ticket: Option<Ticket>,
}

impl Future for VirtualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let waker = cx.waker().clone();
        let mut state = this.clock.lock();
        let came = this.ticket.is_none();
        let (poll, unneeded) = state.sleepers.poll(this.clock.now(), this.at, &mut this.ticket, waker);
        // A sleeper that takes no part came to a clock at rest: there may be something to jump to now.
        let again =
            if poll.is_pending() && came && state.everybody_rests() { state.stir() } else { Vec::new() };
        drop(state);
        drop(unneeded);
        ask_again(&again);
        poll
    }
}

impl Drop for VirtualSleep {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let _waker = self.clock.lock().sleepers.leave(ticket);
        }
    }
}

/// Has them look again.
fn ask_again(participants: &[Arc<Waker>]) {
    for waker in participants {
        drop(contain(|| waker.wake_by_ref()));
    }
}
