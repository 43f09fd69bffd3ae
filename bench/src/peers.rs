//! The peers, each as one would use it on a single thread.

use std::future::Future;

use tokio::task::LocalSet;

/// A tokio runtime of one thread, with its local set.
pub(crate) struct Tokio {
    runtime: tokio::runtime::Runtime,
    local: LocalSet,
}

impl Tokio {
    /// With timers and without I/O: so it is faster.
    pub(crate) fn new() -> Self {
        Self::of(tokio::runtime::Builder::new_current_thread().enable_time())
    }

    pub(crate) fn with_io() -> Self {
        Self::of(tokio::runtime::Builder::new_current_thread().enable_io())
    }

    pub(crate) fn of(builder: &mut tokio::runtime::Builder) -> Self {
        let runtime = builder.build();
        Self { runtime: runtime.expect("a runtime of one thread"), local: LocalSet::new() }
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.local.block_on(&self.runtime, future)
    }
}

/// Over epoll: `io_uring` is not to be had everywhere.
pub(crate) fn monoio() -> monoio::Runtime<monoio::time::TimeDriver<monoio::LegacyDriver>> {
    monoio::RuntimeBuilder::<monoio::LegacyDriver>::new()
        .enable_timer()
        .build()
        .expect("a runtime of one thread")
}
