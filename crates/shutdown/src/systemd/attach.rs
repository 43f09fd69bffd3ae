//! A coordinator that tells systemd what it tells everybody.

use std::{
    ffi::OsString,
    io,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use ebbtide_lifecycle::{
    Reason, Token, Trigger,
    time::{Deadline, SystemClock},
};

use super::{Notifier, watchdog_interval_from};
use crate::{event::Event, health::Health};

/// What systemd wants to be told, as its variables say.
pub(crate) struct Wishes {
    pub(crate) notifier: Option<Arc<Notifier>>,
    /// How often it wants to know whether the program is alive.
    pub(crate) interval: Option<Duration>,
}

impl Wishes {
    /// And what is wrong with the variables.
    pub(crate) fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let notifier = Notifier::from_vars(&var).unwrap_or_else(|error| {
            warnings.push(error.to_string());
            None
        });
        let interval = watchdog_interval_from(&var).unwrap_or_else(|error| {
            warnings.push(error.to_string());
            None
        });
        (Self { notifier: notifier.map(Arc::new), interval }, warnings)
    }
}

/// Tells of the steps that systemd has words for; the `whole` stop takes up to so long. What cannot be sent is lost:
/// there is nobody else to tell.
pub(crate) fn tell(notifier: &Notifier, event: &Event<'_>, progress_every: Duration, whole: Duration) {
    let sent = match event {
        Event::Ready => notifier.ready(),
        Event::Triggered { .. } => notifier
            .stopping()
            .and_then(|()| notifier.extend_timeout(whole))
            .and_then(|()| notifier.status(&event.to_string())),
        Event::DrainBegun { .. } => notifier.status(&event.to_string()),
        Event::Progress(progress) => {
            // Twice as long as until it is said again, and only while something ends.
            let extended = progress.has_moved.then(|| notifier.extend_timeout(2 * progress_every));
            extended.unwrap_or(Ok(())).and_then(|()| notifier.status(&event.to_string()))
        }
        _ => Ok(()),
    };
    drop(sent);
}

/// No more often than this: a watchdog that wants more is a mistake.
const PING_MIN: Duration = Duration::from_millis(10);

/// Says again and again that the program is alive, for as long as it is, from a thread of its own.
pub(crate) struct Pings {
    end: Trigger,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Pings {
    pub(crate) fn start(notifier: Arc<Notifier>, health: Health, every: Duration) -> io::Result<Self> {
        let (end, every) = (Trigger::new(), every.max(PING_MIN));
        let token = end.token();
        let ping = move || {
            while !has_ended_after(&token, every) {
                if health.live().is_ok() {
                    // What cannot be sent is lost: the next one may get through.
                    let _ = notifier.alive();
                }
            }
        };
        let thread = thread::Builder::new().name("ebbtide-systemd".into()).spawn(ping)?;
        Ok(Self { end, thread: Mutex::new(Some(thread)) })
    }
}

fn has_ended_after(token: &Token, time: Duration) -> bool {
    token.triggered().wait_by(Deadline::after(SystemClock, time)).is_ok()
}

impl Drop for Pings {
    fn drop(&mut self) {
        self.end.fire(Reason::requested("nobody asks any more"));
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It runs nothing foreign but the clock of the health.
            let _ = thread.join();
        }
    }
}
