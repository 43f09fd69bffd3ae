use std::time::Duration;

use ebbtide_lifecycle::{
    Lifecycle, Reason, RunError, Runnable, State, Step, Stopped, Trigger, conformance,
    time::{Deadline, SystemClock},
};

/// A loop as simple as it gets: it waits to be told to stop.
#[derive(Default)]
struct Waiter {
    life: Lifecycle,
    stop: Trigger,
}

impl Runnable for Waiter {
    fn run(&self) -> Result<(), RunError> {
        match self.life.step(Step::Start) {
            Ok(_) => {}
            Err(illegal) if illegal.state == State::Stopped => return Ok(()),
            Err(illegal) => return Err(illegal.into()),
        }
        if self.life.step(Step::Ready).is_ok() {
            self.stop.token().triggered().wait();
        }
        self.life.step(Step::End)?;
        Ok(())
    }

    fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
        // Of several callers the first takes the step; all wait for the end.
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

#[test]
fn a_waiter_conforms() {
    conformance::runnable(Waiter::default);
}

#[test]
#[should_panic(expected = "a run after the shutdown returns at once")]
fn a_runnable_that_forgets_an_early_shutdown_is_found_out() {
    /// The origin's defect: the flag is cleared by the run.
    struct Forgetful(Waiter);
    impl Runnable for Forgetful {
        fn run(&self) -> Result<(), RunError> {
            if self.0.life.state() == State::Stopped {
                return Err("it runs as if nobody had told it".into());
            }
            self.0.run()
        }
        fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
            self.0.shutdown(deadline, reason)
        }
        fn is_running(&self) -> bool {
            self.0.is_running()
        }
    }
    conformance::runnable(|| Forgetful(Waiter::default()));
}

#[test]
#[should_panic(expected = "a second run is refused")]
fn a_runnable_that_runs_twice_is_found_out() {
    struct Twice(Waiter);
    impl Runnable for Twice {
        fn run(&self) -> Result<(), RunError> {
            if self.0.is_running() {
                self.0.stop.token().triggered().wait();
                return Ok(());
            }
            self.0.run()
        }
        fn shutdown(&self, deadline: Deadline, reason: &Reason) -> Stopped {
            self.0.shutdown(deadline, reason)
        }
        fn is_running(&self) -> bool {
            self.0.is_running()
        }
    }
    conformance::runnable(|| Twice(Waiter::default()));
}

#[test]
fn a_shutdown_gives_up_at_its_deadline() {
    let waiter = Waiter::default();
    waiter.life.step(Step::Start).unwrap();
    let deadline = Deadline::after(SystemClock, Duration::from_millis(1));
    assert_eq!(waiter.shutdown(deadline, &Reason::Signal(15)), Stopped::Overdue);
}
