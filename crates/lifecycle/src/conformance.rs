//! Checks that an implementor of [`Component`] or [`Runnable`] calls from his own tests.
//!
//! Each function makes fresh subjects, puts one clause of the trait's contract after the other to them, and panics
//! with the clause that does not hold.

use std::{
    panic::resume_unwind,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::{Context, Waker},
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use crate::{
    component::{Component, Stopped, Stopping},
    runnable::Runnable,
    time::Deadline,
    trigger::Reason,
};

/// A component on the bench, with work that the check controls.
pub trait Specimen: Sync {
    /// The component.
    type Component: Component;

    /// The component, started: it accepts work.
    fn component(&self) -> &Self::Component;

    /// Brings a piece of work from outside that goes on until the returned value is called or dropped. None if it
    /// was refused. It must be in flight when this returns.
    fn submit(&self) -> Option<Finish>;

    /// A deadline that will pass soon, in the time that the component lives in.
    fn soon(&self) -> Deadline;

    /// Drives a stop to its end. Override it if the component lives in virtual time.
    fn drive(&self, stopping: Stopping) -> Stopped {
        stopping.wait()
    }
}

/// Lets a piece of work end.
pub type Finish = Box<dyn FnOnce() + Send>;

/// How many threads stop the same subject.
const STOPPERS: usize = 4;

/// How often the work that is waited for lets the others go first, before it ends.
const YIELDS: usize = 100;

/// How long a refusal may take. One that is refused has returned at once; but its thread has to be started and to have
/// its turn first, on a machine that has other things to do. Only who does not refuse makes the check last as long.
const REFUSAL_MAX: Duration = Duration::from_secs(5);

/// Checks a [`Component`].
///
/// # Panics
/// With the clause that does not hold.
pub fn component<S: Specimen>(make: impl Fn() -> S) {
    a_fresh_component_is_balanced_and_empty(&make());
    an_idle_component_stops_cleanly(&make());
    admission_closes_before_stop_returns(&make());
    a_stop_waits_for_accepted_work(&make());
    every_stop_ends_only_when_the_stop_has(&make());
    what_is_left_at_the_deadline_is_dropped_or_named(&make());
}

fn reason() -> Reason {
    Reason::requested("conformance")
}

fn balanced(component: &impl Component) {
    if let Err(unbalanced) = component.balance().check() {
        panic!("the ledger balances: {unbalanced}");
    }
}

fn a_fresh_component_is_balanced_and_empty<S: Specimen>(specimen: &S) {
    let component = specimen.component();
    balanced(component);
    assert_eq!(component.balance().accepted, 0, "a fresh component has accepted nothing");
    assert!(component.stragglers().is_empty(), "a fresh component has nobody in flight");
    stop_cleanly(specimen);
}

fn stop_cleanly<S: Specimen>(specimen: &S) {
    let stopping = specimen.component().stop(Deadline::never(), &reason());
    assert_eq!(specimen.drive(stopping), Stopped::Clean, "a stop without hurry is clean");
}

fn an_idle_component_stops_cleanly<S: Specimen>(specimen: &S) {
    stop_cleanly(specimen);
    stop_cleanly(specimen);
    let component = specimen.component();
    balanced(component);
    assert_eq!(component.balance().in_flight, 0, "nothing is in flight after a clean stop");
    assert!(component.stragglers().is_empty(), "nobody is in flight after a clean stop");
    assert!(specimen.submit().is_none(), "a stopped component refuses work");
}

fn admission_closes_before_stop_returns<S: Specimen>(specimen: &S) {
    let stopping = specimen.component().stop(Deadline::never(), &reason());
    assert!(
        specimen.submit().is_none(),
        "work is refused as soon as `stop` has returned, before it is driven"
    );
    assert_eq!(specimen.drive(stopping), Stopped::Clean, "a stop without hurry is clean");
}

fn a_stop_waits_for_accepted_work<S: Specimen>(specimen: &S) {
    let component = specimen.component();
    let finish = specimen.submit().expect("a started component accepts work");
    assert_eq!(component.stragglers().len(), 1, "work in flight is named");
    let mut stopping = component.stop(Deadline::never(), &reason());
    balanced(component);
    assert_eq!(component.balance().in_flight, 1, "stopping leaves accepted work in flight");
    if let Stopping::Future(stopping) = &mut stopping {
        let polled = stopping.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "a stop goes on while accepted work does");
    }
    drive_while_work_ends(specimen, vec![stopping], finish);
    balanced(component);
    assert_eq!(component.balance().accepted, 1, "what was accepted before the stop is counted");
    assert_eq!(component.balance().in_flight, 0, "nothing is in flight after a clean stop");
}

fn every_stop_ends_only_when_the_stop_has<S: Specimen>(specimen: &S) {
    let finish = specimen.submit().expect("a started component accepts work");
    let stop = |_| specimen.component().stop(Deadline::never(), &reason());
    drive_while_work_ends(specimen, (0..STOPPERS).map(stop).collect(), finish);
}

/// Drives each stop on a thread of its own, and lets the work end only when they have had time to end too early.
fn drive_while_work_ends<S: Specimen>(specimen: &S, stops: Vec<Stopping>, finish: Finish) {
    let (driving, finishing) = (Barrier::new(stops.len() + 1), AtomicBool::new(false));
    let drive = |stopping| {
        driving.wait();
        let stopped = specimen.drive(stopping);
        // Looked at on the spot, judged when all have ended: a panic here would leave the others waiting.
        (stopped, finishing.load(Ordering::SeqCst), specimen.component().balance().in_flight)
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let drive = &drive;
        let stops: Vec<_> = stops.into_iter().map(|stopping| scope.spawn(move || drive(stopping))).collect();
        driving.wait();
        for _ in 0..YIELDS {
            thread::yield_now();
        }
        finishing.store(true, Ordering::SeqCst);
        finish();
        stops.into_iter().map(join).collect()
    });
    for (stopped, finishing, in_flight) in ended {
        assert!(finishing, "a stop goes on while accepted work does");
        assert_eq!(stopped, Stopped::Clean, "a stop without hurry is clean");
        assert_eq!(in_flight, 0, "every stop ends only when nothing is in flight");
    }
}

/// What the thread gives; what it panicked with goes on.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn what_is_left_at_the_deadline_is_dropped_or_named<S: Specimen>(specimen: &S) {
    let component = specimen.component();
    let finish = specimen.submit().expect("a started component accepts work");
    let stopping = component.stop(specimen.soon(), &reason());
    assert_eq!(specimen.drive(stopping), Stopped::Overdue, "a stop with stuck work says so at its deadline");
    balanced(component);
    let left = component.balance();
    assert_eq!(left.abandoned + left.cancelled, 1, "what is left at the deadline is dropped or abandoned");
    assert_eq!(component.stragglers().len() as u64, left.abandoned, "what goes on after it is named");
    finish();
    balanced(component);
    let after = component.balance();
    assert_eq!(after.abandoned, left.abandoned, "what was abandoned stays so when it ends after all");
    assert!(component.stragglers().is_empty(), "nobody is named any more when it has ended");
}

/// Checks a [`Runnable`] that does not end by itself.
///
/// # Panics
/// With the clause that does not hold.
pub fn runnable<R: Runnable>(make: impl Fn() -> R) {
    a_shutdown_before_the_run_sticks(&make());
    a_shutdown_waits_until_the_run_has_returned(&make());
    a_second_run_is_refused(&make());
}

fn a_shutdown_before_the_run_sticks(runnable: &impl Runnable) {
    assert!(!runnable.is_running(), "a fresh runnable does not run");
    assert_eq!(
        runnable.shutdown(Deadline::never(), &reason()),
        Stopped::Clean,
        "a shutdown before the run is clean"
    );
    assert!(runnable.run().is_ok(), "a run after the shutdown returns at once, without an error");
    assert!(!runnable.is_running(), "a run that has returned does not run");
}

fn a_shutdown_waits_until_the_run_has_returned(runnable: &impl Runnable) {
    let (run, ended) = while_it_runs(runnable, || {
        thread::scope(|scope| {
            let shutdown = || {
                let stopped = runnable.shutdown(Deadline::never(), &reason());
                (stopped, runnable.is_running())
            };
            let threads: Vec<_> = (0..STOPPERS).map(|_| scope.spawn(shutdown)).collect();
            threads.into_iter().map(join).collect::<Vec<_>>()
        })
    });
    for (stopped, running) in ended {
        assert_eq!(stopped, Stopped::Clean, "a shutdown without hurry is clean");
        assert!(!running, "every shutdown returns only when the run has ended");
    }
    assert_eq!(run, Ok(()), "a run that was shut down ends without an error");
}

fn a_second_run_is_refused(runnable: &impl Runnable) {
    let (run, (refused, running, stopped)) = while_it_runs(runnable, || {
        // On a thread of its own, because one that is not refused runs until the shutdown.
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            let second = scope.spawn(move || tell.send(runnable.run().is_err()));
            let refused = told.recv_timeout(REFUSAL_MAX) == Ok(true);
            let running = runnable.is_running();
            let stopped = runnable.shutdown(Deadline::never(), &reason());
            // It has been told, or nobody listens any more; what matters here is whether it panicked.
            let _ = join(second);
            (refused, running, stopped)
        })
    });
    assert!(refused, "a second run is refused while the first goes on");
    assert!(running, "a refused run leaves the first alone");
    assert_eq!(stopped, Stopped::Clean, "a shutdown without hurry is clean");
    assert_eq!(run, Ok(()), "the first run ends without an error");
}

/// Does `act` while it runs on another thread, until it has been shut down. Gives what the run gave, too.
fn while_it_runs<R: Runnable, T>(runnable: &R, act: impl FnOnce() -> T) -> (Result<(), String>, T) {
    thread::scope(|scope| {
        let run = scope.spawn(|| runnable.run().map_err(|error| error.to_string()));
        // A run that has not begun yet when the shutdown comes is another case.
        while !runnable.is_running() {
            assert!(!run.is_finished(), "a run goes on until it is shut down");
            thread::yield_now();
        }
        let acted = act();
        (join(run), acted)
    })
}
