//! Timeouts of nodes that are tried again.

use std::{
    future::{Future, pending},
    pin::pin,
    task::{Context, Poll, Waker},
};

use ebbtide_dag::{Class, Env, Failure, Graph, Policy, Retry, RunError};
use ebbtide_lifecycle::{
    time::{Clock, ThreadTimer, VirtualClock},
    wait::block_on,
};
use ebbtide_offload::Pool;
use ebbtide_reactor::sleep;

use super::{MS, World};

#[test]
fn a_timeout_covers_every_attempt_and_every_pause() {
    let mut world = World::new();
    let class = Class::new("class", 1);
    // How the first attempt fails, and what comes then.
    for (on_pool, has_class) in [(false, false), (true, false), (false, true)] {
        let mut graph = Graph::<()>::new("covered");
        let flaky = if on_pool {
            graph.cpu("flaky", (), |_, ()| Err::<(), _>(Failure::new("again")))
        } else {
            graph.future("flaky", (), |cx, ()| {
                let attempt = cx.attempt();
                async move {
                    // The first one fails at once, the second never ends.
                    if attempt > 1 {
                        pending::<()>().await;
                    }
                    Err::<(), _>(Failure::new("again"))
                }
            })
        };
        let pause = if on_pool { 1000 * MS } else { 10 * MS };
        let terms = graph.node(flaky).timeout(50 * MS).retry(Retry::times(5).backoff(pause, pause));
        if has_class {
            terms.class(&class);
        }
        // While it pauses, somebody else takes its place.
        let delay = graph.future("delay", (), |_, ()| async {
            sleep(5 * MS).await;
            Ok(())
        });
        let other = graph.future("other", delay, |_, _| async {
            sleep(200 * MS).await;
            Ok(())
        });
        if has_class {
            graph.node(other).class(&class);
        }
        let engine = graph.plan((flaky.optional(), other)).unwrap().bind(world.env()).unwrap();
        let run = engine.run(()).policy(Policy::FinishIndependent).reported();
        let start = world.clock.now();
        let (result, report) = world.runtime.block_on(run);
        assert!(result.is_ok() && world.clock.now() - start == 205 * MS);
        assert_eq!(
            *report.node("flaky").unwrap().end,
            ebbtide_dag::NodeEnd::TimedOut,
            "{on_pool}, {has_class}"
        );
        world.settle_but_runners(&engine);
        assert_eq!(class.load(), (0, 0));
    }
}

#[test]
fn a_timeout_that_is_due_together_with_another_attempt_ends_the_node() {
    let clock = VirtualClock::new();
    let mut graph = Graph::<()>::new("due together");
    let flaky = graph.future("flaky", (), |cx, ()| {
        let attempt = cx.attempt();
        async move { if attempt == 1 { Err::<(), _>(Failure::new("again")) } else { pending().await } }
    });
    graph.node(flaky).timeout(20 * MS).retry(Retry::times(5).backoff(10 * MS, 10 * MS));
    let engine = graph.plan(flaky).unwrap().bind(Env::new(clock.clone())).unwrap();
    let mut run = pin!(engine.run(()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut cx).is_pending());
    // Nobody has looked for a while, and both are over.
    clock.advance(30 * MS);
    let polled = run.as_mut().poll(&mut cx);
    assert!(matches!(polled, Poll::Ready(Err(RunError::TimedOut { after, .. })) if after == 20 * MS));
}

#[test]
fn a_node_that_is_tried_again_at_once_and_for_ever_has_its_timeout() {
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let timer = ThreadTimer::start().unwrap();
    let class = Class::new("class", 1);
    for on in ["inline", "cpu", "blocking", "future"] {
        for has_class in [false, true] {
            let mut graph = Graph::<()>::new("again and again");
            let fail = || Err::<(), _>(Failure::new("again"));
            let node = match on {
                "inline" => graph.inline("node", (), move |_, ()| fail()),
                "cpu" => graph.cpu("node", (), move |_, ()| fail()),
                "blocking" => graph.blocking("node", (), move |_, ()| fail()),
                _ => graph.future("node", (), move |_, ()| async move { fail() }),
            };
            let terms = graph.node(node).timeout(5 * MS).retry(Retry::times(u32::MAX));
            if has_class {
                terms.class(&class);
            }
            let engine = graph.plan(node).unwrap().bind(Env::new(timer.clone()).pool(&pool)).unwrap();
            for _ in 0..5 {
                let error = block_on(engine.run(())).unwrap_err();
                assert!(matches!(error, RunError::TimedOut { .. }), "{on}, {has_class}: {error}");
            }
            assert_eq!(class.load(), (0, 0));
        }
    }
}
