//! Races.

use std::{
    future::{Future, pending, poll_fn, ready},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use ebbtide_lifecycle::{
    Trigger,
    time::{Clock, Timer, VirtualClock},
};
use ebbtide_timeout::{First, race, race_all};
use futures_lite::future::block_on;

use super::{Bomb, Canaries, Counted, MINUTE, bomb};

#[test]
fn t1_the_first_wins_and_of_two_at_once_the_left_one() {
    let clock = VirtualClock::new();
    let after = |minutes: u32| clock.sleep_until(clock.now() + minutes * MINUTE);
    assert_eq!(clock.block_on(race(after(2), after(1))), First::Right(()));
    assert_eq!(clock.block_on(race(after(1), after(2))), First::Left(()));
    assert_eq!(clock.block_on(race(after(1), after(1))), First::Left(()));
    assert_eq!(block_on(race(ready(1), ready(2))).into_inner(), 1);
}

#[test]
fn the_loser_is_dropped_before_the_winner_is_given() {
    let canaries = Canaries::default();
    let canary = canaries.hatch();
    let mut race = pin!(race(
        async {
            let _canary = canary;
            pending::<()>().await;
        },
        ready(7),
    ));
    block_on(async {
        assert_eq!(race.as_mut().await, First::Right(7));
        assert_eq!(canaries.alive(), 0);
    });
}

#[test]
fn a_loser_that_panics_in_its_drop_takes_nothing_from_the_winner() {
    assert_eq!(block_on(race(ready(1), bomb())), First::Left(1));
    // The right one has been polled, and holds a bomb.
    let mut polls = 0;
    let second = poll_fn(|cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls == 2 { Poll::Ready(1) } else { Poll::Pending }
    });
    assert_eq!(block_on(race(bomb(), second)), First::Right(1));
    let racers: Vec<std::pin::Pin<Box<dyn Future<Output = u8>>>> = vec![
        Box::pin(async {
            let _bomb = Bomb;
            pending().await
        }),
        Box::pin(ready(2)),
    ];
    assert_eq!(block_on(race_all(racers)), Some((1, 2)));
}

#[test]
fn of_many_the_first_in_their_order_wins() {
    assert_eq!(block_on(race_all([ready(1), ready(2), ready(3)])), Some((0, 1)));
    assert_eq!(block_on(race_all(Vec::<std::future::Ready<()>>::new())), None);
    let clock = VirtualClock::new();
    let racers = [3, 1, 2].map(|minutes| clock.sleep_until(clock.now() + minutes * MINUTE));
    assert_eq!(clock.block_on(race_all(racers)), Some((1, ())));
}

#[test]
fn no_waker_is_left_behind_with_the_losers() {
    let trigger = Trigger::new();
    let counted = Arc::new(Counted);
    let waker = Waker::from(counted.clone());
    let mut cx = Context::from_waker(&waker);
    let mut polls = 0;
    let second = poll_fn(|_| {
        polls += 1;
        if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
    });
    let mut race = pin!(race(trigger.token().triggered(), second));
    assert!(race.as_mut().poll(&mut cx).is_pending());
    assert!(Arc::strong_count(&counted) > 2, "the trigger keeps a waker");
    assert!(race.as_mut().poll(&mut cx).is_ready());
    assert_eq!(Arc::strong_count(&counted), 2);
}
