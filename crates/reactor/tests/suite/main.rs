//! The facts that the reactor promises, one module for each part.

#![cfg(not(any(loom, shuttle)))]
#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod afterlife;
mod component;
#[cfg(feature = "testing")]
mod direction;
mod fairness;
mod foreign;
mod interop;
mod io;
mod nested;
mod panics;
mod post;
mod quiesce;
mod rounds;
mod short;
mod spawn;
mod stop;
mod storm;
mod timers;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
};

use ebbtide_reactor::{EventLoop, Handle};

/// A loop that runs, and prints nothing.
fn running() -> EventLoop {
    let events = EventLoop::builder().name("test").panic_hook(|_| {}).event_loop();
    events.start().unwrap();
    events
}

/// What was done, in order, by whoever has a clone.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u32>>>);

impl Log {
    fn note(&self, what: u32) {
        self.0.lock().unwrap().push(what);
    }

    fn read(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }
}

/// Keeps a loop busy from when this returns until the sender is used or dropped.
fn occupy(handle: &Handle) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (occupied, is_occupied) = mpsc::channel();
    handle
        .post(move || {
            occupied.send(()).unwrap();
            let _ = released.recv();
        })
        .unwrap();
    is_occupied.recv().unwrap();
    release
}

/// Runs `act` on a thread of its own, and gives what it gives.
fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// One more.
fn count(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::SeqCst);
}
