//! Nodes that fail, panic, are tried again, fall back, or are skipped.

use std::{
    future::poll_fn,
    panic::panic_any,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use ebbtide_dag::{Class, Env, Failure, Graph, Handle, NodeEnd, Policy, Retry};
use ebbtide_lifecycle::{
    Component, Reason, Trigger,
    time::{Clock, ThreadTimer, VirtualClock},
    wait::block_on,
};
use ebbtide_offload::Pool;
use ebbtide_reactor::sleep;

use super::{Bomb, Canaries, Latch, MS, World};

#[test]
fn d3_the_first_error_wins_and_nothing_new_starts() {
    let mut world = World::new();
    let started = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::<()>::new("fail fast");
    let bad = graph.future("bad", (), |_, ()| async {
        sleep(20 * MS).await;
        Err::<u32, _>(Failure::new("no such user"))
    });
    let slow = graph.future("slow", (), |_, ()| async {
        sleep(50 * MS).await;
        Err::<u32, _>(Failure::new("too late to be the first"))
    });
    let count = started.clone();
    let behind =
        graph.inline("behind", slow.optional(), move |_, _| Ok(count.fetch_add(1, Ordering::Relaxed)));
    let count = started.clone();
    let after = graph.cpu("after", bad, move |_, _| Ok(count.fetch_add(1, Ordering::Relaxed)));
    let engine = graph.plan((behind, after)).unwrap().bind(world.env()).unwrap();
    let start = world.clock.now();
    let (result, report) = world.runtime.block_on(engine.run(()).reported());
    assert_eq!(result.unwrap_err().to_string(), "R004 node \"bad\" failed: no such user");
    // It ends when nothing of it is under way any more.
    assert_eq!((world.clock.now() - start, started.load(Ordering::Relaxed)), (50 * MS, 0));
    assert_eq!(*report.node("bad").unwrap().end, NodeEnd::Failed("no such user".into()));
    assert_eq!(*report.node("after").unwrap().end, NodeEnd::NotStarted);
    world.settle(&engine);
}

#[test]
fn d3_after_an_error_cpu_nodes_that_have_not_begun_are_taken_back() {
    let pool = Pool::builder().cpu_threads(1).start().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::<()>::new("taken back");
    // It has the longest way to go, so that it is the first.
    let bad = graph.cpu("bad", (), |_, ()| Err::<(), _>(Failure::new("broken")));
    graph.inline("behind", bad, |_, _| Ok(()));
    let others: Vec<_> = (0..50)
        .map(|n| {
            let ran = ran.clone();
            graph.cpu(format!("other {n}"), (), move |_, ()| {
                // The error is on its way: it gets there long before all of these have run.
                (0..2_000).for_each(|_| std::thread::yield_now());
                Ok(ran.fetch_add(1, Ordering::SeqCst))
            })
        })
        .collect();
    let engine = graph.plan((bad, others)).unwrap();
    let engine = engine.bind(Env::new(ThreadTimer::start().unwrap()).pool(&pool)).unwrap();
    assert_eq!(block_on(engine.run(())).unwrap_err().code(), "R004");
    pool.wait_idle().wait();
    engine.balance().check().unwrap();
    assert!(ran.load(Ordering::SeqCst) < 40, "{ran:?} have run");
}

#[test]
fn a_cpu_node_that_takes_long_holds_up_none_that_is_ready() {
    let world = World::new();
    let (latch, begun, release) = Latch::new();
    let mut graph = Graph::<()>::new("held up");
    let root = graph.cpu("root", (), |_, ()| Ok(()));
    let held = graph.cpu("held", root, move |_, _| {
        latch.wait();
        Ok(())
    });
    let others: Vec<_> = (0..100).map(|n| graph.cpu(format!("n{n}"), root, |_, _| Ok(()))).collect();
    // When all others have run, it lets the one go that takes long.
    let begun = std::sync::Mutex::new(begun);
    let last = graph.inline("last", others, move |_, _| {
        begun.lock().unwrap().recv().unwrap();
        release.send(()).unwrap();
        Ok(())
    });
    let engine = graph.plan((held, last)).unwrap().bind(world.env()).unwrap();
    block_on(engine.run(())).unwrap();
}

#[test]
fn d3_with_the_other_policy_all_that_is_independent_is_finished() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("finish");
    let bad = graph.inline("bad", (), |_, ()| Err::<u32, _>(Failure::new("broken")));
    let child = graph.cpu("child", bad, |_, n| Ok(*n));
    let grandchild = graph.inline("grandchild", child, |_, n| Ok(*n));
    let without = graph.inline("without", (grandchild.optional(), bad.optional()), |_, (a, b)| {
        Ok(a.is_none() && b.is_none())
    });
    let other = graph.future("other", (), |_, ()| async {
        sleep(MS).await;
        Ok(7)
    });
    let engine = graph.plan((without, other)).unwrap().bind(world.env()).unwrap();
    let run = engine.run(()).policy(Policy::FinishIndependent).reported();
    let (result, report) = world.runtime.block_on(run);
    let (without, other) = result.unwrap();
    assert_eq!((*without, *other), (true, 7));
    for name in ["child", "grandchild"] {
        assert_eq!(*report.node(name).unwrap().end, NodeEnd::Skipped { by: "bad".into() });
    }
    world.settle(&engine);
}

#[test]
fn d3_a_run_whose_output_depends_on_a_failed_node_fails_with_the_first_error() {
    let mut graph = Graph::<()>::new("finish");
    let bad = graph.inline("bad", (), |_, ()| Err::<u32, _>(Failure::new("broken")));
    let child = graph.inline("child", bad, |_, n| Ok(*n));
    let engine = graph.plan(child).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    let error = block_on(engine.run(()).policy(Policy::FinishIndependent)).unwrap_err();
    assert_eq!(error.to_string(), "R004 node \"bad\" failed: broken");
}

#[test]
fn d3_a_cancelled_run_drops_its_async_nodes_and_leaves_cpu_nodes_to_their_end() {
    let mut world = World::new();
    let canaries = Canaries::default();
    let (latch, begun, release) = Latch::new();
    let mut graph = Graph::<()>::new("cancelled");
    let hatch = canaries.clone();
    let sleeping = graph.future("sleeping", (), move |_, ()| {
        let canary = hatch.hatch();
        async move {
            std::future::pending::<()>().await;
            drop(canary);
            Ok(())
        }
    });
    let hatch = canaries.clone();
    let held = graph.cpu("held", (), move |_, ()| {
        let _canary = hatch.hatch();
        latch.wait();
        Ok(())
    });
    let trigger = Trigger::new();
    let engine = graph.plan((sleeping, held)).unwrap().bind(world.env()).unwrap();
    let run = engine.run(()).cancelled_by(&trigger.token());
    let canceller = std::thread::spawn(move || {
        begun.recv().unwrap();
        trigger.fire(Reason::requested("test"));
    });
    let error = world.runtime.block_on(run).unwrap_err();
    canceller.join().unwrap();
    assert_eq!(error.to_string(), "R006 run cancelled: requested: test");
    assert_eq!((canaries.alive(), engine.in_flight()), (1, 1));
    release.send(()).unwrap();
    world.settle(&engine);
    assert_eq!(canaries.alive(), 0);
    let balance = engine.balance();
    assert_eq!((balance.accepted, balance.cancelled, balance.late), (2, 1, 1));
}

#[test]
fn a_run_whose_token_has_been_triggered_starts_nothing() {
    let mut graph = Graph::<()>::new("cancelled");
    let node = graph.inline("node", (), |_, ()| -> Result<(), _> { unreachable!("it does not run") });
    let engine = graph.plan(node).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    let trigger = Trigger::new();
    trigger.fire(Reason::requested("test"));
    assert_eq!(block_on(engine.run(()).cancelled_by(&trigger.token())).unwrap_err().code(), "R006");
}

#[test]
fn a_panic_anywhere_in_a_node_is_an_error_of_that_node() {
    let world = World::new();
    type Build = fn(&mut Graph<()>) -> Handle<()>;
    let builds: [(&str, Build); 6] = [
        ("inline", |graph| graph.inline("node", (), |_, ()| panic!("boom"))),
        ("cpu", |graph| graph.cpu("node", (), |_, ()| panic!("boom"))),
        ("blocking", |graph| graph.blocking("node", (), |_, ()| panic!("boom"))),
        ("making the future", |graph| {
            graph.future("node", (), |_, ()| {
                if true {
                    panic!("boom");
                }
                async { Ok(()) }
            })
        }),
        ("polling", |graph| graph.future("node", (), |_, ()| async { panic!("boom") })),
        ("dropping the future", |graph| {
            graph.future("node", (), |_, ()| {
                // It is dropped with the future, after that has given its output.
                let bomb = Bomb;
                let mut output = Some(Ok(()));
                poll_fn(move |_| {
                    let _bomb = &bomb;
                    Poll::Ready(output.take().unwrap())
                })
            })
        }),
    ];
    for (what, build) in builds {
        let mut graph = Graph::<()>::new("panics");
        let node = build(&mut graph);
        let engine = graph.plan(node).unwrap().bind(world.env()).unwrap();
        for _ in 0..3 {
            let error = block_on(engine.run(())).unwrap_err();
            assert_eq!(error.to_string(), "R005 node \"node\" panicked: boom", "{what}");
        }
        world.pool.wait_idle().wait();
        engine.balance().check().unwrap();
    }
}

#[test]
fn an_output_that_panics_when_it_is_dropped_harms_nobody() {
    let world = World::new();
    let mut graph = Graph::<()>::new("bombs");
    let unused = graph.inline("unused", (), |_, ()| Ok(Bomb));
    let used = graph.cpu("used", (), |_, ()| Ok(Bomb));
    let user = graph.inline("user", (used.optional(), unused.optional()), |_, (a, b)| {
        std::mem::forget((a.map(|a| a.try_into_inner().ok()), b.map(|b| b.try_into_inner().ok())));
        Ok(1)
    });
    graph.cpu("dropped", (), |_, ()| Ok(Bomb));
    let engine = graph.plan(user).unwrap().bind(world.env()).unwrap();
    assert_eq!(*block_on(engine.run(())).unwrap(), 1);
    assert_eq!(engine.balance().completed, 1);
}

#[test]
fn a_payload_that_is_no_text_is_a_panic_too() {
    let mut graph = Graph::<()>::new("payload");
    let node = graph.inline("node", (), |_, ()| -> Result<(), _> { panic_any(7) });
    let engine = graph.plan(node).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    assert_eq!(block_on(engine.run(())).unwrap_err().code(), "R005");
}

#[test]
fn a_node_that_fails_is_tried_again_after_a_while_that_doubles() {
    let mut world = World::new();
    for on_pool in [false, true] {
        let mut graph = Graph::<()>::new("retry");
        let source = graph.inline("source", (), |_, ()| Ok(vec![1, 2, 3]));
        let flaky = if on_pool {
            graph.cpu("flaky", source, |cx, source| {
                if cx.attempt() < 4 { Err(Failure::new("not yet")) } else { Ok((cx.attempt(), source.len())) }
            })
        } else {
            graph.future("flaky", source, |cx, source| {
                let attempt = cx.attempt();
                async move {
                    if attempt < 4 { Err(Failure::new("not yet")) } else { Ok((attempt, source.len())) }
                }
            })
        };
        graph.node(flaky).retry(Retry::times(5).backoff(10 * MS, 30 * MS));
        let engine = graph.plan(flaky).unwrap().bind(world.env()).unwrap();
        let start = world.clock.now();
        let (result, report) = world.runtime.block_on(engine.run(()).reported());
        assert_eq!(*result.unwrap(), (4, 3));
        assert_eq!(world.clock.now() - start, (10 + 20 + 30) * MS);
        assert_eq!(report.node("flaky").unwrap().attempts, 4);
    }
}

#[test]
fn a_node_that_fails_each_time_fails_with_the_last_error_and_its_timeout_covers_all_attempts() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("retry");
    let flaky = graph.future("flaky", (), |cx, ()| {
        let attempt = cx.attempt();
        async move { Err::<(), _>(Failure::new(format!("attempt {attempt}"))) }
    });
    graph.node(flaky).retry(Retry::times(3).backoff(10 * MS, 10 * MS));
    let engine = graph.plan(flaky).unwrap().bind(world.env()).unwrap();
    let error = world.runtime.block_on(engine.run(())).unwrap_err();
    assert_eq!(error.to_string(), "R004 node \"flaky\" failed 3 times: attempt 3");

    for on_pool in [false, true] {
        let mut graph = Graph::<()>::new("retry");
        let flaky = if on_pool {
            graph.cpu("flaky", (), |_, ()| Err::<(), _>(Failure::new("no")))
        } else {
            graph.future("flaky", (), |_, ()| async {
                sleep(MS).await;
                Err::<(), _>(Failure::new("no"))
            })
        };
        graph.node(flaky).retry(Retry::times(100).backoff(10 * MS, 10 * MS)).timeout(35 * MS);
        let engine = graph.plan(flaky).unwrap().bind(world.env()).unwrap();
        let error = world.runtime.block_on(engine.run(())).unwrap_err();
        assert_eq!(error.to_string(), "R003 node \"flaky\" timed out after 35ms");
        // The deadline of the request ends it while it pauses.
        let error = world.runtime.block_on(engine.run(()).within(15 * MS)).unwrap_err();
        assert_eq!(error.code(), "R001");
        world.settle(&engine);
    }
}

#[test]
fn an_error_elsewhere_ends_a_pause() {
    let mut world = World::new();
    let class = Class::new("class", 1);
    let mut graph = Graph::<()>::new("pause");
    let flaky = graph.inline("flaky", (), |_, ()| Err::<(), _>(Failure::new("no")));
    graph.node(flaky).retry(Retry::times(10).backoff(1000 * MS, 1000 * MS)).class(&class);
    let bad = graph.future("bad", (), |_, ()| async {
        sleep(5 * MS).await;
        Err::<(), _>(Failure::new("broken"))
    });
    let engine = graph.plan((flaky, bad)).unwrap().bind(world.env()).unwrap();
    let start = world.clock.now();
    let error = world.runtime.block_on(engine.run(())).unwrap_err();
    assert_eq!((error.node().unwrap().as_ref(), world.clock.now() - start), ("bad", 5 * MS));
    assert_eq!(class.load(), (0, 0));
}

#[test]
fn a_node_that_fails_panics_or_times_out_may_fall_back() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("fallback");
    let failed = graph.inline("failed", (), |_, ()| Err(Failure::new("broken")));
    let panicked = graph.cpu("panicked", (), |_, ()| panic!("boom"));
    let late = graph.future("late", (), |_, ()| async {
        sleep(100 * MS).await;
        Ok(0)
    });
    graph.node(failed).fallback(1);
    graph.node(panicked).fallback(2);
    graph.node(late).fallback(3).timeout(10 * MS);
    let sum =
        graph.inline("sum", [failed, panicked, late], |_, all| Ok(all.iter().map(|n| **n).sum::<u32>()));
    let engine = graph.plan(sum).unwrap().bind(world.env()).unwrap();
    let (result, report) = world.runtime.block_on(engine.run(()).reported());
    assert_eq!(*result.unwrap(), 6);
    let end = |name| report.node(name).unwrap().end.clone();
    assert_eq!(end("failed"), NodeEnd::FellBack("broken".into()));
    assert_eq!(end("panicked"), NodeEnd::FellBack("boom".into()));
    assert_eq!(end("late"), NodeEnd::FellBack("timed out after 10ms".into()));
    world.settle(&engine);
}

#[test]
fn a_node_whose_condition_does_not_hold_is_skipped_and_those_with_it_that_need_it() {
    let canaries = Canaries::default();
    let mut graph = Graph::<bool>::new("conditions");
    let hatch = canaries.clone();
    let source = graph.inline("source", (), move |_, ()| Ok(hatch.hatch()));
    let wanted = graph.inline("wanted", source, |_, _| Ok(1));
    graph.node(wanted).when(|cx| **cx.request());
    let needs = graph.inline("needs", (wanted, source), |_, (n, _)| Ok(*n + 1));
    let copes = graph.inline("copes", (needs.optional(), source), |_, (n, _)| Ok(n.map_or(0, |n| *n)));
    let plan = graph.plan((needs.optional(), copes)).unwrap();
    let engine = plan.bind(Env::new(VirtualClock::new())).unwrap();
    let (result, report) = block_on(engine.run(false).reported());
    let (needs, copes) = result.unwrap();
    assert_eq!((needs.is_none(), *copes), (true, 0));
    assert_eq!(*report.node("wanted").unwrap().end, NodeEnd::Skipped { by: "wanted".into() });
    assert_eq!(*report.node("needs").unwrap().end, NodeEnd::Skipped { by: "wanted".into() });
    let (needs, copes) = block_on(engine.run(true)).unwrap();
    assert_eq!((*needs.unwrap(), *copes), (2, 2));
    assert_eq!(canaries.alive(), 0);
}

#[test]
fn who_was_skipped_in_one_run_is_run_in_the_next() {
    let (world, class) = (World::new(), Class::new("one at a time", 1));
    let mut graph = Graph::<bool>::new("sometimes");
    let root = graph.inline("root", (), |_, ()| Ok("root".to_owned()));
    let wanted = graph.inline("wanted", root, |_, root| Ok(root.clone()));
    graph.node(wanted).when(|cx| **cx.request());
    let inline = graph.inline("inline", wanted, |_, wanted| Ok(wanted.clone()));
    let in_class = graph.inline("in a class", wanted, |_, wanted| Ok(wanted.clone()));
    graph.node(in_class).class(&class);
    let waits = graph.future("waits", wanted, |_, wanted| async move { Ok(wanted.clone()) });
    let on_pool = graph.cpu("on the pool", wanted, |_, wanted| Ok(wanted.clone()));
    let outputs = [inline, in_class, waits, on_pool].map(Handle::optional);
    let engine = graph.plan(outputs).unwrap().bind(world.env()).unwrap();
    for wanted in [true, false, true, false, false, true] {
        let outputs = block_on(engine.run(wanted)).unwrap();
        assert_eq!(outputs.map(|output| output.is_some()), [wanted; 4]);
    }
}

#[test]
fn a_node_may_depend_on_a_condition_that_another_node_works_out() {
    let mut graph = Graph::<u32>::new("only if");
    let is_even = graph.inline("is even", (), |cx, ()| Ok(**cx.request() % 2 == 0));
    let half = graph.inline("half", (), |cx, ()| Ok(**cx.request() / 2));
    graph.node(half).only_if(is_even);
    let engine = graph.plan(half).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    assert_eq!(*block_on(engine.run(8)).unwrap(), 4);
    let error = block_on(engine.run(7)).unwrap_err();
    assert_eq!(error.to_string(), "R009 output \"half\" was skipped by its condition");
}

#[test]
fn a_condition_that_panics_is_a_panic_of_its_node() {
    let mut graph = Graph::<()>::new("condition");
    let node = graph.inline("node", (), |_, ()| Ok(()));
    graph.node(node).when(|_| panic!("boom"));
    let engine = graph.plan(node).unwrap().bind(Env::new(VirtualClock::new())).unwrap();
    assert_eq!(block_on(engine.run(())).unwrap_err().to_string(), "R005 node \"node\" panicked: boom");
}

#[test]
fn a_pool_that_is_closed_fails_the_run_and_loses_nothing() {
    let world = World::new();
    let mut graph = Graph::<()>::new("closed");
    let cpu = graph.cpu("cpu", (), |_, ()| Ok(1));
    let blocking = graph.blocking("blocking", (), |_, ()| Ok(1));
    let engine = graph.plan((cpu, blocking)).unwrap().bind(world.env()).unwrap();
    world.pool.close();
    let error = block_on(engine.run(())).unwrap_err();
    assert_eq!(error.code(), "R010", "{error}");
    assert_eq!(engine.balance().to_string(), "accepted 1, failed 1");
}

#[test]
fn a_run_that_went_on_after_an_error_says_why_its_output_is_missing() {
    let mut world = World::new();
    for (is_wanted, wanted) in [
        (false, "R009 output \"out\" was skipped by its condition"),
        (true, "R004 node \"source\" failed: gone"),
    ] {
        let mut graph = Graph::<()>::new("blame");
        // The first to fail has nothing to do with the output.
        graph.inline("log", (), |_, ()| Err::<(), _>(Failure::new("disk full")));
        let source = graph.inline(
            "source",
            (),
            move |_, ()| if is_wanted { Err(Failure::new("gone")) } else { Ok(()) },
        );
        let out = graph.inline("out", source, |_, _| Ok(()));
        graph.node(out).when(move |_| is_wanted);
        let engine = graph.plan(out).unwrap().bind(world.env()).unwrap();
        let error = world.runtime.block_on(engine.run(()).policy(Policy::FinishIndependent)).unwrap_err();
        assert_eq!(error.to_string(), wanted);
    }
}
