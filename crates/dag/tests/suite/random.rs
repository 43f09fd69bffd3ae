//! Random graphs against a plain account of what has to become of each node.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use ebbtide_dag::{Failure, Graph, Handle, NodeEnd, Policy, Report};
use ebbtide_lifecycle::{Component, Reason, Trigger};
use ebbtide_reactor::{sleep, yield_now};
use proptest::{collection::vec, prelude::*};

use super::{Canaries, Canary, MS, World};

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Give,
    Fail,
    Panic,
    Skip,
}

#[derive(Clone, Copy, Debug)]
enum On {
    Inline,
    Ready,
    Yields,
    Sleeps(u32),
    Cpu,
    Blocking,
}

#[derive(Clone, Debug)]
struct Node {
    act: Act,
    on: On,
    /// How far back its inputs are, and whether it can do without.
    inputs: Vec<(usize, bool)>,
}

#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<Node>,
    policy: Policy,
}

fn nodes(most: usize) -> impl Strategy<Value = Vec<Node>> {
    let act = prop_oneof![
        12 => Just(Act::Give),
        1 => Just(Act::Fail),
        1 => Just(Act::Panic),
        1 => Just(Act::Skip),
    ];
    let on = prop_oneof![
        1 => Just(On::Inline),
        1 => Just(On::Ready),
        1 => Just(On::Yields),
        1 => (0_u32..5).prop_map(On::Sleeps),
        3 => Just(On::Cpu),
        1 => Just(On::Blocking),
    ];
    let node = (act, on, vec((1_usize..12, prop::bool::weighted(0.2)), 0..4));
    vec(node.prop_map(|(act, on, inputs)| Node { act, on, inputs }), 1..most)
}

/// What the nodes have done.
#[derive(Default)]
struct Log {
    /// The nodes in the order in which they began.
    began: Mutex<Vec<usize>>,
    clock: AtomicU32,
}

struct Value {
    sum: u64,
    _canary: Canary,
}

/// The graph of a case. Each node gives the sum of its inputs and its own number.
fn graph(case: &[Node], log: &Arc<Log>, canaries: &Canaries) -> (Graph<()>, Vec<Handle<Value>>) {
    let mut graph = Graph::new("random");
    let mut handles: Vec<Handle<Value>> = Vec::new();
    for (number, node) in case.iter().enumerate() {
        let inputs = node.inputs.iter().filter_map(|(back, optional)| {
            number.checked_sub(*back).map(|input| (handles[input], *optional))
        });
        let inputs: Vec<_> = inputs.collect();
        let required: Vec<_> =
            inputs.iter().filter(|(_, optional)| !optional).map(|(input, _)| *input).collect();
        let optional: Vec<_> =
            inputs.iter().filter(|(_, optional)| *optional).map(|(input, _)| input.optional()).collect();
        let (log, hatch, act) = (log.clone(), canaries.clone(), node.act);
        let begin = move || {
            log.clock.fetch_add(1, Ordering::SeqCst);
            log.began.lock().unwrap().push(number);
        };
        let end = move |sum: u64| match act {
            Act::Give | Act::Skip => Ok(Value { sum: sum + number as u64, _canary: hatch.hatch() }),
            Act::Fail => Err(Failure::new("failed")),
            Act::Panic => panic!("panicked"),
        };
        let sum = |required: &[u64], optional: &[Option<u64>]| -> u64 {
            required.iter().chain(optional.iter().flatten()).sum()
        };
        macro_rules! sync {
            ($add:ident) => {
                graph.$add(number.to_string(), (required, optional), move |_, (required, optional)| {
                    begin();
                    let required: Vec<_> = required.iter().map(|value| value.sum).collect();
                    let optional: Vec<_> =
                        optional.iter().map(|value| value.as_ref().map(|value| value.sum)).collect();
                    end(sum(&required, &optional))
                })
            };
        }
        let on = node.on;
        let handle = match on {
            On::Inline => sync!(inline),
            On::Cpu => sync!(cpu),
            On::Blocking => sync!(blocking),
            On::Ready | On::Yields | On::Sleeps(_) => {
                let end = Arc::new(end);
                graph.future(number.to_string(), (required, optional), move |_, (required, optional)| {
                    begin();
                    let end = end.clone();
                    async move {
                        match on {
                            On::Yields => yield_now().await,
                            On::Sleeps(ms) => sleep(ms * MS).await,
                            _ => {}
                        }
                        let required: Vec<_> = required.iter().map(|value| value.sum).collect();
                        let optional: Vec<_> =
                            optional.iter().map(|value| value.as_ref().map(|value| value.sum)).collect();
                        end(sum(&required, &optional))
                    }
                })
            }
        };
        if node.act == Act::Skip {
            graph.node(handle).when(|_| false);
        }
        handles.push(handle);
    }
    (graph, handles)
}

/// What has to become of each node: the sum that it gives, or none.
fn account(case: &[Node]) -> Vec<(NodeEnd, Option<u64>)> {
    let mut ends: Vec<(NodeEnd, Option<u64>)> = Vec::new();
    for (number, node) in case.iter().enumerate() {
        let inputs: Vec<_> = node
            .inputs
            .iter()
            .filter_map(|(back, optional)| number.checked_sub(*back).map(|input| (input, *optional)))
            .collect();
        let lacks = inputs.iter().any(|(input, optional)| !optional && ends[*input].1.is_none());
        let sum: u64 = inputs.iter().filter_map(|(input, _)| ends[*input].1).sum();
        ends.push(match node.act {
            _ if lacks => (NodeEnd::Skipped { by: "".into() }, None),
            Act::Skip => (NodeEnd::Skipped { by: "".into() }, None),
            Act::Give => (NodeEnd::Ok, Some(sum + number as u64)),
            Act::Fail => (NodeEnd::Failed("failed".into()), None),
            Act::Panic => (NodeEnd::Panicked("panicked".into()), None),
        });
    }
    ends
}

/// Each node began once at most, and after those that it depends on.
fn check_order(case: &[Node], log: &Log) {
    let began = log.began.lock().unwrap();
    let mut place = vec![None; case.len()];
    for (at, number) in began.iter().enumerate() {
        assert!(place[*number].replace(at).is_none(), "node {number} began twice");
        for (back, optional) in &case[*number].inputs {
            let Some(input) = number.checked_sub(*back) else { continue };
            assert!(
                place[input].is_some() || *optional || case[input].act == Act::Skip,
                "{number} before {input}"
            );
        }
    }
}

fn is_like(end: &NodeEnd, wanted: &NodeEnd) -> bool {
    matches!((end, wanted), (NodeEnd::Skipped { .. }, NodeEnd::Skipped { .. })) || end == wanted
}

fn check_all(case: &[Node], report: &Report, log: &Log) {
    for (number, (wanted, _)) in account(case).iter().enumerate() {
        let end = &report.at(number).end;
        assert!(is_like(end, wanted), "node {number}: {end}, and not {wanted}");
        let began = log.began.lock().unwrap().contains(&number);
        assert_eq!(began, !matches!(wanted, NodeEnd::Skipped { .. }), "node {number}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Nothing is waited for that is not there, so a graph with failures ends as the account says.
    #[test]
    fn d3_each_node_runs_once_after_its_inputs_if_and_only_if_the_policy_says_so(
        nodes in nodes(40),
        fail_fast: bool,
    ) {
        let policy = if fail_fast { Policy::FailFast } else { Policy::FinishIndependent };
        let case = Case { nodes, policy };
        let mut world = World::new();
        let (log, canaries) = (Arc::new(Log::default()), Canaries::default());
        let (graph, handles) = graph(&case.nodes, &log, &canaries);
        let outputs: Vec<_> = handles.iter().map(|handle| handle.optional()).collect();
        let engine = graph.plan(outputs).unwrap().bind(world.env()).unwrap();
        let (result, report) = world.runtime.block_on(engine.run(()).policy(case.policy).reported());
        check_order(&case.nodes, &log);
        let account = account(&case.nodes);
        let fails = account.iter().any(|(end, _)| matches!(end, NodeEnd::Failed(_) | NodeEnd::Panicked(_)));
        match result {
            Ok(outputs) => {
                assert!(!fails || !fail_fast);
                check_all(&case.nodes, &report, &log);
                for (output, (_, wanted)) in outputs.iter().zip(&account) {
                    assert_eq!(output.as_ref().map(|value| value.sum), *wanted);
                }
            }
            Err(error) => {
                assert!(fails && fail_fast, "{error}");
                // Those that ended did so as the account says.
                for (node, (wanted, _)) in report.nodes().zip(&account) {
                    let is_over = !matches!(node.end, NodeEnd::NotStarted | NodeEnd::Cancelled);
                    assert!(!is_over || is_like(node.end, wanted), "{}: {}", node.name, node.end);
                }
            }
        }
        world.settle(&engine);
        assert_eq!(canaries.alive(), 0);
    }

    /// Whenever it is cancelled, dropped or too late, everything is accounted for, and nothing is left.
    #[test]
    fn whatever_ends_a_run_everything_is_accounted_for(
        nodes in nodes(40),
        ends in 0..4_u32,
        after in 0..12_u32,
        node_timeout in prop::option::of(0..6_u32),
        fail_fast: bool,
    ) {
        let mut world = World::new();
        let (log, canaries) = (Arc::new(Log::default()), Canaries::default());
        let (graph, handles) = graph(&nodes, &log, &canaries);
        let outputs: Vec<_> = handles.iter().map(|handle| handle.optional()).collect();
        let engine = graph.plan(outputs).unwrap().bind(world.env()).unwrap();
        let policy = if fail_fast { Policy::FailFast } else { Policy::FinishIndependent };
        let mut run = engine.run(()).policy(policy);
        if let Some(ms) = node_timeout {
            run = run.node_timeout(ms * MS / 2);
        }
        let after = after * MS / 2;
        match ends {
            0 => drop(world.runtime.block_on(run.within(after))),
            1 => {
                let trigger = Trigger::new();
                let run = run.cancelled_by(&trigger.token());
                world.runtime.block_on(async {
                    let task = ebbtide_reactor::spawn(run).ok().unwrap();
                    sleep(after).await;
                    trigger.fire(Reason::requested("test"));
                    drop(task.await.unwrap());
                });
            }
            2 => world.runtime.block_on(async {
                let task = ebbtide_reactor::spawn(run).ok().unwrap();
                sleep(after).await;
                task.cancel();
                drop(task.await);
            }),
            _ => drop(world.runtime.block_on(run)),
        }
        check_order_of_begun(&nodes, &log);
        world.settle(&engine);
        assert_eq!(canaries.alive(), 0);
        prop_assert!(engine.balance().is_balanced());

        // Its memory serves the next run, which knows nothing of it.
        log.began.lock().unwrap().clear();
        let run = engine.run(()).policy(Policy::FinishIndependent).reported();
        let (again, report) = world.runtime.block_on(run);
        check_order(&nodes, &log);
        check_all(&nodes, &report, &log);
        for (output, (_, wanted)) in again.unwrap().iter().zip(account(&nodes)) {
            assert_eq!(output.as_ref().map(|value| value.sum), wanted);
        }
        world.settle(&engine);
        assert_eq!(canaries.alive(), 0);
    }
}

/// As [`check_order`], for runs in which an input may have been too late.
fn check_order_of_begun(case: &[Node], log: &Log) {
    let began = log.began.lock().unwrap();
    let mut seen = vec![false; case.len()];
    for number in began.iter() {
        assert!(!std::mem::replace(&mut seen[*number], true), "node {number} began twice");
    }
}

/// How many graphs: `PROPTEST_CASES`, or few.
fn cases() -> u32 {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150);
    println!("{cases} cases");
    cases
}

#[test]
fn the_clock_of_these_tests_is_not_the_systems() {
    // A thousand seconds pass at once.
    let mut world = World::new();
    world.runtime.block_on(sleep(Duration::from_secs(1000)));
}
