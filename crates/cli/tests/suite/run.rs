//! `ebbtide run`.

use std::fs;

use serde_json::{Value, json};

use super::{
    files::Folder,
    program::{ebbtide, root},
};

/// The column `x` of an answer.
fn x_of(answer: &Value) -> Vec<i64> {
    let rows = answer["candidates"].as_array().unwrap();
    rows.iter().map(|row| row["fields"]["x"].as_i64().unwrap()).collect()
}

#[test]
fn without_a_request_the_plans_sample_is_answered() {
    let said = ebbtide(["run", "hello"]).ends_with(0);
    assert_eq!(said.err, "");
    let expected = json!({"request_id": "hello", "candidates": [
        {"id": 1, "fields": {"title": "hello", "likes": 20, "twice": 40}},
        {"id": 2, "fields": {"title": "world", "likes": null, "twice": null}},
    ]});
    assert_eq!(said.json(), expected);
    assert_eq!(said.out.lines().count(), 1, "one line for one answer");
    for plan in ["plans/hello.json", "./plans/hello.json"] {
        assert_eq!(ebbtide(["run", plan]).ends_with(0).json(), expected);
    }
}

#[test]
fn a_request_without_an_id_is_the_first_of_its_process() {
    assert_eq!(ebbtide(["run", "feed"]).ends_with(0).json()["request_id"], "r1");
}

#[test]
fn the_feed_is_ranked_and_the_same_each_time() {
    let run = || ebbtide(["run", "feed", "--request", r#"{"user_id": 7, "request_id": "f"}"#]).ends_with(0);
    let said = run();
    assert_eq!(said.out, run().out);
    let answer = said.json();
    let rank = |row: &Value| row["fields"]["rank"].as_f64().unwrap();
    let ranks: Vec<f64> = answer["candidates"].as_array().unwrap().iter().map(rank).collect();
    assert!(ranks.len() == 10 && ranks.is_sorted_by(|a, b| a >= b), "{ranks:?}");
}

#[test]
fn a_request_comes_from_the_command_line_a_file_or_standard_input() {
    let (folder, request) = (Folder::new(), r#"{"user_id": 5, "request_id": "mine"}"#);
    let file = folder.file("request.json", request);
    let said = [
        ebbtide(["run", "hello", "--request", request]).ends_with(0),
        ebbtide(["run", "hello", "--request-file", &file]).ends_with(0),
        ebbtide(["run", "hello", "--request-file", "-"]).input(request).ends_with(0),
        ebbtide(["run", "hello"]).input(request).ends_with(0),
        ebbtide(["run", "hello"]).input(format!("\n{request}\n\n")).ends_with(0),
    ];
    for said in said {
        assert_eq!(said.json()["request_id"], "mine");
    }
    let blank = ebbtide(["run", "hello"]).input(" \n").ends_with(0);
    assert_eq!(blank.json()["request_id"], "hello", "the sample's");
    let said = ebbtide(["run", "hello", "--request-file", "-"]).ends_with(65);
    said.complains(["there is no request at standard input"]);
}

#[test]
fn parameters_of_the_command_line_go_before_those_of_the_request() {
    let folder = Folder::new();
    let plan = folder.boosted();
    assert_eq!(x_of(&ebbtide(["run", &plan]).ends_with(0).json()), [10, 20]);
    assert_eq!(x_of(&ebbtide(["run", &plan, "--param", "boost=3"]).ends_with(0).json()), [3, 6]);
    let both = ["run", &plan, "--request", r#"{"user_id": 1, "params": {"boost": 5}}"#, "--param", "boost=4"];
    assert_eq!(x_of(&ebbtide(both).ends_with(0).json()), [4, 8]);
    for wrong in ["boost", "=3"] {
        ebbtide(["run", &plan, "--param", wrong]).ends_with(2).complains(["expected KEY=VALUE"]);
    }
}

#[test]
fn a_deadline_and_a_timeout_of_nodes_end_a_run_and_say_how_to_look_closer() {
    let folder = Folder::new();
    let plan = folder.sleeping("slow", 60_000);
    let said = ebbtide(["run", &plan, "--deadline-ms", "20"]).ends_with(1);
    said.complains([
        "R001 request deadline exceeded: running [slow]",
        "hint: give it more time with --deadline-ms",
    ]);
    let said = ebbtide(["run", &plan, "--node-timeout-ms", "20"]).ends_with(1);
    said.complains([
        "R003 node \"slow\" timed out after 20ms",
        "hint: see where the time goes with --explain",
    ]);
    assert_eq!(said.out, "");
}

#[test]
fn the_policy_says_whether_other_branches_are_run_to_their_end() {
    let folder = Folder::new();
    let plan = folder.file(
        "two.json",
        r#"{"schema_version": 1, "plan_name": "two", "nodes": [
            {"node_id": "fails", "op": "sleep", "params": {"duration_ms": 1, "fail_after_sleep": true}},
            {"node_id": "lasts", "op": "sleep", "params": {"duration_ms": 100}},
            {"node_id": "after", "op": "take", "inputs": ["lasts"], "params": {"count": 1}}],
            "outputs": ["fails", "after"], "sample_request": {"user_id": 1}}"#,
    );
    let explained = |policy| ebbtide(["run", &plan, "--explain", "--policy", policy]).ends_with(1);
    let after = |err: &str| err.lines().find(|line| line.contains("after (")).unwrap().to_owned();
    assert!(after(&explained("finish-independent").err).contains("ok"));
    assert!(!after(&explained("fail-fast").err).contains("ok"));
}

#[test]
fn a_trace_is_json_and_a_report_is_a_page_that_needs_no_network() {
    let folder = Folder::new();
    let (trace, page) = (folder.path("trace.json"), folder.path("page.html"));
    let said = ebbtide(["run", "feed", "--trace", &trace, "--report", &page]).ends_with(0);
    assert!(said.json()["candidates"].is_array());
    let trace: Value = serde_json::from_str(&fs::read_to_string(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().or(trace.as_array()).unwrap();
    let names: Vec<_> = events.iter().filter_map(|event| event["name"].as_str()).collect();
    for node in ["viewer", "follow", "ranked", "top"] {
        assert!(names.iter().any(|name| name.contains(node)), "{node} of {names:?}");
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(page.to_lowercase().starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("recommended_media") && page.contains("<svg"));
    for link in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(link), "{link}");
    }
}

#[test]
fn files_about_a_run_that_failed_are_written_too() {
    let folder = Folder::new();
    let (trace, page) = (folder.path("trace.json"), folder.path("page.html"));
    ebbtide(["run", "late", "--trace", &trace, "--report", &page]).ends_with(1);
    serde_json::from_str::<Value>(&fs::read_to_string(trace).unwrap()).unwrap();
    assert!(fs::read_to_string(page).unwrap().contains("slow"));
}

#[test]
fn an_explanation_is_on_standard_error_and_timings_are_in_the_answer() {
    let said = ebbtide(["run", "hello", "--explain", "--timings"]).ends_with(0);
    said.complains(["plan hello took", "the critical path:", "doubled", "source (inline): ok"]);
    let answer = said.json();
    assert_eq!(answer["request_id"], "hello");
    let timings = answer["timings"].as_array().unwrap();
    assert_eq!(timings.iter().map(|node| &node["node"]).collect::<Vec<_>>(), ["source", "doubled"]);
    for node in timings {
        let at = |field: &str| node[field].as_f64().unwrap();
        assert!(at("queued_us") <= at("begun_us") && at("begun_us") <= at("ended_us"), "{node}");
        assert!(node["end"] == "ok" && node["thread"].is_string() && node["kind"].is_string(), "{node}");
    }
}

#[test]
fn several_outputs_are_told_apart_by_their_names() {
    let folder = Folder::new();
    let plan = folder.file(
        "pair.json",
        r#"{"schema_version": 1, "plan_name": "pair", "nodes": [
            {"node_id": "one", "op": "fixed_source", "params": {"row_count": 1}},
            {"node_id": "two", "op": "fixed_source", "params": {"row_count": 2}}],
            "outputs": ["two", "one"], "sample_request": {"user_id": 1}}"#,
    );
    let answer = ebbtide(["run", &plan]).ends_with(0).json();
    let rows = |name: &str| answer["outputs"][name]["candidates"].as_array().unwrap().len();
    assert_eq!((rows("one"), rows("two")), (1, 2));
    assert!(ebbtide(["run", &plan, "--timings"]).ends_with(0).json()["timings"].is_array());
}

#[test]
fn a_failure_is_json_for_machines_and_a_sentence_for_people() {
    let folder = Folder::new();
    let said = ebbtide(["run", &folder.failing("broken"), "--json"]).ends_with(1);
    let error = &said.json()["error"];
    assert_eq!(error["node"], "broken");
    assert!(error["code"].as_str().unwrap().starts_with('R'), "{error}");
    assert!(error["message"].as_str().unwrap().contains("told to fail after its sleep"), "{error}");
    said.complains(["error: ", "told to fail after its sleep"]);
    assert_eq!(ebbtide(["run", "hello", "--json"]).ends_with(0).json()["request_id"], "hello");
    // So is what keeps a run from beginning.
    let said = ebbtide(["run", "hellp", "--json"]).ends_with(66);
    let error = &said.json()["error"];
    assert_eq!((error["code"].as_u64(), error["hint"].as_str()), (Some(66), Some("did you mean hello?")));
}

#[test]
fn a_store_of_ones_own_takes_the_place_of_the_embedded_data() {
    let folder = Folder::new();
    let store = folder.file("store.json", r#"{"follow:1": [{"id": 2, "x": 8}, 3]}"#);
    let plan = folder.plan("follows", "follow", "{}");
    let ids = |answer: Value| -> Vec<i64> {
        answer["candidates"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids(ebbtide(["run", &plan, "--store", &store]).ends_with(0).json()), [2, 3]);
    let endpoints = folder.file("endpoints.json", r#"{"default": {"store": "store.json"}}"#);
    assert_eq!(ids(ebbtide(["run", &plan, "--endpoints", &endpoints]).ends_with(0).json()), [2, 3]);
    assert!(ids(ebbtide(["run", &plan]).ends_with(0).json()).len() > 2);
}

#[test]
fn every_plan_of_the_repository_is_run_or_says_what_it_shows() {
    for entry in fs::read_dir(root().join("plans")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let code = if path.ends_with("late.json") { 1 } else { 0 };
            ebbtide(["run", path.to_str().unwrap()]).ends_with(code);
        }
    }
}
