//! Signals of the system where there are no pipes for them: a handler counts, and unparks a thread. On Windows handlers
//! run on threads of their own.

use std::{sync::Arc, thread};

use super::{
    SignalError,
    handler::{Count, Registered, count},
};
use crate::shared::Shared;

pub(super) fn listen(signals: &[i32], shared: Arc<Shared>) -> Result<(), SignalError> {
    let failed = |signal| move |error| SignalError { signal, error };
    let counted = Arc::new(Count::default());
    let theirs = counted.clone();
    let run = move || {
        let mut told = 0;
        loop {
            let came = counted.came();
            if came == told {
                thread::park();
                continue;
            }
            told = came;
            shared.signalled(counted.first(), came);
        }
    };
    let spawned = thread::Builder::new().name("ebbtide-signals".into()).spawn(run).map_err(failed(None))?;
    let mut registered = Registered::default();
    for &signal in signals {
        let thread = spawned.thread().clone();
        registered.add(count(signal, &theirs, move || thread.unpark()).map_err(failed(Some(signal)))?);
    }
    registered.keep();
    Ok(())
}
