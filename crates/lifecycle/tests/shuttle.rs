//! Models of the gate and of the lifecycle with more threads than loom can go through: shuttle tries schedules at
//! random, and by PCT, which looks for bugs that need few preemptions.
//!
//! Run by `cargo xtask prove --only shuttle`.

#![cfg(shuttle)]

use std::env;

use ebbtide_lifecycle::{Gate, Ledger, Lifecycle, Outcome, State, Step, Terms};
use shuttle::{
    Config, Runner,
    future::block_on,
    scheduler::{PctScheduler, RandomScheduler},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

/// Bugs of such a kind need two preemptions at most in the literature; one more leaves a margin.
const DEPTH: usize = 3;

fn model(threads: fn()) {
    let schedules =
        env::var("SCHEDULES").map_or(2_000, |given| given.parse().expect("a number of schedules"));
    let random = Runner::new(RandomScheduler::new(schedules), Config::new()).run(threads);
    println!("{random} random schedules");
    let pct = Runner::new(PctScheduler::new(DEPTH, schedules), Config::new()).run(threads);
    println!("{pct} PCT schedules");
}

/// A component with a thread of its own, started and stopped as `EventLoop` is.
struct Component {
    life: Lifecycle,
    gate: Gate,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The last that the thread does.
    ended: AtomicBool,
    served: AtomicU64,
}

impl Component {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            life: Lifecycle::new(),
            gate: Gate::with(Terms { closed: true, ledger: Some(Ledger::new()), ..Terms::default() }),
            thread: Mutex::new(None),
            ended: AtomicBool::new(false),
            served: AtomicU64::new(0),
        })
    }

    /// Whether it ran.
    fn start(self: &Arc<Self>) -> bool {
        if self.life.step(Step::Start).is_err() {
            return false;
        }
        {
            // Held until the thread is there to be joined.
            let mut thread = self.thread.lock().unwrap();
            let component = self.clone();
            *thread = Some(thread::spawn(move || component.run()));
        }
        block_on(self.life.reached(State::Running)) == State::Running
    }

    fn run(&self) {
        if self.gate.open() && self.life.step(Step::Ready).is_ok() {
            block_on(self.life.reached(State::Stopping));
        } else {
            // The stop that came first may have sealed the gate and not have said so yet.
            let _ = self.life.step(Step::Stop);
        }
        block_on(self.gate.drained());
        assert!(self.life.step(Step::End).is_ok());
        self.ended.store(true, Ordering::SeqCst);
    }

    fn serve(&self) -> bool {
        let Ok(permit) = self.gate.enter() else { return false };
        self.served.fetch_add(1, Ordering::SeqCst);
        permit.settle(Outcome::Completed);
        true
    }

    fn stop(&self) {
        self.gate.seal();
        // Whoever comes first takes the step.
        let _ = self.life.step(Step::Stop);
        block_on(self.life.reached(State::Stopped));
        // Held while joining: whoever else waits returns when the thread has ended, and not before.
        if let Some(thread) = self.thread.lock().unwrap().take() {
            thread.join().unwrap();
        }
        assert!(!self.serve(), "nothing is accepted after a stop");
    }
}

fn spawned<T: Send + 'static>(
    component: &Arc<Component>,
    act: impl FnOnce(&Arc<Component>) -> T + Send + 'static,
) -> JoinHandle<T> {
    let component = component.clone();
    thread::spawn(move || act(&component))
}

#[test]
fn every_one_of_four_stoppers_waits() {
    model(|| {
        let component = Component::new();
        assert!(component.start());
        let server = spawned(&component, |component| component.serve());
        let stoppers = [0; 4].map(|_| {
            spawned(&component, |component| {
                component.stop();
                assert!(
                    component.ended.load(Ordering::SeqCst),
                    "a stop returned before the thread had ended"
                );
            })
        });
        for stopper in stoppers {
            stopper.join().unwrap();
        }
        let served = server.join().unwrap();
        assert_eq!(component.served.load(Ordering::SeqCst), u64::from(served));
        let balance = component.gate.balance().unwrap();
        assert!(balance.is_balanced() && balance.in_flight == 0, "{balance}");
    });
}

#[test]
fn a_stop_during_the_start_leaves_nothing_running() {
    model(|| {
        let component = Component::new();
        let starter = spawned(&component, Component::start);
        let server = spawned(&component, |component| component.serve());
        let stoppers = [0; 2].map(|_| spawned(&component, |component| component.stop()));
        for stopper in stoppers {
            stopper.join().unwrap();
        }
        let (started, served) = (starter.join().unwrap(), server.join().unwrap());
        assert_eq!(component.life.state(), State::Stopped);
        assert!(component.thread.lock().unwrap().is_none(), "a stop missed the thread");
        assert!(component.ended.load(Ordering::SeqCst) || !started, "what was started has ended");
        assert_eq!(component.served.load(Ordering::SeqCst), u64::from(served));
    });
}

#[test]
fn a_closed_gate_counts_nobody_in() {
    model(|| {
        let gate = Gate::with(Terms { ledger: Some(Ledger::new()), ..Terms::default() });
        let inside = Arc::new(AtomicU64::new(0));
        let entrants = [0; 3].map(|_| {
            let (gate, inside) = (gate.clone(), inside.clone());
            thread::spawn(move || {
                let Ok(permit) = gate.enter_owned() else { return 0 };
                inside.fetch_add(1, Ordering::SeqCst);
                inside.fetch_sub(1, Ordering::SeqCst);
                permit.settle(Outcome::Completed);
                1
            })
        });
        let closers = [0; 2].map(|_| {
            let (gate, inside) = (gate.clone(), inside.clone());
            thread::spawn(move || {
                gate.close();
                block_on(gate.drained());
                assert_eq!(inside.load(Ordering::SeqCst), 0, "somebody is in a drained gate");
                gate.balance().unwrap()
            })
        });
        let balances = closers.map(|closer| closer.join().unwrap());
        let entered: u64 = entrants.map(|entrant| entrant.join().unwrap()).iter().sum();
        for balance in balances {
            assert!(balance.is_balanced(), "{balance}");
            assert_eq!((balance.accepted, balance.completed), (entered, entered));
        }
    });
}

#[test]
fn waiters_of_all_kinds_are_woken() {
    model(|| {
        let (gate, life) = (Gate::new(), Arc::new(Lifecycle::new()));
        let permits = [0; 2].map(|_| gate.enter_owned().unwrap());
        let idle = [0; 2].map(|_| {
            let gate = gate.clone();
            thread::spawn(move || block_on(gate.idle()))
        });
        let drained = thread::spawn({
            let gate = gate.clone();
            move || block_on(gate.drained())
        });
        let reached = thread::spawn({
            let life = life.clone();
            move || block_on(life.reached(State::Stopped))
        });
        let leavers = permits.map(|permit| thread::spawn(move || drop(permit)));
        gate.close();
        life.step(Step::Stop).unwrap();
        for thread in leavers.into_iter().chain(idle).chain([drained]) {
            thread.join().unwrap();
        }
        assert_eq!(reached.join().unwrap(), State::Stopped);
    });
}
