//! Several loops that run and stop as one.
//!
//! A group moves through the states of its [`Lifecycle`](ebbtide_lifecycle::Lifecycle):
//!
//! ```text
//!   Idle ──run──► Starting ──all members handed to threads──► Running
//!     │              │                                          │
//!  shutdown          └─ shutdown · a member fails · all ended ──┤
//!     ▼                                                         ▼
//!  Stopped ◄── all ended, or given up on at the deadline ── Stopping
//! ```
//!
//! | a member … | becomes | when |
//! |---|---|---|
//! | that has not begun | [`NeverRan`](Ending::NeverRan) | the group is told to stop |
//! | that has not begun | [`NotStarted`](Ending::NotStarted) | there is no thread for it |
//! | that runs | [`Finished`](Ending::Finished) | its `run` returns, and nobody has told it to |
//! | that runs | [`Stopped`](Ending::Stopped) | its `run` returns after the group was told to stop |
//! | that runs | [`Failed`](Ending::Failed), [`Panicked`](Ending::Panicked) | its `run` returns an error, or panics |
//! | that runs | [`LeftBehind`](Ending::LeftBehind) | its deadline has passed, and a grace of 100 ms |
//!
//! # Who is told, and by whom
//! A stop calls every member's `shutdown` at the same time, each on a thread of its own because each blocks, with one
//! absolute deadline for all. So a stop takes as long as its slowest member, and not as long as all of them together.
//! Where the system has no thread to give, whoever stops the group calls them one after the other.

mod board;
mod builder;
mod crew;
mod lineage;
mod outcomes;

use std::{error::Error, fmt, io, sync::Arc};

use ebbtide_lifecycle::{
    Balance, Component, Illegal, Reason, RunError, Runnable, State, Stopped, Stopping, Token,
    blame::Stragglers,
    time::{Clock, Deadline, Tempo},
    wait::Wait,
};

use self::crew::Crew;
pub use self::{
    builder::{DuplicateName, GroupBuilder, Job, Policy},
    crew::Ended,
    outcomes::{Ending, Fate, Outcomes, Unclean},
};
use crate::{coordinator::Coordinator, pace::Pace, priority::Priority, report::Report};

/// Several [`Runnable`]s that run and stop as one. A clone is another handle to the same group.
///
/// ```
/// use std::time::Duration;
/// use ebbtide_lifecycle::{
///     Reason, RunError, Runnable, Stopped, Trigger,
///     time::{Deadline, SystemClock},
/// };
/// use ebbtide_shutdown::group::Group;
///
/// /// Waits to be told.
/// #[derive(Default)]
/// struct Idler(Trigger);
///
/// impl Runnable for Idler {
///     fn run(&self) -> Result<(), RunError> {
///         self.0.token().triggered().wait();
///         Ok(())
///     }
///     fn shutdown(&self, _: Deadline, reason: &Reason) -> Stopped {
///         self.0.fire(reason.clone());
///         Stopped::Clean // a real one waits for the end of `run`
///     }
///     fn is_running(&self) -> bool {
///         !self.0.is_triggered()
///     }
/// }
///
/// let group = Group::builder().member("orders", Idler::default()).member("mails", Idler::default()).build()?;
/// group.start()?; // or `run`, on this thread
/// let deadline = Deadline::after(SystemClock, Duration::from_secs(30));
/// assert_eq!(group.shutdown(deadline, &Reason::Signal(15)), Stopped::Clean);
/// println!("{}", group.ended().wait());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Handles
/// Dropping the last handle of a group that runs stops it, and waits for the end for as long as the group's budget
/// lasts; on a thread that the group waits for, it does not wait. A group that has not run by then never will. The
/// thread that [`start`](Group::start) makes holds no handle; one inside [`run`](Group::run) borrows one. A member that
/// has a handle to its own group keeps it from being stopped that way for as long as the member runs.
///
/// # Virtual time
/// With a [clock](GroupBuilder::clock), calls that block take part in its time: never make them inside
/// [`VirtualClock::block_on`](ebbtide_lifecycle::time::VirtualClock::block_on). [`Component::stop`] and
/// [`ended`](Group::ended) can be awaited there.
#[derive(Clone)]
pub struct Group {
    /// Shared by the handles alone: it goes with the last of them.
    held: Arc<Held>,
}

struct Held {
    crew: Arc<Crew>,
}

impl Group {
    /// A group without members yet.
    pub fn builder() -> GroupBuilder {
        GroupBuilder::new()
    }

    fn new(crew: Arc<Crew>) -> Self {
        Self { held: Arc::new(Held { crew }) }
    }

    /// Runs the members, and returns when all have ended, or when those who have not were given up on: a grace of
    /// 100 ms after the deadline of a stop.
    ///
    /// Without a stop it waits for as long as any member runs. After a [`shutdown`](Group::shutdown) that came first,
    /// it returns at once, and no member has run.
    ///
    /// # Errors
    /// [`Illegal`] if it runs already, or has run.
    pub fn run(&self) -> Result<Outcomes, Illegal> {
        let crew = self.crew();
        if crew.claim()? {
            return Ok(crew.run(&mut Pace::new(crew.tempo())));
        }
        Ok(crew.outcomes().expect("refused by a stop before the start, which is the end"))
    }

    /// Does what [`run`](Group::run) does, as the main part of a program: SIGTERM and SIGINT stop the group, through
    /// the
    /// [coordinator of the process](Coordinator::install), which knows it by `name`. When the members have ended, by
    /// themselves or not, everything else that is registered there is stopped as well.
    ///
    /// # Errors
    /// If there is no coordinator and none can be started, if it knows something else by that name, or if the group
    /// runs already or has run.
    pub fn serve(&self, name: &str) -> Result<Report, ServeError> {
        let coordinator = Coordinator::install().map_err(ServeError::Coordinator)?;
        let registered = coordinator.register(name, Priority::WORKERS, self.clone());
        let registration = registered.map_err(|duplicate| ServeError::Name(duplicate.name))?;
        self.start().map_err(ServeError::Start)?;
        coordinator.ready();
        // From the first word of a stop on the program is not ready, also if the group stops by itself.
        let stopping = self.token().triggered().wait();
        let failure = self.outcomes().filter(|outcomes| outcomes.reason().is_none() && !outcomes.is_clean());
        let reason = failure.map_or(stopping, |outcomes| Reason::failed(name, &Unclean { outcomes }));
        let report = coordinator.stop(reason).wait();
        drop(registration);
        Ok(report)
    }

    /// Does what [`run`](Group::run) does, on a thread of the group's own, and returns when that has been started. Wait
    /// with [`ended`](Group::ended).
    ///
    /// # Errors
    /// If it runs already or has run, or if the system has no thread to give; after that last one it is stopped, and no
    /// member has run.
    pub fn start(&self) -> Result<(), StartError> {
        match self.crew().claim() {
            Ok(true) => self.crew().run_elsewhere().map_err(StartError::Thread),
            Ok(false) => Ok(()),
            Err(illegal) => Err(StartError::Illegal(illegal)),
        }
    }

    /// Tells all members to stop, and waits until the run has ended, until `deadline` at the latest.
    ///
    /// Callable from any thread, any number of times, also before the run. The first reason counts. A later call with
    /// an earlier deadline brings it forward for everybody; one with a later deadline changes nothing.
    ///
    /// Gives [`Stopped::Overdue`] if a member still ran when it was due. On a thread that the group waits for, such as
    /// a member's own, it tells everybody and returns without waiting; it then gives `Overdue`, unless everything has
    /// ended already.
    pub fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        let crew = self.crew();
        crew.order(deadline, reason).tell();
        crew.wait(&mut Pace::new(crew.tempo()), deadline)
    }

    /// Waits until the run has ended, or never will begin, and gives what became of the members.
    ///
    /// Never block on it on a member's own thread.
    pub fn ended(&self) -> Wait<Ended> {
        self.crew().ended()
    }

    /// What became of the members, once the run has ended or never will begin.
    #[must_use]
    pub fn outcomes(&self) -> Option<Outcomes> {
        self.crew().outcomes()
    }

    /// Fires when the group begins to stop, with the reason; also when all members have ended by themselves.
    #[must_use]
    pub fn token(&self) -> Token {
        self.crew().stop.token()
    }

    /// Whether a thread is inside [`run`](Group::run).
    #[must_use]
    pub fn is_running(&self) -> bool {
        !matches!(self.state(), State::Idle | State::Stopped)
    }

    /// Where it is in its life.
    #[must_use]
    pub fn state(&self) -> State {
        self.crew().life.state()
    }

    fn crew(&self) -> &Arc<Crew> {
        &self.held.crew
    }
}

/// So groups nest.
impl Runnable for Group {
    /// # Errors
    /// [`Unclean`] if a member failed, or was left behind; [`Illegal`] if it runs already, or has run.
    fn run(&self) -> Result<(), RunError> {
        let outcomes = Self::run(self)?;
        if outcomes.is_clean() { Ok(()) } else { Err(Unclean { outcomes }.into()) }
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        Self::shutdown(self, deadline, reason)
    }

    fn is_running(&self) -> bool {
        Self::is_running(self)
    }
}

/// Accepted is a member that has begun to run; what a stop or the lack of a thread kept from that is refused.
impl Component for Group {
    /// Members are told before this returns, unless there were no threads to do it. In real time the rest blocks; in
    /// virtual time it is a future.
    fn stop(&self, deadline: Deadline, reason: &Reason) -> Stopping {
        let crew = self.crew().clone();
        let untold = crew.order(deadline, reason);
        if let Tempo::Virtual(clock) = crew.tempo().clone() {
            untold.tell_at_once();
            return Stopping::future(crew.stopped(clock, deadline));
        }
        Stopping::blocking(move || {
            untold.tell();
            crew.wait(&mut Pace::new(crew.tempo()), deadline)
        })
    }

    fn balance(&self) -> Balance {
        self.crew().board().balance()
    }

    /// The members that run, since when, and where they were added.
    fn stragglers(&self) -> Stragglers {
        let now = self.crew().tempo().now();
        self.crew().board().stragglers(now)
    }

    /// A member that failed or panicked, told to stop or not.
    fn failure(&self) -> Option<String> {
        let outcomes = self.outcomes()?;
        let failed = outcomes.iter().find(|fate| fate.has_failed())?;
        Some(failed.to_string())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let crew = &self.crew;
        if crew.life.state() == State::Stopped {
            return;
        }
        let deadline = crew.budget();
        crew.order(deadline, &Reason::requested("the last handle of the group was dropped")).tell();
        crew.wait(&mut Pace::new(crew.tempo()), deadline);
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("state", &self.state())
            .field("balance", &Component::balance(self))
            .finish_non_exhaustive()
    }
}

/// Why [`Group::serve`] did not run it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// There is no coordinator of the process, and none can be started.
    Coordinator(crate::StartError),
    /// The coordinator knows something else by that name.
    Name(Arc<str>),
    /// It runs already, or has run; or there is no thread for it.
    Start(StartError),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coordinator(error) => error.fmt(f),
            Self::Name(name) => {
                write!(f, "a component {name:?} is registered already: give the group another name")
            }
            Self::Start(error) => error.fmt(f),
        }
    }
}

impl Error for ServeError {}

/// Why [`Group::start`] did not start it.
#[derive(Debug)]
pub enum StartError {
    /// It runs already, or has run.
    Illegal(Illegal),
    /// The system has no thread to give.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Illegal(illegal) => illegal.fmt(f),
            Self::Thread(error) => write!(f, "no thread for the group: {error}"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Illegal(illegal) => Some(illegal),
            Self::Thread(error) => Some(error),
        }
    }
}
