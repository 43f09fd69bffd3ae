//! A command that runs as an app: on a loop, with a pool, and with a coordinator that stops it in order.

use std::{
    future::Future,
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ebbtide::{
    App, Exit,
    app::Builder,
    shutdown::{Event, Verdict},
};

use crate::{args, fault::Fault};

/// The app that commands run in.
pub(crate) fn builder(terms: &args::Terms) -> Builder {
    let threads = terms.cpu_threads;
    App::builder().name("ebbtide").pool(move |pool| match threads {
        Some(threads) => pool.cpu_threads(threads.into()),
        None => pool,
    })
}

/// The same, for a command that runs until it is told to stop: says on standard error why it stops, what it waits for,
/// and what a person should look at. The report is said at the end, if it is not clean.
pub(crate) fn lasting(terms: &args::Terms) -> Builder {
    builder(terms).observer(|event| {
        let is_told = event.is_warning() && !matches!(event, Event::Stopped(_));
        if is_told || matches!(event, Event::Triggered { .. } | Event::Progress(_)) {
            // If nobody reads it, there is nobody to tell.
            let _ = writeln!(io::stderr(), "{event}");
        }
    })
}

/// How long a command that has its result waits for what is late.
const LATE: Duration = Duration::from_secs(1);

/// The same, for a command that gives one result: nothing is said of its stop.
pub(crate) fn brief(terms: &args::Terms) -> Builder {
    builder(terms).drain_timeout(LATE).observer(|_| ())
}

/// Runs `main` inside an app, and gives what it gave when everything has stopped. A fault of its own is no failure of
/// the app's: that ends in good order, and the fault is given.
pub(crate) fn run<M, F, T>(builder: Builder, main: M) -> Result<T, Fault>
where
    M: FnOnce(App) -> F + Send + 'static,
    F: Future<Output = Result<T, Fault>> + 'static,
    T: Send + 'static,
{
    match ended(builder, main) {
        (Some(Err(fault)), _) => Err(fault),
        (Some(Ok(value)), exit) if exit.is_clean() => Ok(value),
        (_, exit) => Err(Fault::new(exit.code(), exit.to_string())),
    }
}

/// The same, for a [`brief`] command. What it gave is given also if nodes that were late had to be abandoned: it
/// is what was asked for, and says itself what became of them.
pub(crate) fn run_brief<M, F, T>(builder: Builder, main: M) -> Result<T, Fault>
where
    M: FnOnce(App) -> F + Send + 'static,
    F: Future<Output = Result<T, Fault>> + 'static,
    T: Send + 'static,
{
    match ended(builder, main) {
        (Some(Err(fault)), _) => Err(fault),
        (Some(Ok(value)), exit) if [0, Verdict::Abandoned.exit_code()].contains(&exit.code()) => Ok(value),
        (_, exit) => Err(Fault::new(exit.code(), exit.to_string())),
    }
}

/// What `main` gave, if it came to its end, and how the app ended.
fn ended<M, F, T>(builder: Builder, main: M) -> (Option<Result<T, Fault>>, Exit)
where
    M: FnOnce(App) -> F + Send + 'static,
    F: Future<Output = Result<T, Fault>> + 'static,
    T: Send + 'static,
{
    let place = Arc::new(Mutex::new(None));
    let result = place.clone();
    let exit = builder.run(move |app| async move {
        let ended = main(app).await;
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        Ok(())
    });
    let ended = place.lock().unwrap_or_else(PoisonError::into_inner).take();
    (ended, exit)
}
