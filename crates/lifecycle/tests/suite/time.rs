use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::{
    Reason, Trigger,
    time::{Clock, Deadline, Look, Participant, Rest, SystemClock, ThreadTimer, Timer, VirtualClock},
};
use futures_lite::future::{block_on, or, zip};

use crate::{Panics, Wakes, poll_with};

const SECOND: Duration = Duration::from_secs(1);

mod deadline {
    use super::*;

    #[test]
    fn never_is_later_than_any_time() {
        let now = SystemClock.now();
        assert!(Deadline::at(now) < Deadline::never());
        assert_eq!(Deadline::never().min(Deadline::at(now)), Deadline::from(now));
        assert_eq!(Deadline::never().instant(), None);
        assert!(!Deadline::never().is_expired(now + SECOND));
        assert_eq!(Deadline::never().remaining(now), None);
    }

    #[test]
    fn it_has_expired_at_its_very_moment() {
        let clock = VirtualClock::new();
        let deadline = Deadline::after(&clock, SECOND);
        let at = clock.now() + SECOND;
        assert!(!deadline.is_expired(at - Duration::from_nanos(1)));
        assert!(deadline.is_expired(at));
        assert_eq!(deadline.remaining(clock.now()), Some(SECOND));
        assert_eq!(deadline.remaining(at + SECOND), Some(Duration::ZERO));
    }

    #[test]
    fn beyond_the_range_of_an_instant_is_never() {
        assert_eq!(Deadline::after(SystemClock, Duration::MAX), Deadline::never());
    }

    #[test]
    fn the_effective_one_is_the_earlier_of_request_and_step() {
        let start = SystemClock.now();
        let request = Deadline::at(start + 2 * SECOND);
        assert_eq!(request.effective(start, None), request);
        assert_eq!(request.effective(start, Some(SECOND)), Deadline::at(start + SECOND));
        assert_eq!(request.effective(start, Some(3 * SECOND)), request);
        assert_eq!(request.effective(start, Some(Duration::MAX)), request);
        assert_eq!(Deadline::never().effective(start, Some(SECOND)), Deadline::at(start + SECOND));
    }
}

mod thread_timer {
    use super::*;

    #[test]
    fn sleeps_end_in_the_order_of_their_times_and_never_early() {
        let timer = ThreadTimer::start().unwrap();
        let now = timer.now();
        let [first, second] = [now + Duration::from_millis(2), now + Duration::from_millis(6)];
        let order = block_on(async {
            let late = async {
                timer.sleep_until(second).await;
                timer.now()
            };
            let early = async {
                timer.sleep_until(first).await;
                timer.now()
            };
            zip(late, early).await
        });
        assert!(order.0 >= second && order.1 >= first);
    }

    #[test]
    fn a_time_in_the_past_is_over_at_once() {
        let timer = ThreadTimer::start().unwrap();
        let mut sleep = timer.sleep_until(timer.now());
        assert!(poll_with(&Wakes::new(), &mut sleep).is_ready());
    }

    #[test]
    fn a_dropped_sleep_releases_its_waker() {
        let timer = ThreadTimer::start().unwrap();
        let wakes = Wakes::new();
        let mut sleep = timer.sleep_until(timer.now() + 3600 * SECOND);
        assert!(poll_with(&wakes, &mut sleep).is_pending());
        assert_eq!(Arc::strong_count(&wakes), 2);
        drop(sleep);
        assert_eq!(Arc::strong_count(&wakes), 1);
        assert_eq!(wakes.count(), 0);
    }

    #[test]
    fn a_sleep_outlives_the_last_handle() {
        let timer = ThreadTimer::start().unwrap();
        let at = timer.now() + Duration::from_millis(2);
        let sleep = timer.sleep_until(at);
        drop(timer);
        block_on(sleep);
        assert!(SystemClock.now() >= at);
    }

    #[test]
    fn an_earlier_sleep_overtakes_one_that_is_waited_for() {
        let timer = ThreadTimer::start().unwrap();
        let wakes = Wakes::new();
        let mut long = timer.sleep_until(timer.now() + 3600 * SECOND);
        assert!(poll_with(&wakes, &mut long).is_pending());
        block_on(timer.sleep_until(timer.now() + Duration::from_millis(1)));
        assert_eq!(wakes.count(), 0);
    }

    #[test]
    fn a_participant_whose_waker_panics_costs_nobody_the_time() {
        let clock = VirtualClock::new();
        let mut bad = clock.join(Waker::from(Arc::new(Panics)));
        let look = bad.look();
        assert_eq!(bad.rest(look, None), Rest::Wait);
        let before = clock.now();
        clock.advance(SECOND);
        assert_eq!(clock.now() - before, SECOND);
    }

    #[test]
    fn a_waker_that_panics_harms_no_other_sleeper() {
        let timer = ThreadTimer::start().unwrap();
        let at = timer.now() + Duration::from_millis(2);
        let mut bad = timer.sleep_until(at);
        let waker = Waker::from(Arc::new(Panics));
        assert!(Pin::new(&mut bad).poll(&mut Context::from_waker(&waker)).is_pending());
        block_on(timer.sleep_until(at));
        block_on(timer.sleep_until(timer.now() + Duration::from_millis(1)));
    }
}

mod virtual_clock {
    use super::*;

    #[test]
    fn it_stands_still_until_it_is_moved() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let wakes = Wakes::new();
        let mut sleep = clock.sleep_until(start + 2 * SECOND);
        assert!(poll_with(&wakes, &mut sleep).is_pending());
        clock.advance(SECOND);
        assert_eq!(clock.now(), start + SECOND);
        assert_eq!(wakes.count(), 0);
        clock.advance(SECOND);
        assert_eq!(wakes.count(), 1);
        assert!(poll_with(&wakes, &mut sleep).is_ready());
    }

    #[test]
    fn it_jumps_from_one_sleep_to_the_next() {
        let clock = VirtualClock::new();
        let start = clock.now();
        clock.block_on(async {
            for second in 1..=3600 {
                clock.sleep_until(start + second * SECOND).await;
                assert_eq!(clock.now(), start + second * SECOND);
            }
        });
    }

    #[test]
    fn sleeps_of_one_task_end_in_order() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let sleep = |seconds| {
            let clock = &clock;
            async move {
                clock.sleep_until(start + seconds * SECOND).await;
                clock.now()
            }
        };
        let ended = clock.block_on(zip(sleep(5), sleep(2)));
        assert_eq!(ended, (start + 5 * SECOND, start + 2 * SECOND));
    }

    #[test]
    fn a_hold_keeps_it_from_moving_by_itself() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let hold = clock.hold();
        let mut participant = clock.join(Waker::noop().clone());
        let look = participant.look();
        assert_eq!(participant.rest(look, Some(start + SECOND)), Rest::Wait);
        clock.advance(SECOND / 2);
        assert_eq!(clock.now(), start + SECOND / 2, "by hand it moves all the same");
        drop(hold);
        let look = participant.look();
        assert_eq!(participant.rest(look, Some(start + SECOND)), Rest::Look);
        assert_eq!(clock.now(), start + SECOND);
    }

    /// A job on another thread that takes real time finishes before a virtual timeout that is due "earlier".
    #[test]
    fn what_is_held_for_comes_before_time_moves() {
        let clock = VirtualClock::new();
        let start = clock.now();
        for _ in 0..100 {
            let (done, finished) = (Arc::new(AtomicBool::new(false)), Trigger::new());
            let job = {
                let (done, finished, hold) = (done.clone(), finished.clone(), clock.hold());
                thread::spawn(move || {
                    thread::yield_now();
                    done.store(true, Ordering::SeqCst);
                    finished.fire(Reason::requested("done"));
                    drop(hold);
                })
            };
            let before = clock.now();
            let token = finished.token();
            let outcome = token.triggered().by(&clock, Deadline::at(before + SECOND));
            assert!(clock.block_on(outcome).is_ok(), "time moved past a job that held it");
            assert_eq!(clock.now(), start);
            job.join().unwrap();
        }
    }

    #[test]
    fn it_waits_for_every_participant() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let looks = Wakes::new();
        let mut first = clock.join(Waker::from(looks.clone()));
        let mut second = clock.join(Waker::noop().clone());

        let look = first.look();
        assert_eq!(first.rest(look, Some(start + SECOND)), Rest::Wait);
        let look = second.look();
        assert_eq!(second.rest(look, None), Rest::Wait, "it may have given the first something to do");
        assert_eq!(looks.count(), 1, "so the first is asked to look again");
        let look = first.look();
        assert_eq!(
            first.rest(look, Some(start + SECOND)),
            Rest::Look,
            "and when it finds nothing, time moves"
        );
        assert_eq!(clock.now(), start + SECOND);

        first.run();
        let look = second.look();
        assert_eq!(second.rest(look, Some(start + 2 * SECOND)), Rest::Wait, "the first is busy");
        drop(first);
        let look = second.look();
        assert_eq!(second.rest(look, Some(start + 2 * SECOND)), Rest::Look, "and then it is gone");
        assert_eq!(clock.now(), start + 2 * SECOND);
    }

    #[test]
    fn what_comes_between_the_look_and_the_rest_is_looked_at() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let (mut poster, mut looper) = (clock.join(Waker::noop().clone()), clock.join(Waker::noop().clone()));
        let looked = looper.look();
        // Here the poster posts to the loop.
        let look = poster.look();
        assert_eq!(poster.rest(look, None), Rest::Wait);
        assert_eq!(looper.rest(looked, Some(start + SECOND)), Rest::Look, "somebody has run since the look");
        assert_eq!(clock.now(), start);
    }

    #[test]
    fn what_a_hold_was_for_is_looked_at_when_it_ends() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let mut participant = clock.join(Waker::noop().clone());
        let hold = clock.hold();
        let look = participant.look();
        // Here the job that held the time posts its result.
        drop(hold);
        assert_eq!(participant.rest(look, Some(start + SECOND)), Rest::Look);
        assert_eq!(clock.now(), start);
    }

    #[test]
    fn it_does_not_jump_on_before_those_who_are_due_have_been_told() {
        /// The waker of a sleeper that is due: while it runs, the participant rests.
        struct Rests(VirtualClock, Mutex<Option<Participant>>, Mutex<Option<Instant>>);
        impl Wake for Rests {
            fn wake(self: Arc<Self>) {
                let mut participant = self.1.lock().unwrap().take().unwrap();
                let look = participant.look();
                assert_eq!(participant.rest(look, None), Rest::Wait);
                *self.2.lock().unwrap() = Some(self.0.now());
            }
        }

        let clock = VirtualClock::new();
        let start = clock.now();
        let participant = clock.join(Waker::noop().clone());
        let rests = Arc::new(Rests(clock.clone(), Mutex::new(Some(participant)), Mutex::default()));
        let (mut due, mut far) = (clock.sleep_until(start + SECOND), clock.sleep_until(start + 100 * SECOND));
        assert!(Pin::new(&mut due).poll(&mut Context::from_waker(&Waker::from(rests.clone()))).is_pending());
        assert!(poll_with(&Wakes::new(), &mut far).is_pending());
        clock.advance(SECOND);
        assert_eq!(*rests.2.lock().unwrap(), Some(start + SECOND));
    }

    #[test]
    fn two_threads_that_wake_each_other_keep_it_from_moving() {
        const ROUNDS: usize = 20_000;
        let clock = VirtualClock::new();
        let start = clock.now();
        let triggers = || -> Vec<_> { (0..ROUNDS).map(|_| Trigger::new()).collect() };
        let (pings, pongs, gathering) = (triggers(), triggers(), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                clock.block_on(async {
                    gathering.wait();
                    for (ping, pong) in pings.iter().zip(&pongs) {
                        ping.fire(Reason::requested("ping"));
                        let pong = pong.token().triggered().by(&clock, Deadline::at(start + SECOND));
                        assert!(pong.await.is_ok(), "time moved while a pong was on its way");
                    }
                });
            });
            clock.block_on(async {
                gathering.wait();
                for (ping, pong) in pings.iter().zip(&pongs) {
                    ping.token().triggered().await;
                    pong.fire(Reason::requested("pong"));
                }
            });
        });
        assert_eq!(clock.now(), start);
    }

    #[test]
    fn a_time_beyond_its_range_never_comes() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let far = start + Duration::from_secs(1000 * 365 * 24 * 3600);
        let waited = clock.block_on(or(
            async {
                clock.sleep_until(far).await;
                "far"
            },
            async {
                clock.sleep_until(start + SECOND).await;
                "near"
            },
        ));
        assert_eq!(waited, "near");
        let mut participant = clock.join(Waker::noop().clone());
        let look = participant.look();
        assert_eq!(participant.rest(look, Some(far)), Rest::Wait);
    }

    #[test]
    fn every_thread_wakes_at_its_very_time() {
        const THREADS: u32 = 4;
        for seed in 0..60 {
            let clock = VirtualClock::new();
            let start = clock.now();
            // Each has joined the clock when it is polled first, so none can be alone.
            let gathering = Barrier::new(THREADS as usize);
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (clock, gathering) = (&clock, &gathering);
                    scope.spawn(move || {
                        clock.block_on(async {
                            gathering.wait();
                            let mut at = start;
                            for round in 0..30 {
                                at += (1 + (thread * 7 + round * 3 + seed) % 5) * SECOND;
                                clock.sleep_until(at).await;
                                assert_eq!(clock.now(), at, "time went on before all had been woken");
                            }
                        });
                    });
                }
            });
        }
    }

    #[test]
    fn those_whom_a_jump_wakes_come_before_the_next_jump() {
        /// The waker of the first of two sleepers that are due together: while it runs, the other one's loop
        /// looks, and does not see its own sleeper woken yet.
        struct Looks(Mutex<Participant>, Mutex<Option<Look>>);
        impl Wake for Looks {
            fn wake(self: Arc<Self>) {
                let look = self.0.lock().unwrap().look();
                *self.1.lock().unwrap() = Some(look);
            }
        }

        let clock = VirtualClock::new();
        let start = clock.now();
        let looks = Looks(Mutex::new(clock.join(Waker::noop().clone())), Mutex::default());
        let looks = Arc::new(looks);
        let mut jumper = clock.join(Waker::noop().clone());
        let waker = Waker::from(looks.clone());
        let mut sleeps = [SECOND, SECOND, 2 * SECOND].map(|after| clock.sleep_until(start + after));
        assert!(Pin::new(&mut sleeps[0]).poll(&mut Context::from_waker(&waker)).is_pending());
        for sleep in &mut sleeps[1..] {
            assert!(poll_with(&Wakes::new(), sleep).is_pending());
        }

        let look = jumper.look();
        assert_eq!(jumper.rest(look, None), Rest::Wait);
        let look = looks.0.lock().unwrap().look();
        assert_eq!(looks.0.lock().unwrap().rest(look, None), Rest::Wait);
        let look = jumper.look();
        assert_eq!(jumper.rest(look, None), Rest::Look);
        assert_eq!(clock.now(), start + SECOND);

        let stale = looks.1.lock().unwrap().take().unwrap();
        assert_eq!(looks.0.lock().unwrap().rest(stale, None), Rest::Wait);
        let look = jumper.look();
        assert_eq!(jumper.rest(look, None), Rest::Wait, "the other one has to look again first");
        assert_eq!(clock.now(), start + SECOND);
    }

    #[test]
    fn a_sleeper_that_takes_no_part_is_jumped_to() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let trigger = Trigger::new();
        thread::scope(|scope| {
            scope.spawn(|| clock.block_on(trigger.token().triggered()));
            block_on(clock.sleep_until(start + SECOND));
            assert_eq!(clock.now(), start + SECOND);
            trigger.fire(Reason::requested("enough"));
        });
    }

    #[test]
    fn a_dropped_sleep_is_not_jumped_to() {
        let clock = VirtualClock::new();
        let start = clock.now();
        let mut given_up = clock.sleep_until(start + SECOND);
        assert!(poll_with(&Wakes::new(), &mut given_up).is_pending());
        drop(given_up);
        clock.block_on(clock.sleep_until(start + 2 * SECOND));
        assert_eq!(clock.now(), start + 2 * SECOND);
    }
}

mod wakers {
    use super::*;

    /// A waker that owns a sleep, as one does whose task has a sleep in its future.
    struct Owns<S>(Mutex<S>);

    impl<S: Send + 'static> Wake for Owns<S> {
        fn wake(self: Arc<Self>) {}
    }

    fn may_own_a_sleep<T: Timer>(timer: &T)
    where
        T::Sleep: Unpin + Send + 'static,
    {
        let far = timer.now() + 3600 * SECOND;
        let (mut inner, mut outer) = (timer.sleep_until(far), timer.sleep_until(far));
        assert!(poll_with(&Wakes::new(), &mut inner).is_pending());
        let owner = Waker::from(Arc::new(Owns(Mutex::new(inner))));
        assert!(Pin::new(&mut outer).poll(&mut Context::from_waker(&owner)).is_pending());
        drop(owner);
        // The last reference to the first waker, and so to the sleep in it, is dropped by this.
        assert!(poll_with(&Wakes::new(), &mut outer).is_pending());
    }

    #[test]
    fn a_waker_that_is_replaced_may_own_another_sleep() {
        may_own_a_sleep(&ThreadTimer::start().unwrap());
        may_own_a_sleep(&VirtualClock::new());
    }

    #[test]
    fn a_participant_that_leaves_may_own_a_sleep() {
        let clock = VirtualClock::new();
        let mut sleep = clock.sleep_until(clock.now() + SECOND);
        assert!(poll_with(&Wakes::new(), &mut sleep).is_pending());
        drop(clock.join(Waker::from(Arc::new(Owns(Mutex::new(sleep))))));
    }
}
