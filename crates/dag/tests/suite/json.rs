//! Plans from data: what is read, what is refused and where, and that it runs.

mod mistakes;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ebbtide_dag::{
    Class, Code, Env, Failure, Kind, Policy, RunError,
    json::{ExpressionError, JsonPlan, Param, ParamKind, Params, Presence, Registry, ops},
};
use ebbtide_lifecycle::time::{Clock, VirtualClock};
use ebbtide_offload::Pool;
use proptest::prelude::*;
use serde_json::{Value, json};

const FEED: &str = include_str!("../../plans/feed.json");
const TEN_MISTAKES: &str = include_str!("../../plans/ten_mistakes.json");

type Rows = Vec<u64>;

/// The test ops and some more, by a clock.
fn registry(clock: &VirtualClock) -> Registry<(), Rows> {
    let mut registry = Registry::new();
    ops::fixed_source(&mut registry, |rows| (0..rows).collect());
    ops::sleep(&mut registry, clock.clone(), || vec![77]);
    ops::busy_cpu(&mut registry);
    registry
        .op("concat")
        .inputs(1..)
        .inline(|_, call| Ok(call.inputs.iter().flat_map(|rows| rows.to_vec()).collect()));
    registry
        .op("filter")
        .about("keeps some rows")
        .inputs(1..=2)
        .param(Param::node("by").optional())
        .param(Param::list("all_of", ParamKind::Node).optional())
        .param(Param::expression("score").optional())
        .param(Param::predicate("keep").optional())
        .param(Param::endpoint("store").optional())
        .param(Param::one_of("order", ["ascending", "descending"]).default("ascending"))
        .param(Param::float("share", 0.0..=1.0).default(0.5))
        .param(Param::list("weights", ParamKind::Integer(0..=9)).default(json!([1, 2])))
        .param(Param::string("label").optional())
        .param(Param::json("extra").optional())
        .inline(|_, call| {
            let mut rows = call.inputs[0].to_vec();
            rows.extend(call.node("by").iter().flat_map(|rows| rows.iter()));
            rows.extend(call.nodes("all_of").iter().flat_map(|rows| rows.iter()));
            Ok(rows)
        });
    registry.op("fails").inputs(0..).inline(|_, _| Err(Failure::new("on purpose")));
    registry.class(&Class::new("disk", 1)).endpoint("redis");
    registry.expressions(|value| {
        let text = value.as_str().unwrap_or_default();
        match text.chars().position(|letter| letter == '$') {
            Some(at) => Err(ExpressionError::new(at + 1, "unexpected \"$\"")),
            None => Ok(text.len()),
        }
    });
    registry
}

fn plan_of(text: &str) -> JsonPlan<(), Rows> {
    registry(&VirtualClock::new()).plan(text).unwrap()
}

/// A plan with these nodes, one line each, from line 2 on, and this output.
fn with_nodes(nodes: &[&str], output: &str) -> String {
    let nodes = nodes.join(",\n");
    format!(
        "{{\"schema_version\": 1, \"plan_name\": \"p\", \"nodes\": [\n{nodes}],\n\"outputs\": [\"{output}\"]}}"
    )
}

const SOURCE: &str = r#"{"node_id": "source", "op": "fixed_source", "params": {"row_count": 3}}"#;

/// A plan with a source and this node `n`, which stands on line 3.
fn with_node(fields: &str) -> String {
    with_nodes(&[SOURCE, &format!("{{\"node_id\": \"n\", {fields}}}")], "n")
}

/// What is told, one line for each.
fn told(text: &str) -> Vec<String> {
    let errors = registry(&VirtualClock::new()).plan(text).expect_err(text);
    errors.iter().map(ToString::to_string).collect()
}

fn run(text: &str) -> (Result<Vec<Rows>, RunError>, Duration) {
    let clock = VirtualClock::new();
    let pool = Pool::builder().clock(&clock).start().unwrap();
    let plan = registry(&clock).plan(text).unwrap();
    let env = Env::new(clock.clone()).pool(&pool).endpoint("redis", Arc::new(7_u32));
    let engine = plan.bind(env).unwrap();
    let start = clock.now();
    let result = clock.block_on(engine.run(()).policy(Policy::FinishIndependent));
    let rows = result.map(|rows| rows.into_iter().map(|rows| rows.into_inner()).collect());
    (rows, clock.now() - start)
}

#[test]
fn a_chain_as_long_as_a_plan_may_be_is_read_in_any_order() {
    let len = ebbtide_dag::NODES_MAX;
    let node = |nth: usize| match nth {
        0 => r#"{"node_id": "0", "op": "fixed_source", "params": {"row_count": 1}}"#.to_owned(),
        _ => format!("{{\"node_id\": \"{nth}\", \"op\": \"concat\", \"inputs\": [\"{}\"]}}", nth - 1),
    };
    let nodes: Vec<String> = (0..len).rev().map(node).collect();
    let nodes: Vec<&str> = nodes.iter().map(|node| &**node).collect();
    let plan = plan_of(&with_nodes(&nodes, &(len - 1).to_string()));
    assert_eq!(plan.len(), len);
}

#[test]
fn a_plan_knows_its_outputs_its_deadline_and_its_sample_request() {
    let plan = plan_of(FEED);
    assert_eq!((plan.name(), plan.len()), ("feed", 6));
    assert_eq!(plan.outputs(), [Arc::from("concat")]);
    assert_eq!(plan.deadline(), Some(Duration::from_secs(1)));
    assert_eq!(plan.sample_request(), Some(&json!({"user_id": 1})));
    assert!(plan.warnings().is_empty());
}

#[test]
fn nodes_that_feed_no_output_and_timeouts_beyond_the_deadline_are_warned_of() {
    let text =
        FEED.replace("\"timeout_ms\": 500", "\"timeout_ms\": 1001").replace("[\"concat\"]", "[\"recs_vm\"]");
    let warnings: Vec<_> = plan_of(&text).warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "W001 6:5 nodes[1]: node \"follow\" feeds no output; it is run for its effects only",
            "W001 8:5 nodes[3]: node \"follow_vm\" feeds no output; it is run for its effects only",
            "W002 9:111 nodes[4].timeout_ms: 1.001s are longer than the plan's deadline of 1s",
            "W001 10:5 nodes[5]: node \"concat\" feeds no output; it is run for its effects only",
        ]
    );
}

#[test]
fn branches_of_a_plan_run_side_by_side() {
    let (rows, took) = run(FEED);
    assert_eq!(rows.unwrap(), [vec![0, 0]]);
    // As long as the longer of two sleeps; the CPU is busy in real time.
    assert_eq!(took, Duration::from_millis(30));
}

#[test]
fn a_sleep_passes_its_input_on_or_a_default_or_fails() {
    let nodes =
        [SOURCE, r#"{"node_id": "n", "op": "sleep", "inputs": ["source"], "params": {"duration_ms": 5}}"#];
    assert_eq!(run(&with_nodes(&nodes, "n")).0.unwrap(), [[0, 1, 2]]);
    let nodes = [r#"{"node_id": "n", "op": "sleep", "params": {"duration_ms": 5}}"#];
    assert_eq!(run(&with_nodes(&nodes, "n")).0.unwrap(), [[77]]);
    let nodes =
        [r#"{"node_id": "n", "op": "sleep", "params": {"duration_ms": 5, "fail_after_sleep": true}}"#];
    let (result, took) = run(&with_nodes(&nodes, "n"));
    assert_eq!(result.unwrap_err().to_string(), "R004 node \"n\" failed: told to fail after its sleep");
    assert_eq!(took, Duration::from_millis(5));
}

#[test]
fn a_busy_cpu_is_busy_in_real_time() {
    let start = ebbtide_lifecycle::time::SystemClock.now();
    run(&with_node(r#""op": "busy_cpu", "inputs": ["source"], "params": {"busy_wait_ms": 20}"#)).0.unwrap();
    assert!(ebbtide_lifecycle::time::SystemClock.now() - start >= Duration::from_millis(20));
}

#[test]
fn the_terms_of_a_node_hold() {
    let sleep = |terms: &str| {
        let node = format!(
            "{{\"node_id\": \"n\", \"op\": \"sleep\", \"params\": {{\"duration_ms\": 10, \"fail_after_sleep\": true}}, {terms}}}"
        );
        let (result, took) = run(&with_nodes(&[&node], "n"));
        (result.unwrap_err().to_string(), took.as_millis())
    };
    assert_eq!(sleep(r#""timeout_ms": 4"#), ("R003 node \"n\" timed out after 4ms".into(), 4));
    // 10 ms each, and waits of 1, 2, 3 ms.
    let retry = r#""retry": {"attempts": 4, "backoff_ms": 1, "max_backoff_ms": 3}"#;
    assert_eq!(sleep(retry), ("R004 node \"n\" failed 4 times: told to fail after its sleep".into(), 46));
    let retry = r#""retry": {"attempts": 3, "backoff_ms": 4}"#;
    assert_eq!(sleep(retry), ("R004 node \"n\" failed 3 times: told to fail after its sleep".into(), 38));
    // One at a time.
    let node = |id: &str| {
        format!(
            "{{\"node_id\": \"{id}\", \"op\": \"sleep\", \"params\": {{\"duration_ms\": 10}}, \"class\": \"disk\"}}"
        )
    };
    let (result, took) = run(&with_nodes(&[&node("a"), &node("b")], "a"));
    assert!(result.is_ok());
    assert_eq!(took.as_millis(), 20);
}

#[test]
fn an_optional_input_that_fails_is_left_out() {
    let fails = r#"{"node_id": "lost", "op": "fails"}"#;
    let concat =
        r#"{"node_id": "n", "op": "concat", "inputs": ["source"], "optional_inputs": ["lost", "more"]}"#;
    let more = r#"{"node_id": "more", "op": "fixed_source", "params": {"row_count": 1}}"#;
    assert_eq!(run(&with_nodes(&[concat, fails, more, SOURCE], "n")).0.unwrap(), [[0, 1, 2, 0]]);
}

#[test]
fn a_node_can_be_an_input_and_a_reference_at_once() {
    let filter = r#"{"node_id": "n", "op": "filter", "inputs": ["source"], "params": {"by": "source", "all_of": ["one", "source"]}}"#;
    let one = r#"{"node_id": "one", "op": "fixed_source", "params": {"row_count": 1}}"#;
    let expected = [[0, 1, 2, 0, 1, 2, 0, 0, 1, 2]];
    assert_eq!(run(&with_nodes(&[filter, SOURCE, one], "n")).0.unwrap(), expected);
}

#[test]
fn an_endpoint_of_a_plan_is_asked_for_when_it_is_bound() {
    let plan = plan_of(&with_node(r#""op": "filter", "inputs": ["source"], "params": {"store": "redis"}"#));
    let missing = plan.bind(Env::new(VirtualClock::new())).unwrap_err();
    assert!(missing.to_string().contains("node \"n\" needs the endpoint \"redis\""), "{missing}");
}

#[test]
fn what_an_op_prepares_of_its_parameters_is_made_once_for_each_node() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let mut registry = Registry::<(), i64>::new();
    registry.op("square").param(Param::integer("of", ..)).inline(move |_, call| {
        let square = call.params.prepared(|params| {
            count.fetch_add(1, Ordering::Relaxed);
            params.integer("of").pow(2)
        });
        Ok(*square)
    });
    let plan = registry.plan(
        r#"{"schema_version": 1, "plan_name": "p", "outputs": ["a", "b"], "nodes": [
        {"node_id": "a", "op": "square", "params": {"of": 3}}, {"node_id": "b", "op": "square", "params": {"of": 4}}]}"#,
    );
    let clock = VirtualClock::new();
    let engine = plan.unwrap().bind(Env::new(clock.clone())).unwrap();
    for _ in 0..3 {
        let outputs = clock.block_on(engine.run(())).unwrap();
        assert_eq!((*outputs[0], *outputs[1]), (9, 16));
    }
    assert_eq!(made.load(Ordering::Relaxed), 2);
}

#[test]
fn a_node_is_told_how_much_of_its_output_is_looked_at() {
    // Gives what it was told, or 0 for everything.
    let mut registry = Registry::<(), usize>::new();
    registry.op("told").inline(|_, call| Ok(call.params.looked_at().unwrap_or(0)));
    let count = |params: &Params| params.integer("count").unsigned_abs() as usize;
    registry
        .op("take")
        .inputs(1..=1)
        .param(Param::integer("count", 0..))
        .param(Param::node("by").optional())
        .looks_at(count)
        .inline(|_, call| Ok(*call.inputs[0]));
    registry.op("all").inputs(1..).inline(|_, call| Ok(*call.inputs[0]));
    let take = |id: &str, count: u32| json!({"node_id": id, "op": "take", "inputs": ["a"], "params": {"count": count}});
    let all = json!({"node_id": "c", "op": "all", "inputs": ["a"]});
    let by = json!({"node_id": "c", "op": "take", "inputs": ["a2"], "params": {"count": 1, "by": "a"}});
    let other = json!({"node_id": "a2", "op": "told"});
    for (what, others, outputs, told) in [
        ("by one who looks at some", vec![take("b", 10)], vec!["b"], 10),
        ("by two: the one who looks at more", vec![take("b", 10), take("c", 20)], vec!["b", "c"], 20),
        ("by one who looks at everything, too", vec![take("b", 10), all], vec!["b", "c"], 0),
        ("by whoever gets the outputs of the plan, too", vec![take("b", 10)], vec!["b", "a"], 0),
        ("by a parameter, too", vec![take("b", 10), other, by], vec!["b", "c"], 0),
    ] {
        let mut nodes = vec![json!({"node_id": "a", "op": "told"})];
        nodes.extend(others);
        let plan = json!({"schema_version": 1, "plan_name": "p", "nodes": nodes, "outputs": outputs});
        let clock = VirtualClock::new();
        let engine = registry.plan(&plan.to_string()).unwrap().bind(Env::new(clock.clone())).unwrap();
        assert_eq!(*clock.block_on(engine.run(())).unwrap()[0], told, "looked at {what}");
    }
}

#[test]
fn an_op_gets_its_parameters_as_declared() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let mut registry = Registry::<(), u32>::new();
    registry
        .endpoint("redis")
        .expressions(|value| Ok(value.to_string()))
        .op("all")
        .param(Param::bool("bool"))
        .param(Param::integer("integer", -5..5))
        .param(Param::float("float", f64::NEG_INFINITY..=f64::INFINITY))
        .param(Param::string("string"))
        .param(Param::one_of("word", ["a", "b"]))
        .param(Param::list("list", ParamKind::List(Box::new(ParamKind::Bool))))
        .param(Param::expression("expression"))
        .param(Param::predicate("predicate"))
        .param(Param::endpoint("endpoint"))
        .param(Param::json("json"))
        .param(Param::integer("default", ..).default(9))
        .param(Param::integer("optional", ..).optional())
        .blocking(move |_, call| {
            let params = &call.params;
            assert!(params.bool("bool"));
            assert_eq!(params.integer("integer"), -5);
            assert_eq!(params.float("float"), 2.0);
            assert_eq!(&**params.string("string"), "é\n");
            assert_eq!(&**params.string("word"), "b");
            assert_eq!(params.list("list")[1].list().unwrap()[0].bool(), Some(false));
            assert_eq!(params.expression("expression").parsed::<String>().unwrap(), "[1]");
            assert_eq!(params.expression("expression").name(), "e");
            assert_eq!(params.predicate("predicate").json(), &json!({"is": 1}));
            assert!(params.predicate("predicate").parsed::<String>().is_none());
            assert_eq!(&**params.endpoint("endpoint"), "redis");
            assert_eq!(params.json("json"), &Value::Null);
            assert_eq!(params.integer("default"), 9);
            assert!(params.get("optional").is_none());
            count.fetch_add(1, Ordering::Relaxed);
            Ok(1)
        });
    let plan = registry.plan(
        r#"{"schema_version": 1, "plan_name": "p", "outputs": ["n"], "expr_table": {"e": [1]}, "pred_table": {"p": {"is": 1}},
        "nodes": [{"node_id": "n", "op": "all", "params": {"bool": true, "integer": -5, "float": 2, "string": "é\n",
        "word": "b", "list": [[], [false]], "expression": "e", "predicate": "p", "endpoint": "redis", "json": null}}]}"#,
    );
    let clock = VirtualClock::new();
    let pool = Pool::builder().clock(&clock).start().unwrap();
    let env = Env::new(clock.clone()).pool(&pool).endpoint("redis", Arc::new(()));
    let engine = plan.unwrap().bind(env).unwrap();
    for _ in 0..2 {
        assert_eq!(*clock.block_on(engine.run(())).unwrap()[0], 1);
    }
    assert_eq!(seen.load(Ordering::Relaxed), 2);
}

#[test]
fn a_registry_describes_its_ops() {
    let registry = registry(&VirtualClock::new());
    let filter = registry.ops().find(|op| op.name() == "filter").unwrap();
    assert_eq!((filter.about(), filter.kind(), filter.inputs()), ("keeps some rows", Kind::Inline, 1..=2));
    assert!(matches!(filter.params()[0].presence(), Presence::Optional));
    let busy = registry.ops().find(|op| op.name() == "busy_cpu").unwrap();
    assert_eq!(
        busy.to_string(),
        "busy_cpu (cpu, takes 1 input): keeps a CPU busy, and passes its input on\n  \
         busy_wait_ms: an integer of 0 to 4294967295; how long it is busy"
    );
}

#[test]
#[should_panic(expected = "the default of parameter \"n\" is not an integer of 1 or more: 0")]
fn a_default_that_a_plan_could_not_give_is_refused() {
    drop(Param::integer("n", 1..).default(0));
}

#[test]
#[should_panic(expected = "there are two ops \"sleep\"")]
fn an_op_is_registered_once() {
    drop(registry(&VirtualClock::new()).op("sleep"));
}

/// A plan, or what is told of it: never a panic, and each with a place within the text.
fn holds_up(registry: &Registry<(), Rows>, text: &str) {
    let Err(errors) = registry.plan(text) else { return };
    assert!(errors.iter().len() > 0);
    for error in &errors {
        let (line, rest) = error.place.split_once(':').unwrap();
        let (column, path) = rest.split_once(' ').unwrap();
        let line = text.split('\n').nth(line.parse::<usize>().unwrap() - 1).unwrap();
        assert!((1..=line.chars().count() + 1).contains(&column.parse().unwrap()), "{error}\n{text}");
        assert!(!path.is_empty() && error.code < Code::W001);
    }
}

/// Parts of plans, to be put where they do not belong.
const SCRAPS: [&str; 20] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "-1",
    "1e999",
    "\"\\ud800\"",
    "\"viewer\"",
    "\"concat\"",
    "é",
    "\n",
    "[[[[",
    "\"inputs\": [\"concat\"],",
    "\"retry\": {},",
    "{\"node_id\": \"viewer\"},",
    "\"params\": {\"by\": \"n\"},",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), scraps in prop::collection::vec(0..SCRAPS.len(), 0..12)) {
        let registry = registry(&VirtualClock::new());
        holds_up(&registry, &text);
        holds_up(&registry, &scraps.into_iter().map(|nth| SCRAPS[nth]).collect::<String>());
    }

    #[test]
    fn no_change_to_a_plan_makes_it_panic(
        base in prop::sample::select(vec![FEED, TEN_MISTAKES]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..30, 0..=SCRAPS.len()), 1..4),
    ) {
        let mut letters: Vec<char> = base.chars().collect();
        for (at, len, scrap) in changes {
            let at = at.index(letters.len());
            let end = (at + len).min(letters.len());
            let scrap = SCRAPS.get(scrap).copied().unwrap_or_default();
            letters.splice(at..end, scrap.chars());
            if letters.is_empty() {
                break;
            }
        }
        holds_up(&registry(&VirtualClock::new()), &letters.into_iter().collect::<String>());
    }

    /// Values of a plan in each other's place: JSON all right, but of another shape.
    #[test]
    fn no_exchange_of_values_makes_it_panic(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let plan: Value = serde_json::from_str(FEED).unwrap();
        let mut pointers = Vec::new();
        every(&plan, &mut String::new(), &mut pointers);
        let value = plan.pointer(&pointers[from.index(pointers.len())]).unwrap().clone();
        let mut plan = plan;
        *plan.pointer_mut(&pointers[to.index(pointers.len())]).unwrap() = value;
        holds_up(&registry(&VirtualClock::new()), &plan.to_string());
    }
}

fn every(value: &Value, at: &mut String, pointers: &mut Vec<String>) {
    pointers.push(at.clone());
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(nth, item)| (nth.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        let len = at.len();
        at.push('/');
        at.push_str(&name);
        every(child, at, pointers);
        at.truncate(len);
    }
}
