//! What other threads do with a loop: post, spawn, ask, stop.

use std::{
    fmt,
    future::Future,
    panic::Location,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Balance, Entry, Reason, Refusal, Refused, Trigger, Triggered,
    blame::Stragglers,
    time::{Clock, Timer},
    wait::Wait,
};

use crate::{
    core::Core,
    errand,
    inbox::Door,
    lease::Lease,
    post::Post,
    shared::Shared,
    stats::ShutdownStats,
    task::{self, Name, Task},
    time::Sleep,
};

/// How long an asker waits for the loop to answer before it makes do with what the loop has published.
const PATIENCE: Duration = Duration::from_millis(50);

/// A handle to a loop, for any thread. A clone is another handle to the same loop.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    /// Queues `act` for the loop's next turn.
    ///
    /// Callable from any thread at any time. What one thread posts is run in the order posted.
    ///
    /// # Errors
    /// Hands `act` back while the loop does not run: it will run, or it comes back.
    #[track_caller]
    pub fn post<F: FnOnce() + Send + 'static>(&self, act: F) -> Result<(), Refused<F>> {
        let link = Post::packed(Location::caller(), act);
        if let Some(core) = Core::current_of(&self.shared) {
            if !self.shared.inbox.is_shut() {
                // What came in before, perhaps from this very thread, goes first.
                core.take_in();
                // SAFETY: the post lives until it is run, and is in no other list.
                unsafe { core.queue.push(link) };
                return Ok(());
            }
        // SAFETY: as above.
        } else if let Ok(wake) = unsafe { self.shared.inbox.put(link, Door::Outer) } {
            self.shared.wake(wake);
            return Ok(());
        }
        self.shared.ledger.count(Entry::Refused);
        // SAFETY: nobody accepted it, and it was made above out of an `F`.
        Err(Refused { why: Refusal::Closed, work: unsafe { Post::take_back(link) } })
    }

    /// Spawns `future` on the loop.
    ///
    /// Callable from any thread at any time. Work on the loop itself may spawn until its tasks are dropped;
    /// from outside it is accepted only while the loop runs.
    ///
    /// # Errors
    /// Hands `future` back if it is not accepted.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Result<Task<F::Output>, Refused<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_from(future, (), Location::caller())
    }

    /// The same, for a task that is called `name` in reports.
    ///
    /// # Errors
    /// Hands `future` back if it is not accepted.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: impl Into<Arc<str>>, future: F) -> Result<Task<F::Output>, Refused<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_from(future, name.into(), Location::caller())
    }

    fn spawn_from<F, N>(
        &self,
        future: F,
        name: N,
        site: &'static Location<'static>,
    ) -> Result<Task<F::Output>, Refused<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        N: Name,
    {
        if let Some(core) = Core::current_of(&self.shared) {
            return spawn_on(core, future, name, site);
        }
        let task = task::new(future, name, &self.shared, site, None);
        // SAFETY: the loop's reference keeps the task alive until it is done and in no list.
        match unsafe { self.shared.inbox.put(task.link(), Door::Outer) } {
            Ok(wake) => {
                self.shared.wake(wake);
                Ok(Task::new(task))
            }
            Err(_shut) => {
                self.shared.ledger.count(Entry::Refused);
                // SAFETY: nobody accepted it, and it was made above out of an `F`.
                Err(Refused { why: Refusal::Closed, work: unsafe { task::take_back::<F, N>(task) } })
            }
        }
    }

    /// What triggers the loop's shutdown, and tells of it.
    #[must_use]
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        ShutdownHandle { trigger: self.shared.shutdown.clone() }
    }

    /// Counters that outlive the loop.
    #[must_use]
    pub fn shutdown_stats(&self) -> ShutdownStats {
        ShutdownStats { ledger: self.shared.ledger.clone(), counts: self.shared.stats.clone() }
    }

    /// The sums of the loop's ledger. If the loop does not answer, what is in flight is what it was when it
    /// last slept.
    #[must_use]
    pub fn balance(&self) -> Balance {
        self.ask(|core| core.balance())
            .unwrap_or_else(|| self.shared.ledger.balance(self.shared.stats.in_flight()))
    }

    /// Who is on the loop. If the loop does not answer, what it is running at the moment: that is why.
    #[must_use]
    pub fn stragglers(&self) -> Stragglers {
        self.ask(Core::stragglers).unwrap_or_else(|| {
            let running: Stragglers = self.shared.running(self.now()).into_iter().collect();
            let others = self.shared.stats.in_flight() as usize;
            let others = others.saturating_sub(running.len());
            running.and_untracked(others)
        })
    }

    /// Asks the loop. Nothing if it has ended, or does not answer in time.
    fn ask<T: Send + 'static>(&self, question: fn(&Core) -> T) -> Option<T> {
        if let Some(core) = Core::current_of(&self.shared) {
            return Some(question(core));
        }
        let (answer, answered) = mpsc::sync_channel(1);
        errand::send(&self.shared, move |core| drop(answer.send(question(core))));
        answered.recv_timeout(PATIENCE).ok()
    }

    /// The time by the loop's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Sleeps for `duration` by the loop's clock, wherever it is awaited. On the loop itself it reads no clock: see
    /// [`sleep`](crate::sleep()).
    pub fn sleep(&self, duration: Duration) -> Sleep {
        if Core::current().is_some_and(|core| Arc::ptr_eq(core.shared(), &self.shared)) {
            return crate::sleep(duration);
        }
        Sleep::at(self.now().checked_add(duration), Some(Lease::of_handle(&self.shared)))
    }

    /// Sleeps until `at`, wherever it is awaited.
    pub fn sleep_until(&self, at: Instant) -> Sleep {
        Sleep::at(Some(at), Some(Lease::of_handle(&self.shared)))
    }

    /// The name of the loop.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }
}

/// Spawns on the loop whose thread this is.
pub(crate) fn spawn_on<F: Future + 'static, N: Name>(
    core: &Core,
    future: F,
    name: N,
    site: &'static Location<'static>,
) -> Result<Task<F::Output>, Refused<F>> {
    if core.is_cancelling() {
        core.count(Entry::Refused);
        return Err(Refused { why: Refusal::Closed, work: future });
    }
    let task = task::new(future, name, core.shared(), site, Some(core));
    task.enrol_new(core);
    // SAFETY: the loop's reference keeps the task alive until it is done and in no list, and it is in none yet.
    unsafe { core.queue.push(task.link()) };
    Ok(Task::new(task))
}

/// Spawns `future`, which may stay on this thread for good, on the loop that runs here.
///
/// # Errors
/// Hands `future` back if no loop runs here, or if it drops its tasks already.
#[track_caller]
pub fn spawn<F: Future + 'static>(future: F) -> Result<Task<F::Output>, Refused<F>> {
    spawn_here(future, (), Location::caller())
}

/// The same, for a task that is called `name` in reports.
///
/// # Errors
/// Hands `future` back if no loop runs here, or if it drops its tasks already.
#[track_caller]
pub fn spawn_named<F>(name: impl Into<Arc<str>>, future: F) -> Result<Task<F::Output>, Refused<F>>
where
    F: Future + 'static,
{
    spawn_here(future, name.into(), Location::caller())
}

/// Spawns on the loop that runs here.
pub(crate) fn spawn_here<F: Future + 'static, N: Name>(
    future: F,
    name: N,
    site: &'static Location<'static>,
) -> Result<Task<F::Output>, Refused<F>> {
    match Core::current() {
        Some(core) => spawn_on(core, future, name, site),
        None => Err(Refused { why: Refusal::Closed, work: future }),
    }
}

/// Lets others on the loop go first.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if yielded {
            return std::task::Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// The clock that the loop lives by.
impl Clock for Handle {
    fn now(&self) -> Instant {
        self.shared.now()
    }

    fn is_virtual(&self) -> bool {
        self.shared.clock.is_some()
    }
}

/// The loop's timers, for any thread.
impl Timer for Handle {
    type Sleep = Sleep;

    fn sleep_until(&self, at: Instant) -> Sleep {
        Self::sleep_until(self, at)
    }

    #[inline]
    fn sleep(&self, duration: Duration) -> Option<Sleep> {
        Some(Self::sleep(self, duration))
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Triggers the shutdown of what runs on a loop, and tells of it. A clone is another handle to the same trigger.
///
/// It stops nothing by itself: the future of [`block_on`](crate::Runtime::block_on), and whoever else waits for
/// the signal, comes to an end.
#[derive(Clone, Debug)]
pub struct ShutdownHandle {
    trigger: Trigger,
}

impl ShutdownHandle {
    /// Triggers the shutdown. Callable from any thread; the first call counts.
    pub fn trigger(&self) {
        self.trigger.fire(Reason::requested("shutdown handle"));
    }

    /// Whether the shutdown was triggered.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.trigger.is_triggered()
    }

    /// Waits until the shutdown is triggered. Any number may wait, also in tasks and on other threads.
    pub fn signal(&self) -> Wait<Triggered> {
        self.trigger.token().triggered()
    }

    /// The trigger itself: to fire it with a reason of one's own, or to hand out tokens.
    #[must_use]
    pub fn as_trigger(&self) -> &Trigger {
        &self.trigger
    }
}
