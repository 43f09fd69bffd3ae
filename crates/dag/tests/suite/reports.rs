//! What a report says.

use std::time::Duration;

use ebbtide_dag::{Failure, Graph, NodeEnd, Policy};
use ebbtide_reactor::sleep;

use super::{MS, World};

/// A traced run of the origin's plan: two reads side by side, each followed by CPU work, and all put together.
fn traced() -> ebbtide_dag::Report {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("feed");
    let viewer = graph.future("viewer", (), |_, ()| async {
        sleep(5 * MS).await;
        Ok(1)
    });
    let read = |graph: &mut Graph<()>, name: &str, ms: u32| {
        graph.future(name, viewer, move |_, _| async move {
            sleep(ms * MS).await;
            Ok(ms)
        })
    };
    let (follow, recs) = (read(&mut graph, "follow", 10), read(&mut graph, "recs", 30));
    let left = graph.cpu("vm follow", follow, |_, n| Ok(*n));
    let right = graph.cpu("vm recs", recs, |_, n| Ok(*n));
    let concat = graph.inline("concat", (left, right), |_, (a, b)| Ok(*a + *b));
    let engine = graph.plan(concat).unwrap().bind(world.env()).unwrap();
    let (result, report) = world.runtime.block_on(engine.run(()).traced());
    assert_eq!(*result.unwrap(), 40);
    report
}

#[test]
fn d8_a_traced_run_has_the_times_and_threads_of_its_nodes() {
    let report = traced();
    let span = |name: &str| report.node(name).unwrap().span.unwrap();
    let times = |name: &str| (span(name).queued, span(name).begun, span(name).ended.unwrap());
    assert_eq!(times("viewer"), (Duration::ZERO, Duration::ZERO, 5 * MS));
    assert_eq!(times("follow"), (5 * MS, 5 * MS, 15 * MS));
    assert_eq!(times("vm recs"), (35 * MS, 35 * MS, 35 * MS));
    assert!(span("vm recs").thread.starts_with("offload-cpu"));
    assert_eq!(report.took(), 35 * MS);
}

#[test]
fn d8_the_critical_path_and_the_slack_say_what_the_time_was_spent_on() {
    let report = traced();
    let path: Vec<_> = report.critical_path().iter().map(|step| report.at(step.node).name).collect();
    assert_eq!(path, ["viewer", "recs", "vm recs", "concat"]);
    let slack = report.slack();
    let of = |name: &str| slack[report.nodes().position(|node| node.name == name).unwrap()].unwrap();
    assert_eq!(
        (of("follow"), of("vm follow"), of("recs"), of("viewer")),
        (20 * MS, 20 * MS, Duration::ZERO, Duration::ZERO)
    );
}

#[test]
fn d8_a_trace_opens_in_a_browser() {
    let trace = traced().chrome_trace();
    // Well-formed enough to be counted: a bar for each node, two ends of an arrow for each of the six inputs.
    assert_eq!(trace.matches("\"ph\":\"X\"").count(), 6);
    assert_eq!((trace.matches("\"ph\":\"s\"").count(), trace.matches("\"ph\":\"f\"").count()), (6, 6));
    assert!(
        trace.contains("\"name\":\"recs\",\"cat\":\"ok\",\"ph\":\"X\",\"ts\":5000.000,\"dur\":30000.000")
    );
    assert!(trace.contains("\"thread_name\""));
}

#[test]
fn d8_a_report_without_a_trace_says_what_became_of_each_node() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("report");
    let good = graph.inline("good", (), |_, ()| Ok(()));
    let bad = graph.cpu("bad", good, |_, _| Err::<(), _>(Failure::new("no")));
    let after = graph.inline("after", bad, |_, _| Ok(()));
    let engine = graph.plan((good, after)).unwrap().bind(world.env()).unwrap();
    let run = engine.run(()).policy(Policy::FinishIndependent).reported();
    let (result, report) = world.runtime.block_on(run);
    assert!(result.is_err() && !report.traced);
    let text = "plan report: R004 node \"bad\" failed: no\n  good (inline): ok\n  bad (cpu): failed: no\n  \
                after (inline): skipped because of bad";
    assert_eq!(report.to_string(), text);
    assert!(report.critical_path().is_empty());
    assert_eq!(*report.at(2).end, NodeEnd::Skipped { by: "bad".into() });
}

#[test]
fn d8_a_report_says_what_was_asked_of_the_run_and_who_went_on_without_it() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("terms");
    let quick = graph.inline("quick", (), |_, ()| Ok(1));
    let slow = graph.future("slow", quick, |_, _| async {
        sleep(100 * MS).await;
        Ok(1)
    });
    let answer = graph.inline("answer", (quick, slow.optional()), |_, _| Ok(()));
    graph.node(slow).timeout(20 * MS);
    let engine = graph.plan((quick, answer)).unwrap().bind(world.env()).unwrap();
    let run = engine.run(()).within(50 * MS).node_timeout(40 * MS).policy(Policy::FinishIndependent);
    let (result, report) = world.runtime.block_on(run.reported());
    result.unwrap();
    assert_eq!((report.total, report.deadline, report.code), (20 * MS, Some(50 * MS), None));
    assert_eq!(report.outputs, [0, 2]);
    let nodes: Vec<_> = report.nodes().collect();
    let [quick, slow, answer] = &nodes[..] else { panic!("{report}") };
    assert_eq!((quick.late, slow.late), (false, true));
    assert_eq!((quick.timeout, slow.timeout), (Some(40 * MS), Some(20 * MS)));
    assert_eq!((answer.inputs, answer.optional), (&[0, 1][..], &[1][..]));
    world.settle(&engine);
}

#[test]
fn what_had_not_ended_at_the_deadline_is_on_the_critical_path() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("open");
    let root = graph.inline("root", (), |_, ()| Ok(1));
    let read = |graph: &mut Graph<()>, name: &str, ms: u32| {
        graph.future(name, root, move |_, _| async move {
            sleep(ms * MS).await;
            Ok(ms)
        })
    };
    let (slow, fast) = (read(&mut graph, "slow", 100), read(&mut graph, "fast", 10));
    let after = graph.inline("after", fast, |_, n| Ok(*n));
    let engine = graph.plan((slow, after)).unwrap().bind(world.env()).unwrap();
    let (result, report) = world.runtime.block_on(engine.run(()).within(50 * MS).traced());
    assert_eq!((result.unwrap_err().code(), report.code), ("R001", Some("R001")));
    let path = report.critical_path();
    let names: Vec<_> = path.iter().map(|step| report.at(step.node).name).collect();
    assert_eq!((names, path[1].ran), (vec!["root", "slow"], 50 * MS));
    world.settle(&engine);
}

#[test]
fn nodes_of_the_critical_path_have_no_slack_also_where_they_are_queued() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("queued");
    // They are all ready at once, and run one after the other.
    let parts: Vec<_> = (0..3)
        .map(|nth| {
            let clock = world.clock.clone();
            graph.inline(format!("part{nth}"), (), move |_, ()| {
                clock.advance(10 * MS);
                Ok(nth)
            })
        })
        .collect();
    let clock = world.clock.clone();
    let first = graph.inline("first", parts[0], move |_, n| {
        clock.advance(MS);
        Ok(*n)
    });
    let all = graph.inline("all", (first, parts[1], parts[2]), |_, _| Ok(()));
    let engine = graph.plan(all).unwrap().bind(world.env()).unwrap();
    let (result, report) = world.runtime.block_on(engine.run(()).traced());
    result.unwrap();
    let slack = report.slack();
    let path = report.critical_path();
    assert!(path.iter().any(|step| step.waited > Duration::ZERO), "{report}");
    for step in path {
        assert_eq!(slack[step.node], Some(Duration::ZERO), "{}: {report}", report.at(step.node).name);
    }
    assert!(slack.iter().any(|slack| *slack > Some(Duration::ZERO)), "{report}");
}

#[test]
fn nodes_that_take_no_time_have_the_slack_of_those_that_depend_on_them() {
    let mut world = World::new();
    let mut graph = Graph::<()>::new("no time");
    let first = graph.inline("first", (), |_, ()| Ok(1));
    let second = graph.inline("second", first, |_, n| Ok(*n));
    let last = graph.future("last", second, |_, n| async move {
        sleep(10 * MS).await;
        Ok(*n)
    });
    let engine = graph.plan(last).unwrap().bind(world.env()).unwrap();
    let (result, report) = world.runtime.block_on(engine.run(()).traced());
    result.unwrap();
    // A node ends a nanosecond after the run's start at the earliest.
    assert!(report.slack().iter().all(|slack| slack.unwrap() < MS), "{:?}", report.slack());
    world.settle(&engine);
}
