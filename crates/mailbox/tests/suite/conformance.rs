//! The memory mailbox does what every mailbox does, in virtual time and in the system's.

use std::{future::Future, sync::Arc, time::Duration};

use ebbtide_lifecycle::{
    contain,
    time::{ThreadTimer, Timer, VirtualClock},
    wait::block_on,
};
use ebbtide_mailbox::{
    Address, Boxed, Limits, Mailbox, Office,
    conformance::{self, Specimen},
};

use super::SECOND;

/// A time that futures are run in.
trait Time: Timer<Sleep: Send + 'static> + Clone + Send + Sync + 'static {
    fn run<F: Future>(&self, future: F) -> F::Output;
}

impl Time for VirtualClock {
    fn run<F: Future>(&self, future: F) -> F::Output {
        self.block_on(future)
    }
}

impl Time for ThreadTimer {
    fn run<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }
}

struct InMemory<T> {
    timer: T,
    office: Office<T>,
    unit: Duration,
}

impl<T: Time> InMemory<T> {
    fn new(timer: T, unit: Duration) -> Self {
        Self { office: Office::new(timer.clone()), timer, unit }
    }
}

impl<T: Time> Specimen for InMemory<T> {
    fn mailbox(&self) -> Arc<dyn Mailbox> {
        Arc::new(self.office.mailbox_with("one", self.limits()))
    }

    fn other(&self, name: &str) -> (Address, Arc<dyn Mailbox>) {
        let other = self.office.mailbox_with(name, self.limits());
        (other.address().clone(), Arc::new(other))
    }

    fn limits(&self) -> Limits {
        Limits { capacity: 100, body: 1000 }
    }

    fn unit(&self) -> Duration {
        self.unit
    }

    fn pass(&self, time: Duration) -> Boxed<'_, ()> {
        Box::pin(self.timer.sleep(time).unwrap())
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.timer.run(future)
    }
}

#[test]
fn memory_conforms_in_virtual_time() {
    let clauses = conformance::mailbox(|| InMemory::new(VirtualClock::new(), 4 * SECOND));
    assert_eq!(clauses, conformance::CLAUSES);
}

#[test]
fn memory_conforms_in_the_systems_time() {
    let timer = ThreadTimer::start().unwrap();
    let check = |unit| {
        let clauses = conformance::mailbox(|| InMemory::new(timer.clone(), unit));
        assert_eq!(clauses, conformance::CLAUSES);
    };
    // A machine that stalls a thread for longer than a unit makes any mailbox fail: then it is tried with longer ones.
    let units = [SECOND / 10, SECOND / 3];
    if units.into_iter().all(|unit| contain(|| check(unit)).is_err()) {
        check(SECOND);
    }
}
