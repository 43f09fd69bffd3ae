//! The pool itself: two lanes behind one drain.

use std::{fmt, sync::Arc};

use ebbtide_lifecycle::{
    Balance, Component, Ledger, Reason, Refused, Stopped, Stopping,
    blame::Stragglers,
    time::{Deadline, Tempo, Timer},
    wait::Wait,
};

use crate::{
    batch::Batch,
    builder::Builder,
    crew::Kind,
    error::StartError,
    hub::{Hub, Which},
    idle::Idle,
    lane::Lane,
    offload::{Offload, OffloadWithTimeout},
    stats::Stats,
    sync::{lock, thread::JoinHandle},
    unstarted::Unstarted,
    worker,
};

/// Threads that run jobs, in two lanes: a fixed number for work that keeps a CPU busy, and as many as it takes,
/// up to a limit, for work that blocks. A clone is another handle to the same pool.
///
/// Dropping the last handle closes the pool and waits until all accepted jobs have run and its threads have
/// ended; on one of these threads, or after a [stop](Component::stop) that was overdue, it does not wait.
#[derive(Clone)]
pub struct Pool {
    owner: Arc<Owner>,
}

/// What the last handle lets go of.
struct Owner {
    hub: Arc<Hub>,
}

impl Pool {
    /// A pool with as many threads for CPU work as the machine runs at a time.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub fn new() -> Result<Self, StartError> {
        Self::builder().start()
    }

    /// For other choices.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn start(hub: Arc<Hub>) -> Result<Self, StartError> {
        // If one cannot be started, its drop ends those that were.
        let pool = Self { owner: Arc::new(Owner { hub }) };
        let hub = pool.hub();
        for which in Which::ALL {
            let threads = match hub.lock().lane(which).crew.kind() {
                Kind::Fixed(threads) => threads,
                // The models are about the other lane.
                Kind::Elastic { .. } => usize::from(!cfg!(any(loom, shuttle))),
            };
            for _ in 0..threads {
                let started = hub.start_thread(&mut hub.lock(), which);
                started.map_err(StartError::Thread)?;
            }
        }
        Ok(pool)
    }

    fn hub(&self) -> &Arc<Hub> {
        &self.owner.hub
    }

    /// The lane for work that keeps a CPU busy.
    pub fn cpu(&self) -> Lane<'_> {
        Lane::new(self.hub(), Which::Cpu)
    }

    /// The lane for work that blocks: files, name resolution, a library without an async form.
    pub fn blocking(&self) -> Lane<'_> {
        Lane::new(self.hub(), Which::Blocking)
    }

    /// Brings a job to the CPU lane: see [`Lane::offload`].
    #[track_caller]
    pub fn offload<F, T>(&self, f: F) -> Offload<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.cpu().offload(f)
    }

    /// Brings a job to the CPU lane, unless it is closed or full: see [`Lane::try_offload`].
    ///
    /// # Errors
    /// Hands `f` back.
    #[track_caller]
    pub fn try_offload<F, T>(&self, f: F) -> Result<Offload<T>, Refused<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.cpu().try_offload(f)
    }

    /// Brings several jobs to the CPU lane at once: see [`Lane::offload_all`].
    #[track_caller]
    pub fn offload_all<F, T>(&self, jobs: impl IntoIterator<Item = F>) -> Batch<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.cpu().offload_all(jobs)
    }

    /// Brings a job to the CPU lane that is given up on at `deadline`: see [`Lane::offload_with_timeout`].
    #[track_caller]
    pub fn offload_with_timeout<F, T, Tm>(
        &self,
        timer: Tm,
        deadline: Deadline,
        f: F,
    ) -> OffloadWithTimeout<T, Tm>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
        Tm: Timer,
    {
        self.cpu().offload_with_timeout(timer, deadline, f)
    }

    /// How many jobs are in flight: accepted, and their end not booked. One that was withdrawn counts until a
    /// thread comes across it.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.hub().lock_up_to_date().tally.in_flight() as usize
    }

    /// Waits until no job is in flight, abandoned or not: `.await` it, or block with `wait` or `wait_by`. By then all
    /// results have been stored and all wakers called: nothing of the pool touches whoever waited.
    ///
    /// On an open pool an idle moment may pass between two looks; the wait then goes on. In a job of this pool it would
    /// wait for itself.
    pub fn wait_idle(&self) -> Wait<Idle> {
        self.hub().wait_idle()
    }

    /// Lets no job in from outside any more. What was accepted is run, and may bring more. Jobs that wait for
    /// room are refused. Gives whether it was open until now.
    pub fn close(&self) -> bool {
        self.hub().close()
    }

    /// Closes it, and gives back the jobs that have not begun, also those that wait for room: of each lane the oldest
    /// first. What several threads had taken comes before what was in line, thread by thread.
    ///
    /// A job that awaits another one needs that one to be run first, or on another thread: outside of the pool nobody
    /// runs it for its waiter. What a job brings that is run after it was handed back is refused.
    pub fn close_and_hand_back(&self) -> Vec<Unstarted> {
        let entries = self.hub().hand_back().into_iter();
        let unstarted = entries.map(|entry| Unstarted::new(entry.work, entry.parts));
        unstarted.filter(|unstarted| unstarted.jobs() > 0).collect()
    }

    /// Whether jobs from outside are refused.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.hub().lock().tally.is_closed()
    }

    /// The counters, which outlive the pool. While it is busy they are behind, until somebody looks at the pool or a
    /// thread comes for more: [`balance`](Component::balance) is exact.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.hub().lock().tally.ledger().clone()
    }

    /// How many jobs and threads there are.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&mut self.hub().lock_up_to_date())
    }
}

/// Runs all accepted jobs until the deadline. Those that have not begun by then are discarded, and their
/// waiters told; those that run are abandoned, and named for as long as they go on.
impl Component for Pool {
    fn stop(&self, deadline: Deadline, _: &Reason) -> Stopping {
        let hub = self.hub().clone();
        hub.close();
        let drained = hub.wait_drained();
        let end = move |in_time: bool| {
            if !in_time {
                hub.abandon();
            }
            // Also if another stop, with an earlier deadline, has.
            if hub.lock().tally.is_abandoned() {
                return Stopped::Overdue;
            }
            join(&hub);
            if hub.lock().has_discarded { Stopped::Overdue } else { Stopped::Clean }
        };
        match &self.hub().time {
            Tempo::Real => Stopping::blocking(move || end(drained.wait_by(deadline).is_ok())),
            Tempo::Virtual(clock) => {
                let drained = drained.by(clock.clone(), deadline);
                Stopping::future(async move { end(drained.await.is_ok()) })
            }
        }
    }

    fn balance(&self) -> Balance {
        self.hub().lock_up_to_date().tally.balance()
    }

    fn stragglers(&self) -> Stragglers {
        self.hub().stragglers()
    }
}

/// Waits for the threads of a pool that ends, unless this is one of them.
fn join(hub: &Hub) {
    // Also in the destructor of a thread-local, where another one may be waiting for this very thread.
    if worker::is_of(hub) {
        return;
    }
    // Whoever comes second waits for the first.
    let _joining = lock(&hub.joining);
    loop {
        let handles = hub.lock().take_handles();
        if handles.is_empty() {
            return;
        }
        for handle in handles {
            // Jobs' panics are caught; there is nothing else to panic in a thread of the pool. What it has run may
            // have had more threads started.
            let _: Result<(), _> = JoinHandle::join(handle);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.hub.close();
        if !self.hub.lock().tally.is_abandoned() {
            join(&self.hub);
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("Pool").field("name", &self.hub().name).field("stats", &stats).finish()
    }
}
