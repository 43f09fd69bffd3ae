//! Signals of the system, on Unix: a handler counts, and writes to a pipe that a thread reads.

use std::{io::Read as _, os::unix::net::UnixStream, sync::Arc, thread};

use signal_hook::low_level::pipe;

use super::{
    SignalError,
    handler::{Count, Registered, count},
};
use crate::shared::Shared;

pub(super) fn listen(signals: &[i32], shared: Arc<Shared>) -> Result<(), SignalError> {
    let failed = |signal| move |error| SignalError { signal, error };
    let (mut read, write) = UnixStream::pair().map_err(failed(None))?;
    let counted = Arc::new(Count::default());
    let theirs = counted.clone();
    let run = move || {
        let mut told = 0;
        // The other end is in the handlers, which are there for good.
        while read.read_exact(&mut [0]).is_ok() {
            let came = counted.came();
            if came > told {
                told = came;
                shared.signalled(counted.first(), came);
            }
        }
    };
    // The thread first: from the first handler on, there is somebody to read.
    thread::Builder::new().name("ebbtide-signals".into()).spawn(run).map_err(failed(None))?;
    let mut registered = Registered::default();
    for &signal in signals {
        // They are run in this order: whoever is woken sees the count.
        registered.add(count(signal, &theirs, || {}).map_err(failed(Some(signal)))?);
        let write = write.try_clone().map_err(failed(Some(signal)))?;
        registered.add(pipe::register(signal, write).map_err(failed(Some(signal)))?);
    }
    registered.keep();
    Ok(())
}
