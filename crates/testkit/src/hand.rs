//! Who stops a program: on its own loop, before the step or at the time that was decided.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use ebbtide::{
    App,
    lifecycle::Reason,
    shutdown::{Coordinator, Feed},
    sleep, spawn_named,
};

use crate::{
    case::Case,
    decisions::{By, Stop},
};

const SIGTERM: i32 = 15;

pub(crate) struct Hand {
    case: Arc<Case>,
    feed: Feed,
    /// There once main is called.
    coordinator: OnceLock<Coordinator>,
    /// A call was to stop it before there was anybody to call.
    is_called: AtomicBool,
    /// Before which step a second signal is sent; 0 if none is.
    second: AtomicU64,
    /// Those who send one.
    senders: Mutex<Vec<JoinHandle<()>>>,
}

impl Hand {
    pub(crate) fn new(case: &Arc<Case>, feed: &Feed) -> Arc<Self> {
        Arc::new(Self {
            case: case.clone(),
            feed: feed.clone(),
            coordinator: OnceLock::new(),
            is_called: AtomicBool::new(false),
            second: AtomicU64::new(0),
            senders: Mutex::default(),
        })
    }

    /// Before each step, on the loop.
    pub(crate) fn step(&self) {
        if let Some(by) = self.case.step() {
            self.stop(by);
        }
        let (now, second) = (self.case.steps.load(Ordering::Relaxed), self.second.load(Ordering::Relaxed));
        if second != 0 && now >= second {
            self.second.store(0, Ordering::Relaxed);
            self.send_another();
        }
    }

    /// On the loop, before main is polled for the first time.
    pub(crate) fn meet(self: &Arc<Self>, app: &App, lifetime: std::time::Duration) {
        let known = self.coordinator.set(app.coordinator().clone());
        debug_assert!(known.is_ok(), "main is called once");
        if self.is_called.load(Ordering::Relaxed) {
            self.call();
        }
        let (after, by) = match self.case.decisions.stop {
            Stop::After(after, by) => (after, Some(by)),
            Stop::None | Stop::AtStep(..) => (lifetime, None),
        };
        let (hand, token) = (self.clone(), app.token());
        let wait = async move {
            if token.wrap(sleep(after)).await.is_ok() {
                match by {
                    Some(by) => hand.stop(by),
                    None => {
                        hand.case.outlives(after);
                        hand.feed.send(SIGTERM);
                    }
                }
            }
        };
        // Refused only by a loop that has ended.
        drop(spawn_named("testkit: stop", wait));
    }

    fn stop(&self, by: By) {
        self.case.is_stopped();
        match by {
            By::Call => self.call(),
            By::Signal => self.feed.send(SIGTERM),
            By::TwoSignals { apart } => {
                self.feed.send(SIGTERM);
                self.second.store(self.case.steps.load(Ordering::Relaxed) + apart, Ordering::Relaxed);
            }
        }
    }

    fn call(&self) {
        match self.coordinator.get() {
            None => self.is_called.store(true, Ordering::Relaxed),
            Some(coordinator) => {
                coordinator.trigger(Reason::requested("the test kit"));
            }
        }
    }

    /// Not on the loop: whoever sends it waits for the report so far, for which the loop is asked.
    fn send_another(&self) {
        let (feed, hold) = (self.feed.clone(), self.case.clock.hold());
        let sender = thread::Builder::new().name("testkit-signal".into()).spawn(move || {
            feed.send(SIGTERM);
            drop(hold);
        });
        self.senders.lock().unwrap_or_else(PoisonError::into_inner).extend(sender);
    }

    /// How many requests have ended that the drain had given up on.
    pub(crate) fn returned(&self) -> u64 {
        self.coordinator.get().map_or(0, |coordinator| coordinator.intake().balance().returned_after)
    }

    /// Waits for those who send.
    pub(crate) fn rest(&self) {
        let senders = std::mem::take(&mut *self.senders.lock().unwrap_or_else(PoisonError::into_inner));
        for sender in senders {
            // There is nothing in it to panic.
            let _ = sender.join();
        }
    }
}
