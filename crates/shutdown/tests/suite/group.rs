//! Groups: several loops that run and stop as one. First those facts that the origin has tests for, by their names.

mod conforms;
mod endings;
mod handles;
mod stops;
mod threads;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::{
    Illegal, Lifecycle, Reason, RunError, Runnable, State, Step, Stopped, Token, Trigger,
    time::{Deadline, SystemClock},
};
use ebbtide_shutdown::group::{Ending, Group, Outcomes};

const MINUTE: Duration = Duration::from_secs(60);

/// A loop that follows the contract of `Runnable`, and does what a test says.
struct Worker {
    life: Lifecycle,
    stop: Trigger,
    /// What it was told, in order.
    told: mpsc::SyncSender<(Deadline, Reason)>,
    script: Box<dyn Fn(Token) -> Result<(), RunError> + Send + Sync>,
}

/// What a worker was told so far.
type Told = mpsc::Receiver<(Deadline, Reason)>;

impl Worker {
    fn new(script: impl Fn(Token) -> Result<(), RunError> + Send + Sync + 'static) -> Arc<Self> {
        Self::watched(script).0
    }

    /// Also gives what it will be told.
    fn watched(script: impl Fn(Token) -> Result<(), RunError> + Send + Sync + 'static) -> (Arc<Self>, Told) {
        // Room for more than any test tells it.
        let (told, is_told) = mpsc::sync_channel(16);
        let script = Box::new(script);
        let worker = Self { life: Lifecycle::new(), stop: Trigger::new(), told, script };
        (Arc::new(worker), is_told)
    }

    /// Waits to be told to stop.
    fn idle() -> Arc<Self> {
        Self::new(wait_for_stop)
    }

    /// Does not stop, whoever tells it, until the latch is fired.
    fn stuck(latch: &Trigger) -> Arc<Self> {
        Self::new(until(latch))
    }

    /// Blocks until it runs.
    fn is_up(&self) {
        assert_eq!(self.life.reached(State::Running).wait(), State::Running);
    }
}

fn wait_for_stop(stop: Token) -> Result<(), RunError> {
    stop.triggered().wait();
    Ok(())
}

fn until(latch: &Trigger) -> impl Fn(Token) -> Result<(), RunError> + Send + Sync + 'static {
    let latch = latch.token();
    move |_| {
        latch.triggered().wait();
        Ok(())
    }
}

fn release(latch: &Trigger) {
    latch.fire(Reason::requested("the test goes on"));
}

impl Runnable for Worker {
    fn run(&self) -> Result<(), RunError> {
        match self.life.step(Step::Start) {
            Ok(_) => {}
            Err(illegal) if illegal.state == State::Stopped => return Ok(()),
            Err(illegal) => return Err(illegal.into()),
        }
        /// Also when the script panics.
        struct End<'a>(&'a Worker);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                let _ = self.0.life.step(Step::Stop);
                let _ = self.0.life.step(Step::End);
            }
        }
        let _end = End(self);
        match self.life.step(Step::Ready) {
            Ok(_) => (self.script)(self.stop.token()),
            Err(_) => Ok(()),
        }
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        let _ = self.told.try_send((deadline, reason.clone()));
        let _ = self.life.step(Step::Stop);
        self.stop.fire(reason.clone());
        match self.life.reached(State::Stopped).wait_by(deadline) {
            Ok(_) => Stopped::Clean,
            Err(_) => Stopped::Overdue,
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.life.state(), State::Running | State::Stopping)
    }
}

/// A deadline that only a test that fails ever sees.
fn far() -> Deadline {
    Deadline::after(SystemClock, MINUTE)
}

fn soon() -> Deadline {
    Deadline::after(SystemClock, Duration::from_millis(5))
}

fn reason() -> Reason {
    Reason::requested("test")
}

/// Runs it on another thread.
fn run(group: &Group) -> JoinHandle<Result<Outcomes, Illegal>> {
    let group = group.clone();
    thread::spawn(move || group.run())
}

/// How each ended, in a word.
fn endings(outcomes: &Outcomes) -> Vec<&'static str> {
    let word = |ending: &Ending| match ending {
        Ending::Finished => "finished",
        Ending::Stopped => "stopped",
        Ending::Failed { .. } => "failed",
        Ending::Panicked(_) => "panicked",
        Ending::LeftBehind { .. } => "left behind",
        Ending::NeverRan => "never ran",
        Ending::NotStarted(_) => "not started",
        _ => "unknown",
    };
    outcomes.iter().map(|fate| word(&fate.ending)).collect()
}

#[test]
fn test_shutdown_stops_loop() {
    let worker = Worker::idle();
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    let run = run(&group);
    worker.is_up();
    assert!(group.is_running() && worker.is_running());
    assert_eq!(group.shutdown(far(), &reason()), Stopped::Clean);
    assert!(!group.is_running() && !worker.is_running());
    let outcomes = run.join().unwrap().unwrap();
    assert_eq!((endings(&outcomes), outcomes.is_clean()), (vec!["stopped"], true));
    assert_eq!(outcomes.reason(), Some(&reason()));
}

#[test]
fn test_shutdown_waits_for_in_flight() {
    let (message, completed) = (Trigger::new(), Arc::new(AtomicBool::new(false)));
    let handler = {
        let (message, completed) = (message.token(), completed.clone());
        move |stop: Token| {
            stop.triggered().wait();
            message.triggered().wait();
            completed.store(true, Ordering::SeqCst);
            Ok(())
        }
    };
    let (worker, told) = Worker::watched(handler);
    let group = Group::builder().member("loop", worker.clone()).build().unwrap();
    group.start().unwrap();
    worker.is_up();
    let shutdown = {
        let (group, completed) = (group.clone(), completed.clone());
        thread::spawn(move || (group.shutdown(far(), &reason()), completed.load(Ordering::SeqCst)))
    };
    told.recv().unwrap();
    assert!(!shutdown.is_finished(), "the message is in flight");
    release(&message);
    assert_eq!(shutdown.join().unwrap(), (Stopped::Clean, true));
}

#[test]
fn test_loop_group_coordinates_shutdown() {
    let (main, eval) = (Worker::idle(), Worker::idle());
    let group = Group::builder().member("main", main.clone()).member("eval", eval.clone()).build().unwrap();
    let run = run(&group);
    main.is_up();
    eval.is_up();
    assert_eq!(group.shutdown(far(), &Reason::Signal(15)), Stopped::Clean);
    assert!(!main.is_running() && !eval.is_running());
    assert_eq!(endings(&run.join().unwrap().unwrap()), ["stopped", "stopped"]);
}

/// Blocks until it is set.
fn wait_for<T>(cell: &OnceLock<T>) -> &T {
    loop {
        match cell.get() {
            Some(value) => return value,
            None => thread::yield_now(),
        }
    }
}
