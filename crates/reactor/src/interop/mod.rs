//! What other crates need in order to run on a loop.
//!
//! | of | here | feature |
//! |---|---|---|
//! | `futures` | [`Handle`], [`Local`] and [`Runtime`] are `Spawn` or `LocalSpawn`; streams are `AsyncRead` | |
//! | hyper | [`HyperIo`], and `Handle` and `Local` as executors and timers | `hyper` |
//! | tokio's I/O traits | [`TokioIo`], [`FuturesIo`] | `tokio-io` |
//!
//! Crates that need tokio's *runtime* (they call `tokio::spawn`, `tokio::time` or `tokio::net`: reqwest,
//! tonic's transport, sqlx with its tokio feature) do not run here. Run them on a tokio runtime beside the
//! loop, on a thread of its own, and await what they give: a tokio `JoinHandle` or oneshot receiver can be
//! awaited on any executor, so on this one too.
//!
//! [`Handle`]: crate::Handle
//! [`Local`]: crate::Local
//! [`Runtime`]: crate::Runtime

mod futures;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "tokio-io")]
mod tokio;

#[cfg(feature = "hyper")]
pub use self::hyper::HyperIo;
#[cfg(feature = "tokio-io")]
pub use self::tokio::{FuturesIo, TokioIo};
