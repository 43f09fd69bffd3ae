//! Whether the runs of a plan may leave their thread.
//!
//! What a plan does is kept with its types forgotten. What may be sent to other threads is known only to the
//! functions of [`Graph`](crate::Graph) that add nodes, by their bounds: so it is written down here, as a type.

use std::future::Future;

use ebbtide_timeout::{LocalRunner, SendRunner};

use crate::class::Place;

/// Says where the runs of a plan may go: [`Threads`] or [`Local`].
pub trait Reach: sealed::Sealed + 'static {
    /// A node that goes on after its deadline.
    type Runner: Future<Output = ()> + Unpin + 'static;

    /// A runner that keeps its place in a class until it ends.
    #[doc(hidden)]
    fn keep_place(runner: Self::Runner, place: Kept) -> Self::Runner;
}

/// What a late runner keeps.
#[derive(Debug)]
#[doc(hidden)]
pub struct Kept(#[expect(dead_code, reason = "kept until it is dropped")] pub(crate) Place);

/// Runs may be polled on any thread. All nodes, their futures and their outputs can be sent there.
#[derive(Clone, Copy, Debug)]
pub enum Threads {}

/// Runs stay on the thread that they began on.
#[derive(Clone, Copy, Debug)]
pub enum Local {}

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::Threads {}
    impl Sealed for super::Local {}
}

impl Reach for Threads {
    type Runner = SendRunner;

    fn keep_place(runner: SendRunner, place: Kept) -> SendRunner {
        Box::pin(async move {
            let _place = place;
            runner.await;
        })
    }
}

impl Reach for Local {
    type Runner = LocalRunner;

    fn keep_place(runner: LocalRunner, place: Kept) -> LocalRunner {
        Box::pin(async move {
            let _place = place;
            runner.await;
        })
    }
}
