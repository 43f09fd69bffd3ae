//! Random graphs against a plain account of what has to become of each node.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use ebbtide_dag::{Class, Failure, Graph, Handle, NodeEnd, Policy, Report, Retry};
use ebbtide_lifecycle::{Component, Reason, Trigger};
use ebbtide_reactor::{sleep, yield_now};
use proptest::{collection::vec, prelude::*};

use super::{Canaries, Canary, MS, World};

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Give,
    /// So often, then it gives.
    Fail(u32),
    Panic,
    Skip,
}

/// On what terms.
#[derive(Clone, Copy, Debug)]
struct Terms {
    attempts: u32,
    /// In half milliseconds.
    pause: u32,
    falls_back: bool,
    /// Only two of them run at a time.
    has_class: bool,
}

/// What is given in place of a node that has failed.
const FALLBACK: u64 = 1_000_000;

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
    terms: Terms,
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
        1 => Just(Act::Fail(u32::MAX)),
        1 => (1..4_u32).prop_map(Act::Fail),
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
    let terms = (1..4_u32, 0..3_u32, prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    let terms = terms.prop_map(|(attempts, pause, falls_back, has_class)| Terms {
        attempts,
        pause,
        falls_back,
        has_class,
    });
    let node = (act, on, terms, vec((1_usize..12, prop::bool::weighted(0.2)), 0..4));
    vec(node.prop_map(|(act, on, terms, inputs)| Node { act, on, terms, inputs }), 1..most)
}

/// Most are small, so that much of what can happen in them does, and soon; some are as large as those of engines.
fn graphs() -> impl Strategy<Value = Vec<Node>> {
    prop_oneof![9 => nodes(40), 1 => nodes(200)]
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
    /// None in a fallback, of which the plan keeps one.
    _canary: Option<Canary>,
}

impl Clone for Value {
    fn clone(&self) -> Self {
        Self { sum: self.sum, _canary: None }
    }
}

/// The graph of a case. Each node gives the sum of its inputs and its own number.
fn graph(case: &[Node], log: &Arc<Log>, canaries: &Canaries) -> (Graph<()>, Vec<Handle<Value>>) {
    let mut graph = Graph::new("random");
    let class = Class::new("two", 2);
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
        let end = move |attempt: u32, sum: u64| match act {
            Act::Panic => panic!("panicked"),
            Act::Fail(times) if attempt <= times => Err(Failure::new("failed")),
            _ => Ok(Value { sum: sum + number as u64, _canary: Some(hatch.hatch()) }),
        };
        let sum = |required: &[u64], optional: &[Option<u64>]| -> u64 {
            required.iter().chain(optional.iter().flatten()).sum()
        };
        macro_rules! sync {
            ($add:ident) => {
                graph.$add(number.to_string(), (required, optional), move |cx, (required, optional)| {
                    begin();
                    let required: Vec<_> = required.iter().map(|value| value.sum).collect();
                    let optional: Vec<_> =
                        optional.iter().map(|value| value.as_ref().map(|value| value.sum)).collect();
                    end(cx.attempt(), sum(&required, &optional))
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
                graph.future(number.to_string(), (required, optional), move |cx, (required, optional)| {
                    begin();
                    let (end, attempt) = (end.clone(), cx.attempt());
                    async move {
                        match on {
                            On::Yields => yield_now().await,
                            On::Sleeps(ms) => sleep(ms * MS).await,
                            _ => {}
                        }
                        let required: Vec<_> = required.iter().map(|value| value.sum).collect();
                        let optional: Vec<_> =
                            optional.iter().map(|value| value.as_ref().map(|value| value.sum)).collect();
                        end(attempt, sum(&required, &optional))
                    }
                })
            }
        };
        let Terms { attempts, pause, falls_back, has_class } = node.terms;
        let mut terms = graph.node(handle);
        if attempts > 1 {
            let pause = pause * MS / 2;
            terms = terms.retry(Retry::times(attempts).backoff(pause, pause));
        }
        if falls_back {
            terms = terms.fallback(Value { sum: FALLBACK, _canary: None });
        }
        if has_class {
            terms = terms.class(&class);
        }
        if node.act == Act::Skip {
            terms.when(|_| false);
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
        let why = match node.act {
            _ if lacks => Err(NodeEnd::Skipped { by: "".into() }),
            Act::Skip => Err(NodeEnd::Skipped { by: "".into() }),
            Act::Fail(times) if times >= node.terms.attempts => Ok(Some("failed")),
            Act::Panic => Ok(Some("panicked")),
            Act::Give | Act::Fail(_) => Ok(None),
        };
        ends.push(match why {
            Err(skipped) => (skipped, None),
            Ok(None) => (NodeEnd::Ok, Some(sum + number as u64)),
            Ok(Some(why)) if node.terms.falls_back => (NodeEnd::FellBack(why.into()), Some(FALLBACK)),
            Ok(Some(why)) if node.act == Act::Panic => (NodeEnd::Panicked(why.into()), None),
            Ok(Some(why)) => (NodeEnd::Failed(why.into()), None),
        });
    }
    ends
}

/// Each node began as often as it was tried at most, and after those that it depends on.
fn check_order(case: &[Node], log: &Log) {
    check_order_of_begun(case, log);
    let began = log.began.lock().unwrap();
    let mut place = vec![None; case.len()];
    for (at, number) in began.iter().enumerate() {
        place[*number].get_or_insert(at);
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
        nodes in graphs(),
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
                // Those that ended did so as the account says, but that nothing is tried again once the run ends.
                for ((node, (wanted, _)), drawn) in report.nodes().zip(&account).zip(&case.nodes) {
                    let is_over = !matches!(node.end, NodeEnd::NotStarted | NodeEnd::Cancelled);
                    let has_failed = matches!(node.end, NodeEnd::Failed(_) | NodeEnd::FellBack(_));
                    let is_early = has_failed && matches!(drawn.act, Act::Fail(_));
                    assert!(!is_over || is_early || is_like(node.end, wanted), "{}: {}", node.name, node.end);
                }
            }
        }
        world.settle(&engine);
        assert_eq!(canaries.alive(), 0);
    }

    /// Whenever it is cancelled, dropped or too late, everything is accounted for, and nothing is left.
    #[test]
    fn whatever_ends_a_run_everything_is_accounted_for(
        nodes in graphs(),
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
    let mut seen = vec![0; case.len()];
    for number in began.iter() {
        seen[*number] += 1;
        let (tries, node) = (seen[*number], &case[*number]);
        let may_fail = matches!(node.act, Act::Fail(times) if tries <= times.saturating_add(1));
        let most = if may_fail { node.terms.attempts } else { 1 };
        assert!(tries <= most, "node {number} began {tries} times");
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
