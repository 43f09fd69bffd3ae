//! Stops, in as many rounds as there is time for.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use ebbtide_lifecycle::State;
use ebbtide_reactor::EventLoop;

use crate::running;

/// A few; `cargo xtask prove` asks for more.
fn rounds() -> u32 {
    env::var("ROUNDS").map_or(200, |given| given.parse().unwrap())
}

#[test]
fn e3_every_one_of_four_stops_waits_for_the_last_callback() {
    for _ in 0..rounds() {
        let events = running();
        let ran = AtomicBool::new(false);
        let ran = Arc::new(ran);
        let last = ran.clone();
        events.post(move || last.store(true, Ordering::SeqCst)).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    events.stop();
                    assert!(
                        ran.load(Ordering::SeqCst),
                        "a stop returned before all that was accepted had run"
                    );
                    assert_eq!(events.state(), State::Stopped);
                });
            }
        });
    }
    println!("{} rounds", rounds());
}

#[test]
fn e4_a_loop_that_a_callback_stops_ends_and_never_waits_for_itself() {
    for _ in 0..rounds() {
        let events = Arc::new(running());
        let (stopped, inner) = (Arc::new(AtomicBool::new(false)), events.clone());
        let (told, outer) = (stopped.clone(), events.clone());
        events
            .post(move || {
                inner.stop();
                told.store(true, Ordering::SeqCst);
                // The last owner may be the callback itself.
                drop(inner);
            })
            .unwrap();
        drop(events);
        outer.stop();
        assert!(stopped.load(Ordering::SeqCst));
    }
    println!("{} rounds", rounds());
}

#[test]
fn l1_a_stop_at_any_moment_of_the_start_ends_both() {
    for round in 0..rounds() {
        let events = EventLoop::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = events.start();
            });
            for _ in 0..round % 64 {
                std::hint::spin_loop();
            }
            scope.spawn(|| events.stop());
        });
        assert_eq!(events.state(), State::Stopped);
        assert_eq!(events.balance().accepted, 0);
    }
    println!("{} rounds", rounds());
}
