//! The wheel beside a plain map of the same timers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Wake,
};

use super::*;

struct Numbered(usize, Arc<AtomicUsize>);

impl Wake for Numbered {
    fn wake(self: Arc<Self>) {
        self.1.store(self.0, Ordering::Relaxed);
    }
}

/// A wheel beside a plain map of the same timers.
struct Pair {
    wheel: Wheel,
    plain: BTreeMap<(u64, usize), Key>,
    fired: Arc<AtomicUsize>,
    now: u64,
    issued: usize,
}

impl Pair {
    fn new() -> Self {
        let fired = Arc::default();
        Self { wheel: Wheel::new(), plain: BTreeMap::new(), fired, now: 0, issued: 0 }
    }

    fn waker(&mut self) -> Waker {
        self.issued += 1;
        Waker::from(Arc::new(Numbered(self.issued, self.fired.clone())))
    }

    fn insert(&mut self, after: u64) {
        let at = self.now.saturating_add(after);
        let waker = self.waker();
        self.plain.insert((at, self.issued), self.wheel.insert(at, waker));
    }

    /// Plans some, of which one is taken back, and settles them.
    fn plan(&mut self, afters: &[u64]) {
        let keys: Vec<_> = afters.iter().map(|after| self.wheel.plan(*after)).collect();
        let unwanted = self.wheel.plan(1);
        for key in &keys {
            let waker = self.waker();
            *self.wheel.waker(*key).expect("planned") = Some(waker);
        }
        assert!(self.wheel.remove(unwanted).is_none(), "nobody waits for it");
        assert!(self.wheel.waker(unwanted).is_none());
        self.wheel.settle(self.now);
        for (nth, (key, after)) in keys.into_iter().zip(afters).enumerate() {
            let at = self.now.saturating_add(*after);
            self.plain.insert((at, self.issued + 1 + nth - afters.len()), key);
        }
    }

    fn remove(&mut self, nth: usize) {
        if self.plain.is_empty() {
            return;
        }
        let (number, key) = self.plain.iter().nth(nth % self.plain.len()).expect("not empty");
        let (number, key) = (*number, *key);
        assert!(self.wheel.remove(key).is_some());
        assert!(self.wheel.remove(key).is_none(), "a key is good once");
        self.plain.remove(&number);
    }

    /// Goes to `now`, and checks that exactly those fire whose time has come.
    fn advance(&mut self, now: u64) {
        self.now = now;
        let mut due = Vec::new();
        self.wheel.advance(now, &mut due);
        let fired: Vec<usize> = due
            .into_iter()
            .map(|waker| {
                waker.wake();
                self.fired.load(Ordering::Relaxed)
            })
            .collect();
        let later = self.plain.split_off(&(now + 1, 0));
        let times: BTreeMap<usize, u64> = self.plain.keys().map(|(at, number)| (*number, *at)).collect();
        assert_eq!(fired.len(), times.len(), "at {now}");
        // In the order of their times; those of the same time in any.
        assert!(fired.is_sorted_by_key(|number| times[number]), "at {now}: {fired:?} of {times:?}");
        self.plain = later;
        assert_eq!(self.wheel.len(), self.plain.len());
    }

    /// Goes from look to look until nothing is left.
    fn run_out(&mut self) {
        let mut looks = 0;
        while let Some(look) = self.wheel.next_look() {
            let earliest = self.plain.first_key_value().expect("as many as in the wheel").0.0;
            assert!(look <= earliest, "a look at {look} comes after {earliest}");
            looks += 1;
            assert!(looks <= 1_000 * (1 + self.issued), "the looks come to an end");
            self.advance(look.max(self.now));
        }
        assert!(self.plain.is_empty());
    }
}

/// A small generator of numbers, so that a failure comes again.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

#[test]
fn timers_fire_at_their_time_and_neither_before_nor_after_it() {
    for seed in 0..200 {
        let (mut numbers, mut pair) = (Numbers(seed), Pair::new());
        for _ in 0..200 {
            match numbers.next(10) {
                0..5 => {
                    let scale = numbers.next(62);
                    let after = numbers.next(1 << 31) << 31 >> (62 - scale);
                    match numbers.next(3) {
                        0 => pair.plan(&[after, after, numbers.next(1 << 20)]),
                        _ => pair.insert(after),
                    }
                }
                5..7 => pair.remove(numbers.next(1 << 20) as usize),
                7 => {
                    let scale = numbers.next(44);
                    pair.advance(pair.now + (numbers.next(1 << 31) << 13 >> (44 - scale)));
                }
                _ => {
                    if let Some(look) = pair.wheel.next_look() {
                        pair.advance(look.max(pair.now));
                    }
                }
            }
        }
        pair.run_out();
    }
}

#[test]
fn a_timer_beyond_the_reach_of_the_wheel_is_not_early() {
    let mut pair = Pair::new();
    for after in [1 << 53, 1 << 54, (1 << 60) + 1, 5] {
        pair.insert(after);
    }
    pair.run_out();
}

#[test]
fn planned_timers_keep_their_order_when_others_are_removed() {
    let (mut numbers, mut wheel, mut kept) = (Numbers(7), Wheel::new(), Vec::new());
    let fired = Arc::default();
    for number in 0..10_000 {
        let key = wheel.plan(1_000);
        let waker = Waker::from(Arc::new(Numbered(number, Arc::clone(&fired))));
        *wheel.waker(key).expect("planned") = Some(waker);
        kept.push((number, key));
        if numbers.next(10) < 9 {
            let (_, key) = kept.swap_remove(numbers.next(kept.len() as u64) as usize);
            assert!(wheel.remove(key).is_some());
        }
    }
    wheel.settle(5);
    let mut due = Vec::new();
    wheel.advance(1 << 40, &mut due);
    let fired: Vec<usize> = due
        .into_iter()
        .map(|waker| {
            waker.wake();
            fired.load(Ordering::Relaxed)
        })
        .collect();
    kept.sort_unstable_by_key(|(number, _)| *number);
    assert_eq!(fired, kept.iter().map(|(number, _)| *number).collect::<Vec<_>>());
}

#[test]
fn a_crowd_is_looked_at_together_and_a_few_at_their_time() {
    let mut wheel = Wheel::new();
    let far = 1_000 << TICK_BITS;
    for nth in 0..CROWD as u64 - 1 {
        wheel.insert(far + nth, Waker::noop().clone());
    }
    wheel.advance(far - 1, &mut Vec::new());
    assert_eq!(wheel.next_look_of_many(), Some(far));
    wheel.insert(far + 9, Waker::noop().clone());
    let together = wheel.next_look_of_many().expect("they are there");
    assert!((far + 9..=far + GATHERING).contains(&together));
}

#[test]
fn a_wheel_that_was_empty_fills_in_order_and_old_keys_mean_nothing() {
    let mut wheel = Wheel::new();
    let mut fill = |number| -> Vec<Key> {
        let keys: Vec<_> = (0..number).map(|at| wheel.insert(at, Waker::noop().clone())).collect();
        // Out of order, so that a list of unused entries would be, too.
        for key in keys.iter().rev().step_by(2).chain(keys.iter().rev().skip(1).step_by(2)) {
            assert!(wheel.remove(*key).is_some());
        }
        keys
    };
    let (old, new) = (fill(10), fill(20));
    assert!(new.iter().map(|key| key.index).eq(0..20));
    let last = wheel.insert(1, Waker::noop().clone());
    assert!(old.iter().chain(&new).all(|key| wheel.waker(*key).is_none()));
    assert!(wheel.waker(last).is_some());
}

#[test]
fn a_million_timers_come_and_go() {
    let (mut numbers, mut wheel, mut keys) = (Numbers(1), Wheel::new(), Vec::new());
    for _ in 0..1_000_000 {
        keys.push(wheel.insert(numbers.next(1 << 31), Waker::noop().clone()));
    }
    assert_eq!(wheel.len(), 1_000_000);
    for key in keys {
        assert!(wheel.remove(key).is_some());
    }
    assert_eq!((wheel.len(), wheel.next_look()), (0, None));
}
