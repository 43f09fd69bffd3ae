//! The stop itself, step by step, on the coordinator's own thread.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{Reason, blame::Stragglers, time::Deadline, wait::Wait};

use crate::{
    budget::Budget,
    desk::Callback,
    event::Event,
    pace::Pace,
    priority::Priority,
    report::{CallbackReport, Ending, IntakeReport},
    shared::{Asked, Shared},
    stage::Stage,
};

/// How long a callback is waited for. What takes longer than that is for a component: meanwhile requests still come in.
const CALLBACK_MAX: Duration = Duration::from_secs(1);

/// How long all of them are. Those that come after that are called, and not waited for.
pub(crate) const CALLBACKS_MAX: Duration = Duration::from_secs(3);

/// The thread of a coordinator.
pub(crate) struct Sequence {
    shared: Arc<Shared>,
    pace: Pace,
}

impl Sequence {
    /// Made on the thread that starts the coordinator's.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { pace: Pace::new(&shared.tempo), shared }
    }

    /// Waits to be called, and stops everything.
    pub(crate) fn run(mut self) {
        self.warn();
        let reason = self.wait_for_the_call();
        self.begin(reason);
        self.call_back();
        self.delay();
        self.drain();
        self.stop_phases();
        self.end();
    }

    /// Tells what is wrong with how it was built. Here, because whoever builds it may do so under a lock, as the
    /// coordinator of the process is.
    fn warn(&self) {
        let warnings = self.shared.desk().warnings.clone();
        for warning in &warnings {
            self.shared.tell(&Event::Warning(warning));
        }
    }

    /// Idle: no timer, no wake-up.
    fn wait_for_the_call(&mut self) -> Reason {
        let mut triggered = self.shared.trigger.token().triggered();
        let mut asked = Wait::new(Asked { shared: self.shared.clone() });
        let called = poll_fn(|cx| match Pin::new(&mut triggered).poll(cx) {
            Poll::Ready(reason) => Poll::Ready(reason),
            Poll::Pending => Pin::new(&mut asked).poll(cx),
        });
        let reason = self.pace.wait(called, Deadline::never()).expect("without a deadline it is waited for");
        self.shared.is_stopping(&reason);
        if !self.shared.trigger.is_triggered() {
            self.shared.fire(&self.shared.trigger, reason.clone(), &mut self.pace);
        }
        // Somebody may have been quicker.
        self.shared.trigger.reason().cloned().unwrap_or(reason)
    }

    fn begin(&mut self, reason: Reason) {
        {
            let mut desk = self.shared.desk();
            desk.stage = Stage::Triggered;
            desk.call = Some((reason.clone(), self.pace.now()));
        }
        self.shared.tell(&Event::Triggered { reason: &reason });
        self.shared.tell(&Event::NotReady);
    }

    /// In the order in which they were registered, each on a thread of its own: one that hangs holds up none of the
    /// rest for long.
    fn call_back(&mut self) {
        let until = self.pace.now() + CALLBACKS_MAX;
        loop {
            // With the lock held only to take it out: a callback may register callbacks.
            let next = self.shared.desk().callbacks.pop_front();
            let Some(Callback { name, act, .. }) = next else { return };
            let patience = Deadline::at(until.min(self.pace.now() + CALLBACK_MAX));
            let errand = self.shared.call(&name, act);
            let ending = match self.pace.wait(errand.ended(), patience) {
                Some(Ok(())) => Ending::Clean,
                Some(Err(panicked)) => Ending::Panicked(panicked.message().to_owned()),
                None => Ending::Hung,
            };
            self.shared.tell(&Event::CallbackEnded { name: &name, ending: &ending });
            self.shared.desk().called.push(CallbackReport { name, ending });
        }
    }

    /// Goes on serving, not ready, for whoever still sends requests.
    fn delay(&mut self) {
        let delay = self.shared.settings.delay;
        if delay.is_zero() {
            return;
        }
        self.shared.desk().stage = Stage::Delaying;
        self.shared.tell(&Event::Delaying { delay });
        let until = Deadline::at(self.pace.now() + delay);
        let waited: Option<()> = self.pace.wait(std::future::pending(), until);
        debug_assert!(waited.is_none(), "nothing ends it but its time");
    }

    /// Closes the intake, and waits for what is in flight.
    fn drain(&mut self) {
        let (since, timeout) = (self.pace.now(), self.shared.settings.timeout);
        let gate = self.shared.intake.gate().clone();
        gate.seal();
        let deadline = {
            let mut desk = self.shared.desk();
            let phases = desk.phases_to_come();
            let mut budget = Budget::new(since, timeout, phases + 1);
            let deadline = budget.deadline(since, phases);
            desk.stage = Stage::Draining;
            desk.budget = Some(budget);
            desk.intake = Some(self.intake(Ending::Pending, Duration::ZERO));
            deadline
        };
        self.shared.tell(&Event::DrainBegun { pending: gate.in_flight(), timeout });
        let reason = self.shared.trigger.reason().cloned();
        self.shared.fire(
            &self.shared.closing,
            reason.unwrap_or_else(|| Reason::requested("stop")),
            &mut self.pace,
        );

        let drained = self.wait_telling(|| gate.drained(), deadline.instant().expect("a budget has an end"));
        // Before they are given up on: one that ends right after that is named all the same.
        let seen = if drained { Stragglers::none() } else { self.shared.intake.stragglers() };
        // What ends between the two is counted as ended.
        let pending = if drained { 0 } else { gate.abandon() };
        let ending = if pending == 0 { Ending::Clean } else { Ending::Overdue };
        let took = self.pace.now().saturating_duration_since(since);
        let mut intake = self.intake(ending, took);
        if intake.stragglers.len() < pending {
            intake.stragglers = seen;
        }
        self.shared.tell(&Event::DrainEnded { took, pending, timeout, balance: &intake.balance });
        self.shared.desk().intake = Some(intake);
    }

    fn intake(&self, ending: Ending, took: Duration) -> IntakeReport {
        let intake = &self.shared.intake;
        IntakeReport { ending, took, balance: intake.balance(), stragglers: intake.stragglers() }
    }

    /// Phase by phase, until nobody is left; who comes meanwhile is stopped in turn.
    fn stop_phases(&mut self) {
        self.shared.desk().stage = Stage::Stopping;
        loop {
            let phase = self.shared.desk().begin_phase(self.pace.now());
            let Some((priority, orders)) = phase else {
                // Those that came after their phase.
                self.wait_for(None);
                let mut desk = self.shared.desk();
                let now = self.pace.now();
                if desk.phases_to_come() == 0 && desk.waited_for(None, now).is_none() {
                    desk.stage = Stage::Stopped;
                    return;
                }
                continue;
            };
            self.shared.tell(&Event::PhaseBegun { priority, components: orders.len() });
            for order in orders {
                self.shared.carry_out(order);
            }
            self.wait_for(Some(priority));
            self.shared.tell(&Event::PhaseEnded { priority });
        }
    }

    fn wait_for(&mut self, of: Option<Priority>) {
        loop {
            // Who comes late may be waited for longer than those before him.
            let patience = self.shared.desk().waited_for(of, self.pace.now());
            let Some(patience) = patience else { return };
            let shared = self.shared.clone();
            if self.wait_telling(|| shared.settled(of), patience) {
                return;
            }
        }
    }

    fn end(&mut self) {
        let report = self.shared.look();
        self.shared.tell(&Event::Stopped(&report));
        let stored = self.shared.report.set(report);
        debug_assert!(stored.is_ok(), "it is made once");
        self.shared.moved.ring();
    }

    /// Waits until `until`, and tells every now and then what for. Gives whether it came.
    fn wait_telling<F: Future>(&mut self, what: impl Fn() -> F, until: Instant) -> bool {
        let every = self.shared.settings.progress_every;
        let mut tick = self.pace.now() + every;
        let mut before = None;
        loop {
            let look = self.shared.desk().next_to_ask();
            let next = [Some(tick), look, Some(until)].into_iter().flatten().min().unwrap_or(until);
            if self.pace.wait(what(), Deadline::at(next)).is_some() {
                return true;
            }
            let now = self.pace.now();
            self.shared.take_note();
            if now >= until {
                return false;
            }
            if now < tick {
                continue;
            }
            tick += every;
            let mut progress = self.shared.progress();
            let left = progress.count();
            progress.has_moved = before.replace(left).is_some_and(|before| left < before);
            self.shared.tell(&Event::Progress(&progress));
        }
    }
}
