//! What a coordinator does about a heartbeat that is stalled.

use std::{io, sync::Arc};

use ebbtide_lifecycle::Reason;

use crate::{
    event::Event,
    health::{Stalled, Watchdog},
    shared::Shared,
    verdict::Verdict,
};

/// What is done when a heartbeat is stalled. It is told in any case, and in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnStall {
    /// Nothing more: the program is not live any more, for whoever asks.
    Tell,
    /// Everything is stopped, because that component failed.
    Stop,
    /// The process ends at once, with the report so far and the exit code of [`Verdict::Failed`]: whoever started it
    /// starts it again.
    Exit,
}

/// Watches the heartbeats of the coordinator's health.
pub(crate) fn watch(shared: &Arc<Shared>, policy: OnStall) -> io::Result<Watchdog> {
    // The coordinator keeps its watchdog, and not the other way round.
    let coordinator = Arc::downgrade(shared);
    Watchdog::start(&shared.health, move |stalled| {
        if let Some(shared) = coordinator.upgrade() {
            act(&shared, stalled, policy);
        }
    })
}

fn act(shared: &Arc<Shared>, stalled: &Stalled, policy: OnStall) {
    shared.tell(&Event::Stalled(stalled));
    shared.desk().warnings.push(format!("stalled: {stalled}"));
    let reason = || Reason::failed(stalled.name.clone(), stalled);
    match policy {
        OnStall::Tell => {}
        // Through the coordinator's thread: to fire the trigger wakes foreign code, and something is stuck already.
        OnStall::Stop => shared.ask(reason()),
        OnStall::Exit => {
            let reason = reason();
            shared.end_process(Verdict::Failed, |report| report.reason = reason);
        }
    }
}
