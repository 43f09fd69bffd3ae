//! The order of a stop, as probes in each stage see it.

use std::thread;

use ebbtide::{
    App, Error,
    lifecycle::{Reason, Trigger},
    shutdown::{Ending, Priority},
    sleep, spawn,
};

use super::{Fixture, Log, SECOND, Tells, report};

/// What the probes tell.
const ORDER: &[&str] = &[
    "callback",
    "request ends",
    "server ends",
    "worker ends",
    "late runner ends",
    "job ends",
    "result arrives",
    "task of the loop ends",
    "second resource is dropped",
    "first resource is dropped",
];

/// A probe in each stage. All take a second of virtual time once they are told to end, but for those of the pool: time
/// stands still while a job is in flight.
fn probe(app: &App, log: &Log) -> Result<(), Error> {
    let told = log.clone();
    app.on_trigger("callback", move || told.add("callback"));

    let (told, token) = (log.clone(), app.token());
    app.spawn(async move {
        token.triggered().await;
        sleep(SECOND).await;
        told.add("request ends");
    })?
    .detach();

    let worker_ends = Trigger::new();
    for (name, priority) in [("server", Priority::SERVERS), ("worker", Priority::WORKERS)] {
        let (told, ends) = (log.clone(), worker_ends.clone());
        app.spawn_component(name, priority, async move |stop| {
            stop.triggered().await;
            sleep(SECOND).await;
            told.add(format!("{name} ends"));
            if name == "worker" {
                ends.fire(Reason::requested("worker"));
            }
            Ok(())
        })?;
    }

    // The job is brought by the late runner, and ends when the pool is closed: which is after that one has ended.
    let (told, pool) = (log.clone(), app.pool().clone());
    let late = async move {
        worker_ends.token().triggered().await;
        sleep(SECOND).await;
        told.add("late runner ends");
        let (at_the_end, closing) = (told.clone(), pool.clone());
        let job = pool.blocking().offload(move || {
            while !closing.is_closed() {
                thread::yield_now();
            }
            at_the_end.add("job ends");
        });
        let awaits = async move {
            job.await.unwrap();
            told.add("result arrives");
        };
        drop(spawn(awaits));
    };
    let late = app.runners().timeout(SECOND / 1000, late);
    drop(spawn(late));

    let (told, stop) = (log.clone(), app.handle().shutdown_handle());
    drop(spawn(async move {
        stop.signal().await;
        sleep(SECOND).await;
        told.add("task of the loop ends");
    }));

    app.keep("first resource", Tells("first resource is dropped", log.clone()));
    app.keep("second resource", Tells("second resource is dropped", log.clone()));
    Ok(())
}

/// How `main` comes to its end.
#[derive(Clone, Copy, Debug)]
enum Play {
    Ends,
    Fails,
    Panics,
    GetsASignal,
    Asks,
}

/// What was told, without when, and the exit code.
fn play(play: Play) -> (Vec<String>, u8) {
    let fixture = Fixture::new();
    let (log, feed) = (fixture.log.clone(), fixture.feed.clone());
    let exit = fixture.run(async move |app| {
        probe(&app, &log)?;
        // All are there, and the late one is late.
        sleep(SECOND).await;
        match play {
            Play::Ends => return Ok(()),
            Play::Fails => return Err("no route to the queue".into()),
            Play::Panics => panic!("told to"),
            Play::GetsASignal => feed.send(15),
            Play::Asks => drop(app.stop(Reason::requested("enough"))),
        }
        app.token().triggered().await;
        Ok(())
    });
    let without_when = |line: &String| line.split_once(": ").unwrap().1.to_owned();
    (fixture.log.lines().iter().map(without_when).collect(), exit.code())
}

#[test]
fn p1_a_program_stops_from_the_outside_in_when_main_ends() {
    assert_eq!(play(Play::Ends), (ORDER.iter().map(|told| (*told).to_owned()).collect(), 0));
}

#[test]
fn p1_a_program_stops_from_the_outside_in_at_a_signal_and_when_it_asks_for_it() {
    for how in [Play::GetsASignal, Play::Asks] {
        assert_eq!(play(how), (ORDER.iter().map(|told| (*told).to_owned()).collect(), 0), "{how:?}");
    }
}

#[test]
fn p2_the_order_is_the_same_when_main_fails_or_panics() {
    for how in [Play::Fails, Play::Panics] {
        assert_eq!(play(how), (ORDER.iter().map(|told| (*told).to_owned()).collect(), 70), "{how:?}");
    }
}

#[test]
fn the_coordinator_tells_each_step() {
    let fixture = Fixture::new();
    let exit = fixture.observed().readiness_delay(2 * SECOND).run(async |app| {
        app.ready();
        app.spawn(sleep(5 * SECOND))?.detach();
        Ok(())
    });
    let steps = [
        "0ns: ready",
        "0ns: stopping: requested: main ended",
        "0ns: not ready any more",
        "0ns: serving for 2.0s more",
        "2s: drain begins: 1 in flight, 30.0s left",
        "5s: drained in 3.0s: accepted 2, completed 2",
        "5s: phase 300 (workers): stopping 1",
        "5s: main: clean in 0.0ns",
        "5s: phase 200 (late runners): stopping 1",
        "5s: late runners: clean in 0.0ns",
        "5s: phase 100 (pools): stopping 1",
        "5s: pool: clean in 0.0ns",
        "5s: phase 0 (loops): stopping 1",
        "5s: loop: clean in 0.0ns",
    ];
    assert_eq!(fixture.log.lines(), steps);
    assert!(exit.is_clean(), "{exit}");
    assert!(report(&exit).components().all(|component| component.ending == Ending::Clean));
}

#[test]
fn the_handle_is_dropped_with_main_and_not_before() {
    let fixture = Fixture::new();
    let log = fixture.log.clone();
    let exit = fixture.run(async move |app| {
        let _held = Tells("what main holds is dropped", log.clone());
        let token = app.token();
        let told = log.clone();
        app.on_trigger("trigger", move || told.add("trigger"));
        drop(app);
        sleep(SECOND).await;
        assert!(!token.is_triggered(), "nobody needs to hold a handle");
        Ok(())
    });
    assert_eq!(fixture.log.lines(), ["1s: what main holds is dropped", "1s: trigger"]);
    assert!(exit.is_clean(), "{exit}");
}
