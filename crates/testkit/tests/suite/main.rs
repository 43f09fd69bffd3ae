//! Facts about the kit itself, and about every crate of ours under it: one module for each.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod dag;
mod ebbtide;
mod explorer;
mod mailbox;
mod offload;
mod planted;
mod quiesce;
mod reactor;
mod replay;
mod shutdown;
mod timeout;
mod unforgiven;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ebbtide_testkit::{Promise, Witness};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// What is accepted has to be answered; what is refused is settled by whoever brought it. One clone for each of them.
#[derive(Clone)]
struct Ticket(Arc<Mutex<Option<Promise>>>);

impl Ticket {
    fn new(witness: &Witness, name: impl Into<Arc<str>>) -> Self {
        Self(Arc::new(Mutex::new(Some(witness.promise(name)))))
    }

    /// Answered, or handed back.
    fn settle(&self) {
        if let Some(promise) = self.0.lock().unwrap().take() {
            promise.keep();
        }
    }

    /// Not to be answered any more.
    fn excuse(&self, why: &str) {
        if let Some(promise) = self.0.lock().unwrap().take() {
            promise.excuse(why);
        }
    }
}
