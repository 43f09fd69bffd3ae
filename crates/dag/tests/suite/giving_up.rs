//! Nodes and runs that are given up on, and what they may not take with them: places, values, time.

use std::{
    future::pending,
    pin::{Pin, pin},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use ebbtide_dag::{Class, Env, Failure, Graph, Policy, Retry, RunError};
use ebbtide_lifecycle::{
    Component, Reason, Stopped, Trigger, contain,
    time::{Clock, Deadline, SystemClock, ThreadTimer, Timer, VirtualClock},
    wait::block_on,
};
use ebbtide_offload::{Pool, Unstarted};

use super::{Bomb, Latch, MS, World};

/// A pool with one thread, in the system's time.
fn one_thread() -> (Pool, Env<ThreadTimer>) {
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let env = Env::new(ThreadTimer::start().unwrap()).pool(&pool);
    (pool, env)
}

#[test]
fn a_deadline_or_a_cancel_does_not_wait_for_a_cpu_node_that_follows_another() {
    for cancels in [false, true] {
        let (pool, env) = one_thread();
        let (latch, begun, release) = Latch::new();
        let mut graph = Graph::<()>::new("follows");
        let quick = graph.cpu("quick", (), |_, ()| Ok(()));
        let long = graph.cpu("long", quick, move |_, _| {
            latch.wait();
            Ok(())
        });
        let engine = graph.plan(long).unwrap().bind(env).unwrap();
        let trigger = Trigger::new();
        let run = engine.run(());
        let run = if cancels { run.cancelled_by(&trigger.token()) } else { run.within(20 * MS) };
        let firing = std::thread::spawn(move || {
            begun.recv().unwrap();
            trigger.fire(Reason::requested("test"));
        });
        // It ends while the node is held.
        assert!(block_on(run).is_err());
        firing.join().unwrap();
        assert_eq!(engine.in_flight(), 1);
        release.send(()).unwrap();
        pool.wait_idle().wait();
        assert_eq!(engine.balance().late, 1);
    }
}

#[test]
fn a_timeout_with_a_fallback_does_not_wait_for_its_node() {
    let (pool, env) = one_thread();
    let (latch, _begun, release) = Latch::new();
    let mut graph = Graph::<()>::new("falls back");
    let quick = graph.cpu("quick", (), |_, ()| Ok(()));
    let long = graph.cpu("long", quick, move |_, _| {
        latch.wait();
        Ok(1)
    });
    graph.node(long).timeout(20 * MS).fallback(0);
    let engine = graph.plan(long).unwrap().bind(env).unwrap();
    assert_eq!(*block_on(engine.run(())).unwrap(), 0);
    release.send(()).unwrap();
    pool.wait_idle().wait();
}

#[test]
fn the_deadline_holds_also_after_an_error_and_the_error_stays_the_first() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("after an error");
    let stuck = graph.future("stuck", (), |_, ()| pending::<Result<(), Failure>>());
    let bad = graph.inline("bad", (), |_, ()| Err::<(), _>(Failure::new("broken")));
    let engine = graph.plan((bad, stuck)).unwrap().bind(Env::new(world.runtime.handle())).unwrap();
    let error = world.runtime.block_on(engine.run(()).within(50 * MS)).unwrap_err();
    assert_eq!(error.to_string(), "R004 node \"bad\" failed: broken");
    // So it does when it is cancelled.
    let trigger = Trigger::new();
    let mut run = pin!(engine.run(()).cancelled_by(&trigger.token()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut cx).is_pending());
    trigger.fire(Reason::requested("test"));
    let Poll::Ready(Err(error)) = run.poll(&mut cx) else { panic!("it goes on") };
    assert_eq!(error.code(), "R004");
}

#[test]
fn all_that_has_ended_by_the_deadline_was_in_time() {
    let world = World::new();
    let mut graph = Graph::<()>::new("in time");
    let (latch, _begun, release) = Latch::new();
    let node = graph.cpu("node", (), move |_, ()| {
        latch.wait();
        Ok(7)
    });
    let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
    let mut run = pin!(engine.run(()).within(10 * MS));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut cx).is_pending());
    release.send(()).unwrap();
    world.pool.wait_idle().wait();
    world.clock.advance(20 * MS);
    assert!(matches!(run.poll(&mut cx), Poll::Ready(Ok(value)) if *value == 7));
}

#[test]
fn a_node_is_tried_again_without_a_pause_wherever_it_runs_and_others_get_their_turn() {
    let mut world = World::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::<()>::new("without a pause");
    let flaky =
        graph.cpu(
            "flaky",
            (),
            |cx, ()| {
                if cx.attempt() < 3 { Err(Failure::new("again")) } else { Ok(cx.attempt()) }
            },
        );
    graph.node(flaky).retry(Retry::times(3));
    let count = calls.clone();
    let stubborn = graph.inline("stubborn", (), move |_, ()| {
        count.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(Failure::new("again"))
    });
    graph.node(stubborn).retry(Retry::times(100_000)).fallback(());
    let engine = graph.plan((flaky, stubborn)).unwrap().bind(world.env()).unwrap();
    let mut run = pin!(engine.run(()));
    assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(calls.load(Ordering::Relaxed) < 1_000, "{calls:?} in one poll");
    let (flaky, _) = world.runtime.block_on(run).unwrap();
    assert_eq!((*flaky, calls.load(Ordering::Relaxed)), (3, 100_000));
}

#[test]
fn a_retry_that_is_due_together_with_the_deadline_ends_with_it() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("both");
    let flaky = graph.cpu("flaky", (), |_, ()| Err::<(), _>(Failure::new("again")));
    graph.node(flaky).retry(Retry::times(9).backoff(10 * MS, 10 * MS));
    let engine = graph.plan(flaky).unwrap().bind(world.env()).unwrap();
    for ms in [10, 20] {
        let error = world.runtime.block_on(engine.run(()).within(ms * MS)).unwrap_err();
        assert!(matches!(error, RunError::Deadline { .. }), "{error}");
    }
    world.settle(&engine);
}

#[test]
fn a_node_with_no_time_at_all_does_not_run_also_behind_another_on_the_pool() {
    let world = World::new();
    let mut graph = Graph::<()>::new("no time");
    let first = graph.cpu("first", (), |_, ()| Ok(()));
    let second = graph.cpu("second", first, |_, _| Ok(()));
    graph.node(second).timeout(Duration::ZERO);
    let engine = graph.plan(second).unwrap().bind(world.env()).unwrap();
    assert_eq!(block_on(engine.run(())).unwrap_err().code(), "R003");
    let mut graph = Graph::<()>::new("no time");
    let first = graph.cpu("first", (), |_, ()| Ok(()));
    graph.node(first).timeout(1000 * MS);
    let second = graph.cpu("second", first, |_, _| Ok(()));
    let engine = graph.plan(second).unwrap().bind(world.env()).unwrap();
    let error = block_on(engine.run(()).node_timeout(Duration::ZERO)).unwrap_err();
    assert_eq!(error.to_string(), "R003 node \"second\" timed out after 0ns");
}

#[test]
fn a_class_gets_its_places_back_whatever_ends_a_run() {
    let world = World::new();
    let class = Class::new("class", 10_000);
    let mut graph = Graph::<()>::new("places");
    let mut nodes = Vec::new();
    for n in 0..3_000 {
        let node = graph.cpu(format!("n{n}"), (), |_, ()| Ok(()));
        graph.node(node).class(&class);
        nodes.push(node);
    }
    let bad = graph.cpu("bad", (), |_, ()| Err::<(), _>(Failure::new("broken")));
    let engine = graph.plan((nodes, bad.optional())).unwrap().bind(world.env()).unwrap();
    for n in 0..24_u32 {
        match n % 3 {
            0 => drop(block_on(engine.run(()))),
            1 => drop(block_on(engine.run(()).policy(Policy::FinishIndependent))),
            _ => {
                // Dropped when all has ended and nobody has looked.
                let mut run = pin!(engine.run(()));
                let _: Poll<_> = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                if n % 2 == 0 {
                    world.pool.wait_idle().wait();
                }
            }
        }
        world.pool.wait_idle().wait();
        assert_eq!(class.load(), (0, 0), "round {n}");
    }
}

#[test]
fn what_a_node_that_was_not_run_would_have_got_is_not_given_to_the_next_request() {
    let world = World::new();
    let mut graph = Graph::<u32>::new("not run");
    let secret = graph.inline("secret", (), |cx, ()| Ok(format!("of request {}", cx.request())));
    graph.node(secret).when(|cx| **cx.request() == 1);
    let refused = graph.blocking("refused", secret.optional(), |_, _| Ok(1));
    graph.node(refused).fallback(0);
    let seen = graph.inline("seen", (secret.optional(), refused), |_, (secret, _)| {
        Ok(secret.map(|secret| secret.clone()))
    });
    let engine = graph.plan(seen).unwrap().bind(world.env()).unwrap();
    world.pool.close();
    assert_eq!(block_on(engine.run(1)).unwrap().as_deref(), Some("of request 1"));
    assert_eq!(block_on(engine.run(2)).unwrap().as_deref(), None);
}

#[test]
fn what_panics_when_it_is_dropped_costs_no_run_its_result() {
    #[derive(Debug)]
    struct Explosive(Bomb);
    impl std::fmt::Display for Explosive {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("explosive")
        }
    }
    impl std::error::Error for Explosive {}

    let mut graph = Graph::<Mutex<Option<Bomb>>>::new("explosive");
    let falls_back = graph.inline("falls back", (), |_, ()| Err(Failure::from(Explosive(Bomb))));
    graph.node(falls_back).fallback(1);
    let again = graph.inline("again", (), |cx, ()| {
        if cx.attempt() == 1 { Err(Failure::from(Explosive(Bomb))) } else { Ok(2) }
    });
    graph.node(again).retry(Retry::times(2));
    let engine = graph.plan((falls_back, again)).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    let request = Arc::new(Mutex::new(Some(Bomb)));
    let (one, two) = block_on(engine.run(request)).unwrap();
    assert_eq!((*one, *two, engine.balance().completed), (1, 2, 1));
}

#[test]
fn a_stop_that_gives_up_keeps_the_places_of_what_goes_on_until_it_ends() {
    let (pool, env) = one_thread();
    let class = Class::new("class", 1);
    let (latch, begun, release) = Latch::new();
    let mut graph = Graph::<()>::new("overdue");
    let held = graph.cpu("held", (), move |_, ()| {
        latch.wait();
        Ok(())
    });
    graph.node(held).class(&class);
    let engine = graph.plan(held).unwrap().bind(env).unwrap();
    let mut run = Box::pin(engine.run(()));
    assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    begun.recv().unwrap();
    let soon = Deadline::after(SystemClock, MS);
    assert_eq!(engine.stop(soon, &Reason::requested("test")).wait(), Stopped::Overdue);
    drop(run);
    assert_eq!(class.load(), (1, 0));
    release.send(()).unwrap();
    pool.wait_idle().wait();
    assert_eq!(class.load(), (0, 0));
}

#[test]
fn a_timeout_of_microseconds_on_the_pool_comes() {
    let (pool, env) = one_thread();
    let (latch, begun, release) = Latch::new();
    let mut graph = Graph::<()>::new("microseconds");
    let held = graph.cpu("held", (), move |_, ()| {
        latch.wait();
        Ok(())
    });
    graph.node(held).timeout(MS / 1000);
    let engine = graph.plan(held).unwrap().bind(env).unwrap();
    for _ in 0..50 {
        // If it did not come, the run would not end.
        assert_eq!(block_on(engine.run(())).unwrap_err().code(), "R003");
        begun.recv().unwrap();
        release.send(()).unwrap();
        pool.wait_idle().wait();
    }
}

#[test]
fn what_a_dropped_run_is_told_does_not_reach_the_next_one() {
    /// Says when it is dropped, and waits.
    struct Slow(Option<Latch>);
    impl Drop for Slow {
        fn drop(&mut self) {
            if let Some(latch) = &self.0 {
                latch.wait();
            }
        }
    }
    /// Lets the other be dropped when it is itself, and gives it time to tell.
    #[derive(Debug)]
    struct Lets(std::sync::mpsc::Sender<()>);
    impl std::fmt::Display for Lets {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("lets it go")
        }
    }
    impl std::error::Error for Lets {}
    impl Drop for Lets {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
            (0..20_000).for_each(|_| std::thread::yield_now());
        }
    }

    let pool = Pool::builder().cpu_threads(2).start().unwrap();
    let env = Env::new(ThreadTimer::start().unwrap()).pool(&pool);
    let (latch, dropping, release) = Latch::new();
    let class = Class::new("class", 10);
    let mut graph = Graph::<bool>::new("dropped");
    // Nobody wants its output, so that it is dropped on the pool, after the node has ended and before that is told.
    let slow = graph.cpu("slow", (), move |cx, ()| Ok(Slow(cx.request().then(|| latch.clone()))));
    graph.node(slow).class(&class);
    let output = graph.cpu("output", (), move |cx, ()| {
        if **cx.request() { Err(Failure::from(Lets(release.clone()))) } else { Ok(7) }
    });
    graph.node(output).class(&class);
    let engine = graph.plan(output.optional()).unwrap().bind(env).unwrap();
    for _ in 0..3 {
        let mut run = Box::pin(engine.run(true));
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        dropping.recv().unwrap();
        while pool.in_flight() > 1 {
            std::thread::yield_now();
        }
        // The failure is dropped with the run, and the other node ends meanwhile.
        drop(run);
        pool.wait_idle().wait();
        assert_eq!(block_on(engine.run(false)).unwrap().as_deref(), Some(&7));
        pool.wait_idle().wait();
        assert_eq!(class.load(), (0, 0));
    }
}

/// Whoever gets it last drops it, and that takes until the test says so.
struct SlowToDrop(Latch);

impl Drop for SlowToDrop {
    fn drop(&mut self) {
        self.0.wait();
    }
}

#[test]
fn a_deadline_does_not_wait_for_the_drop_of_an_input() {
    let (clock, pool) = (VirtualClock::new(), Pool::builder().cpu_threads(2).start().unwrap());
    let env = Env::new(clock.clone()).pool(&pool);
    let (latch, begun, release) = Latch::new();
    let latch = Mutex::new(Some(latch));
    let mut graph = Graph::<()>::new("slow to drop");
    let input = graph.inline("input", (), move |_, ()| Ok(SlowToDrop(latch.lock().unwrap().take().unwrap())));
    // Both borrow it at the same time, so that it is dropped after the function of whoever is last.
    let both = Arc::new(Barrier::new(2));
    let nodes = ["one", "other"].map(|name| {
        let both = both.clone();
        graph.cpu(name, input, move |_, _| {
            both.wait();
            Ok(())
        })
    });
    let engine = graph.plan((nodes[0], nodes[1])).unwrap().bind(env).unwrap();
    let mut run = pin!(engine.run(()).within(20 * MS));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut cx).is_pending());
    // The time is over while the drop is held.
    begun.recv().unwrap();
    clock.advance(20 * MS);
    let Poll::Ready(ended) = run.as_mut().poll(&mut cx) else { panic!("it waits for the drop") };
    assert_eq!(ended.map(drop).unwrap_err().code(), "R001");
    release.send(()).unwrap();
    pool.wait_idle().wait();
}

/// A clock that panics at its `nth` reading.
#[derive(Clone)]
struct BrokenClock(Arc<AtomicUsize>);

impl Clock for BrokenClock {
    fn now(&self) -> std::time::Instant {
        assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 1, "the clock is broken");
        SystemClock.now()
    }
}

impl Timer for BrokenClock {
    type Sleep = std::future::Pending<()>;

    fn sleep_until(&self, _: std::time::Instant) -> Self::Sleep {
        pending()
    }
}

#[test]
fn a_run_whose_poll_has_panicked_can_be_dropped() {
    for nth in 2..8 {
        let clock = BrokenClock(Arc::new(AtomicUsize::new(usize::MAX)));
        let mut graph = Graph::<()>::new("broken");
        let a = graph.inline("a", (), |_, ()| Ok(1));
        let b = graph.future("b", a, |_, a| async move {
            pending::<()>().await;
            Ok(*a)
        });
        let engine = graph.plan(b).unwrap().bind(Env::new(clock.clone())).unwrap();
        let mut run = engine.run(()).traced();
        clock.0.store(nth, Ordering::SeqCst);
        let mut cx = Context::from_waker(Waker::noop());
        let _panicked = contain(|| Pin::new(&mut run).poll(&mut cx).is_ready());
        clock.0.store(usize::MAX, Ordering::SeqCst);
        drop(run);
        assert_eq!(engine.in_flight(), 0, "at reading {nth}");
    }
}

#[test]
fn the_job_of_a_run_that_is_over_takes_nothing_of_the_next_one_with_it() {
    let (pool, env) = one_thread();
    let (latch, begun, release) = Latch::new();
    pool.cpu().spawn(move || latch.wait()).ok().unwrap();
    begun.recv().unwrap();
    let mut graph = Graph::<u32>::new("memory");
    let node = graph.cpu("node", (), |cx, ()| Ok(**cx.request()));
    let engine = graph.plan(node).unwrap().bind(env).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    // The second has the memory of the first, and both have a job in the pool's line.
    let mut first = Box::pin(engine.run(1_u32));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    drop(first);
    let mut second = Box::pin(engine.run(2_u32));
    assert!(second.as_mut().poll(&mut cx).is_pending());
    let mut jobs = pool.close_and_hand_back();
    release.send(()).unwrap();
    drop(jobs.remove(0));
    jobs.into_iter().for_each(Unstarted::run);
    assert_eq!(*block_on(second).unwrap(), 2);
}
