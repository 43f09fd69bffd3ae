use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
};

use ebbtide_lifecycle::{Refusal, State};
use ebbtide_reactor::EventLoop;

use crate::{Log, count, occupy, running};

#[test]
fn e1_a_post_before_the_start_comes_back_and_never_runs() {
    let events = EventLoop::new();
    let ran = Arc::new(AtomicU32::new(0));
    let counted = ran.clone();
    let refused = events.post(move || count(&counted)).unwrap_err();
    assert_eq!(refused.why, Refusal::Closed);
    events.start().unwrap();
    events.stop();
    assert_eq!(ran.load(Ordering::SeqCst), 0, "what was refused never runs");
    (refused.work)();
    assert_eq!(ran.load(Ordering::SeqCst), 1, "it is the closure itself that came back");
}

#[test]
fn e1_a_post_after_the_stop_comes_back_and_never_runs() {
    let events = running();
    events.stop();
    assert_eq!(events.state(), State::Stopped);
    assert!(events.post(|| unreachable!("refused")).is_err());
    assert_eq!(events.balance().to_string(), "accepted 0, refused 1");
}

#[test]
fn e1_posts_during_the_stop_are_run_or_come_back() {
    for _ in 0..50 {
        let events = running();
        let ran = Arc::new(AtomicU32::new(0));
        let accepted: u32 = thread::scope(|scope| {
            let post = || {
                let mut accepted = 0;
                loop {
                    let ran = ran.clone();
                    match events.post(move || count(&ran)) {
                        Ok(()) => accepted += 1,
                        Err(_refused) => return accepted,
                    }
                }
            };
            let posters = [scope.spawn(post), scope.spawn(post)];
            while ran.load(Ordering::SeqCst) < 100 {
                thread::yield_now();
            }
            events.stop();
            let ran_at_stop = ran.load(Ordering::SeqCst);
            let accepted = posters.into_iter().map(|poster| poster.join().unwrap()).sum();
            assert_eq!(ran_at_stop, accepted, "when the stop returns, all that was accepted has run");
            accepted
        });
        assert_eq!(ran.load(Ordering::SeqCst), accepted);
        let balance = events.balance();
        assert_eq!(balance.check(), Ok(()));
        assert_eq!((balance.completed, balance.refused), (u64::from(accepted), 2));
    }
}

#[test]
fn e2_posts_run_in_the_order_of_each_thread() {
    const POSTS: u32 = 20_000;
    let events = running();
    let logs = [Log::default(), Log::default()];
    thread::scope(|scope| {
        for log in &logs {
            let events = &events;
            scope.spawn(move || {
                for number in 0..POSTS {
                    let log = log.clone();
                    events.post(move || log.note(number)).unwrap();
                }
            });
        }
    });
    events.stop();
    for log in &logs {
        assert_eq!(log.read(), (0..POSTS).collect::<Vec<_>>());
    }
}

/// The origin ran A, C, B: what was queued behind the callback that stops came after what it drained.
#[test]
fn e2_posts_keep_their_order_when_a_callback_stops_the_loop() {
    let events = Arc::new(running());
    let log = Log::default();
    let release = occupy(&events);
    for number in 0..10 {
        let (log, events) = (log.clone(), events.clone());
        let stops = number == 3;
        events
            .clone()
            .post(move || {
                log.note(number);
                if stops {
                    events.stop();
                }
            })
            .unwrap();
    }
    drop(release);
    while events.state() < State::Stopped {
        thread::yield_now();
    }
    assert_eq!(log.read(), (0..10).collect::<Vec<_>>());
}

#[test]
fn e2_what_was_queued_when_the_stop_begins_is_run() {
    let events = running();
    let log = Log::default();
    let release = occupy(&events);
    for number in 0..100 {
        let log = log.clone();
        events.post(move || log.note(number)).unwrap();
    }
    thread::scope(|scope| {
        let stop = scope.spawn(|| events.stop());
        while events.state() < State::Stopping {
            thread::yield_now();
        }
        assert!(events.post(|| unreachable!("refused")).is_err());
        drop(release);
        stop.join().unwrap();
    });
    assert_eq!(log.read(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_post_from_the_loop_itself_runs_after_what_is_queued() {
    let events = running();
    let log = Log::default();
    let (done, is_done) = mpsc::channel();
    let release = occupy(&events);
    let (first, second, handle) = (log.clone(), log.clone(), events.handle());
    events
        .post(move || {
            let (log, inner) = (first.clone(), first);
            handle
                .post(move || {
                    log.note(3);
                    done.send(()).unwrap();
                })
                .unwrap();
            inner.note(1);
        })
        .unwrap();
    events.post(move || second.note(2)).unwrap();
    drop(release);
    is_done.recv().unwrap();
    assert_eq!(log.read(), [1, 2, 3]);
}

#[test]
fn a_post_from_a_destructor_of_a_thread_local_works() {
    struct Posts(ebbtide_reactor::Handle, mpsc::Sender<()>);
    impl Drop for Posts {
        fn drop(&mut self) {
            let done = self.1.clone();
            self.0.post(move || done.send(()).unwrap()).unwrap();
        }
    }
    thread_local! {
        static POSTS: std::cell::RefCell<Option<Posts>> = const { std::cell::RefCell::new(None) };
    }

    let events = running();
    let (done, is_done) = mpsc::channel();
    let posts = Posts(events.handle(), done);
    thread::spawn(move || POSTS.set(Some(posts))).join().unwrap();
    is_done.recv().unwrap();
}

#[test]
fn posts_of_any_size_are_run_and_what_they_hold_is_dropped() {
    let events = running();
    let held = Arc::new(());
    let (ran, has_run) = mpsc::channel();
    for round in 0..500_u32 {
        let (small, ran_small) = (held.clone(), ran.clone());
        events.post(move || drop((small, ran_small.send(round)))).ok().unwrap();
        let (large, bytes, ran_large) = (held.clone(), [round; 400], ran.clone());
        events.post(move || drop((large, ran_large.send(bytes[399])))).ok().unwrap();
    }
    drop(ran);
    let expected: Vec<u32> = (0..500).flat_map(|round| [round, round]).collect();
    assert_eq!(has_run.iter().collect::<Vec<_>>(), expected);
    events.stop();
    let refused = held.clone();
    drop(events.post(move || drop(refused)));
    assert_eq!(Arc::strong_count(&held), 1);
}
