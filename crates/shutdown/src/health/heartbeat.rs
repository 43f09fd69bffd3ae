//! A sign of life, given by whoever is to be watched.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ebbtide_lifecycle::blame::Origin;

use super::{Chart, Finding, nanos};

/// Shows that something still turns; made by [`Health::heartbeat`](super::Health::heartbeat).
///
/// ```text
///            beat()                the limit passes
///  Resting ─────────► Beating ⟲ ────────────────────► Stalled
///     ▲                 │    ▲            beat()       │   │
///     │      rest()     │    └─────────────────────────┘   │
///     └─────────────────┴──────────────────────────────────┘
/// ```
///
/// Dropping it takes it away: what has ended is not stalled. It may be shared; the last beat counts, whoever gave it.
#[must_use = "dropped, it is not watched any more"]
pub struct Heartbeat {
    chart: Arc<Chart>,
    number: u64,
    pulse: Arc<Pulse>,
}

impl Heartbeat {
    pub(super) fn new(chart: &Arc<Chart>, pulse: Pulse) -> Self {
        let pulse = Arc::new(pulse);
        let mut records = chart.lock();
        let number = records.issue();
        records.heartbeats.insert(number, pulse.clone());
        drop(records);
        Self { chart: chart.clone(), number, pulse }
    }

    /// Gives a sign of life; the next one is due within the limit.
    ///
    /// One reading of the clock and one atomic exchange. Only a beat after a rest, or after a stall that was told, may
    /// have to wake a watchdog.
    pub fn beat(&self) {
        let now = self.chart.tick();
        // In one order with what a watchdog says before it sleeps: see `Vigil`.
        let before = self.pulse.word.swap(now, Ordering::SeqCst);
        if before == REST || before & TOLD != 0 {
            self.chart.vigil.expect(self.pulse.due(now));
        }
    }

    /// Nothing is expected until the next beat: a loop that waits for work is not stalled.
    pub fn rest(&self) {
        // Relaxed: it publishes nothing, and the next beat's exchange sees it.
        self.pulse.word.store(REST, Ordering::Relaxed);
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.chart.lock().heartbeats.remove(&self.number);
    }
}

impl fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heartbeat")
            .field("origin", &self.pulse.origin)
            .field("limit", &self.pulse.limit)
            .field("beats", &self.pulse.beat().is_some())
            .finish()
    }
}

/// Of a heartbeat that rests, its word.
const REST: u64 = 0;

/// A watchdog has told of this stall, and sleeps past it: the next beat has to be compared with that sleep.
const TOLD: u64 = Chart::TICK_MAX + 1;

/// What is known of a heartbeat.
pub(super) struct Pulse {
    pub(super) origin: Origin,
    pub(super) name: Arc<str>,
    pub(super) limit: Duration,
    /// [`REST`], or the tick of the last beat, with [`TOLD`] or without.
    word: AtomicU64,
}

impl Pulse {
    pub(super) fn new(origin: Origin, name: Arc<str>, limit: Duration) -> Self {
        Self { origin, name, limit, word: AtomicU64::new(REST) }
    }

    /// The tick of the last beat, unless it rests.
    pub(super) fn beat(&self) -> Option<u64> {
        let word = self.word.load(Ordering::SeqCst);
        (word != REST).then_some(word & !TOLD)
    }

    /// The tick at which it is stalled if it beat at `beat`, and not again.
    pub(super) fn due(&self, beat: u64) -> u64 {
        beat.saturating_add(nanos(self.limit))
    }

    /// How long ago it beat, if it is stalled after `beat`.
    pub(super) fn stalled_for(&self, beat: u64, now: u64) -> Option<Duration> {
        (now >= self.due(beat)).then(|| Duration::from_nanos(now - beat))
    }

    /// Marks the stall after `beat` as told. Gives false if it is none any more: it has beaten, or rests.
    pub(super) fn tell(&self, beat: u64) -> bool {
        let told = self.word.compare_exchange(beat, beat | TOLD, Ordering::SeqCst, Ordering::SeqCst);
        // Another watchdog may have told of it before.
        told.is_ok() || told == Err(beat | TOLD)
    }

    pub(super) fn finding(&self, now: u64) -> Option<Finding> {
        let age = self.stalled_for(self.beat()?, now)?;
        let reason = format!("{}, made at {}", Silence { age, limit: self.limit }, self.origin.site());
        Some(Finding { name: self.name.clone(), reason: reason.into() })
    }
}

/// How long there was no beat, in words.
pub(super) struct Silence {
    pub(super) age: Duration,
    pub(super) limit: Duration,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no heartbeat for {:.1?} (limit {:?})", self.age, self.limit)
    }
}

/// A heartbeat was to have a limit of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroLimit;

impl fmt::Display for ZeroLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the limit of a heartbeat is zero: it would be stalled by every beat; give it some time")
    }
}

impl std::error::Error for ZeroLimit {}
