//! A command that runs as an app: on a loop, with a pool, and with a coordinator that stops it in order.

use std::{
    fs,
    future::Future,
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ebbtide::{
    App, Exit,
    app::{Builder, StartError},
    lifecycle::Reason,
    shutdown::{self, Event, Signals, Verdict},
};

use crate::{
    args,
    fault::{Fault, code},
};

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
    builder(terms).signals(signals()).observer(|event| {
        let is_told = match event {
            Event::Stopped(_) => false,
            // Only the end of `main` asks for a stop. Why that has come, the command itself says.
            Event::Triggered { reason: Reason::Requested(_) } => false,
            Event::Triggered { .. } | Event::Progress(_) => true,
            event => event.is_warning(),
        };
        if is_told {
            // If nobody reads it, there is nobody to tell.
            let _ = writeln!(io::stderr(), "{event}");
        }
    })
}

/// What stops it: also the end of the terminal that it was started from, unless it was started to outlive that.
fn signals() -> Signals {
    // The numbers that POSIX fixes for all systems.
    const HUP: i32 = 1;
    const INT: i32 = 2;
    const TERM: i32 = 15;
    Signals::of([TERM, INT].into_iter().chain((!ignores(HUP)).then_some(HUP)))
}

/// Whether the process was started with this signal ignored, as by `nohup`. Where the system does not tell, it may
/// have been.
fn ignores(signal: i32) -> bool {
    let told = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = told.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

/// How long a command that has its result waits for what is late.
const LATE: Duration = Duration::from_secs(1);

/// The same, for a command that gives one result: nothing is said of its stop.
pub(crate) fn brief(terms: &args::Terms) -> Builder {
    builder(terms).drain_timeout(LATE).observer(|_| ())
}

/// Runs `main` inside an app, and gives what it gave when everything has stopped. A fault of its own is no failure of
/// the app's: that ends in good order, and the fault is given; with the report, if work was lost then.
pub(crate) fn run<M, F, T>(builder: Builder, main: M) -> Result<T, Fault>
where
    M: FnOnce(App) -> F + Send + 'static,
    F: Future<Output = Result<T, Fault>> + 'static,
    T: Send + 'static,
{
    match ended(builder, main) {
        (Some(Ok(value)), exit) if exit.is_clean() => Ok(value),
        (Some(Err(fault)), exit) if exit.is_clean() => Err(fault),
        (Some(Err(fault)), exit) => Err(fault.with(&exit)),
        (_, exit) => Err(unclean(&exit)),
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
        (_, exit) => Err(unclean(&exit)),
    }
}

/// A command that was told to stop before it had begun with what it is for.
pub(crate) fn stopped(app: &App) -> Fault {
    let reason = app.token().reason().map_or_else(String::new, |reason| format!(": {reason}"));
    Fault::new(code::FAILED, format!("told to stop before it had begun{reason}"))
}

/// An app that has not stopped as it should, or was not started.
fn unclean(exit: &Exit) -> Fault {
    let start = exit.error().and_then(|error| error.downcast_ref());
    let code = match start {
        Some(StartError::Coordinator(shutdown::StartError::Health(_))) => code::UNAVAILABLE,
        _ => exit.code(),
    };
    Fault::new(code, exit.to_string())
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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use ebbtide::lifecycle::time::VirtualClock;

    use super::*;

    /// In virtual time, and without signals: nothing is waited for.
    fn quiet() -> Builder {
        App::builder().clock(&VirtualClock::new()).without_signals().observer(|_| ())
    }

    #[test]
    fn a_command_that_panics_is_70_and_tells_with_what() {
        async fn panics(_: App) -> Result<(), Fault> {
            panic!("told to")
        }
        for ended in [run(quiet(), panics), run_brief(quiet(), panics)] {
            let fault = ended.expect_err("it panicked");
            assert_eq!(fault.code, 70, "{fault}");
            assert!(fault.message.contains("panicked: told to"), "{fault}");
        }
    }

    #[test]
    fn work_that_is_lost_when_a_command_fails_is_named() {
        let fault = run(quiet(), async |app| {
            app.spawn_named("stuck", pending::<()>()).map_err(|_| Fault::data("refused"))?.detach();
            Err::<(), _>(Fault::data("the plan is wrong"))
        });
        let fault = fault.expect_err("it failed");
        assert_eq!(fault.code, code::DATA, "the command's own code counts");
        for part in ["the plan is wrong", "work was abandoned", "1 × \"stuck\""] {
            assert!(fault.message.contains(part), "{fault}");
        }
    }
}
