//! A thread that tells of stalls at the moment they happen.
//!
//! It sleeps until the earliest moment at which a heartbeat could be stalled. A beat only moves that moment away, so
//! beats do not wake it: it reads the last ones when it wakes by itself. What can bring the moment nearer is a beat
//! after a rest, or after a stall that was told. Such a beat compares its limit with the time until which the
//! watchdog sleeps, and rings only if that is too late. Neither can miss the other:
//!
//! | watchdog | heartbeat |
//! |---|---|
//! | says until when it sleeps | writes the beat |
//! | reads all beats once more | reads until when the watchdog sleeps |
//!
//! All four are sequentially consistent, so at least one of the two reads sees the other's write.

use std::{
    collections::BTreeMap,
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::{
    blame::Origin,
    contain,
    wait::{Bell, Wait, Watch},
};

use super::{Chart, Health, heartbeat::Silence};
use crate::pace::Pace;

/// Tells of every stalled heartbeat, from a thread of its own.
///
/// Dropping it ends the thread and waits for it, and so for a call of `on_stall` that is going on; dropped in such
/// a call, it does not wait.
#[must_use = "dropped, it watches no more"]
pub struct Watchdog {
    orders: Arc<Orders>,
    chart: Arc<Chart>,
    /// There until the drop.
    thread: Option<JoinHandle<()>>,
}

/// A heartbeat that did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stalled {
    /// What the heartbeat is called.
    pub name: Arc<str>,
    /// Where it was made, with its name.
    pub origin: Origin,
    /// How long ago it last beat.
    pub age: Duration,
    /// How long it may take.
    pub limit: Duration,
}

impl Watchdog {
    /// Watches the heartbeats of `health`, those that are made later too, and calls `on_stall` once for each stall:
    /// for the same heartbeat again only after it has beaten.
    ///
    /// The calls come one after the other, with no lock held; one that panics is the panic hook's to report, and the
    /// watchdog goes on. Each of several watchdogs tells of every stall.
    ///
    /// # Errors
    /// That of the system, when it has no thread to give.
    pub fn start(health: &Health, on_stall: impl FnMut(&Stalled) + Send + 'static) -> io::Result<Self> {
        let (chart, orders) = (health.chart.clone(), Arc::new(Orders::default()));
        let number = chart.lock().issue();
        let patrol = Patrol {
            pace: Pace::new(&chart.tempo),
            round: Round { chart: chart.clone(), orders: orders.clone(), number, told: BTreeMap::new() },
            on_stall,
        };
        let thread = thread::Builder::new().name("ebbtide-watchdog".into()).spawn(move || patrol.run())?;
        Ok(Self { orders, chart, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.orders.ending.store(true, Ordering::SeqCst);
        self.chart.vigil.roused.ring();
        let thread = self.thread.take().expect("it is there until the drop");
        if thread.thread().id() != thread::current().id() {
            thread.join().expect("foreign code is contained");
        }
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

/// `"name" at file:line:column: no heartbeat for 12.3s (limit 10s)`.
impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, Silence { age: self.age, limit: self.limit })
    }
}

/// What a watchdog's owner has told its thread.
#[derive(Default)]
struct Orders {
    ending: AtomicBool,
}

/// Until when the watchdogs of a chart sleep.
#[derive(Default)]
pub(super) struct Vigil {
    /// By the watchdog's number. One that is awake has its last sleep here: a moment that has come, or one that a
    /// beat may ring for in vain.
    asleep: Mutex<BTreeMap<u64, u64>>,
    /// The latest tick of `asleep`, or zero; written under its lock.
    until: AtomicU64,
    /// Rung when a watchdog may sleep too long, and when one is to end.
    roused: Bell,
}

impl Vigil {
    /// Wakes the watchdogs if one sleeps beyond `due`, at which a heartbeat may be stalled that they do not know of.
    pub(super) fn expect(&self, due: u64) {
        if due < self.until.load(Ordering::SeqCst) {
            self.roused.ring();
        }
    }

    /// Says that this watchdog is going to sleep until `tick`.
    fn sleep(&self, number: u64, tick: u64) {
        let mut asleep = self.lock();
        asleep.insert(number, tick);
        self.publish(&asleep);
    }

    fn leave(&self, number: u64) {
        let mut asleep = self.lock();
        asleep.remove(&number);
        self.publish(&asleep);
    }

    fn publish(&self, asleep: &BTreeMap<u64, u64>) {
        self.until.store(asleep.values().copied().max().unwrap_or(0), Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        // Nothing that can panic runs under the lock.
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watchdog's thread.
struct Patrol<F> {
    pace: Pace,
    round: Round,
    on_stall: F,
}

impl<F: FnMut(&Stalled)> Patrol<F> {
    fn run(mut self) {
        while !self.round.is_ending() {
            let stalled = self.round.newly_stalled();
            if stalled.is_empty() {
                self.sleep();
            }
            for stalled in stalled {
                if self.round.is_ending() {
                    break;
                }
                // The panic hook has reported it.
                drop(contain(|| (self.on_stall)(&stalled)));
            }
        }
        self.round.chart.vigil.leave(self.round.number);
        let on_stall = self.on_stall;
        drop(contain(|| drop(on_stall)));
    }

    fn sleep(&mut self) {
        let until = self.round.next_due();
        let deadline = self.round.chart.deadline(until);
        // Woken or not: what there is to do is seen in the next round.
        let _ = self.pace.wait(Wait::new(Nap { round: &self.round, until }), deadline);
    }
}

/// What a watchdog goes by in its rounds.
struct Round {
    chart: Arc<Chart>,
    orders: Arc<Orders>,
    number: u64,
    /// The beats after which a stall was told, by the heartbeat's number.
    told: BTreeMap<u64, u64>,
}

impl Round {
    fn is_ending(&self) -> bool {
        self.orders.ending.load(Ordering::SeqCst)
    }

    /// Takes down the stalls that were not told, as told.
    fn newly_stalled(&mut self) -> Vec<Stalled> {
        let records = self.chart.lock();
        let now = self.chart.tick();
        self.told.retain(|number, _| records.heartbeats.contains_key(number));
        let mut stalls = Vec::new();
        for (number, pulse) in &records.heartbeats {
            let Some(beat) = pulse.beat().filter(|beat| self.told.get(number) != Some(beat)) else {
                continue;
            };
            let Some(age) = pulse.stalled_for(beat, now) else { continue };
            if pulse.tell(beat) {
                self.told.insert(*number, beat);
                let (name, origin) = (pulse.name.clone(), pulse.origin.clone());
                stalls.push(Stalled { name, origin, age, limit: pulse.limit });
            }
        }
        stalls
    }

    /// The earliest tick at which there may be something to tell; never, if every heartbeat rests.
    fn next_due(&self) -> u64 {
        let records = self.chart.lock();
        let beating = records.heartbeats.iter().filter_map(|(number, pulse)| {
            let beat = pulse.beat().filter(|beat| self.told.get(number) != Some(beat))?;
            Some(pulse.due(beat))
        });
        beating.min().unwrap_or(Chart::NEVER)
    }
}

/// A sleep that is over early if it would be too long, or if the watchdog is to end.
struct Nap<'r> {
    round: &'r Round,
    until: u64,
}

impl Watch for Nap<'_> {
    type Seen = ();

    fn look(&self) -> Option<()> {
        (self.round.is_ending() || self.round.next_due() < self.until).then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.round.chart.vigil.roused
    }

    fn announce(&self) {
        self.round.chart.vigil.sleep(self.round.number, self.until);
    }
}
