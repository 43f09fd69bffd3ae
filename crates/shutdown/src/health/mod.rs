//! Whether the program is alive and ready, and why not.
//!
//! | question | no, if | who acts on a no |
//! |---|---|---|
//! | is it ready? | a [`Condition`] does not hold | a load balancer: it sends no requests for a while |
//! | is it alive? | a [`Heartbeat`] is stalled | a supervisor: it starts the program again |
//!
//! So a program that drains is not ready, and alive all the while. Both are values, made when somebody asks: no
//! thread stands behind them. A [`Watchdog`] tells of a stall when nobody asks, and a server answers over HTTP
//! (feature `http`), each from a thread of its own.
//!
//! ```
//! use std::time::Duration;
//! use ebbtide_lifecycle::time::{Tempo, VirtualClock};
//! use ebbtide_shutdown::health::Health;
//!
//! let clock = VirtualClock::new();
//! let health = Health::with_tempo(Tempo::Virtual(clock.clone()));
//!
//! let database = health.condition("database");
//! database.unmet("connecting");
//! assert_eq!(health.ready().to_string(), "not ready: database: connecting");
//! database.met();
//! assert!(health.ready().is_ok());
//!
//! let heartbeat = health.heartbeat("ingest", Duration::from_secs(10))?;
//! heartbeat.beat();
//! clock.advance(Duration::from_secs(12));
//! assert!(health.live().to_string().starts_with("not live: ingest: no heartbeat for 12.0s (limit 10s)"));
//! # Ok::<(), ebbtide_shutdown::health::ZeroLimit>(())
//! ```
//!
//! # Reading order
//! 1. [`Condition`] and [`Heartbeat`]: what is known. [`Probe`]: the answer.
//! 2. [`Watchdog`]: how a thread sleeps until a stall without being woken by beats.
//! 3. `HealthServer`: the same answers for others.

mod condition;
mod heartbeat;
#[cfg(feature = "http")]
mod http;
mod probe;
mod watchdog;

use std::{
    collections::BTreeMap,
    fmt,
    panic::Location,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    blame::Origin,
    time::{Clock, Deadline, Tempo},
    wait::{Bell, Wait, Watch},
};

#[cfg(feature = "http")]
pub use self::http::{HealthServer, ServeError};
pub use self::{
    condition::Condition,
    heartbeat::{Heartbeat, ZeroLimit},
    probe::{Finding, Probe},
    watchdog::{Stalled, Watchdog},
};
use self::{condition::Standing, heartbeat::Pulse, watchdog::Vigil};

/// What is known of a program's health. A clone is another handle to the same.
///
/// One that nobody has told anything is ready and alive.
#[derive(Clone)]
pub struct Health {
    chart: Arc<Chart>,
}

impl Health {
    /// Health in the system's time.
    #[must_use]
    pub fn new() -> Self {
        Self::with_tempo(Tempo::Real)
    }

    /// Health whose heartbeats are measured by `tempo`.
    #[must_use]
    pub fn with_tempo(tempo: Tempo) -> Self {
        Self { chart: Arc::new(Chart::new(tempo)) }
    }

    /// Something that has to hold before the program is ready. It does not yet; say so with [`Condition::met`].
    ///
    /// Two may have the same name: each counts, and each is told of by that name.
    pub fn condition(&self, name: impl Into<Arc<str>>) -> Condition {
        Condition::new(&self.chart, name.into())
    }

    /// A heartbeat that is stalled once it has not beaten for `limit`. It rests at first.
    ///
    /// The caller's file and line are told with every stall.
    ///
    /// # Errors
    /// [`ZeroLimit`]: such a heartbeat would be stalled by every beat.
    #[track_caller]
    pub fn heartbeat(&self, name: impl Into<Arc<str>>, limit: Duration) -> Result<Heartbeat, ZeroLimit> {
        let site = Location::caller();
        if limit.is_zero() {
            return Err(ZeroLimit);
        }
        let name = name.into();
        Ok(Heartbeat::new(&self.chart, Pulse::new(Origin::from(site).named(name.clone()), name, limit)))
    }

    /// Whether every condition holds, and which do not, in the order in which they were made.
    pub fn ready(&self) -> Probe {
        let records = self.chart.lock();
        Probe::ready(records.conditions.values().filter_map(Standing::finding).collect())
    }

    /// Whether no heartbeat is stalled at this moment, and which are, in the order in which they were made.
    ///
    /// Conditions do not matter to it.
    pub fn live(&self) -> Probe {
        let records = self.chart.lock();
        // Read under the lock: a beat that comes in between is later than this, and so no stall.
        let now = self.chart.tick();
        Probe::live(records.heartbeats.values().filter_map(|pulse| pulse.finding(now)).collect())
    }

    /// Waits until every condition holds.
    ///
    /// A moment of readiness that passes between two looks is not seen; the wait then goes on.
    pub fn became_ready(&self) -> Wait<BecameReady> {
        Wait::new(BecameReady { health: self.clone() })
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").field("ready", &self.ready()).field("live", &self.live()).finish()
    }
}

/// What [`Health::became_ready`] waits for.
#[derive(Debug)]
pub struct BecameReady {
    health: Health,
}

impl Watch for BecameReady {
    type Seen = ();

    fn look(&self) -> Option<()> {
        self.health.chart.lock().conditions.values().all(Standing::is_met).then_some(())
    }

    fn bell(&self) -> &Bell {
        &self.health.chart.improved
    }
}

/// What the handles share.
struct Chart {
    tempo: Tempo,
    /// Where its ticks count from.
    opened: Instant,
    records: Mutex<Records>,
    /// Rung after a condition that did not hold is met or taken away.
    improved: Bell,
    vigil: Vigil,
}

/// By number, so that they are told of in the order in which they were made.
#[derive(Default)]
struct Records {
    conditions: BTreeMap<u64, Standing>,
    heartbeats: BTreeMap<u64, Arc<Pulse>>,
    issued: u64,
}

impl Chart {
    /// The last tick: what comes later is taken for it. The bit above means something to a [`Pulse`]; 63 bits of
    /// nanoseconds last for 292 years.
    const TICK_MAX: u64 = u64::MAX >> 1;

    /// Where a tick is asked for and there is none. No clock comes so far.
    const NEVER: u64 = u64::MAX;

    fn new(tempo: Tempo) -> Self {
        let opened = tempo.now();
        Self { tempo, opened, records: Mutex::default(), improved: Bell::new(), vigil: Vigil::default() }
    }

    /// This moment in ticks: nanoseconds since the chart was opened, counted from one, so that zero is free.
    fn tick(&self) -> u64 {
        let elapsed = self.tempo.now().saturating_duration_since(self.opened);
        nanos(elapsed).saturating_add(1).min(Self::TICK_MAX)
    }

    fn deadline(&self, tick: u64) -> Deadline {
        if tick > Self::TICK_MAX {
            return Deadline::never();
        }
        let at = self.opened.checked_add(Duration::from_nanos(tick.saturating_sub(1)));
        at.map_or(Deadline::never(), Deadline::at)
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        // Nothing that can panic runs under the lock, and no foreign code.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }
}

/// So long in nanoseconds; what 64 bits cannot hold is as long as forever.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
