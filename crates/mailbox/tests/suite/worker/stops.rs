//! Stopping: what is under way ends, what is in hand goes back, and nothing waits.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
};

use super::*;

/// A handler that waits for the test.
pub(super) fn waiting(fixture: &Fixture) -> (WorkerBuilder<VirtualClock>, Trigger, Log) {
    let (finish, log) = (Trigger::new(), Log::default());
    let (token, begun) = (finish.token(), log.clone());
    let builder = fixture.worker(move |job| {
        begun.add(String::from_utf8_lossy(job.body()));
        let finished = token.triggered();
        async move {
            finished.await;
            Ok(None)
        }
    });
    (builder, finish, log)
}

/// Polls all of them until the first has ended.
async fn with<A: Future, B: Future>(main: A, beside: B) -> A::Output {
    let (mut main, mut beside) = (std::pin::pin!(main), std::pin::pin!(beside));
    let mut is_over = false;
    std::future::poll_fn(|cx| {
        is_over = is_over || beside.as_mut().poll(cx).is_ready();
        main.as_mut().poll(cx)
    })
    .await
}

#[test]
fn m3_what_is_under_way_ends_and_all_that_was_not_begun_is_released_at_once() {
    let fixture = Fixture::new();
    for n in 0..10 {
        fixture.send(&n.to_string());
    }
    let (builder, finish, begun) = waiting(&fixture);
    let worker = builder.build();
    fixture
        .clock
        .block_on(with(worker.work(), async {
            fixture.clock.sleep_until(fixture.start + SECOND).await;
            assert_eq!(begun.lines(), ["0"]);
            worker.stop(reason());
            fixture.clock.sleep_until(fixture.start + 2 * SECOND).await;
            let others = fixture.mailbox.receive(at_once()).await.unwrap();
            let bodies: Vec<_> =
                others.iter().map(|delivery| String::from_utf8_lossy(&delivery.body)).collect();
            let wanted: Vec<_> = (1..10).map(|n| n.to_string()).collect();
            assert_eq!(bodies, wanted, "all of them, in their order, while the first is still under way");
            assert!(
                others.iter().all(|delivery| delivery.delivery_count == 1),
                "the delivery is not counted"
            );
            finish.fire(reason());
        }))
        .unwrap();
    assert_eq!(fixture.elapsed(), 2 * SECOND);
    assert_eq!(worker.balance().to_string(), "accepted 10, completed 1, handed back 9");
    assert_eq!(fixture.counts(), (0, 0, 9), "the first is acknowledged");
}

#[test]
fn m1_a_stop_wakes_a_long_poll_at_once() {
    let fixture = Fixture::new();
    let (builder, _) = fixture.noting();
    let worker = builder.build();
    let stopped = fixture.clock.block_on(with(
        async {
            worker.work().await.unwrap();
            fixture.elapsed()
        },
        async {
            fixture.clock.sleep_until(fixture.start + SECOND).await;
            worker.stop(reason());
        },
    ));
    assert_eq!(stopped, SECOND);
}

#[test]
fn m3_a_lease_is_extended_while_a_stop_waits_for_the_handler() {
    let fixture = Fixture::new();
    fixture.send("long");
    let (builder, finish, _) = waiting(&fixture);
    let worker = builder.pull(Pull::default().visibility(Span::secs(40))).build();
    fixture
        .clock
        .block_on(with(worker.work(), async {
            fixture.clock.sleep_until(fixture.start + SECOND).await;
            worker.stop(reason());
            fixture.clock.sleep_until(fixture.start + 200 * SECOND).await;
            assert!(fixture.mailbox.receive(at_once()).await.unwrap().is_empty(), "it is still out of sight");
            finish.fire(reason());
        }))
        .unwrap();
    assert_eq!(fixture.counts(), (0, 0, 0));
    assert_eq!(worker.balance().completed, 1);
}

#[test]
fn m3_a_receipt_that_has_expired_in_hand_is_ignored_and_the_message_is_not_begun() {
    let fixture = Fixture::new();
    fixture.send("first");
    fixture.send("second");
    let (clock, begun) = (fixture.clock.clone(), Log::default());
    let noted = begun.clone();
    let builder = fixture.worker(move |job| {
        noted.add(String::from_utf8_lossy(job.body()));
        // It holds its executor up: nothing can be given back meanwhile.
        clock.advance(50 * SECOND);
        async { Ok(None) }
    });
    let worker = builder.pull(Pull::default().visibility(Span::secs(40))).max_iterations(1).build();
    fixture.clock.block_on(worker.work()).unwrap();
    assert_eq!(begun.lines(), ["first"]);
    assert_eq!(worker.balance().handed_back, 1, "{}", worker.balance());
    let counts: Vec<_> = fixture.receive().iter().map(|delivery| delivery.delivery_count).collect();
    assert_eq!(counts.last(), Some(&2), "it was out of sight for its time, and comes back");
}

#[test]
fn m3_what_is_not_begun_in_time_is_given_back_for_others_uncounted_and_in_its_order() {
    let fixture = Fixture::new();
    ["first", "second", "third"].into_iter().for_each(|body| fixture.send(body));
    let (builder, finish, begun) = waiting(&fixture);
    let worker = builder.pull(Pull::default().visibility(Span::secs(40))).max_iterations(1).build();
    fixture
        .clock
        .block_on(with(worker.work(), async {
            fixture.clock.sleep_until(fixture.start + 29 * SECOND).await;
            assert_eq!(fixture.counts().0, 0, "they may still be begun");
            fixture.clock.sleep_until(fixture.start + 31 * SECOND).await;
            let given_back = fixture.mailbox.receive(at_once()).await.unwrap();
            let given_back: Vec<_> =
                given_back.iter().map(|back| (&*back.body, back.delivery_count)).collect();
            assert_eq!(given_back, [(&b"second"[..], 1), (b"third", 1)]);
            finish.fire(reason());
        }))
        .unwrap();
    assert_eq!(begun.lines(), ["first"]);
    assert_eq!(worker.balance().to_string(), "accepted 3, completed 1, handed back 2");
}

#[test]
fn a_stop_that_comes_before_the_work_sticks() {
    let fixture = Fixture::new();
    fixture.send("never");
    let (builder, log) = fixture.noting();
    let worker = builder.build();
    worker.stop(reason());
    fixture.clock.block_on(worker.work()).unwrap();
    assert!(log.lines().is_empty());
    assert_eq!(fixture.counts(), (1, 0, 0));
}

#[test]
fn a_handler_that_never_ends_is_abandoned_at_the_deadline_and_named() {
    let fixture = Fixture::new();
    fixture.send("stuck");
    let worker = fixture.worker(|_| pending()).build();
    let stopped = fixture.clock.block_on(async {
        let stop = async {
            fixture.clock.sleep_until(fixture.start + SECOND).await;
            let deadline = Deadline::after(&fixture.clock, 5 * SECOND);
            let ebbtide_lifecycle::Stopping::Future(stop) = Component::stop(&worker, deadline, &reason())
            else {
                panic!("in virtual time it is a future");
            };
            stop.await
        };
        let mut work = std::pin::pin!(worker.work());
        let mut stop = std::pin::pin!(stop);
        std::future::poll_fn(|cx| {
            assert!(work.as_mut().poll(cx).is_pending());
            stop.as_mut().poll(cx)
        })
        .await
    });
    assert_eq!(stopped, ebbtide_lifecycle::Stopped::Overdue);
    assert_eq!(fixture.elapsed(), 6 * SECOND);
    assert_eq!(worker.balance().abandoned, 1);
}

/// A loop that is shut down from another thread.
#[test]
fn test_shutdown_stops_loop() {
    use ebbtide_lifecycle::Runnable;

    let timer = ThreadTimer::start().unwrap();
    let mailbox = Arc::new(Office::new(timer.clone()).mailbox("work"));
    let (say, said) = mpsc::channel();
    let worker = Worker::builder(mailbox.clone(), timer, move |_| {
        say.send(()).unwrap();
        async { Ok(None) }
    })
    .build();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| worker.run().map_err(|error| error.to_string()));
        drop(mailbox.send(Message::new("one")));
        said.recv().unwrap();
        assert!(worker.is_running() && worker.is_ready());
        assert_eq!(worker.shutdown(Deadline::never(), &reason()), ebbtide_lifecycle::Stopped::Clean);
        assert!(!worker.is_running());
        run.join().unwrap().unwrap();
    });
}

#[test]
fn a_worker_that_never_runs_out_of_messages_leaves_its_thread_to_others_in_between() {
    let fixture = Fixture::new();
    fixture.send("again");
    let (mailbox, handled) = (fixture.mailbox.clone(), Arc::new(AtomicUsize::new(0)));
    let count = handled.clone();
    let builder = fixture.worker(move |_| {
        let mailbox = mailbox.clone();
        // Ends sometime, should nobody else have his turn.
        let is_over = count.fetch_add(1, Ordering::Relaxed) >= 100_000;
        async move {
            if !is_over {
                mailbox.send(Message::new("again")).await?;
            }
            Ok(None)
        }
    });
    let worker = builder.build();
    let mut turns = 0;
    let stop = std::future::poll_fn(|cx| {
        turns += 1;
        if turns == 3 {
            worker.stop(reason());
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    fixture.clock.block_on(with(worker.work(), stop)).unwrap();
    let handled = handled.load(Ordering::Relaxed);
    assert!(handled < 1000, "{handled} handled before others had their turn");
}
