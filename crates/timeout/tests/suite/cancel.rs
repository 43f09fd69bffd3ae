//! Timeouts that drop what is too late.

use std::{
    cell::Cell,
    future::{pending, poll_fn, ready},
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use ebbtide_lifecycle::time::{ThreadTimer, VirtualClock, VirtualSleep};
use ebbtide_timeout::{Clock, Deadline, Elapsed, Timer, timeout, timeout_at};
use futures_lite::future::block_on;

use super::{Armed, Canaries, MINUTE, bomb, poll_once};

/// Counts what is asked of it.
#[derive(Default)]
struct Counting {
    clock: Option<VirtualClock>,
    readings: Cell<usize>,
    sleeps: Cell<usize>,
}

impl Clock for Counting {
    fn now(&self) -> Instant {
        self.readings.set(self.readings.get() + 1);
        self.clock.as_ref().unwrap().now()
    }
}

impl Timer for Counting {
    type Sleep = VirtualSleep;

    fn sleep_until(&self, at: Instant) -> VirtualSleep {
        self.sleeps.set(self.sleeps.get() + 1);
        self.clock.as_ref().unwrap().sleep_until(at)
    }
}

#[test]
fn a_future_that_is_ready_costs_neither_a_clock_nor_a_timer() {
    let timer = Counting::default();
    assert_eq!(block_on(timeout(&timer, MINUTE, ready(1))), Ok(1));
    assert_eq!((timer.readings.get(), timer.sleeps.get()), (0, 0));
}

#[test]
fn a_future_that_has_to_wait_costs_one_reading_and_one_timer() {
    let timer = Counting { clock: Some(VirtualClock::new()), ..Counting::default() };
    let mut polls = 0;
    let future = poll_fn(|cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls == 5 { Poll::Ready(polls) } else { Poll::Pending }
    });
    assert_eq!(block_on(timeout(&timer, MINUTE, future)), Ok(5));
    assert_eq!((timer.readings.get(), timer.sleeps.get()), (1, 1));
}

#[test]
fn t1_what_is_ready_at_the_check_wins_over_a_deadline_that_has_come() {
    let clock = VirtualClock::new();
    let at = clock.now() + MINUTE;
    let other = clock.clone();
    // It ends at the very time of the deadline.
    let future = async move { other.sleep_until(at).await };
    assert_eq!(clock.block_on(timeout_at(&clock, Deadline::at(at), future)), Ok(()));
}

#[test]
fn t1_a_deadline_that_has_passed_fails_before_the_work_starts() {
    let clock = VirtualClock::new();
    let unpolled = || poll_fn(|_| -> Poll<()> { unreachable!("it had no time") });
    let now = Deadline::at(clock.now());
    assert_eq!(block_on(timeout_at(&clock, now, unpolled())), Err(Elapsed));
    assert_eq!(block_on(timeout(&clock, Duration::ZERO, unpolled())), Err(Elapsed));
    clock.advance(MINUTE);
    assert_eq!(block_on(timeout_at(&clock, now, unpolled())), Err(Elapsed));
}

#[test]
fn t2_a_future_that_is_too_late_is_dropped_at_once() {
    let (clock, canaries) = (VirtualClock::new(), Canaries::default());
    let canary = canaries.hatch();
    clock.block_on(async {
        let mut timeout = pin!(timeout(&clock, MINUTE, async move {
            let _canary = canary;
            pending::<()>().await;
        }));
        assert_eq!(timeout.as_mut().await, Err(Elapsed));
        assert_eq!(canaries.alive(), 0, "the timeout is still there, and what it held is not");
    });
}

#[test]
fn a_duration_that_leads_beyond_all_time_never_ends() {
    let clock = VirtualClock::new();
    let mut timeout = Box::pin(timeout(&clock, Duration::MAX, pending::<()>()));
    assert!(poll_once(&mut timeout).is_pending());
    clock.advance(Duration::from_secs(1 << 30));
    assert!(poll_once(&mut timeout).is_pending());
    let never = timeout_at(&clock, Deadline::never(), ready(1));
    assert_eq!(block_on(never), Ok(1));
}

#[test]
fn a_loser_that_panics_in_its_drop_has_lost_all_the_same() {
    let clock = VirtualClock::new();
    assert_eq!(clock.block_on(timeout(&clock, MINUTE, bomb())), Err(Elapsed));
}

#[test]
fn a_winner_that_panics_in_its_drop_has_won_all_the_same() {
    let clock = VirtualClock::new();
    assert_eq!(block_on(timeout(&clock, MINUTE, Armed::ready(7))), Ok(7));
}

#[test]
fn timeouts_may_be_nested_and_the_shorter_one_wins() {
    let clock = VirtualClock::new();
    let inner = timeout(&clock, MINUTE, pending::<()>());
    assert_eq!(clock.block_on(timeout(&clock, 2 * MINUTE, inner)), Ok(Err(Elapsed)));
    let inner = timeout(&clock, 2 * MINUTE, pending::<()>());
    assert_eq!(clock.block_on(timeout(&clock, MINUTE, inner)), Err(Elapsed));
}

#[test]
fn real_time_is_never_early() {
    let timer = ThreadTimer::start().unwrap();
    for millis in 1..5 {
        let (start, duration) = (timer.now(), Duration::from_millis(millis));
        assert_eq!(block_on(timeout(&timer, duration, pending::<()>())), Err(Elapsed));
        assert!(timer.now() - start >= duration);
    }
}
