//! A loop with a thread of its own.

use std::{
    fmt, io,
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::{
    Balance, Component, Illegal, Reason, State, Step, Stopped, Stopping,
    blame::Stragglers,
    time::{Clock, Deadline, SystemClock, VirtualClock},
};

use crate::{
    builder::{Builder, Plan},
    core::Core,
    handle::Handle,
    shared::Shared,
    sync::{Mutex, lock},
};

/// How much longer than its deadline a stop is waited for: what the loop needs in order to drop its tasks.
const GRACE: Duration = Duration::from_millis(100);

/// A thread that turns a loop, from [`start`](EventLoop::start) to [`stop`](EventLoop::stop).
///
/// ```
/// use ebbtide_reactor::EventLoop;
///
/// let events = EventLoop::new();
/// assert!(events.post(|| unreachable!("refused")).is_err(), "not started yet");
/// events.start()?;
/// events.post(|| println!("on the loop")).expect("it runs");
/// events.stop(); // everything that was accepted has run
/// # Ok::<(), ebbtide_reactor::StartError>(())
/// ```
///
/// It is a [`Handle`] to its own loop. Dropping it stops it, and waits for the thread, unless it is dropped on
/// that very thread.
pub struct EventLoop {
    handle: Handle,
    life: Arc<Life>,
}

/// What all who stop the loop share.
struct Life {
    shared: Arc<Shared>,
    /// What the thread needs, until it is started.
    plan: Mutex<Option<Plan>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    orders: Mutex<Orders>,
}

/// How the loop is to be stopped. Later orders may bring it forward, not back.
#[derive(Clone, Copy, Default)]
struct Orders {
    given: bool,
    /// Until when tasks may go on. None means at once, and is the earliest of all.
    deadline: Option<Deadline>,
}

impl EventLoop {
    /// A loop as it is by default, not started yet; see [`Builder`] for the choices there are.
    #[must_use]
    pub fn new() -> Self {
        Builder::new().event_loop()
    }

    /// The choices there are.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn with_plan(shared: Arc<Shared>, plan: Plan) -> Self {
        let life = Life {
            shared: shared.clone(),
            plan: Mutex::new(Some(plan)),
            thread: Mutex::new(None),
            orders: Mutex::default(),
        };
        Self { handle: Handle { shared }, life: Arc::new(life) }
    }

    /// Starts the thread, and returns when the loop runs.
    ///
    /// # Errors
    /// If it was started or stopped before, if it was stopped meanwhile, or if the system has no thread to
    /// give; after that last one it is stopped.
    pub fn start(&self) -> Result<(), StartError> {
        let life = &self.life;
        life.shared.life.step(Step::Start).map_err(StartError::Illegal)?;
        let plan = lock(&life.plan).take().expect("a life is started once");
        let spawned = {
            // Held until the thread is there to be joined, so that no stop can miss it.
            let mut thread = lock(&life.thread);
            let run = {
                let life = life.clone();
                move || life.run_guarded(plan)
            };
            thread::Builder::new()
                .name(life.shared.name.to_string())
                .spawn(run)
                .map(|handle| *thread = Some(handle))
        };
        if let Err(error) = spawned {
            life.shared.inbox.seal();
            life.shared.end_unrun();
            // A stop that came meanwhile has taken the first of the two.
            let _ = life.shared.life.step(Step::Stop);
            let _ = life.shared.life.step(Step::End);
            return Err(StartError::Thread(error));
        }
        match life.shared.life.reached(State::Running).wait() {
            State::Running => Ok(()),
            state => Err(StartError::Illegal(Illegal { step: Step::Ready, state })),
        }
    }

    /// Stops the loop: what was accepted is run, in order; then the tasks are dropped, and whoever awaits one
    /// gets an error.
    ///
    /// Callable from any thread, any number of times. It returns when the thread has ended; on the loop's own
    /// thread it returns at once, and the loop ends after what it is running.
    pub fn stop(&self) {
        self.life.order(None, false);
        self.life.wait();
    }

    /// Stops the loop, but first lets its tasks go on until none is left, or until `deadline`. Gives whether
    /// they all came to their end.
    ///
    /// Callable as [`stop`](EventLoop::stop); on the loop's own thread it gives false.
    pub fn stop_by(&self, deadline: Deadline) -> bool {
        self.life.order(Some(deadline), false);
        self.life.wait() && self.life.cut_off_nothing()
    }

    /// Stops the loop without running anything more: posts are abandoned, tasks dropped. Callable as
    /// [`stop`](EventLoop::stop).
    pub fn abort(&self) {
        self.life.order(None, true);
        self.life.wait();
    }

    /// Where the loop is in its life. A view: whether work is accepted is for the loop to say when it is brought.
    #[must_use]
    pub fn state(&self) -> State {
        self.life.shared.life.state()
    }

    /// A handle that can go anywhere.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Life {
    /// Whether everything that was accepted came to its own end. Once it has ended.
    fn cut_off_nothing(&self) -> bool {
        self.shared.cut_off.load(Ordering::Acquire) == 0
    }

    /// The loop's thread. It catches what its work panics with; should a panic get through all the same, those
    /// who wait for its end are not left waiting.
    fn run_guarded(&self, plan: Plan) {
        let ran = catch_unwind(AssertUnwindSafe(|| self.run(plan)));
        if let Err(panic) = ran {
            self.shared.inbox.seal();
            let _ = self.shared.life.step(Step::Stop);
            let _ = self.shared.life.step(Step::End);
            resume_unwind(panic);
        }
    }

    fn run(&self, plan: Plan) {
        let core = plan.core(self.shared.clone());
        let entered = core.enter();
        let turned = catch_unwind(AssertUnwindSafe(|| self.turn(&core)));
        drop(entered);
        if turned.is_err() {
            self.shared.inbox.seal();
            let _ = self.shared.life.step(Step::Stop);
        }
        // From here on the loop takes no part in virtual time any more; it must not pass before those who wait for the
        // end have been told of it.
        let _hold = self.shared.clock.as_ref().map(VirtualClock::hold);
        core.end(turned.is_err());
        drop(core);
        let ended = self.shared.life.step(Step::End);
        debug_assert!(ended.is_ok(), "whoever ends was told to stop");
        if let Err(panic) = turned {
            resume_unwind(panic);
        }
    }

    /// Turns the loop until it is told to stop, and then until its deadline.
    fn turn(&self, core: &Core) {
        // Open before `Running` can be seen; a stop that came first has sealed it.
        if self.shared.inbox.open() && self.shared.life.step(Step::Ready).is_ok() {
            loop {
                core.turn();
                // Looked at after the turn, which may have taken in the nudge of a stop, and before sleeping.
                if self.shared.life.state() >= State::Stopping {
                    break;
                }
                core.pause(None);
            }
            let deadline = || self.orders().deadline.map_or(Some(core.now()), Deadline::instant);
            if self.orders().deadline.is_some() {
                core.drive_until_empty(deadline);
            }
        } else {
            // The stop that came first may have sealed the inbox and not have said so yet: whoever comes first takes
            // the step.
            let _ = self.shared.life.step(Step::Stop);
        }
    }

    fn orders(&self) -> Orders {
        *lock(&self.orders)
    }

    /// Closes the doors and tells the loop.
    fn order(&self, deadline: Option<Deadline>, force: bool) {
        self.shared.inbox.seal();
        {
            let mut orders = lock(&self.orders);
            orders.deadline = if orders.given { orders.deadline.min(deadline) } else { deadline };
            orders.given = true;
        }
        if force {
            self.shared.force();
        }
        // Whoever comes first takes the step. If that ends a loop that never ran, nobody else closes its inbox.
        if self.shared.life.step(Step::Stop) == Ok(State::Stopped) {
            self.shared.end_unrun();
        }
        // The loop first: whoever else is told may keep this thread.
        self.shared.nudge();
        self.shared.shutdown.fire(Reason::requested("the loop is stopped"));
    }

    /// Waits for the thread's end. Gives false on that thread itself.
    fn wait(&self) -> bool {
        if self.shared.is_own_thread() {
            return false;
        }
        self.shared.life.reached(State::Stopped).wait();
        // Held while joining: whoever else waits returns when the thread has ended, and not before.
        if let Some(thread) = lock(&self.thread).take() {
            // The loop catches what its work panics with.
            let _ = thread.join();
        }
        true
    }
}

impl Default for EventLoop {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for EventLoop {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A stop blocks a thread, in the system's time; in virtual time it is a future.
impl Component for EventLoop {
    fn stop(&self, deadline: Deadline, _reason: &Reason) -> Stopping {
        let life = self.life.clone();
        life.order(Some(deadline), false);
        if life.shared.clock.is_some() {
            // The loop itself keeps the deadline, in its own time, and whoever waits must not hold that up.
            return Stopping::future(async move {
                life.shared.life.reached(State::Stopped).await;
                if life.wait() && life.cut_off_nothing() { Stopped::Clean } else { Stopped::Overdue }
            });
        }
        Stopping::blocking(move || {
            let patience = deadline.instant().and_then(|at| at.max(SystemClock.now()).checked_add(GRACE));
            let ended = life.shared.life.reached(State::Stopped);
            let ended = ended.wait_by(patience.map_or(Deadline::never(), Deadline::at)).is_ok();
            if ended && life.wait() && life.cut_off_nothing() { Stopped::Clean } else { Stopped::Overdue }
        })
    }

    fn balance(&self) -> Balance {
        self.handle.balance()
    }

    fn stragglers(&self) -> Stragglers {
        self.handle.stragglers()
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop")
            .field("name", &self.handle.name())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Why a loop did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// It was started or stopped before.
    Illegal(Illegal),
    /// The system has no thread to give.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Illegal(illegal) => illegal.fmt(f),
            Self::Thread(error) => write!(f, "cannot start the thread of the loop: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn l1_a_start_that_finds_the_inbox_sealed_ends_also_when_the_stop_is_held_up_after_that() {
        let events = EventLoop::new();
        // The first that a stop does.
        events.life.shared.inbox.seal();
        assert!(matches!(events.start(), Err(StartError::Illegal(_))));
        let thread = lock(&events.life.thread).take().expect("it was started");
        assert!(thread.join().is_ok(), "it ended by itself");
        events.stop();
        assert_eq!(events.state(), State::Stopped);
    }
}
