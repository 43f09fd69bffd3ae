//! Each crate as a module, without what it shows of another.
//!
//! A glob brings all that a crate has, also what it will have. A private import of the same name takes the glob's
//! place, and so hides what has its path elsewhere.

/// Graphs of async and CPU steps that answer requests: all of `ebbtide-dag`.
#[cfg(feature = "dag")]
pub mod dag {
    #[doc(inline)]
    pub use ebbtide_dag::*;
}

/// Mailboxes that lose no message, and workers that stop by contract: all of `ebbtide-mailbox`.
///
/// What it shows of others is there: [`lifecycle`](crate::lifecycle).
///
/// ```compile_fail,E0603
/// use ebbtide::mailbox::lifecycle;
/// ```
#[cfg(feature = "mailbox")]
pub mod mailbox {
    #[expect(hidden_glob_reexports, unused_imports, reason = "hides it")]
    use ebbtide_lifecycle as lifecycle;
    #[doc(inline)]
    pub use ebbtide_mailbox::*;
}

/// A pool for what keeps a CPU busy and for what blocks: all of `ebbtide-offload`.
///
/// What it shows of others is there: [`Component`](crate::lifecycle::Component),
/// [`Refused`](crate::lifecycle::Refused), [`Deadline`](crate::lifecycle::time::Deadline),
/// [`Timer`](crate::lifecycle::time::Timer), [`Elapsed`](crate::lifecycle::wait::Elapsed).
///
/// ```compile_fail,E0603
/// use ebbtide::offload::Deadline;
/// ```
#[cfg(feature = "offload")]
pub mod offload {
    #[expect(hidden_glob_reexports, unused_imports, reason = "hides them")]
    use ebbtide_lifecycle::{
        self as lifecycle, Component, Refusal, Refused,
        time::{Deadline, Timer},
        wait::Elapsed,
    };
    #[doc(inline)]
    pub use ebbtide_offload::*;
}

/// A single-threaded executor with timers and I/O that stops by contract: all of `ebbtide-reactor`.
///
/// But what is at the root: [`spawn`](crate::spawn()), [`spawn_named`](crate::spawn_named()),
/// [`sleep`](crate::sleep()), [`sleep_until`](crate::sleep_until()) and [`yield_now`](crate::yield_now()).
///
/// ```compile_fail,E0603
/// use ebbtide::reactor::spawn;
/// ```
#[cfg(feature = "reactor")]
pub mod reactor {
    #[expect(hidden_glob_reexports, unused_imports, reason = "hides it")]
    use ebbtide_lifecycle as lifecycle;
    #[doc(inline)]
    pub use ebbtide_reactor::*;
    #[expect(hidden_glob_reexports, unused_imports, reason = "hides them")]
    use ebbtide_reactor::{sleep, sleep_until, spawn, spawn_named, yield_now};
}

/// One reconnecting, pipelined link to Redis: all of `ebbtide-redis`.
///
/// What it shows of others is there: [`lifecycle`](crate::lifecycle).
#[cfg(feature = "redis")]
pub mod redis {
    #[expect(hidden_glob_reexports, unused_imports, reason = "hides it")]
    use ebbtide_lifecycle as lifecycle;
    #[doc(inline)]
    pub use ebbtide_redis::*;
}

/// A coordinator that stops a program in order, within one deadline, and says who is stuck: all of
/// `ebbtide-shutdown`.
///
/// What it shows of others is in [`lifecycle`](crate::lifecycle): `Component`, `Reason`, `Runnable`, `Token`,
/// `Trigger`.
///
/// ```compile_fail,E0603
/// use ebbtide::shutdown::Reason;
/// ```
#[cfg(feature = "shutdown")]
pub mod shutdown {
    #[expect(hidden_glob_reexports, unused_imports, reason = "hides them")]
    use ebbtide_lifecycle::{
        self as lifecycle, Component, Reason, RunError, Runnable, Stopped, Stopping, Token, Trigger,
    };
    #[doc(inline)]
    pub use ebbtide_shutdown::*;
}

/// First wins: races and timeouts: all of `ebbtide-timeout`.
///
/// What it shows of others is there: [`Clock`](crate::lifecycle::time::Clock),
/// [`Deadline`](crate::lifecycle::time::Deadline), [`Timer`](crate::lifecycle::time::Timer),
/// [`Elapsed`](crate::lifecycle::wait::Elapsed).
///
/// ```compile_fail,E0603
/// use ebbtide::timeout::Deadline;
/// ```
#[cfg(feature = "timeout")]
pub mod timeout {
    #[expect(hidden_glob_reexports, unused_imports, reason = "hides them")]
    use ebbtide_lifecycle::{
        self as lifecycle,
        time::{Clock, Deadline, Timer},
        wait::Elapsed,
    };
    #[doc(inline)]
    pub use ebbtide_timeout::*;
}
