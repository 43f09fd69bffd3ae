//! Foreign code that panics where nobody waits for it.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use ebbtide_dag::{Class, Env, Graph, Handle, Run};
use ebbtide_lifecycle::{Component, time::VirtualClock};
use ebbtide_offload::Pool;

use super::{Bomb, Latch};

/// Panics whenever it is woken.
struct Evil;

impl Wake for Evil {
    fn wake(self: Arc<Self>) {
        panic!("evil");
    }
}

#[test]
fn a_waker_that_panics_hurts_neither_its_own_run_nor_another() {
    let evil = Waker::from(Arc::new(Evil));
    let (mut plain, mut evil) = (Context::from_waker(Waker::noop()), Context::from_waker(&evil));
    // It waits for a place that the other one gives back.
    let class = Class::new("class", 1);
    let released = Arc::new(AtomicUsize::new(0));
    let is_released = released.clone();
    let mut graph = Graph::<()>::new("places");
    let node = graph.future("node", (), move |_, ()| {
        let is_released = is_released.clone();
        poll_fn(move |cx| {
            if is_released.load(Ordering::Relaxed) > 0 {
                return Poll::Ready(Ok(()));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    });
    graph.node(node).class(&class);
    let engine = graph.plan(node).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    let (mut first, mut second) = (Box::pin(engine.run(())), Box::pin(engine.run(())));
    assert!(first.as_mut().poll(&mut plain).is_pending() && second.as_mut().poll(&mut evil).is_pending());
    released.store(1, Ordering::Relaxed);
    let ends = |run: &mut Pin<Box<Run<(), Handle<()>, VirtualClock>>>, cx: &mut Context<'_>| {
        (0..5).any(|_| matches!(run.as_mut().poll(cx), Poll::Ready(Ok(_))))
    };
    assert!(ends(&mut first, &mut plain) && ends(&mut second, &mut evil));
    // It is woken on a thread of the pool, and polled again and again.
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let mut graph = Graph::<()>::new("pool");
    let heavy = graph.cpu("heavy", (), |_, ()| Ok(()));
    let inline = graph.inline("inline", heavy, |_, _| Ok(()));
    let engine = graph.plan(inline).unwrap().bind(Env::new(VirtualClock::new()).pool(&pool)).unwrap();
    let mut run = Box::pin(engine.run(()));
    while run.as_mut().poll(&mut evil).is_pending() {
        pool.wait_idle().wait();
    }
    engine.balance().check().unwrap();
}

#[test]
fn a_request_that_panics_in_its_drop_on_a_thread_of_the_pool_fails_nothing_there() {
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let (latch, begun, release) = Latch::new();
    let mut graph = Graph::<Bomb>::new("last holder");
    let node = graph.cpu("node", (), move |_, ()| {
        latch.wait();
        Ok(())
    });
    let engine = graph.plan(node).unwrap().bind(Env::new(VirtualClock::new()).pool(&pool)).unwrap();
    let mut run = Box::pin(engine.run(Bomb));
    assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    begun.recv().unwrap();
    drop(run);
    release.send(()).unwrap();
    pool.wait_idle().wait();
    assert_eq!((pool.balance().failed, pool.balance().completed), (0, 1));
    assert_eq!((engine.balance().late, engine.balance().in_flight), (1, 0));
}
