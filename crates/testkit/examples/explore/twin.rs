//! Broken twins of the explored world: an exploration that does not find what is wrong with them proves nothing.

use std::{sync::mpsc, thread, time::Duration};

use ebbtide_testkit::{Failing, Mark};

/// What is wrong with a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twin {
    /// A request that ends while the program stops is not answered.
    LostRequest,
    /// A message is taken for handled by a handler that has not handled it.
    LostMessage,
    /// A thread of which nobody knows gets on after the end.
    LateJob,
    /// A job that nobody awaits keeps what it holds for good.
    Leak,
}

/// What each is called, and what an exploration has to say of it.
const TWINS: &[(&str, Twin, &str)] = &[
    ("lost-request", Twin::LostRequest, "accepted and never answered"),
    ("lost-message", Twin::LostMessage, "messages were sent, and are nowhere"),
    ("late-job", Twin::LateJob, "it ran after the end"),
    ("leak", Twin::Leak, "alive after the end"),
];

impl Twin {
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = TWINS.iter().find(|(known, ..)| *known == name);
        let names: Vec<_> = TWINS.iter().map(|(name, ..)| *name).collect();
        let missing = || format!("there is no twin {name:?}; there are: {}", names.join(", "));
        found.map(|(_, twin, _)| *twin).ok_or_else(missing)
    }

    pub(crate) fn name(self) -> &'static str {
        self.entry().0
    }

    /// Whether this is what is wrong with it, and not something else.
    pub(crate) fn is_told_by(self, failing: &Failing) -> bool {
        let (.., says) = self.entry();
        failing.findings.iter().any(|finding| finding.contains(says))
    }

    fn entry(self) -> &'static (&'static str, Self, &'static str) {
        TWINS.iter().find(|(_, twin, _)| *twin == self).expect("each twin is listed")
    }
}

/// Within the time for which an exploration looks at what is over, and after the end of any program that ends at once.
const LATE: Duration = Duration::from_millis(20);

/// Has `mark` told a moment later.
pub(crate) fn run_late(mark: Mark) {
    let (hold, held) = mpsc::channel::<()>();
    thread::spawn(move || {
        // Nobody sends.
        let _ = held.recv_timeout(LATE);
        drop(hold);
        mark.ran();
    });
}
