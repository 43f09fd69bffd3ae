//! Messages that are worked on for longer than their visibility.

use ebbtide_mailbox::worker::Leases;

use super::*;

/// A handler that takes 100 seconds, says every ten until `beats_until` that it goes on, and notes that it was
/// called.
fn slow(fixture: &Fixture, beats_until: u32) -> (WorkerBuilder<VirtualClock>, Log) {
    let (log, clock) = (Log::default(), fixture.clock.clone());
    let called = log.clone();
    let builder = fixture.worker(move |job| {
        called.add(job.delivery().delivery_count.to_string());
        let clock = clock.clone();
        async move {
            for n in 1..=10 {
                clock.sleep_until(clock.now() + 10 * SECOND).await;
                if n <= beats_until {
                    job.beat();
                }
            }
            Ok(None)
        }
    });
    let pull = Pull::default().visibility(Span::secs(35));
    (builder.pull(pull).max_iterations(1), log)
}

fn handled(leases: Leases, beats_until: u32) -> (Fixture, Worker<VirtualClock>) {
    let fixture = Fixture::new();
    fixture.send("slow");
    let (builder, _) = slow(&fixture, beats_until);
    let worker = builder.leases(leases).build();
    fixture.clock.block_on(worker.work()).unwrap();
    (fixture, worker)
}

#[test]
fn m5_a_message_stays_out_of_sight_while_it_is_worked_on() {
    let (fixture, worker) = handled(Leases::WhileRunning, 0);
    assert_eq!(worker.balance().completed, 1);
    assert_eq!(fixture.counts(), (0, 0, 0));
    assert!(fixture.told.lines().is_empty(), "{:?}", fixture.told.lines());
}

#[test]
fn m5_one_that_has_waited_in_hand_stays_out_of_sight_too() {
    let fixture = Fixture::new();
    fixture.send("first");
    fixture.send("second");
    let (clock, log) = (fixture.clock.clone(), Log::default());
    let called = log.clone();
    let builder = fixture.worker(move |job| {
        called.add(String::from_utf8_lossy(job.body()));
        let sleep = clock.sleep_until(clock.now() + 25 * SECOND);
        async move {
            sleep.await;
            Ok(None)
        }
    });
    // The second is begun ten seconds before its time is over.
    let worker = builder.pull(Pull::default().visibility(Span::secs(35))).max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), ["first", "second"]);
    assert_eq!(worker.balance().to_string(), "accepted 2, completed 2", "{:?}", fixture.told.lines());
    assert_eq!(fixture.counts(), (0, 0, 0));
}

#[test]
fn m5_or_while_it_says_that_it_goes_on() {
    let (_, worker) = handled(Leases::WhileBeating(30 * SECOND), 10);
    assert_eq!(worker.balance().completed, 1);
}

#[test]
fn m5_and_comes_back_when_it_does_not_say_so_any_more() {
    let (fixture, worker) = handled(Leases::WhileBeating(30 * SECOND), 2);
    assert_eq!(worker.balance().to_string(), "accepted 1, failed 1");
    assert!(
        fixture.told.lines().last().unwrap().contains("the receipt has expired"),
        "{:?}",
        fixture.told.lines()
    );
    assert_eq!(fixture.receive()[0].delivery_count, 2);
}

#[test]
fn m5_or_not_at_all() {
    let (fixture, worker) = handled(Leases::Never, 10);
    assert_eq!(worker.balance().to_string(), "accepted 1, failed 1");
    assert_eq!(fixture.receive()[0].delivery_count, 2);
}

#[test]
fn m2_a_lost_worker_s_message_is_handled_by_another() {
    let fixture = Fixture::new();
    fixture.send("slow");
    let (builder, _) = slow(&fixture, 0);
    let lost = builder.build();
    fixture.clock.block_on(async {
        let mut work = std::pin::pin!(lost.work());
        std::future::poll_fn(|cx| {
            assert!(work.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    });
    let (builder, handled) = slow(&fixture, 0);
    let other = builder.pull(Pull::default().visibility(Span::secs(300))).max_iterations(2).build();
    fixture.clock.block_on(other.work()).unwrap();
    assert_eq!(handled.lines(), ["2"], "the second delivery");
    assert_eq!((lost.balance().failed, other.balance().completed), (1, 1));
}

#[test]
fn what_a_handler_has_saved_is_there_at_the_next_attempt() {
    let fixture = Fixture::new();
    fixture.send("in steps");
    let log = Log::default();
    let seen = log.clone();
    let worker = fixture
        .worker(move |job| {
            let before = job.checkpoint().map(|saved| String::from_utf8_lossy(saved).into_owned());
            seen.add(format!("{before:?}"));
            async move {
                job.save(format!("step {}", job.delivery().delivery_count)).await.unwrap();
                if job.delivery().delivery_count < 3 { Err("more to do".into()) } else { Ok(None) }
            }
        })
        .max_iterations(3)
        .build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), ["None", "Some(\"step 1\")", "Some(\"step 2\")"]);
    assert_eq!(fixture.counts(), (0, 0, 0));
}

#[test]
fn a_message_without_any_time_out_of_sight_is_handled_all_the_same() {
    let fixture = Fixture::new();
    fixture.send("one");
    let (builder, log) = fixture.noting();
    let worker = builder.pull(at_once().visibility(Span::ZERO)).max_iterations(3).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(log.lines(), ["one", "one", "one"], "{:?}", fixture.told.lines());
    let told = fixture.told.lines();
    assert!(told.iter().any(|line| line.contains("the receipt has expired")), "{told:?}");
}
