//! What a program says about how its main ended.

use std::{
    fmt,
    future::ready,
    io,
    pin::Pin,
    process::{ExitCode, Termination},
    task::{Context, Poll},
};

use ebbtide::{Error, Exit, lifecycle::Reason, shutdown::Ending, sleep};

use super::{Fixture, SECOND, Tells, report};

/// A main that ends with something in it: unlike an async block, which lets go of all that it has before it says so.
struct Full<T> {
    _held: T,
    panics: bool,
}

impl<T> Future for Full<T> {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        assert!(!self.panics, "told to");
        Poll::Ready(Ok(()))
    }
}

fn failed(error: &str) -> Reason {
    Reason::Failed { component: "main".into(), error: error.into() }
}

fn ending(exit: &Exit) -> &Ending {
    &report(exit).component("main").expect("main is a component").ending
}

#[test]
fn a_main_that_ends_is_a_clean_stop() {
    let exit = Fixture::new().run(|_| ready(Ok(())));
    assert_eq!((exit.code(), report(&exit).reason()), (0, &Reason::requested("main ended")));
    assert!(exit.is_clean() && exit.error().is_none(), "{exit}");
    assert_eq!(report(&exit).component("main").unwrap().balance.unwrap().completed, 1);
}

#[test]
fn a_main_that_fails_is_a_failed_component_with_its_error() {
    let exit = Fixture::new().run(async |_| {
        sleep(SECOND).await;
        Err(io::Error::new(io::ErrorKind::AddrInUse, "port 80 is taken"))?
    });
    assert_eq!((exit.code(), report(&exit).reason()), (70, &failed("port 80 is taken")));
    assert_eq!(ending(&exit), &Ending::Failed("port 80 is taken".into()));
    // As a value, for a program that has codes of its own.
    let error =
        exit.error().and_then(|error| error.downcast_ref::<io::Error>()).expect("it is what was given");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn a_main_that_panics_is_a_failed_component_with_its_message() {
    let exit = Fixture::new().run(async |_| {
        sleep(SECOND).await;
        panic!("told to")
    });
    assert_eq!((exit.code(), report(&exit).reason()), (70, &failed("panicked: told to")));
    assert_eq!(ending(&exit), &Ending::Failed("panicked: told to".into()));
    assert!(exit.error().is_none());
}

#[test]
fn a_main_that_panics_before_it_gives_a_future_is_the_same() {
    let exit = Fixture::new().run(|_| -> std::future::Ready<Result<(), Error>> { panic!("at once") });
    assert_eq!((exit.code(), report(&exit).reason()), (70, &failed("panicked: at once")));
}

#[test]
fn a_main_that_panics_in_a_drop_after_its_end_is_the_same() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in the drop");
        }
    }
    let exit = Fixture::new().run(|_| Full { _held: Panics, panics: false });
    assert_eq!((exit.code(), report(&exit).reason()), (70, &failed("panicked: in the drop")));
}

#[test]
fn a_main_that_fails_after_a_signal_is_told_too() {
    let fixture = Fixture::new();
    let feed = fixture.feed.clone();
    let exit = fixture.run(async move |app| {
        feed.send(15);
        app.token().triggered().await;
        Err("the last flush failed".into())
    });
    // The first reason counts; the failure makes the verdict.
    assert_eq!((exit.code(), report(&exit).reason()), (70, &Reason::Signal(15)));
    assert_eq!(ending(&exit), &Ending::Failed("the last flush failed".into()));
}

#[test]
fn as_the_result_of_main_it_is_its_code() {
    let code = |exit: Exit| (exit.code(), Termination::report(exit));
    assert_eq!(code(Fixture::new().run(async |_| Ok(()))), (0, ExitCode::SUCCESS));
    assert_eq!(code(Fixture::new().run(async |_| Err("told to".into()))), (70, ExitCode::from(70)));
    let no_pool = Fixture::new().builder().pool(|pool| pool.cpu_threads(0));
    assert_eq!(code(no_pool.run(async |_| Ok(()))), (Exit::NOT_STARTED, ExitCode::from(71)));
}

#[test]
fn an_error_that_panics_when_it_is_printed_keeps_nobody_from_stopping() {
    #[derive(Debug)]
    struct Mute;
    impl fmt::Display for Mute {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("mute")
        }
    }
    impl std::error::Error for Mute {}
    let exit = Fixture::new().run(async |_| Err(Mute.into()));
    assert_eq!(ending(&exit), &Ending::Failed("an error that panics when it is printed".into()));
}

#[test]
fn what_main_held_is_dropped_before_anybody_is_told_of_its_end() {
    for panics in [false, true] {
        let fixture = Fixture::new();
        let log = fixture.log.clone();
        let exit = fixture.run(move |app| {
            let told = log.clone();
            app.on_trigger("trigger", move || told.add("trigger"));
            Full { _held: Tells("what main held is dropped", log), panics }
        });
        assert_eq!(fixture.log.lines(), ["0ns: what main held is dropped", "0ns: trigger"]);
        assert_eq!(exit.is_clean(), !panics);
    }
}

#[test]
fn block_on_gives_what_its_future_gave() {
    assert_eq!(
        ebbtide::block_on(async {
            sleep(SECOND / 1000).await;
            42
        }),
        42
    );
}
