//! Facts about the pool. Those with a number are contracts, listed in `ARCHITECTURE.md`.

#![cfg(not(any(loom, shuttle)))]
#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod accounts;
mod batch;
mod bounds;
mod closing;
mod component;
mod deadline;
mod dropping;
mod elastic;
#[cfg(feature = "testing")]
mod faults;
mod jobs;
mod nested;
mod panics;
mod starting;

use std::sync::mpsc::{self, Receiver, Sender};

use ebbtide_lifecycle::Component;
use ebbtide_offload::{Offload, Pool};

/// A pool with so many threads for CPU work.
fn pool(threads: usize) -> Pool {
    Pool::builder().cpu_threads(threads).start().unwrap()
}

/// Keeps a thread of the CPU lane busy until it is dropped. It has begun when this returns.
struct Busy {
    release: Option<Sender<()>>,
    job: Option<Offload<()>>,
}

fn busy(pool: &Pool) -> Busy {
    let (release, held) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let job = pool.cpu().named("busy").offload(move || {
        begun.send(()).unwrap();
        let _ = held.recv();
    });
    begins.recv().unwrap();
    Busy { release: Some(release), job: Some(job) }
}

impl Drop for Busy {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(job) = self.job.take() {
            job.wait().unwrap();
        }
    }
}

/// Sends when it is dropped.
struct Canary(Sender<()>);

impl Canary {
    fn new() -> (Self, Receiver<()>) {
        let (sender, receiver) = mpsc::channel();
        (Self(sender), receiver)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("boom");
        }
    }
}

/// Waits for the end of all work, and checks the sums.
#[track_caller]
fn settled(pool: &Pool) -> ebbtide_lifecycle::Balance {
    pool.wait_idle().wait();
    let balance = pool.balance();
    balance.check().unwrap();
    balance
}
