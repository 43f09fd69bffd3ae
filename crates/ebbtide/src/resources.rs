//! What is dropped when nothing runs any more, the last first.

use std::{
    any::Any,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use ebbtide_lifecycle::{
    Balance, Component, Reason, Stopped, Stopping,
    blame::{Activity, Origin, Straggler, Stragglers},
    contain,
    time::{Clock as _, Deadline, Tempo},
};

/// Values that others use. A stop drops them one after the other, in the reverse of the order in which they came:
/// what came later may be made of what was there before. A clone is another handle to the same resources.
#[derive(Clone)]
pub(crate) struct Resources {
    tempo: Tempo,
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    /// In the order in which they came.
    kept: Vec<Kept>,
    /// Those whose time was up. They are leaked: they are not to be dropped by whoever has the last handle, whom that
    /// could hold up.
    left: Vec<(Origin, Instant)>,
    /// That which is being dropped, and since when.
    going: Option<(Origin, Instant)>,
    /// Set by the first who keeps something: he has them registered.
    is_registered: bool,
    /// Set by the first stop: what comes after that is dropped at once.
    is_stopped: bool,
    failures: Vec<String>,
    /// But for what is in flight: that is `kept` and `going`.
    sums: Balance,
}

struct Kept {
    origin: Origin,
    since: Instant,
    value: Value,
}

type Value = Box<dyn Any + Send>;

impl Resources {
    pub(crate) fn new(tempo: Tempo) -> Self {
        Self { tempo, shelf: Arc::default() }
    }

    /// Keeps `value` until the stop. Gives whether it is the first one: then the caller has to register them.
    pub(crate) fn keep(&self, origin: Origin, value: Value) -> bool {
        let mut shelf = self.shelf();
        shelf.sums.accepted += 1;
        if shelf.is_stopped {
            drop(shelf);
            self.let_go(&origin, value);
            return false;
        }
        shelf.kept.push(Kept { origin, since: self.tempo.now(), value });
        !mem::replace(&mut shelf.is_registered, true)
    }

    /// Before each it is looked whether the time is up.
    fn let_all_go(&self, deadline: Deadline) -> Stopped {
        loop {
            let now = self.tempo.now();
            let mut shelf = self.shelf();
            if deadline.is_expired(now) {
                let kept = mem::take(&mut shelf.kept);
                shelf.sums.abandoned += kept.len() as u64;
                for Kept { origin, since, value } in kept {
                    mem::forget(value);
                    shelf.left.push((origin, since));
                }
            }
            if !shelf.left.is_empty() {
                return Stopped::Overdue;
            }
            let Some(Kept { origin, value, .. }) = shelf.kept.pop() else { return Stopped::Clean };
            shelf.going = Some((origin.clone(), now));
            drop(shelf);
            self.let_go(&origin, value);
            self.shelf().going = None;
        }
    }

    /// Foreign code, without the lock.
    fn let_go(&self, origin: &Origin, value: Value) {
        let dropped = contain(|| drop(value));
        let mut shelf = self.shelf();
        match dropped {
            Ok(()) => shelf.sums.completed += 1,
            Err(panicked) => {
                shelf.sums.failed += 1;
                shelf.failures.push(format!("the drop of {origin} panicked: {}", panicked.message()));
            }
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // Nothing that can panic runs under the lock.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Component for Resources {
    fn stop(&self, deadline: Deadline, _: &Reason) -> Stopping {
        self.shelf().is_stopped = true;
        let resources = self.clone();
        Stopping::blocking(move || resources.let_all_go(deadline))
    }

    fn balance(&self) -> Balance {
        let shelf = self.shelf();
        let mut balance = shelf.sums;
        balance.in_flight = shelf.kept.len() as u64 + u64::from(shelf.going.is_some());
        balance
    }

    fn stragglers(&self) -> Stragglers {
        let now = self.tempo.now();
        let shelf = self.shelf();
        let going = shelf.going.iter().map(|(origin, since)| (origin, Activity::Running, *since));
        let kept = shelf.kept.iter().map(|kept| (&kept.origin, Activity::Queued, kept.since));
        let left = shelf.left.iter().map(|(origin, since)| (origin, Activity::Queued, *since));
        let straggler = |(origin, activity, since): (&Origin, _, _)| {
            Straggler::new(origin.clone(), activity, now.saturating_duration_since(since))
        };
        going.chain(kept).chain(left).map(straggler).collect()
    }

    fn failure(&self) -> Option<String> {
        let shelf = self.shelf();
        (!shelf.failures.is_empty()).then(|| shelf.failures.join("; "))
    }
}
