//! Tasks: a future on a loop, and the handle that joins it.
//!
//! ```text
//!   spawn ─► scheduled ─► polled ─► parked        state of the task's word:
//!               ▲            │         │            SCHEDULED  in the run queue or an inbox
//!               └── wake ────┼─────────┘            DONE       the future is gone
//!                            ▼                      CANCEL     to be dropped instead of polled
//!                          done ─► joined           JOINED     a handle exists
//!                                                   WAITING    the handle has left a waker
//! ```

mod cell;
mod depot;
mod header;
mod roll;
mod waker;

use std::{
    any::Any,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use ebbtide_lifecycle::Panicked;

pub(crate) use self::{
    cell::{Name, new, take_back},
    depot::Depot,
    header::TaskRef,
    roll::Roll,
};

/// A handle that joins a task: await it for what the task gives.
///
/// Dropping it lets the task go on by itself. What it gives it gives once: awaited again, it says that the task
/// was cancelled. It can be awaited on any executor, on any thread if the output may go there.
#[must_use = "dropping a `Task` detaches it; call `detach` to say so"]
pub struct Task<T> {
    task: TaskRef,
    /// The output, or the reason why there is none, has been given.
    joined: bool,
    output: PhantomData<T>,
}

// SAFETY: what a handle reaches of its task is its word, the slot of its own waker, and the output: the word is
// atomic, the slot is handed over through the word, and the output may go where the handle goes. The future
// stays with the loop.
unsafe impl<T: Send> Send for Task<T> {}
// SAFETY: a shared handle does nothing but look at the word.
unsafe impl<T: Send> Sync for Task<T> {}

impl<T> Task<T> {
    pub(crate) fn new(task: TaskRef) -> Self {
        Self { task, joined: false, output: PhantomData }
    }

    /// Lets the task go on by itself. If it panics, the runtime's panic hook is told.
    pub fn detach(self) {}

    /// Asks for the task to be dropped instead of polled, on its own thread; then awaiting this handle gives
    /// [`JoinError::Cancelled`], or the output if it was there already.
    pub fn cancel(&self) {
        self.task.cancel();
    }

    /// Whether the task has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.is_done()
    }
}

impl<T> Unpin for Task<T> {}

impl<T> Future for Task<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `T` is the output of this task's future: `Task::new` is called by the spawn that knows both.
        let output = unsafe { self.task.poll_join(cx) };
        self.joined |= output.is_ready();
        output
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if self.joined { self.task.release() } else { self.task.detach() }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("finished", &self.is_finished()).finish_non_exhaustive()
    }
}

/// Why a task gave no output.
pub enum JoinError {
    /// It was cancelled, or its loop stopped before it ended.
    Cancelled,
    /// It panicked, with this.
    Panicked(Panicked),
}

impl JoinError {
    /// Whether it was cancelled.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }

    /// Whether it panicked.
    #[must_use]
    pub const fn is_panic(&self) -> bool {
        matches!(self, Self::Panicked(_))
    }

    /// What it panicked with, for [`std::panic::resume_unwind`].
    ///
    /// # Errors
    /// Gives the error back if it was cancelled.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        match self {
            Self::Panicked(panic) => Ok(panic.into_payload()),
            Self::Cancelled => Err(self),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("Cancelled"),
            Self::Panicked(panic) => panic.fmt(f),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the task was cancelled before it ended"),
            Self::Panicked(panic) => write!(f, "the task panicked: {}", panic.message()),
        }
    }
}

impl std::error::Error for JoinError {}
