//! Standard error, which may be a pipe that nobody reads.

use std::{
    io::{self, Write as _},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ebbtide_lifecycle::time::{Deadline, SystemClock, Tempo};

use crate::errand::Errand;

/// How long a text may take to be written.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether something could not be written in time. Nothing more is tried then: it would only wait behind that.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// Writes `text` and a new line, unless that takes too long, or fails.
pub(crate) fn print(text: String) {
    if IS_STUCK.load(Ordering::Relaxed) {
        return;
    }
    let write = move |_: &mut _| {
        // There is nowhere else to say that it cannot be said.
        let _ = writeln!(io::stderr(), "{text}");
    };
    let (errand, begun) = Errand::begin("ebbtide-print", &Tempo::Real, write);
    let patience = Deadline::after(SystemClock, PATIENCE);
    if begun.is_ok() && errand.ended().wait_by(patience).is_err() {
        IS_STUCK.store(true, Ordering::Relaxed);
    }
}
