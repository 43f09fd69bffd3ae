//! How long runs have taken.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// So many runs are remembered.
const RUNS: usize = 64;

/// From so many on it is experience.
const RUNS_MIN: usize = 16;

/// One of so many runs with too little time is let begin all the same: without it, a plan that has become faster would
/// never be known to be.
const LET_IN: u32 = 16;

/// How long the last runs that went well have taken.
#[derive(Default)]
pub(crate) struct History {
    runs: Mutex<VecDeque<Duration>>,
    /// How many runs had too little time.
    too_short: AtomicU32,
}

impl History {
    pub(crate) fn add(&self, took: Duration) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() == RUNS {
            runs.pop_front();
        }
        runs.push_back(took);
    }

    /// Whether a run that has so much time left is to be refused; then, how long runs take at least.
    pub(crate) fn refuses(&self, left: Duration) -> Option<Duration> {
        let usual = self.usual().filter(|usual| left < *usual)?;
        // Relaxed: it only counts.
        let before = self.too_short.fetch_add(1, Ordering::Relaxed);
        (before % LET_IN != LET_IN - 1).then_some(usual)
    }

    /// What nine of ten have taken at least: with less a run would hardly go well.
    fn usual(&self) -> Option<Duration> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() < RUNS_MIN {
            return None;
        }
        let mut sorted: Vec<_> = runs.iter().copied().collect();
        drop(runs);
        sorted.sort_unstable();
        Some(sorted[sorted.len() / 10])
    }
}
