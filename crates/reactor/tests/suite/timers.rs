use std::{
    future::{Future, poll_fn},
    num::NonZeroU32,
    pin::{Pin, pin},
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::{Clock, SystemClock, VirtualClock};
use ebbtide_reactor::{Local, Missed, Runtime, Sleep, interval, now, sleep, sleep_until, spawn, yield_now};
use futures_lite::future::block_on;

use crate::{Log, running};

const SECOND: Duration = Duration::from_secs(1);

fn in_virtual_time() -> (Runtime, VirtualClock, Instant) {
    let clock = VirtualClock::new();
    let start = clock.now();
    (Runtime::builder().clock(&clock).runtime(), clock, start)
}

#[test]
fn a_loops_timers_say_whether_its_time_is_virtual() {
    let (mut runtime, ..) = in_virtual_time();
    assert!(runtime.handle().is_virtual() && !Runtime::new().handle().is_virtual());
    assert!(runtime.block_on(async { Local.is_virtual() }));
    assert!(!Local.is_virtual(), "no loop runs here");
}

/// Real time, because only there it is seen whether the thread sleeps. What it has used is asked of a file: rustix
/// reads that clock by a way that valgrind hides.
#[cfg(target_os = "linux")]
#[test]
fn a_loop_that_waits_for_a_timer_leaves_the_cpu_to_others() {
    let used = || {
        let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(said.split(' ').next().unwrap().parse().unwrap())
    };
    let mut runtime = Runtime::new();
    // Once for what is set up the first time.
    runtime.block_on(sleep(Duration::from_millis(1)));
    let before = used();
    runtime.block_on(sleep(SECOND / 5));
    let used = used() - before;
    assert!(used < SECOND / 50, "{used:?} to wait for a fifth of a second");
}

#[test]
fn e8_a_sleep_never_ends_early() {
    let mut runtime = Runtime::new();
    for micros in [0, 1, 50, 130, 131, 132, 1_000, 3_000] {
        let at = SystemClock.now() + Duration::from_micros(micros);
        runtime.block_on(sleep_until(at));
        assert!(SystemClock.now() >= at, "{micros} µs");
        let (before, duration) = (SystemClock.now(), Duration::from_micros(micros));
        runtime.block_on(sleep(duration));
        assert!(SystemClock.now() >= before + duration, "{micros} µs");
    }
}

#[test]
fn e8_sleeps_end_at_their_very_time_and_in_order() {
    let (mut runtime, clock, start) = in_virtual_time();
    let mut tasks = Vec::new();
    for nanos in [3_000_000_001, 5, 131_072, 131_071, 1, 86_400_000_000_000, 1_000_000] {
        let task = runtime.spawn(async move {
            let at = start + Duration::from_nanos(nanos);
            sleep_until(at).await;
            assert_eq!(now(), at);
        });
        tasks.push(task.unwrap());
    }
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    assert_eq!(clock.now(), start + Duration::from_nanos(86_400_000_000_000));
}

#[test]
fn e8_a_dropped_sleep_releases_its_waker_and_holds_nothing_up() {
    struct Noticed;
    impl Wake for Noticed {
        fn wake(self: Arc<Self>) {}
    }
    let (mut runtime, clock, start) = in_virtual_time();
    let noticed = Arc::new(Noticed);
    let waker = Waker::from(noticed.clone());
    runtime.block_on(async {
        {
            let mut dropped = pin!(sleep(SECOND));
            assert!(dropped.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&noticed), 1);
        sleep(10 * SECOND).await;
    });
    assert_eq!(clock.now(), start + 10 * SECOND);
    assert!(runtime.shutdown_quiesce(Duration::ZERO).is_ok());
}

#[test]
fn e8_a_sleep_may_be_polled_and_dropped_on_another_thread() {
    let events = running();
    let at = events.now() + Duration::from_millis(2);
    block_on(events.sleep_until(at));
    assert!(SystemClock.now() >= at);

    // Polled there, dropped here, while its loop goes on; and one that is dropped before it got there.
    for _ in 0..100 {
        let mut sleep = pin!(events.sleep_until(SystemClock.now() + 3600 * SECOND));
        let waker = Waker::noop();
        assert!(sleep.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        assert!(sleep.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    let armed_there = events
        .spawn(async {
            let mut sleep = Box::pin(sleep(3600 * SECOND));
            assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            Some(sleep)
        })
        .unwrap();
    drop(block_on(armed_there).unwrap());
    events.stop();
}

#[test]
fn a_sleep_beyond_the_range_of_time_does_not_end() {
    let (mut runtime, _clock, _start) = in_virtual_time();
    let never = runtime.spawn(sleep(Duration::MAX)).unwrap();
    runtime.block_on(sleep(SECOND));
    assert!(!never.is_finished());
}

#[test]
fn a_sleep_that_has_ended_stays_so() {
    let (mut runtime, _clock, _start) = in_virtual_time();
    runtime.block_on(async {
        let mut sleep = pin!(sleep(SECOND));
        sleep.as_mut().await;
        sleep.as_mut().await;
    });
}

#[test]
fn an_interval_does_with_missed_ticks_what_it_was_told() {
    // It ticks at 1; then nobody asks until 4.5, so that the ticks at 2, 3 and 4 are missed.
    for (missed, expected) in [
        (Missed::Burst, [1000, 2000, 3000, 4000, 5000]),
        (Missed::Skip, [1000, 2000, 5000, 6000, 7000]),
        (Missed::Delay, [1000, 2000, 5500, 6500, 7500]),
    ] {
        let (mut runtime, _clock, start) = in_virtual_time();
        let ticks = runtime.block_on(async {
            let mut interval = interval(SECOND).missed(missed);
            let mut ticks = Vec::new();
            for _ in 0..5 {
                ticks.push((interval.tick().await - start).as_millis());
                if ticks.len() == 1 {
                    sleep_until(start + Duration::from_millis(4500)).await;
                }
            }
            ticks
        });
        assert_eq!(ticks, expected, "{missed:?}");
    }
}

#[test]
fn e9_a_flood_of_self_wakes_starves_neither_timers_nor_posts() {
    let budget = NonZeroU32::new(7).unwrap();
    let mut runtime = Runtime::builder().turn_budget(budget).runtime();
    let flood = runtime.spawn(async {
        loop {
            yield_now().await;
        }
    });
    let (posted, handle) = (std::rc::Rc::new(()), runtime.handle());
    runtime.block_on(async move {
        let _posted = posted;
        sleep(Duration::from_millis(1)).await;
        let trigger = ebbtide_lifecycle::Trigger::new();
        let token = trigger.token();
        std::thread::spawn(move || {
            handle
                .post(move || assert!(trigger.fire(ebbtide_lifecycle::Reason::requested("posted"))))
                .unwrap();
        });
        token.triggered().await;
    });
    flood.unwrap().cancel();
}

#[test]
fn two_loops_in_virtual_time_wait_for_each_other() {
    let clock = VirtualClock::new();
    let start = clock.now();
    let [first, second] = [(), ()].map(|()| {
        let events = ebbtide_reactor::EventLoop::builder().clock(&clock).event_loop();
        events.start().unwrap();
        Arc::new(events)
    });
    // Back and forth, with a sleep on each side; no time passes but for the sleeps.
    let (near, far) = (first.handle(), second.handle());
    let done = near
        .clone()
        .spawn(async move {
            for _ in 0..100 {
                sleep(SECOND).await;
                far.spawn(sleep(SECOND)).unwrap().await.unwrap();
            }
            now()
        })
        .unwrap();
    assert_eq!(block_on(done).unwrap(), start + 200 * SECOND);
    let spawned = spawn(async {}).is_err();
    assert!(spawned, "this thread runs no loop");
}

#[test]
fn a_sleep_made_elsewhere_is_counted_by_the_clock_of_its_loop() {
    let (mut runtime, clock, start) = in_virtual_time();
    runtime.block_on(sleep(7200 * SECOND));
    let made_here = sleep(60 * SECOND);
    runtime.block_on(made_here);
    assert_eq!(clock.now(), start + 7260 * SECOND);
    assert_eq!(runtime.handle().now(), clock.now());
}

/// The origin left sleepers hanging when the loop stopped.
#[test]
fn e8_a_sleep_on_another_thread_outlives_its_loop() {
    let events = running();
    let at = SystemClock.now() + Duration::from_millis(20);
    let [mut before, after] = [events.sleep_until(at), events.sleep_until(at)].map(Box::pin);
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    assert!(before.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    events.stop();
    while wakes.0.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    for sleep in [before, after] {
        block_on(sleep);
        assert!(SystemClock.now() >= at, "never early");
    }
}

#[derive(Default)]
struct Wakes(std::sync::atomic::AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn sleeps_of_one_length_end_in_the_order_in_which_they_were_made() {
    let mut runtime = Runtime::new();
    let log = Log::default();
    for number in 0..100 {
        let log = log.clone();
        let sleeping = async move {
            sleep(Duration::from_millis(5)).await;
            log.note(number);
        };
        runtime.spawn(sleeping).unwrap().detach();
    }
    runtime.shutdown_quiesce(Duration::from_secs(10)).unwrap();
    assert_eq!(log.read(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_sleep_that_is_made_by_a_waker_between_two_turns_is_kept() {
    /// Makes a sleep when it is woken, as an executor within a task may.
    struct Maker(Mutex<Option<Sleep>>, Waker);
    impl Wake for Maker {
        fn wake(self: Arc<Self>) {
            let mut sleep = sleep(Duration::from_millis(1));
            assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&self.1)).is_pending());
            *self.0.lock().unwrap() = Some(sleep);
        }
    }

    Runtime::new().block_on(async {
        let mut first = pin!(sleep(Duration::from_millis(1)));
        let mut maker = None;
        poll_fn(|cx| {
            let maker = maker.get_or_insert_with(|| Arc::new(Maker(Mutex::new(None), cx.waker().clone())));
            let made = maker.0.lock().unwrap().take();
            match made {
                Some(mut second) => Pin::new(&mut second).poll(cx),
                None => {
                    let waker = Waker::from(maker.clone());
                    first
                        .as_mut()
                        .poll(&mut Context::from_waker(&waker))
                        .map(|()| unreachable!("the waker runs first"))
                }
            }
        })
        .await;
    });
}

#[test]
fn an_interval_that_is_made_before_its_loop_runs_ticks() {
    let mut ticks = interval(Duration::from_millis(1));
    Runtime::new().block_on(async {
        let first = ticks.tick().await;
        assert_eq!(ticks.tick().await, first + Duration::from_millis(1));
    });
}

#[test]
fn sleeps_end_at_their_very_time_in_virtual_time_whoever_else_sleeps() {
    let (mut runtime, clock, start) = in_virtual_time();
    runtime.block_on(async {
        let _unrelated = sleep(60 * SECOND);
        sleep(SECOND).await;
        assert_eq!(clock.now() - start, SECOND);
    });
}

#[test]
fn sleeps_of_one_length_keep_their_order_over_turns_of_one_time() {
    let (mut runtime, ..) = in_virtual_time();
    let log = Log::default();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for number in 0..4 {
            if number == 3 {
                yield_now().await;
                yield_now().await;
            }
            let (log, sleep) = (log.clone(), sleep(SECOND));
            let sleeping = async move {
                sleep.await;
                log.note(number);
            };
            tasks.push(spawn(sleeping).unwrap());
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(log.read(), [0, 1, 2, 3]);
}

#[test]
fn an_interval_counts_by_its_own_clock_wherever_it_is_polled() {
    let clock = VirtualClock::new();
    let events = ebbtide_reactor::EventLoop::builder().clock(&clock).event_loop();
    events.start().unwrap();
    let making = async {
        let mut ticks = interval(10 * SECOND).missed(Missed::Delay);
        ticks.tick().await;
        ticks
    };
    let mut ticks = block_on(events.spawn(making).unwrap()).unwrap();
    clock.advance(3600 * SECOND);
    let first = block_on(ticks.tick());
    let second = clock.block_on(ticks.tick());
    assert!(second - first >= 3600 * SECOND, "{:?}", second - first);
}

#[test]
fn a_sleep_that_is_made_in_the_last_poll_of_block_on_counts_from_there() {
    let mut runtime = Runtime::new();
    let nap = runtime.block_on(poll_fn(|_| Poll::Ready(sleep(SECOND / 10))));
    std::thread::park_timeout(SECOND / 5);
    let begin = SystemClock.now();
    runtime.block_on(nap);
    assert!(SystemClock.now() - begin < SECOND / 10);
}

#[test]
fn what_is_made_on_a_loop_may_be_awaited_elsewhere() {
    let events = running();
    let moment = Duration::from_millis(10);
    let (made, taken) = mpsc::channel();
    let making = move || made.send((sleep(moment), sleep_until(now() + moment), interval(moment))).unwrap();
    events.post(making).ok().unwrap();
    let (one, other, mut ticks) = taken.recv().unwrap();
    block_on(one);
    block_on(other);
    block_on(ticks.tick());
    // The handle's own need no loop to be made on.
    block_on(events.handle().sleep(moment));
}
