//! What is wrong with a plan is told at once, with its code and its place.

use super::*;

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
fn parameters_that_do_not_fit_together_are_told_once_each_of_them_is_right() {
    let clock = VirtualClock::new();
    let mut registry = registry(&clock);
    registry
        .op("range")
        .param(Param::integer("from", 0..))
        .param(Param::integer("to", 0..))
        .check(|params| {
            let (from, to) = (params.integer("from"), params.integer("to"));
            if from <= to { Ok(()) } else { Err(format!("{from} is after {to}")) }
        })
        .inline(|_, _| Ok(Vec::new()));
    let told = |params: &str| {
        let node = format!("{{\"node_id\": \"n\", \"op\": \"range\", \"params\": {params}}}");
        registry.plan(&with_nodes(&[&node], "n")).map(drop).map_err(|errors| errors.to_string())
    };
    assert_eq!(told(r#"{"from": 1, "to": 2}"#), Ok(()));
    let error = told(r#"{"from": 2, "to": 1}"#).unwrap_err();
    assert!(error.starts_with("P012 ") && error.ends_with(" nodes[0].params: 2 is after 1"), "{error}");
    let error = told(r#"{"from": 2}"#).unwrap_err();
    assert!(error.ends_with("params.to: op \"range\" needs it: an integer of 0 or more"), "{error}");
}

#[test]
fn a_sample_request_that_is_none_is_told_where_requests_are_known() {
    let clock = VirtualClock::new();
    let mut registry = registry(&clock);
    let sample = FEED.replace("{\"user_id\": 1}", "[]");
    assert!(registry.plan(&sample).is_ok(), "anything is a request");
    registry.requests(|json| if json.is_object() { Ok(()) } else { Err("not an object".to_owned()) });
    assert!(registry.plan(FEED).is_ok());
    let errors = registry.plan(&sample).unwrap_err();
    assert_eq!(errors.to_string(), "P001 14:21 sample_request: not an object");
}
