//! How long runs have taken.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// So many runs are remembered.
const RUNS: usize = 64;

/// From so many on it is experience.
const RUNS_MIN: usize = 16;

/// How long the last runs that went well have taken.
#[derive(Default)]
pub(crate) struct History {
    runs: Mutex<VecDeque<Duration>>,
}

impl History {
    pub(crate) fn add(&self, took: Duration) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() == RUNS {
            runs.pop_front();
        }
        runs.push_back(took);
    }

    /// What nine of ten have taken at least: with less a run would hardly go well.
    pub(crate) fn usual(&self) -> Option<Duration> {
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
