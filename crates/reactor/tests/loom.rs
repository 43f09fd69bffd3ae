//! Models, explored by loom, of the inbox (posts against a stop against a loop that goes to sleep) and of a source of
//! I/O (operations that would block against reports).
//!
//! Run by `cargo xtask ci loom`; the mutants that they must catch are listed in `ARCHITECTURE.md`.

#![cfg(loom)]

use std::{
    future::poll_fn,
    ptr::NonNull,
    sync::atomic::{AtomicUsize as Count, Ordering as CountOrdering},
    task::{Context, Poll},
};

use ebbtide_reactor::{
    inbox::{Door, Inbox, Link, Wake},
    io::source::{Direction, News, Parked, Slot, Source},
};
use loom::{
    cell::UnsafeCell,
    future::block_on,
    model::Builder,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

fn model(preemptions: usize, threads: impl Fn() + Send + Sync + 'static) {
    let executions = std::sync::Arc::new(Count::new(0));
    let counted = executions.clone();
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        counted.fetch_add(1, CountOrdering::Relaxed);
        threads();
    });
    println!("{} executions", executions.load(CountOrdering::Relaxed));
}

/// A link with something in it that is written before it is put in and read after it is taken out: loom fails
/// the model if the two are not ordered.
#[repr(C, align(16))]
struct Post {
    link: Link,
    number: UnsafeCell<u32>,
}

/// Gives the number back if it is refused.
fn post(inbox: &Inbox, door: Door, number: u32) -> Result<Wake, u32> {
    let post = Box::new(Post { link: Link::inert(), number: UnsafeCell::new(0) });
    // SAFETY: loom checks that nobody else accesses the cell meanwhile.
    post.number.with_mut(|slot| unsafe { *slot = number });
    let link = NonNull::from(Box::leak(post)).cast::<Link>();
    // SAFETY: it lives until it is taken out below, or taken back here.
    unsafe { inbox.put(link, door) }.map_err(|_refused| unbox(link))
}

fn unbox(link: NonNull<Link>) -> u32 {
    // SAFETY: every link of these models is the head of a `Post`, and comes out once.
    let post = unsafe { Box::from_raw(link.cast::<Post>().as_ptr()) };
    // SAFETY: as above.
    post.number.with(|slot| unsafe { *slot })
}

fn take(inbox: &Inbox) -> Vec<u32> {
    let (mut taken, mut list) = (Vec::new(), inbox.take().map(|(first, _)| first));
    while let Some(link) = list {
        // SAFETY: it has been taken out, and is not unboxed yet.
        list = unsafe { link.as_ref() }.next();
        taken.push(unbox(link));
    }
    taken
}

/// The loop's side: an inbox, and a thread that parks.
struct Loop {
    inbox: Inbox,
    thread: thread::Thread,
    stop: AtomicBool,
}

impl Loop {
    fn new() -> Arc<Self> {
        Arc::new(Self { inbox: Inbox::new(false), thread: thread::current(), stop: AtomicBool::new(false) })
    }

    fn wake(&self, wake: Wake) {
        if wake == Wake::Needed {
            self.thread.unpark();
        }
    }

    /// As `Core::turn` and `Core::sleep` do: take, else arm and park, until told to stop; then take the rest
    /// and die.
    fn run(&self) -> Vec<u32> {
        let mut ran = Vec::new();
        loop {
            ran.extend(take(&self.inbox));
            if self.stop.load(Ordering::Acquire) {
                break;
            }
            if self.inbox.arm() {
                thread::park();
                self.inbox.disarm();
            }
        }
        ran.extend(take(&self.inbox));
        while !self.inbox.die() {
            ran.extend(take(&self.inbox));
        }
        ran
    }

    fn order_stop(&self) {
        self.inbox.seal();
        self.stop.store(true, Ordering::Release);
        // The nudge, which always gets in: the loop is alive until it has seen the stop.
        if let Ok(wake) = post(&self.inbox, Door::Inner, NUDGE) {
            self.wake(wake);
        }
    }
}

const NUDGE: u32 = 0;

#[test]
fn what_is_accepted_runs_in_order_and_what_is_refused_comes_back() {
    model(3, || {
        let looper = Loop::new();
        let poster = thread::spawn({
            let looper = looper.clone();
            move || {
                let mut accepted = Vec::new();
                for number in [1, 2] {
                    match post(&looper.inbox, Door::Outer, number) {
                        Ok(wake) => {
                            looper.wake(wake);
                            accepted.push(number);
                        }
                        Err(back) => assert_eq!(back, number),
                    }
                }
                looper.order_stop();
                assert!(post(&looper.inbox, Door::Outer, 3).is_err(), "nothing is accepted after the seal");
                accepted
            }
        });
        let mut ran = looper.run();
        let accepted = poster.join().unwrap();
        ran.retain(|number| *number != NUDGE);
        assert_eq!(ran, accepted, "accepted runs once, in order");
    });
}

#[test]
fn a_post_against_a_stop_of_another_thread() {
    model(3, || {
        let looper = Loop::new();
        let poster = thread::spawn({
            let looper = looper.clone();
            move || {
                let posted = post(&looper.inbox, Door::Outer, 1);
                if let Ok(wake) = posted {
                    looper.wake(wake);
                }
                posted.is_ok()
            }
        });
        let stopper = thread::spawn({
            let looper = looper.clone();
            move || looper.order_stop()
        });
        let mut ran = looper.run();
        ran.retain(|number| *number != NUDGE);
        assert_eq!(ran.len(), usize::from(poster.join().unwrap()), "accepted runs, refused does not");
        stopper.join().unwrap();
    });
}

#[test]
fn two_posters_wake_a_loop_that_goes_to_sleep() {
    model(2, || {
        let looper = Loop::new();
        let posters = [1, 2].map(|number| {
            let looper = looper.clone();
            thread::spawn(move || {
                let wake = post(&looper.inbox, Door::Outer, number).expect("it is open");
                looper.wake(wake);
            })
        });
        let mut ran = Vec::new();
        while ran.len() < 2 {
            ran.extend(take(&looper.inbox));
            if ran.len() < 2 && looper.inbox.arm() {
                thread::park();
                looper.inbox.disarm();
            }
        }
        for poster in posters {
            poster.join().unwrap();
        }
    });
}

/// Who is told to wake a loop must know how: the loop's thread, its driver.
fn whoever_is_to_wake_a_loop_sees(starts_open: bool) {
    model(3, move || {
        let (inbox, set_up) = (Arc::new(Inbox::new(!starts_open)), Arc::new(AtomicBool::new(false)));
        let poster = thread::spawn({
            let (inbox, set_up) = (inbox.clone(), set_up.clone());
            move || {
                if let Ok(Wake::Needed) = post(&inbox, Door::Outer, 1) {
                    assert!(set_up.load(Ordering::Relaxed), "accepted, told to wake, and does not see how");
                }
            }
        });
        set_up.store(true, Ordering::Relaxed);
        if !starts_open {
            assert!(inbox.open());
        }
        let _armed = inbox.arm();
        poster.join().unwrap();
        take(&inbox);
    });
}

#[test]
fn whoever_is_to_wake_a_loop_that_starts_sees_its_thread() {
    whoever_is_to_wake_a_loop_sees(false);
}

#[test]
fn whoever_is_to_wake_a_loop_sees_where_it_sleeps() {
    whoever_is_to_wake_a_loop_sees(true);
}

#[test]
fn a_wake_up_that_a_dead_inbox_refuses_is_told() {
    model(3, || {
        let looper = Loop::new();
        let waker = thread::spawn({
            let looper = looper.clone();
            move || {
                looper.inbox.seal();
                looper.stop.store(true, Ordering::Release);
                post(&looper.inbox, Door::Inner, 1).is_ok()
            }
        });
        looper.stop.store(true, Ordering::Release);
        let ran = looper.run();
        assert_eq!(ran.len(), usize::from(waker.join().unwrap()));
    });
}

#[test]
fn a_stop_during_the_start_keeps_the_inbox_shut() {
    model(3, || {
        let inbox = Arc::new(Inbox::new(true));
        let starter = thread::spawn({
            let inbox = inbox.clone();
            move || inbox.open()
        });
        inbox.seal();
        starter.join().unwrap();
        assert!(inbox.is_shut());
        assert_eq!(post(&inbox, Door::Outer, 1), Err(1));
    });
}

/// A source of which somebody makes something readable. What there is is a count, as the system would keep it.
#[derive(Default)]
struct Pipe {
    source: Source,
    bytes: loom::sync::atomic::AtomicUsize,
}

impl Pipe {
    /// Something arrives, and the loop reports it.
    fn arrive(&self) {
        self.bytes.fetch_add(1, Ordering::Relaxed);
        let mut due = Vec::new();
        self.source.announce(News::new(true, false), &mut due);
        due.into_iter().for_each(std::task::Waker::wake);
    }

    /// Takes what there is, and waits if there is nothing; as `Async` does.
    fn poll_read(&self, slot: &mut Slot<'_>, cx: &Context<'_>) -> Poll<Result<usize, ()>> {
        loop {
            let seen = self.source.look();
            if seen.is_ready(Direction::Read) {
                match self.bytes.swap(0, Ordering::Relaxed) {
                    0 => self.source.clear(Direction::Read, seen),
                    bytes => return Poll::Ready(Ok(bytes)),
                }
            }
            match self.source.park(Direction::Read, slot.reborrow(), cx.waker()) {
                Parked::Waiting => return Poll::Pending,
                Parked::Ready => {}
                Parked::Ended => return Poll::Ready(Err(())),
            }
        }
    }
}

#[test]
fn whoever_waits_for_io_sees_all_that_arrives() {
    model(3, || {
        let pipe = Arc::new(Pipe::default());
        let arriving = pipe.clone();
        let arrivals = thread::spawn(move || {
            arriving.arrive();
            arriving.arrive();
        });
        let mut got = 0;
        while got < 2 {
            got += block_on(poll_fn(|cx| pipe.poll_read(&mut Slot::Polled, cx)))
                .expect("the loop has not ended");
        }
        arrivals.join().unwrap();
    });
}

#[test]
fn whoever_waits_for_io_of_a_loop_that_ends_is_told() {
    model(3, || {
        let pipe = Arc::new(Pipe::default());
        let ending = pipe.clone();
        let end = thread::spawn(move || {
            let mut due = Vec::new();
            ending.source.announce(News::END, &mut due);
            due.into_iter().for_each(std::task::Waker::wake);
        });
        let mut place = None;
        block_on(poll_fn(|cx| pipe.poll_read(&mut Slot::Own(&mut place), cx))).expect_err("nothing arrives");
        if let Some(key) = place {
            pipe.source.leave(Direction::Read, key);
        }
        end.join().unwrap();
    });
}
