//! Plans from data: what is read, what is refused and where, and that it runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ebbtide_dag::{
    Class, Code, Env, Failure, Kind, Policy, RunError,
    json::{ExpressionError, JsonPlan, Param, ParamKind, Presence, Registry, ops},
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
fn each_mistake_is_told_with_its_code_and_place() {
    let table = [
        (String::new(), "P001 1:1 plan: EOF while parsing a value"),
        ("{\n  \"é\": tru}".into(), "P001 2:11 plan: expected ident"),
        ("[]".into(), "P001 1:1 plan: expected an object, got a list"),
        ("{} x".into(), "P001 1:4 plan: trailing characters"),
        (r#"{"schema_version": 2, "nodse": 1}"#.into(), "P001 1:20 schema_version: expected 1, got 2"),
        (FEED.replace("1,\n  \"plan", "\"1\",\n  \"plan"), "P001 2:21 schema_version: expected 1, got \"1\""),
        (FEED.replace("\"feed\"", "\"\""), "P001 3:16 plan_name: it is empty"),
        (FEED.replace("  \"plan_name\": \"feed\",\n", ""), "P001 1:1 plan: it has no `plan_name`"),
        (
            FEED.replace("\"plan_name\": \"feed\"", "\"plan_name\": \"feed\", \"plan_name\": 1"),
            "P001 3:24 plan_name: it is given twice; the first is at 3:3",
        ),
        (
            FEED.replace("\"deadline_ms\": 1000", "\"deadline_ms\": 0"),
            "P001 13:18 deadline_ms: expected an integer of 1 to 4294967295, got 0",
        ),
        (
            FEED.replace("{\"user_id\": 1}", "\"\\ud800\""),
            "P001 14:28 sample_request: unexpected end of hex escape",
        ),
        (
            FEED.replace("deadline_ms", "deadlin_ms"),
            "P002 13:3 deadlin_ms: there is no field \"deadlin_ms\" (did you mean \"deadline_ms\"?)",
        ),
        (
            FEED.replace("\"node_id\": \"recs\"", "\"nod_id\": \"recs\""),
            "P002 7:6 nodes[2].nod_id: there is no field \"nod_id\" (did you mean \"node_id\"?)",
        ),
        (
            r#"{"schema_version": 1, "plan_name": "p", "nodes": [], "outputs": ["x"]}"#.into(),
            "P003 1:50 nodes: it has no nodes: add one",
        ),
        (
            FEED.replace("\"node_id\": \"recs\", ", ""),
            "P004 7:5 nodes[2]: it has no `node_id`: errors and reports need one",
        ),
        (
            with_nodes(&[SOURCE, r#"{"node_id": "", "op": "concat", "inputs": ["source"]}"#], "source"),
            "P004 3:13 nodes[1].node_id: it is empty: errors and reports need a name",
        ),
        (
            with_nodes(&[SOURCE, SOURCE], "source"),
            "P005 3:13 nodes[1].node_id: there are two nodes \"source\"; the first is nodes[0], at 2:13",
        ),
        (
            with_node(r#""op": "concta", "params": {"x": 1}"#),
            "P006 3:24 nodes[1].op: there is no op \"concta\" (did you mean \"concat\"?)",
        ),
        (with_node(r#""inputs": []"#), "P001 3:1 nodes[1]: it has no `op`"),
        (
            with_node(r#""op": "concat", "inputs": ["source", "suorce"]"#),
            "P007 3:55 nodes[1].inputs[1]: there is no node \"suorce\" (did you mean \"source\"?)",
        ),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": {"by": "nobody"}"#),
            "P007 3:73 nodes[1].params.by: there is no node \"nobody\"",
        ),
        (
            with_node(r#""op": "concat", "inputs": ["source", "n"]"#),
            "P008 3:55 nodes[1].inputs[1]: it depends on itself",
        ),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": {"all_of": ["source", "n"]}"#),
            "P008 3:88 nodes[1].params.all_of[1]: it depends on itself",
        ),
        (
            with_node(r#""op": "busy_cpu", "params": {"busy_wait_ms": 1}"#),
            "P010 3:1 nodes[1].inputs: op \"busy_cpu\" takes 1 input, got 0",
        ),
        (
            with_node(r#""op": "concat", "inputs": [], "optional_inputs": ["source"]"#),
            "P010 3:44 nodes[1].inputs: op \"concat\" takes 1 or more inputs, got 0 and 1 optional",
        ),
        (
            with_node(r#""op": "concat", "inputs": ["source"], "optional_inputs": ["source"]"#),
            "P011 3:76 nodes[1].optional_inputs[0]: the input \"source\" is listed twice",
        ),
        (
            FEED.replace("[\"concat\"]", "[\"concat\", \"concat\"]"),
            "P011 12:25 outputs[1]: the output \"concat\" is listed twice",
        ),
        (
            with_node(r#""op": "concat", "inputs": "source""#),
            "P001 3:44 nodes[1].inputs: expected a list, got \"source\"",
        ),
        (
            with_node(r#""op": "concat", "inputs": ["source", 7]"#),
            "P001 3:55 nodes[1].inputs[1]: expected a string, got 7",
        ),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": {"share": 1.5}"#),
            "P012 3:76 nodes[1].params.share: expected a number of 0 to 1, got 1.5",
        ),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": {"weights": [1, 10, "x"]}"#),
            "P012 3:82 nodes[1].params.weights[1]: expected an integer of 0 to 9, got 10\n\
             P012 3:86 nodes[1].params.weights[2]: expected an integer of 0 to 9, got \"x\"",
        ),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": {"order": "ascendign"}"#),
            "P012 3:76 nodes[1].params.order: expected one of \"ascending\", \"descending\", got \"ascendign\" \
             (did you mean \"ascending\"?)",
        ),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": {"lable": "x"}"#),
            "P012 3:67 nodes[1].params.lable: there is no parameter \"lable\" (did you mean \"label\"?)",
        ),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": []"#),
            "P001 3:66 nodes[1].params: expected an object, got a list",
        ),
        (
            with_node(r#""op": "sleep", "params": {}"#),
            "P012 3:43 nodes[1].params.duration_ms: op \"sleep\" needs it: an integer of 0 to 4294967295",
        ),
        (
            with_node(r#""op": "sleep", "params": {"duration_m": 1}"#),
            "P012 3:44 nodes[1].params.duration_m: there is no parameter \"duration_m\" (did you mean \"duration_ms\"?)",
        ),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": {"score": "e1"}"#),
            "P014 3:76 nodes[1].params.score: there is no expression \"e1\"",
        ),
        (
            FEED.replace("\"deadline_ms\"", "\"expr_table\": {\"a\": \"é$\"}, \"deadline_ms\""),
            "P014 13:25 expr_table.a: unexpected \"$\" at column 2",
        ),
        (
            FEED.replace("[\"concat\"]", "[\"concta\"]"),
            "P015 12:15 outputs[0]: there is no node \"concta\" (did you mean \"concat\"?)",
        ),
        (FEED.replace("[\"concat\"],", "[],"), "P015 12:14 outputs: it has no outputs: name one"),
        (
            with_node(r#""op": "filter", "inputs": ["source"], "params": {"store": "reddis"}"#),
            "P016 3:76 nodes[1].params.store: there is no endpoint \"reddis\" (did you mean \"redis\"?)",
        ),
        (
            with_node(r#""op": "concat", "inputs": ["source"], "class": "gpu""#),
            "P016 3:65 nodes[1].class: there is no class \"gpu\" (there is only \"disk\")",
        ),
        (
            with_node(r#""op": "concat", "inputs": ["source"], "timeout_ms": "1s""#),
            "P001 3:70 nodes[1].timeout_ms: expected an integer of 1 to 4294967295, got \"1s\"",
        ),
        (
            with_node(
                r#""op": "concat", "inputs": ["source"], "retry": {"attempt": 2, "backoff_ms": 9, "max_backoff_ms": 8}"#,
            ),
            "P002 3:66 nodes[1].retry.attempt: there is no field \"attempt\" (did you mean \"attempts\"?)\n\
             P001 3:115 nodes[1].retry.max_backoff_ms: expected an integer of 9 to 4294967295, got 8",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(told(&text).join("\n"), expected, "{text}");
    }
}

#[test]
fn all_mistakes_of_a_plan_are_told_at_once() {
    let expected = [
        "P002 4:3 plan_owner: there is no field \"plan_owner\" (there are \"schema_version\", \"plan_name\", \"nodes\", \
         \"outputs\", \"expr_table\", \"pred_table\", \"deadline_ms\", \"sample_request\")",
        "P012 6:73 nodes[0].params.row_count: expected an integer of 0 or more, got -1",
        "P006 7:33 nodes[1].op: there is no op \"slep\" (did you mean \"sleep\"?)",
        "P007 8:51 nodes[2].inputs[0]: there is no node \"viwer\" (did you mean \"viewer\"?)",
        "P012 8:72 nodes[2].params.duration: there is no parameter \"duration\" (did you mean \"duration_ms\"?)",
        "P005 9:17 nodes[3].node_id: there are two nodes \"recs\"; the first is nodes[2], at 8:17",
        "P001 9:50 nodes[3].inputs: expected a list, got \"viewer\"",
        "P008 10:51 nodes[4].inputs[0]: it depends on itself",
        "P009 11:5 nodes[5]: nodes depend on each other: left -> right -> left",
        "P016 12:104 nodes[6].class: there is no class \"gpu\" (there is only \"disk\")",
        "P010 13:53 nodes[7].inputs: op \"concat\" takes 1 or more inputs, got 0",
        "P015 15:15 outputs[0]: there is no node \"concta\" (did you mean \"concat\"?)",
    ];
    assert_eq!(told(TEN_MISTAKES), expected);
}

#[test]
fn a_mistake_is_not_told_again_where_others_meet_it() {
    let node = |id: &str, rest: &str| format!("{{\"node_id\": \"{id}\", {rest}}}");
    // A node without a name, which another one depends on.
    let nameless = with_nodes(
        &[
            r#"{"op": "sleep", "params": {"duration_ms": 1}}"#,
            &node("n", r#""op": "concat", "inputs": ["lost"]"#),
        ],
        "n",
    );
    assert_eq!(told(&nameless).len(), 1);
    // Nor is the node itself what it means.
    let lost = with_nodes(&[SOURCE, &node("n1", r#""op": "concat", "inputs": ["n2"]"#)], "n1");
    assert_eq!(told(&lost), ["P007 3:46 nodes[1].inputs[0]: there is no node \"n2\""]);
    // An expression that cannot be read, and a table that is none.
    for table in [r#"{"e": "$"}"#, "[]"] {
        let text = with_node(r#""op": "filter", "inputs": ["source"], "params": {"score": "e"}"#);
        let text = text.replace("\"plan_name\"", &format!("\"expr_table\": {table}, \"plan_name\""));
        assert_eq!(told(&text).len(), 1, "{table}");
    }
    // A list that is none says nothing about how many inputs there are; nor does an unknown input.
    assert_eq!(told(&with_node(r#""op": "concat", "inputs": {}"#)).len(), 1);
    assert_eq!(told(&with_node(r#""op": "concat", "inputs": ["lost"]"#)).len(), 1);
    // A node that is none.
    assert_eq!(
        told(&with_nodes(&["7", &node("n", r#""op": "concat", "inputs": ["lost"]"#)], "lost")).len(),
        1
    );
}

#[test]
fn a_parameter_that_names_a_node_is_an_edge_in_circles_too() {
    let a =
        r#"{"node_id": "a", "op": "filter", "inputs": ["source"], "params": {"all_of": ["source", "b"]}}"#;
    let b = r#"{"node_id": "b", "op": "concat", "inputs": ["c"]}"#;
    let c = r#"{"node_id": "c", "op": "filter", "inputs": ["source"], "params": {"by": "a"}}"#;
    let told = told(&with_nodes(&[c, b, a, SOURCE], "a"));
    assert_eq!(told, ["P009 2:1 nodes[0]: nodes depend on each other: c -> b -> a -> c"]);
}

#[test]
fn circles_without_a_common_node_are_all_told() {
    let node = |id: &str, input: &str| {
        format!("{{\"node_id\": \"{id}\", \"op\": \"concat\", \"inputs\": [\"{input}\"]}}")
    };
    let nodes = [node("a", "b"), node("b", "a"), node("c", "d"), node("d", "c"), node("e", "d")];
    let nodes: Vec<&str> = nodes.iter().map(|node| &**node).collect();
    let told = told(&with_nodes(&nodes, "e"));
    assert_eq!(
        told,
        [
            "P009 2:1 nodes[0]: nodes depend on each other: a -> b -> a",
            "P009 4:1 nodes[2]: nodes depend on each other: c -> d -> c",
        ]
    );
}

#[test]
fn more_nodes_than_a_plan_may_have_are_one_mistake() {
    let nodes = vec!["{}"; ebbtide_dag::NODES_MAX + 1];
    let told = told(&with_nodes(&nodes, "x"));
    assert_eq!(told, ["P018 1:50 nodes: it has 65536 nodes, and may have 65535: make it several plans"]);
}

#[test]
fn thousands_of_mistakes_in_one_line_are_told_in_no_time() {
    let node = r#"{"node_id": "é", "op": "nothing", "inputs": ["ways"]}"#;
    let nodes = vec![node; 20_000].join(",");
    let text = format!(
        "{{\"schema_version\": 1, \"plan_name\": \"p\", \"nodes\": [{nodes}], \"outputs\": [\"x\"]}}"
    );
    assert_eq!(told(&text).len(), 20_000 * 3);
}

#[test]
fn all_unknown_names_are_told_and_the_first_with_the_nearest_name() {
    let inputs = vec![r#""suorce""#; 100].join(", ");
    let told = told(&with_node(&format!("\"op\": \"concat\", \"inputs\": [{inputs}]")));
    assert_eq!(told.len(), 100);
    assert_eq!(told.iter().filter(|line| line.contains("did you mean \"source\"?")).count(), 32);
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
