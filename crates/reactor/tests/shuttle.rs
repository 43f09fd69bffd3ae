//! Models of the inbox with more threads than loom can go through: shuttle tries schedules at random, and by PCT, which
//! looks for bugs that need few preemptions.
//!
//! Run by `cargo xtask prove --only shuttle`.

#![cfg(shuttle)]

use std::{env, ptr::NonNull};

use ebbtide_reactor::inbox::{Door, Inbox, Link, Wake};
use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// Bugs of such a kind need two preemptions at most in the literature; one more leaves a margin.
const DEPTH: usize = 3;

fn model(threads: fn()) {
    let schedules =
        env::var("SCHEDULES").map_or(2_000, |given| given.parse().expect("a number of schedules"));
    let random = Runner::new(RandomScheduler::new(schedules), Config::new()).run(threads);
    println!("{random} random schedules");
    let pct = Runner::new(PctScheduler::new(DEPTH, schedules), Config::new()).run(threads);
    println!("{pct} PCT schedules");
}

#[repr(C, align(16))]
struct Post {
    link: Link,
    number: u32,
}

/// Gives the number back if it is refused.
fn post(inbox: &Inbox, door: Door, number: u32) -> Result<Wake, u32> {
    let link = NonNull::from(Box::leak(Box::new(Post { link: Link::inert(), number }))).cast::<Link>();
    // SAFETY: it lives until it is taken out below, or taken back here.
    unsafe { inbox.put(link, door) }.map_err(|_refused| unbox(link))
}

fn unbox(link: NonNull<Link>) -> u32 {
    // SAFETY: every link of these models is the head of a `Post`, and comes out once.
    unsafe { Box::from_raw(link.cast::<Post>().as_ptr()) }.number
}

fn take(inbox: &Inbox, taken: &mut Vec<u32>) {
    let mut list = inbox.take().map(|(first, _)| first);
    while let Some(link) = list {
        // SAFETY: it has been taken out, and is not unboxed yet.
        list = unsafe { link.as_ref() }.next();
        taken.push(unbox(link));
    }
}

struct Loop {
    inbox: Inbox,
    thread: thread::Thread,
    stop: AtomicBool,
}

impl Loop {
    fn bring(&self, door: Door, number: u32) -> bool {
        match post(&self.inbox, door, number) {
            Ok(Wake::Needed) => self.thread.unpark(),
            Ok(Wake::Needless) => {}
            Err(back) => {
                assert_eq!(back, number);
                return false;
            }
        }
        true
    }

    /// As `Core::turn` and `Core::sleep` do; see the models for loom.
    fn run(&self) -> Vec<u32> {
        let mut ran = Vec::new();
        loop {
            take(&self.inbox, &mut ran);
            if self.stop.load(Ordering::SeqCst) {
                break;
            }
            if self.inbox.arm() {
                thread::park();
                self.inbox.disarm();
            }
        }
        while !self.inbox.die() {
            take(&self.inbox, &mut ran);
        }
        ran
    }

    fn order_stop(&self) {
        self.inbox.seal();
        self.stop.store(true, Ordering::SeqCst);
        self.bring(Door::Inner, NUDGE);
    }
}

const NUDGE: u32 = u32::MAX;
const POSTERS: u32 = 3;
const POSTS: u32 = 3;

#[test]
fn several_posters_against_a_stop() {
    model(|| {
        let thread = thread::current();
        let looper = Arc::new(Loop { inbox: Inbox::new(false), thread, stop: AtomicBool::new(false) });
        let posters: Vec<_> = (0..POSTERS)
            .map(|poster| {
                let looper = looper.clone();
                thread::spawn(move || {
                    let numbers = poster * POSTS..(poster + 1) * POSTS;
                    numbers.filter(|number| looper.bring(Door::Outer, *number)).collect::<Vec<_>>()
                })
            })
            .collect();
        let stoppers = [0, 1].map(|_| {
            let looper = looper.clone();
            thread::spawn(move || {
                looper.order_stop();
                assert!(!looper.bring(Door::Outer, NUDGE), "nothing is accepted after the seal");
            })
        });
        let mut ran = looper.run();
        ran.retain(|number| *number != NUDGE);
        for (poster, accepted) in (0..).zip(posters) {
            let of_it: Vec<_> = ran.iter().copied().filter(|number| number / POSTS == poster).collect();
            assert_eq!(of_it, accepted.join().unwrap(), "accepted runs once, in order, and refused never");
        }
        for stopper in stoppers {
            stopper.join().unwrap();
        }
    });
}
