//! Timeouts whose losers go on.

use std::{fmt, future::Future, ops::Deref, pin::Pin, sync::Arc, time::Duration};

use ebbtide_lifecycle::{
    blame::Origin,
    time::{Alarm, Deadline, Timer},
};
use futures_task::{FutureObj, LocalFutureObj, LocalSpawn, Spawn, SpawnError};

use crate::{
    desk::Desk,
    detach::{Detachable, Runner},
    driver::Driver,
    tracker::Tracker,
};

/// A late runner that may go on on any thread.
pub type SendRunner = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A late runner that stays on its thread.
pub type LocalRunner = Pin<Box<dyn Future<Output = ()>>>;

/// Runners for futures that stay on their thread.
pub type LocalRunners<T> = Runners<T, LocalRunner>;

/// Says which futures a kind of runner can hold.
pub trait House<F>: Future<Output = ()> + Unpin + Sized {
    /// Forgets what the future is.
    fn house(runner: Pin<Box<Runner<F>>>) -> Self;
}

impl<F: Future + Send + 'static> House<F> for SendRunner {
    fn house(runner: Pin<Box<Runner<F>>>) -> Self {
        runner
    }
}

impl<F: Future + 'static> House<F> for LocalRunner {
    fn house(runner: Pin<Box<Runner<F>>>) -> Self {
        runner
    }
}

/// Lets futures go on whose deadline has passed, and [tracks](Tracker) them: how many there are, how they are
/// called, how late they are. A clone is another handle to the same runners.
///
/// One task, spawned up front, drives them all, so that detaching one is never refused, also while the executor
/// drains. The task ends when there is no late runner and either the runners are [closed](Tracker::close), or
/// all handles and all timeouts made with them are gone.
pub struct Runners<T, R = SendRunner> {
    callers: Arc<Callers<R>>,
    tracker: Tracker<T>,
}

/// All who could detach something: the handles, and the timeouts that are awaited.
pub(crate) struct Callers<R> {
    pub(crate) desk: Arc<Desk<R>>,
}

impl<R> Drop for Callers<R> {
    fn drop(&mut self) {
        self.desk.board.callers_go();
    }
}

impl<T> Runners<T>
where
    T: Timer + Clone + Send + Unpin + 'static,
{
    /// Spawns the driver, and tells the time by `timer`.
    ///
    /// # Errors
    /// If `spawner` does not take it.
    pub fn new(spawner: &(impl Spawn + ?Sized), timer: T) -> Result<Self, SpawnError> {
        let (runners, driver) = Self::with_driver(timer);
        spawner.spawn_obj(FutureObj::new(Box::new(driver)))?;
        Ok(runners)
    }

    /// The same with a function that spawns the driver, for executors that do not implement `futures::task::Spawn`:
    /// `Runners::spawned(timer, |driver| drop(tokio::spawn(driver)))`.
    pub fn spawned(timer: T, spawn: impl FnOnce(SendRunner)) -> Self {
        let (runners, driver) = Self::with_driver(timer);
        spawn(Box::pin(driver));
        runners
    }
}

impl<T> LocalRunners<T>
where
    T: Timer + Clone + Unpin + 'static,
{
    /// Spawns the driver on this thread, and tells the time by `timer`.
    ///
    /// # Errors
    /// If `spawner` does not take it.
    pub fn new_local(spawner: &(impl LocalSpawn + ?Sized), timer: T) -> Result<Self, SpawnError> {
        let (runners, driver) = Self::with_driver(timer);
        spawner.spawn_local_obj(LocalFutureObj::new(Box::new(driver)))?;
        Ok(runners)
    }

    /// The same with a function that spawns the driver on this thread: see [`Runners::spawned`].
    pub fn spawned_local(timer: T, spawn: impl FnOnce(LocalRunner)) -> Self {
        let (runners, driver) = Self::with_driver(timer);
        spawn(Box::pin(driver));
        runners
    }
}

impl<T: Timer + Clone, R: Unpin> Runners<T, R> {
    /// The runners, and the task that has to be spawned for them.
    fn with_driver(timer: T) -> (Self, Driver<R, T>) {
        let desk = Arc::new(Desk::new());
        let driver = Driver::new(desk.clone(), timer.clone());
        let tracker = Tracker::new(desk.board.clone(), timer);
        (Self { callers: Arc::new(Callers { desk }), tracker }, driver)
    }
}

impl<T: Timer + Clone, R> Runners<T, R> {
    /// `future`, or [`Elapsed`](crate::Elapsed) if it takes longer than `duration`: then it goes on as a late
    /// runner, and its output is discarded.
    ///
    /// The time is counted from the end of the first poll, as by [`timeout`](crate::timeout). With none at all,
    /// the future is dropped without having been polled.
    #[track_caller]
    pub fn timeout<F: Future>(&self, duration: Duration, future: F) -> Detachable<F, T, R>
    where
        R: House<F>,
    {
        let alarm = Alarm::within(self.tracker.timer().clone(), duration);
        Detachable::new(future, alarm, self.callers.clone(), Origin::here())
    }

    /// `future`, or [`Elapsed`](crate::Elapsed) if it has not ended by `deadline`: then it goes on as a late
    /// runner, and its output is discarded. At a deadline that has passed the future is dropped without having
    /// been polled.
    #[track_caller]
    pub fn timeout_at<F: Future>(&self, deadline: Deadline, future: F) -> Detachable<F, T, R>
    where
        R: House<F>,
    {
        let alarm = Alarm::by(self.tracker.timer().clone(), deadline);
        Detachable::new(future, alarm, self.callers.clone(), Origin::here())
    }

    /// Takes over what is late already, and has been polled elsewhere until now. It is late from now on.
    pub fn adopt(&self, runner: R, origin: Origin) {
        self.callers.desk.hand_over(runner, origin, self.tracker.timer().now());
    }

    /// What is known of the late runners, for any thread, and for a coordinator that stops them: a
    /// [`Component`](ebbtide_lifecycle::Component).
    pub fn tracker(&self) -> &Tracker<T> {
        &self.tracker
    }
}

impl<T, R> Deref for Runners<T, R> {
    type Target = Tracker<T>;

    fn deref(&self) -> &Tracker<T> {
        &self.tracker
    }
}

impl<T: Clone, R> Clone for Runners<T, R> {
    fn clone(&self) -> Self {
        Self { callers: self.callers.clone(), tracker: self.tracker.clone() }
    }
}

impl<T, R> fmt::Debug for Runners<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runners").field("tracker", &self.tracker).finish_non_exhaustive()
    }
}
