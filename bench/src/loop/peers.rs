//! The peers, each as one would use it on a single thread.

use std::future::Future;

use tokio::task::LocalSet;

/// A tokio runtime of one thread, with its local set.
pub(super) struct Tokio {
    runtime: tokio::runtime::Runtime,
    local: LocalSet,
}

impl Tokio {
    /// With timers and without I/O: so it is faster.
    pub(super) fn new() -> Self {
        Self::of(tokio::runtime::Builder::new_current_thread().enable_time())
    }

    pub(super) fn with_io() -> Self {
        Self::of(tokio::runtime::Builder::new_current_thread().enable_io())
    }

    fn of(builder: &mut tokio::runtime::Builder) -> Self {
        let runtime = builder.build();
        Self { runtime: runtime.expect("a runtime of one thread"), local: LocalSet::new() }
    }

    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.local.block_on(&self.runtime, future)
    }
}

/// Over epoll: `io_uring` is not to be had everywhere.
pub(super) fn monoio() -> monoio::Runtime<monoio::time::TimeDriver<monoio::LegacyDriver>> {
    monoio::RuntimeBuilder::<monoio::LegacyDriver>::new()
        .enable_timer()
        .build()
        .expect("a runtime of one thread")
}
