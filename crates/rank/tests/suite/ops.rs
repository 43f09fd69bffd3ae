//! Ops in plans: what each gives, and how each fails.

use std::time::Duration;

use ebbtide_dag::{Code, Env, Kind as OpKind};
use ebbtide_lifecycle::time::Clock;
use ebbtide_rank::{Endpoint, Endpoints, Kind, Request, Rows, Store, ops::LIGHT_ROWS_MAX};

use super::{Site, ids, scalars, values, with_node};

const SOURCE: &str = r#"{"node_id": "source", "op": "fixed_source", "params": {"rows": [
    {"id": 1, "country": "US", "x": 3}, {"id": 2, "country": "DE", "x": null}, {"id": 3, "x": 1}]}}, "#;

fn site() -> Site {
    let store = r#"{
        "user:1": {"age": 31, "country": "US"},
        "follow:1": [2, 3, 4], "recommendation:1": [4, 2], "follow:2": [5],
        "media:2": [{"id": 20, "score": 0.5}], "media:4": [{"id": 40, "score": 0.25}, {"id": 41}],
        "media:5": {"not": "a list"}
    }"#;
    Site::new(Endpoints::demo().with(Endpoint::store("small", Store::from_json(store).unwrap())))
}

fn run(tables: &str, node: &str) -> Result<Rows, String> {
    site().run(&with_node(tables, node), Request::new(1)).map_err(|error| error.to_string())
}

/// The node `n` behind the source.
fn behind_source(tables: &str, fields: &str) -> Result<Rows, String> {
    run(tables, &format!("{SOURCE}{{\"node_id\": \"n\", \"inputs\": [\"source\"], {fields}}}"))
}

fn alone(fields: &str) -> Result<Rows, String> {
    run("", &format!("{{\"node_id\": \"n\", {fields}}}"))
}

/// What is wrong with the parameters of the last node, whether it is run or not.
fn mistake(nodes: &str) -> String {
    let text = with_node("\"expr_table\": {\"e\": \"id\"},", nodes);
    let errors = site().registry().plan(&text).unwrap_err();
    let [error] = errors.iter().collect::<Vec<_>>()[..] else { panic!("one mistake: {errors}") };
    assert!(error.code == Code::P012 && error.place.ends_with("].params"), "{error}");
    error.message.clone()
}

#[test]
fn ops_that_wait_are_async_and_those_that_compute_run_on_the_pool() {
    let registry = site().registry();
    let kinds: Vec<(&str, OpKind)> = registry.ops().map(|op| (op.name(), op.kind())).collect();
    let expected = [
        ("busy_cpu", OpKind::Cpu),
        ("concat", OpKind::Cpu),
        ("filter", OpKind::Cpu),
        ("fixed_source", OpKind::Inline),
        ("follow", OpKind::Async),
        ("media", OpKind::Async),
        ("recommendation", OpKind::Async),
        ("sleep", OpKind::Async),
        ("sort", OpKind::Cpu),
        ("take", OpKind::Inline),
        ("viewer", OpKind::Async),
        ("vm", OpKind::Cpu),
    ];
    assert_eq!(kinds, expected);
    assert!(registry.ops().all(|op| !op.about().is_empty()));
}

#[test]
fn few_rows_are_computed_on_the_spot_and_many_on_the_pool() {
    let site = site();
    for (rows, is_light) in [(LIGHT_ROWS_MAX, true), (LIGHT_ROWS_MAX + 1, false)] {
        let nodes = format!(
            "{{\"node_id\": \"source\", \"op\": \"fixed_source\", \"params\": {{\"row_count\": {rows}}}}},
             {{\"node_id\": \"n\", \"op\": \"sort\", \"inputs\": [\"source\"], \"params\": {{\"by\": \"id\"}}}}"
        );
        let env = Env::new(site.clock.clone()).pool(&site.pool);
        let engine = site.plan(&with_node("", &nodes)).bind(env).unwrap();
        let (answer, report) = site.clock.block_on(engine.run(Request::new(1)).traced());
        assert_eq!(answer.unwrap()[0].len(), rows);
        let thread = |node: &str| report.node(node).unwrap().span.unwrap().thread;
        assert_eq!(thread("n") == thread("source"), is_light, "{rows} rows");
    }
}

#[test]
fn a_fixed_source_gives_as_many_rows_or_these() {
    assert_eq!(ids(&alone(r#""op": "fixed_source", "params": {"row_count": 3}"#).unwrap()), [1, 2, 3]);
    let rows = alone(r#""op": "fixed_source", "params": {"rows": [7, {"id": 8, "x": 0.5}]}"#).unwrap();
    assert_eq!((ids(&rows), values(&rows, "x")), (vec![7, 8], scalars([None, Some(0.5)])));
    let table = [
        ("{}", "give it `row_count` or `rows`"),
        (r#"{"row_count": 1, "rows": []}"#, "it has both `row_count` and `rows`: leave one of them out"),
        (r#"{"rows": 3}"#, "`rows` is not a list"),
        (r#"{"rows": [1, {"x": 1}]}"#, "`rows[1]`: it has no `id`"),
        (
            r#"{"rows": [{"id": 1, "x": 1}, {"id": 2, "x": "a"}]}"#,
            "`rows[1]`: column \"x\": a value is text, and the column is int",
        ),
    ];
    for (params, expected) in table {
        let source = format!("{{\"node_id\": \"n\", \"op\": \"fixed_source\", \"params\": {params}}}");
        assert_eq!(mistake(&source), expected);
    }
}

#[test]
fn the_viewer_is_the_user_of_the_request_with_the_columns_that_are_declared() {
    let rows = alone(r#""op": "viewer", "params": {"endpoint": "small"}"#).unwrap();
    assert_eq!((ids(&rows), values(&rows, "country")), (vec![1], scalars(["US"])));
    let params = r#"{"endpoint": "small", "float_fields": ["age"], "text_fields": ["city"]}"#;
    let rows = alone(&format!("\"op\": \"viewer\", \"params\": {params}")).unwrap();
    let columns: Vec<_> = rows.columns().map(|(name, kind)| (&**name, kind)).collect();
    assert_eq!(columns, [("age", Kind::Float), ("city", Kind::Text)]);
    let error =
        alone(r#""op": "viewer", "params": {"endpoint": "small", "int_fields": ["country"]}"#).unwrap_err();
    assert_eq!(
        error,
        "R004 node \"n\" failed: endpoint \"small\", key \"user:1\": column \"country\" is text, and was declared as int"
    );
}

#[test]
fn lists_are_those_of_the_input_or_of_the_user() {
    let list = |op: &str, more: &str| {
        alone(&format!("\"op\": \"{op}\", \"params\": {{\"endpoint\": \"small\"{more}}}"))
            .map(|rows| ids(&rows))
    };
    assert_eq!(list("follow", "").unwrap(), [2, 3, 4]);
    assert_eq!(list("follow", ", \"fanout\": 2").unwrap(), [2, 3]);
    assert_eq!(list("recommendation", "").unwrap(), [4, 2]);
    assert!(list("media", "").unwrap().is_empty(), "the user has none");

    let chain = |first: &str| {
        let small = "\"params\": {\"endpoint\": \"small\"}";
        let first = format!("{{\"node_id\": \"first\", \"op\": \"{first}\", {small}}}");
        run(
            "",
            &format!("{first}, {{\"node_id\": \"n\", \"op\": \"media\", \"inputs\": [\"first\"], {small}}}"),
        )
    };
    assert_eq!(ids(&chain("recommendation").unwrap()), [40, 41, 20], "in the order of the input");
    assert_eq!(ids(&chain("follow").unwrap()), [20, 40, 41]);
}

#[test]
fn what_cannot_be_read_fails_its_node_with_endpoint_and_key() {
    let nodes = r#"{"node_id": "s", "op": "fixed_source", "params": {"rows": [4, 5]}},
        {"node_id": "n", "op": "media", "inputs": ["s"], "params": {"endpoint": "small"}}"#;
    let expected = "R004 node \"n\" failed: endpoint \"small\", key \"media:5\": it holds a hash, and a list was asked for";
    assert_eq!(run("", nodes).unwrap_err(), expected);

    let site = site();
    let plan = site.plan(&with_node("", r#"{"node_id": "n", "op": "viewer"}"#));
    let engine = plan.bind(Env::new(site.clock.clone())).unwrap();
    let error = site.clock.block_on(engine.run(Request::new(1))).unwrap_err().to_string();
    assert!(error.contains("not bound to the endpoint \"default\""), "{error}");
}

#[test]
fn vm_and_filter_know_the_parameters_of_the_request() {
    let tables = r#""expr_table": {"boosted": "x * $boost"}, "pred_table": {"large": "boosted >= $least"},"#;
    let nodes = format!(
        "{SOURCE}{{\"node_id\": \"v\", \"op\": \"vm\", \"inputs\": [\"source\"], \"params\": {{\"expr\": \"boosted\", \"out\": \"boosted\"}}}},
         {{\"node_id\": \"n\", \"op\": \"filter\", \"inputs\": [\"v\"], \"params\": {{\"pred\": \"large\"}}}}"
    );
    let request = r#"{"user_id": 1, "params": {"boost": 10, "least": 20}}"#;
    let rows = site().run(&with_node(tables, &nodes), Request::from_json(request).unwrap()).unwrap();
    assert_eq!((ids(&rows), values(&rows, "boosted")), (vec![1], scalars([30])));
}

#[test]
fn vm_filter_and_sort_fail_with_what_they_are_called_in_the_plan() {
    let tables =
        r#""expr_table": {"bad": "1 / (x - 3)", "gone": "contry"}, "pred_table": {"mixed": "country > x"},"#;
    let vm = |expr: &str, out: &str| {
        behind_source(
            tables,
            &format!("\"op\": \"vm\", \"params\": {{\"expr\": \"{expr}\", \"out\": \"{out}\"}}"),
        )
    };
    let table = [
        (
            vm("bad", "y"),
            "R004 node \"n\" failed: expression \"bad\": `1 / (x - 3)` is not a finite number for the row with id 1",
        ),
        (
            vm("gone", "y"),
            "R004 node \"n\" failed: expression \"gone\": there is no column \"contry\" (did you mean \"country\"?)",
        ),
        (
            behind_source(tables, r#""op": "filter", "params": {"pred": "mixed"}"#),
            "R004 node \"n\" failed: predicate \"mixed\": `country > x` needs two values of one kind, but country is text, and x is int",
        ),
        (
            behind_source("", r#""op": "sort", "params": {"by": "y"}"#),
            "R004 node \"n\" failed: there is no column \"y\" (there are \"country\", \"x\")",
        ),
    ];
    for (result, expected) in table {
        assert_eq!(result.unwrap_err(), expected);
    }
}

#[test]
fn sort_take_and_concat_are_those_of_rows() {
    let sorted =
        |params: &str| ids(&behind_source("", &format!("\"op\": \"sort\", \"params\": {params}")).unwrap());
    assert_eq!(sorted(r#"{"by": "x"}"#), [3, 1, 2]);
    assert_eq!(sorted(r#"{"by": "x", "desc": true}"#), [1, 3, 2]);
    let taken = behind_source("", r#""op": "take", "params": {"count": 2}"#).unwrap();
    assert_eq!(ids(&taken), [1, 2]);

    let two = |second: &str| {
        let second =
            format!("{{\"node_id\": \"b\", \"op\": \"fixed_source\", \"params\": {{\"rows\": [{second}]}}}}");
        run(
            "",
            &format!(
                "{SOURCE}{second}, {{\"node_id\": \"n\", \"op\": \"concat\", \"inputs\": [\"source\", \"b\"]}}"
            ),
        )
    };
    let joined = two(r#"{"id": 9, "y": true, "x": 0.5}"#).unwrap();
    assert_eq!(ids(&joined), [1, 2, 3, 9]);
    assert_eq!(values(&joined, "x"), scalars([Some(3.0), None, Some(1.0), Some(0.5)]));
    let expected =
        "R004 node \"n\" failed: column \"x\" is int in one input and text in another: rename one of them";
    assert_eq!(two(r#"{"id": 9, "x": "a"}"#).unwrap_err(), expected);
}

#[test]
fn sleep_takes_its_time_and_fails_when_told_to() {
    let site = site();
    let plan = |more: &str| {
        with_node(
            "",
            &format!(
                "{SOURCE}{{\"node_id\": \"n\", \"op\": \"sleep\", \"inputs\": [\"source\"], \"params\": {{\"duration_ms\": 30{more}}}}}"
            ),
        )
    };
    let start = site.clock.now();
    assert_eq!(ids(&site.run(&plan(""), Request::new(1)).unwrap()), [1, 2, 3]);
    assert_eq!(site.clock.now() - start, Duration::from_millis(30));
    let error = site.run(&plan(", \"fail_after_sleep\": true"), Request::new(1)).unwrap_err();
    assert_eq!(error.to_string(), "R004 node \"n\" failed: told to fail after its sleep");
    assert_eq!(behind_source("", r#""op": "busy_cpu", "params": {"busy_wait_ms": 1}"#).unwrap().len(), 3);
}

#[test]
fn a_column_is_computed_under_a_name_of_its_own() {
    for (out, expected) in [
        ("", "`out` is empty: a column needs a name"),
        ("id", "`out` is \"id\", which is not computed: choose another name"),
    ] {
        let params = format!("{{\"expr\": \"e\", \"out\": \"{out}\"}}");
        let vm =
            format!("{{\"node_id\": \"n\", \"op\": \"vm\", \"inputs\": [\"source\"], \"params\": {params}}}");
        assert_eq!(mistake(&format!("{SOURCE}{vm}")), expected);
    }
}

#[test]
fn a_concat_of_more_rows_than_memory_is_for_fails() {
    let parts: Vec<String> = (0..7).map(|nth| format!("part{nth}")).collect();
    // They share the rows of the source.
    let nodes: String = parts
        .iter()
        .map(|part| {
            format!(
                "{{\"node_id\": \"{part}\", \"op\": \"take\", \"inputs\": [\"all\"], \"params\": {{\"count\": 10000000}}}}, "
            )
        })
        .collect();
    let source = r#"{"node_id": "all", "op": "fixed_source", "params": {"row_count": 10000000}}, "#;
    let error =
        run("", &format!("{source}{nodes}{{\"node_id\": \"n\", \"op\": \"concat\", \"inputs\": {parts:?}}}"));
    let error = error.unwrap_err();
    assert!(error.ends_with("70000000 rows are more than the 67108864 that it makes"), "{error}");
}
