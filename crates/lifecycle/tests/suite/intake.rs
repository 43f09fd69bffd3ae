use std::{
    future::Pending,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Balance, Component, Intake, Outcome, Reason, Refusal, Stopped, Stopping,
    blame::{Origin, Stragglers},
    conformance::{self, Finish, Specimen},
    time::{Clock, Deadline, SystemClock, ThreadTimer, Timer, VirtualClock},
};

struct InRealTime(Intake<ThreadTimer>);

fn submit<T>(intake: &Intake<T>) -> Option<Finish>
where
    T: Timer + Send + Sync + 'static,
{
    let admission = intake.admit().ok()?;
    Some(Box::new(move || admission.settle(Outcome::Completed)))
}

impl Specimen for InRealTime {
    type Component = Intake<ThreadTimer>;

    fn component(&self) -> &Self::Component {
        &self.0
    }

    fn submit(&self) -> Option<Finish> {
        submit(&self.0)
    }

    fn soon(&self) -> Deadline {
        Deadline::after(SystemClock, Duration::from_millis(5))
    }
}

struct InVirtualTime {
    intake: Intake<VirtualClock>,
    clock: VirtualClock,
}

impl Specimen for InVirtualTime {
    type Component = Intake<VirtualClock>;

    fn component(&self) -> &Self::Component {
        &self.intake
    }

    fn submit(&self) -> Option<Finish> {
        submit(&self.intake)
    }

    fn soon(&self) -> Deadline {
        Deadline::after(&self.clock, Duration::from_secs(30))
    }

    fn drive(&self, stopping: Stopping) -> Stopped {
        match stopping {
            Stopping::Future(stopping) => self.clock.block_on(stopping),
            Stopping::Blocking(_) => unreachable!("in virtual time it stops as a future"),
        }
    }
}

#[test]
fn an_intake_conforms_in_real_time() {
    conformance::component(|| InRealTime(Intake::new(ThreadTimer::start().unwrap())));
}

#[test]
fn an_intake_conforms_in_virtual_time() {
    conformance::component(|| {
        let clock = VirtualClock::new();
        InVirtualTime { intake: Intake::new(clock.clone()), clock }
    });
}

/// Tells the system's time, and has no loop or runtime to sleep on.
#[derive(Clone)]
struct Stranded;

impl Clock for Stranded {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

impl Timer for Stranded {
    type Sleep = Pending<()>;

    fn sleep_until(&self, _: Instant) -> Pending<()> {
        unreachable!("there is nobody who would wake it")
    }
}

#[test]
fn a_stop_keeps_its_deadline_without_a_timer() {
    let intake = Intake::new(Stranded);
    let stuck = intake.admit().unwrap();
    let soon = Deadline::after(SystemClock, Duration::from_millis(5));
    assert_eq!(intake.stop(soon, &Reason::Signal(15)).wait(), Stopped::Overdue);
    stuck.settle(Outcome::Completed);
}

#[test]
fn a_stuck_request_is_named_with_its_place_and_age() {
    let clock = VirtualClock::new();
    let intake = Intake::new(clock.clone());
    let stuck = intake.admit_as(&Origin::here().named("GET /report")).unwrap();
    let (quick, line) = (intake.admit().unwrap(), line!());
    assert!(intake.stragglers().iter().any(|straggler| straggler.origin.site().line() == line));
    quick.settle(Outcome::Completed);

    let Stopping::Future(stopping) =
        intake.stop(Deadline::after(&clock, Duration::from_secs(30)), &Reason::Signal(15))
    else {
        unreachable!("in virtual time it stops as a future")
    };
    assert_eq!(clock.block_on(stopping), Stopped::Overdue);
    let report = intake.stragglers().to_string();
    assert!(report.starts_with("1 in flight\n  1 × \"GET /report\" at "), "{report}");
    assert!(report.ends_with("running for 30.0s"), "{report}");
    assert_eq!(intake.balance().to_string(), "accepted 2, completed 1, abandoned 1");

    stuck.settle(Outcome::Completed);
    assert_eq!(intake.balance().to_string(), "accepted 2, completed 1, abandoned 1, returned after 1");
    assert!(intake.stragglers().is_empty());
}

#[test]
fn every_stop_of_an_intake_says_that_work_was_abandoned() {
    let clock = VirtualClock::new();
    let specimen = InVirtualTime { intake: Intake::new(clock.clone()), clock };
    let stuck = specimen.submit().unwrap();
    let patient = specimen.intake.stop(Deadline::never(), &Reason::Signal(15));
    let hasty = specimen.intake.stop(specimen.soon(), &Reason::Signal(15));
    assert_eq!(specimen.drive(hasty), Stopped::Overdue);
    assert_eq!(specimen.drive(patient), Stopped::Overdue, "the stop is over, also for who had more time");
    stuck();
    let after = specimen.intake.stop(Deadline::never(), &Reason::Signal(15));
    assert_eq!(specimen.drive(after), Stopped::Overdue);
}

/// A component whose stop waits for nothing.
struct Hasty(InRealTime);

impl Component for Hasty {
    fn stop(&self, deadline: Deadline, reason: &Reason) -> Stopping {
        let _never_driven = self.0.0.stop(deadline, reason);
        Stopping::blocking(|| Stopped::Clean)
    }

    fn balance(&self) -> Balance {
        self.0.0.balance()
    }

    fn stragglers(&self) -> Stragglers {
        self.0.0.stragglers()
    }
}

impl Specimen for Hasty {
    type Component = Self;

    fn component(&self) -> &Self {
        self
    }

    fn submit(&self) -> Option<Finish> {
        self.0.submit()
    }

    fn soon(&self) -> Deadline {
        self.0.soon()
    }
}

#[test]
#[should_panic(expected = "a stop goes on while accepted work does")]
fn a_component_whose_stop_waits_for_nothing_is_found_out() {
    conformance::component(|| Hasty(InRealTime(Intake::new(ThreadTimer::start().unwrap()))));
}

#[test]
fn an_admission_may_bring_another_while_the_intake_stops() {
    let clock = VirtualClock::new();
    let specimen = InVirtualTime { intake: Intake::new(clock.clone()), clock };
    let parent = specimen.intake.admit().unwrap();
    let stopping = specimen.intake.stop(Deadline::never(), &Reason::Signal(15));
    let child = parent.fork(&Origin::here()).unwrap();
    parent.settle(Outcome::Completed);
    child.settle(Outcome::Completed);
    assert_eq!(specimen.drive(stopping), Stopped::Clean);
    assert_eq!(specimen.intake.balance().to_string(), "accepted 2, completed 2");
}

/// Stops that run out of time while requests come and go: whatever was abandoned, the books balance at once.
#[test]
fn the_books_balance_whenever_a_stop_is_overdue() {
    for _ in 0..300 {
        let intake = Intake::new(VirtualClock::new());
        let stuck = intake.admit().unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Ok(request) = intake.admit() {
                        request.settle(Outcome::Completed);
                    }
                });
            }
            let stops: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let overdue = Deadline::at(SystemClock.now() - Duration::from_secs(1));
                        assert_eq!(intake.stop(overdue, &Reason::Signal(15)).wait(), Stopped::Overdue);
                        assert_eq!(intake.balance().check(), Ok(()));
                    })
                })
                .collect();
            for stop in stops {
                stop.join().unwrap();
            }
        });
        drop(stuck);
        assert_eq!(intake.balance().check(), Ok(()));
    }
}

#[test]
fn a_full_intake_refuses_and_counts_it() {
    let intake = Intake::with_limit(VirtualClock::new(), 1);
    let inside = intake.admit().unwrap();
    assert_eq!(intake.admit().unwrap_err(), Refusal::Full);
    inside.settle(Outcome::HandedBack);
    assert_eq!(intake.balance().to_string(), "accepted 1, handed back 1, refused 1");
}

#[test]
fn the_gate_of_an_intake_is_the_one_that_requests_come_through() {
    let intake = Intake::new(VirtualClock::new());
    let inside = intake.admit().unwrap();
    assert_eq!(intake.gate().in_flight(), 1);
    intake.gate().close();
    assert_eq!(intake.admit().unwrap_err(), Refusal::Closed);
    intake.gate().open();
    inside.settle(Outcome::Completed);
    intake.admit().unwrap().settle(Outcome::Completed);
}

#[test]
fn an_admission_that_panics_has_failed_and_is_no_straggler() {
    let clock = VirtualClock::new();
    let intake = Intake::new(clock.clone());
    let request = AssertUnwindSafe(|| {
        let _admission = intake.admit().unwrap();
        panic!("the request fails");
    });
    assert!(catch_unwind(request).is_err());
    assert!(intake.gate().is_idle() && intake.stragglers().is_empty());
    assert_eq!(intake.ledger().balance(0).to_string(), "accepted 1, failed 1");
}
