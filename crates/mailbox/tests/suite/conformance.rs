//! The memory mailbox does what every mailbox does, in virtual time and in the system's.

use std::{future::Future, sync::Arc, time::Duration};

use ebbtide_lifecycle::{
    time::{ThreadTimer, Timer, VirtualClock},
    wait::block_on,
};
use ebbtide_mailbox::{
    Address, Boxed, Limits, Mailbox, Office,
    conformance::{self, Specimen},
};

/// A time that futures are run in.
trait Time: Timer<Sleep: Send + 'static> + Clone + Send + Sync + 'static {
    const UNIT: Duration;

    fn run<F: Future>(&self, future: F) -> F::Output;
}

impl Time for VirtualClock {
    const UNIT: Duration = Duration::from_secs(4);

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.block_on(future)
    }
}

impl Time for ThreadTimer {
    /// Longer than a thread has to wait for its turn on a busy machine.
    const UNIT: Duration = Duration::from_millis(200);

    fn run<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }
}

struct InMemory<T> {
    timer: T,
    office: Office<T>,
}

impl<T: Time> InMemory<T> {
    fn new(timer: T) -> Self {
        Self { office: Office::new(timer.clone()), timer }
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
        T::UNIT
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
    let clauses = conformance::mailbox(|| InMemory::new(VirtualClock::new()));
    assert_eq!(clauses, conformance::CLAUSES);
}

#[test]
fn memory_conforms_in_the_systems_time() {
    let timer = ThreadTimer::start().unwrap();
    let clauses = conformance::mailbox(|| InMemory::new(timer.clone()));
    assert_eq!(clauses, conformance::CLAUSES);
}
