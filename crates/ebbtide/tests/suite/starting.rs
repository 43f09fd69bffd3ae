//! Programs that are not started, and those that are told to stop while they are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use ebbtide::{
    App,
    lifecycle::Reason,
    shutdown::{DrainTimeout, Feed, Signals},
    sleep,
};

use super::{Fixture, SECOND, report};

#[test]
fn a_program_that_cannot_be_started_says_why_and_its_main_is_not_called() {
    type Choose = fn(ebbtide::app::Builder) -> ebbtide::app::Builder;
    let cases: [(Choose, &str); 3] = [
        (|app| app.pool(|pool| pool.cpu_threads(0)), "the number of threads of the CPU lane"),
        (|app| app.heartbeat(std::time::Duration::ZERO), "limit"),
        (|app| app.signals(Signals::of([9])), "signal 9 cannot be handled"),
    ];
    for (choose, why) in cases {
        let builder = choose(Fixture::new().builder());
        let exit = builder.run(async |_| unreachable!("it is not started"));
        assert_eq!((exit.code(), exit.report().is_none()), (71, true));
        let said = exit.error().expect("it says why").to_string();
        assert!(said.starts_with("the program was not started: ") && said.contains(why), "{said}");
        assert_eq!(exit.to_string(), said);
    }
}

#[test]
fn a_signal_that_comes_while_it_starts_is_a_stop() {
    for round in 0..100 {
        let feed = Feed::new();
        let is_done = Arc::new(AtomicBool::new(false));
        let (sends, done) = (feed.clone(), is_done.clone());
        let sender = thread::spawn(move || {
            // At another moment each time; whoever is not there yet hears of the next one.
            for _ in 0..round * 20 {
                std::hint::spin_loop();
            }
            while !done.load(Ordering::Relaxed) {
                sends.send(15);
                thread::yield_now();
            }
        });
        let exit = App::builder()
            .signals(Signals::from_feed(&feed))
            .pool(|pool| pool.cpu_threads(1))
            .coordinator(|coordinator| coordinator.observer(|_| {}).exit(|_| {}))
            .run(async |app| {
                app.token().triggered().await;
                Ok(())
            });
        is_done.store(true, Ordering::Relaxed);
        sender.join().unwrap();
        assert_eq!((exit.code(), report(&exit).reason()), (0, &Reason::Signal(15)), "{exit}");
    }
}

#[test]
fn a_bad_setting_is_a_warning_and_not_a_failure() {
    let exit = Fixture::new().builder().drain_timeout(DrainTimeout::parse("soon")).run(async |_| Ok(()));
    assert!(exit.is_clean(), "{exit}");
    assert!(report(&exit).warnings()[0].contains("\"soon\" is not a number of seconds"), "{exit}");
}

#[test]
fn threads_have_the_name_of_the_program() {
    let exit = Fixture::new().builder().name("or\0ders").run(async |app| {
        assert_eq!((app.name(), thread::current().name()), ("orders", Some("orders")));
        let of_pool = app.pool().offload(|| thread::current().name().map(str::to_owned)).await?;
        assert_eq!(of_pool.as_deref(), Some("orders-cpu-0"));
        Ok(())
    });
    assert!(exit.is_clean(), "{exit}");
}

#[test]
fn several_programs_run_beside_each_other() {
    let threads: Vec<_> = (1..=4)
        .map(|seconds| {
            thread::spawn(move || {
                let fixture = Fixture::new();
                let exit = fixture.run(async move |_| {
                    sleep(seconds * SECOND).await;
                    Ok(())
                });
                (exit.code(), fixture.elapsed())
            })
        })
        .collect();
    for (seconds, thread) in (1..).zip(threads) {
        assert_eq!(thread.join().unwrap(), (0, seconds * SECOND));
    }
}
