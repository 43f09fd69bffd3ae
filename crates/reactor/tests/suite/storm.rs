//! Real threads in a storm: start, post, spawn, wake and stop, all at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
};

use ebbtide_lifecycle::{Reason, Trigger};
use ebbtide_reactor::{EventLoop, yield_now};

use crate::count;

#[test]
fn in_a_storm_accepted_runs_and_refused_comes_back() {
    for _ in 0..100 {
        let events = EventLoop::new();
        let [accepted, ran] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let counted = ran.clone();
                        let posted = events.post(move || count(&counted));
                        accepted.fetch_add(u32::from(posted.is_ok()), Ordering::SeqCst);
                        let wake = Trigger::new();
                        let token = wake.token();
                        let spawned = events.spawn(async move {
                            token.triggered().await;
                            yield_now().await;
                        });
                        wake.fire(Reason::requested("storm"));
                        if let Ok(task) = spawned {
                            accepted.fetch_add(1, Ordering::SeqCst);
                            task.detach();
                        }
                    }
                });
            }
            scope.spawn(|| {
                let _ = events.start();
            });
            scope.spawn(|| {
                thread::yield_now();
                events.stop();
            });
        });
        events.stop();
        let balance = events.balance();
        assert_eq!(balance.check(), Ok(()));
        assert_eq!(balance.accepted, u64::from(accepted.load(Ordering::SeqCst)));
        assert_eq!(balance.failed + balance.abandoned + balance.handed_back + balance.in_flight, 0);
        assert!(u64::from(ran.load(Ordering::SeqCst)) <= balance.completed);
    }
}

#[test]
fn wake_ups_from_other_threads_are_not_lost() {
    const PINGS: u64 = 20_000;
    let events = EventLoop::new();
    events.start().unwrap();
    let (ping, pings) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (seen, waker) = (pings.clone(), Arc::new(std::sync::Mutex::new(None::<std::task::Waker>)));
    let (target, slot) = (ping.clone(), waker.clone());
    let task = events
        .spawn(std::future::poll_fn(move |cx| {
            *slot.lock().unwrap() = Some(cx.waker().clone());
            let now = target.load(Ordering::SeqCst);
            seen.store(now, Ordering::SeqCst);
            if now == PINGS { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        }))
        .unwrap();
    for number in 1..=PINGS {
        ping.store(number, Ordering::SeqCst);
        loop {
            let wake = waker.lock().unwrap().clone();
            if let Some(waker) = wake {
                waker.wake();
                break;
            }
            thread::yield_now();
        }
        while pings.load(Ordering::SeqCst) < number {
            thread::yield_now();
        }
    }
    futures_lite::future::block_on(task).unwrap();
}
