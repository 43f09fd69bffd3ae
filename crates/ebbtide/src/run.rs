//! The two ways into a program.

use std::future::Future;

use ebbtide_reactor::Runtime;

#[cfg(feature = "shutdown")]
use crate::{Error, Exit, handle::App};

/// Runs `future` on this thread, with a loop of its own beside it, and gives what it gave. What it panics with goes
/// on to the caller.
///
/// Tasks that it has spawned and not awaited are dropped at the end: [`run()`] waits for them.
///
/// ```
/// use std::time::Duration;
/// use ebbtide::{block_on, sleep, spawn};
///
/// let answer = block_on(async {
///     let task = spawn(async { sleep(Duration::from_millis(1)).await; 42 }).expect("a loop runs here");
///     task.await
/// });
/// assert_eq!(answer.unwrap(), 42);
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    Runtime::new().block_on(future)
}

/// Runs a program, as it is by default: see [`Builder`](crate::app::Builder) for the choices there are, and
/// [`Builder::run`](crate::app::Builder::run) for what is run where, and how it stops.
///
/// ```
/// use ebbtide::Exit;
///
/// fn main() -> Exit {
///     ebbtide::run(async |app| {
///         println!("this is {}", app.name());
///         Ok(())
///     })
/// }
/// ```
#[cfg(feature = "shutdown")]
#[track_caller]
pub fn run<M, F>(main: M) -> Exit
where
    M: FnOnce(App) -> F + Send + 'static,
    F: Future<Output = Result<(), Error>> + 'static,
{
    App::builder().run(main)
}
