//! A loop that is driven by the thread that owns it.

use std::{
    fmt,
    future::Future,
    panic::Location,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{Balance, Entry, Reason, Refusal, Refused, Step, blame::Stragglers};

use crate::{
    builder::Builder,
    core::Core,
    handle::{Handle, ShutdownHandle, spawn_on},
    stats::ShutdownStats,
    task::{Name, Task},
};

/// A single-threaded executor with timers, driven by the thread that owns it; running from the start.
///
/// ```
/// use std::time::Duration;
/// use ebbtide_reactor::{Runtime, sleep, spawn};
///
/// let mut runtime = Runtime::new();
/// let answer = runtime.block_on(async {
///     let task = spawn(async { sleep(Duration::from_millis(1)).await; 42 }).expect("the loop runs");
///     task.await
/// });
/// assert_eq!(answer.unwrap(), 42);
/// runtime.shutdown_quiesce(Duration::from_secs(1))?;
/// # Ok::<(), ebbtide_reactor::QuiesceTimeout>(())
/// ```
///
/// Dropping it stops it: posts that were accepted are run, tasks are dropped and counted as cancelled, and
/// whoever awaits one gets an error. A drop during a panic runs nothing: the posts are then counted as
/// abandoned.
pub struct Runtime {
    /// Boxed, because this thread's "current loop" points at it while it turns.
    core: Box<Core>,
}

impl Default for Runtime {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime {
    /// A runtime as it is by default; see [`Builder`] for the choices there are.
    #[must_use]
    pub fn new() -> Self {
        Builder::new().runtime()
    }

    /// The choices there are.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn with_core(core: Core) -> Self {
        for step in [Step::Start, Step::Ready] {
            core.shared().life.step(step).expect("a new life takes its first steps");
        }
        Self { core: Box::new(core) }
    }

    /// Runs `future` on this thread, and the tasks of this runtime beside it, until the future ends. What it
    /// panics with goes on to the caller.
    ///
    /// Tasks that are still there stay, and go on with the next `block_on`. Inside another loop it works, but
    /// holds that one up: whoever waits here for I/O of that one gets an error, and for a task of it waits in
    /// vain.
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let core = &*self.core;
        // Before the future is pinned, so that it is dropped inside its loop.
        let _entered = core.enter();
        let mut future = pin!(future);
        let waker = Waker::from(core.shared().clone());
        let mut cx = Context::from_waker(&waker);
        core.main_is_ready();
        loop {
            if core.take_main_ready()
                && let Poll::Ready(output) = core.direction.main(|| future.as_mut().poll(&mut cx))
            {
                // What it has planned counts from now, and not from when the loop turns again.
                core.settle_planned();
                core.publish();
                return output;
            }
            core.turn();
            core.pause(None);
        }
    }

    /// Spawns a future, which stays on this thread.
    ///
    /// # Errors
    /// Hands `future` back once the runtime has been told to stop.
    #[track_caller]
    pub fn spawn<F: Future + 'static>(&self, future: F) -> Result<Task<F::Output>, Refused<F>> {
        self.spawn_from(future, (), Location::caller())
    }

    /// The same, for a task that is called `name` in reports.
    ///
    /// # Errors
    /// Hands `future` back once the runtime has been told to stop.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: impl Into<Arc<str>>, future: F) -> Result<Task<F::Output>, Refused<F>>
    where
        F: Future + 'static,
    {
        self.spawn_from(future, name.into(), Location::caller())
    }

    fn spawn_from<F: Future + 'static, N: Name>(
        &self,
        future: F,
        name: N,
        site: &'static Location<'static>,
    ) -> Result<Task<F::Output>, Refused<F>> {
        if self.core.shared().inbox.is_shut() {
            self.core.count(Entry::Refused);
            return Err(Refused { why: Refusal::Closed, work: future });
        }
        spawn_on(&self.core, future, name, site)
    }

    /// A handle for other threads.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle { shared: self.core.shared().clone() }
    }

    /// What triggers the shutdown of what runs here, and tells of it.
    #[must_use]
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.handle().shutdown_handle()
    }

    /// The sums of the runtime's ledger.
    #[must_use]
    pub fn balance(&self) -> Balance {
        self.core.balance()
    }

    /// The tasks that are there, oldest first.
    #[must_use]
    pub fn stragglers(&self) -> Stragglers {
        self.core.stragglers()
    }

    /// Counters that outlive the runtime.
    #[must_use]
    pub fn shutdown_stats(&self) -> ShutdownStats {
        self.handle().shutdown_stats()
    }

    /// Closes the intake, and drives tasks and timers until no task remains and everything that was accepted
    /// has run.
    ///
    /// There is no default for `timeout`: how long work may take to come to an end is for the program to say.
    /// Tasks may spawn others meanwhile. Handles that are held elsewhere hold nothing up.
    /// The shutdown is triggered, if that has not happened yet, so that tasks that wait for it come to an end.
    ///
    /// # Errors
    /// [`QuiesceTimeout`] with what is left. It can be called again, with more time.
    pub fn shutdown_quiesce(&mut self, timeout: Duration) -> Result<(), QuiesceTimeout> {
        let core = &*self.core;
        core.shared().inbox.seal();
        let _entered = core.enter();
        core.shared().shutdown.fire(Reason::requested("the runtime is quiesced"));
        let until = core.now().checked_add(timeout);
        let quiet = core.drive_until_empty(|| until);
        core.publish();
        if quiet {
            return Ok(());
        }
        let (ready, held) = core.ready_and_held();
        Err(QuiesceTimeout {
            tasks: core.tasks(),
            ready,
            parked: core.tasks() - ready,
            held,
            timers: core.timers(),
            undrained: !core.is_quiet(),
            stragglers: core.stragglers(),
        })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let core = &*self.core;
        core.shared().inbox.seal();
        // Of a life that has been stopped before, nothing is left to step to.
        let _ = core.shared().life.step(Step::Stop);
        core.end(thread::panicking());
        let _ = core.shared().life.step(Step::End);
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("name", &self.core.shared().name)
            .field("tasks", &self.core.tasks())
            .finish_non_exhaustive()
    }
}

/// Work was left when the time of [`Runtime::shutdown_quiesce`] was over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuiesceTimeout {
    /// How many tasks are left.
    pub tasks: usize,
    /// How many of them are ready to run.
    pub ready: usize,
    /// How many of them wait for something.
    pub parked: usize,
    /// Of how many of them somebody holds the handle. That does not hold them up.
    pub held: usize,
    /// How many timers are pending.
    pub timers: usize,
    /// Whether anything is ready to run, or has come in and was not looked at.
    pub undrained: bool,
    /// The tasks that are left, oldest first.
    pub stragglers: Stragglers,
}

impl fmt::Display for QuiesceTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready = if self.undrained { ", more to run" } else { "" };
        write!(
            f,
            "not quiet in time: {} tasks, {} timers{ready}; {}",
            self.tasks, self.timers, self.stragglers
        )
    }
}

impl std::error::Error for QuiesceTimeout {}
