//! `ebbtide bench`.

use rustix::process::Signal;

use super::{colours::told_on_a_terminal, fake_redis::FakeRedis, files::Folder, program::ebbtide};

#[test]
fn a_bench_tells_everything_to_people() {
    let said = ebbtide(["bench", "feed", "--requests", "100", "--concurrency", "5"]).ends_with(0);
    assert_eq!(said.err, "", "no bar where there is no terminal");
    let lines: Vec<_> = said.out.lines().collect();
    assert!(lines[0].starts_with("plan feed of 10 nodes, 100 requests, 5 at a time, "), "{}", said.out);
    assert!(lines[1].starts_with("throughput") && lines[1].ends_with("requests/s"), "{}", said.out);
    for figure in ["p50 ", "p90 ", "p99 ", "p999 ", "max "] {
        assert!(lines[2].contains(figure), "{}", said.out);
    }
    assert!(lines[3].ends_with("100 ok, 0 timed out, 0 failed, 0 late"), "{}", said.out);
    assert!(lines[4].starts_with("per node") && lines[4].ends_with(" ns"), "{}", said.out);
}

#[test]
fn a_bench_tells_everything_to_machines() {
    let said = ebbtide(["bench", "feed", "--requests", "100", "--concurrency", "5", "--json"]).ends_with(0);
    let json = said.json();
    let number = |field: &str| json[field].as_f64().unwrap_or_else(|| panic!("{field} of {json}"));
    let lengths = ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"].map(number);
    assert!(lengths[0] > 0.0 && lengths.is_sorted(), "{lengths:?}");
    assert_eq!(["requests", "concurrency", "nodes", "ok"].map(number), [100.0, 5.0, 10.0, 100.0]);
    assert_eq!(["timed_out", "failed", "late"].map(number), [0.0; 3]);
    let each = number("seconds") / 100.0;
    assert!((number("requests_per_second") * each - 1.0).abs() < 1e-6, "{json}");
    assert!((number("ns_per_node") / (each * 1e8) - 1.0).abs() < 1e-6, "{json}");
    assert_eq!(json["plan"], "feed");
    assert!(json["error"].is_null());
}

#[test]
fn every_request_is_counted_once_however_many_loops_answer() {
    for loops in ["1", "2", "5", "1024"] {
        let args = ["bench", "feed", "--requests", "101", "--concurrency", "7", "--loops", loops, "--json"];
        let json = ebbtide(args).ends_with(0).json();
        assert_eq!((&json["ok"], &json["failed"]), (&101.into(), &0.into()), "{loops}: {json}");
    }
}

#[test]
fn those_who_ask_take_turns_also_where_nothing_is_waited_for() {
    let args = ["bench", "hello", "--requests", "20000", "--concurrency", "50", "--loops", "1", "--json"];
    let json = ebbtide(args).ends_with(0).json();
    let figure = |name: &str| json[name].as_f64().unwrap();
    // Each waits for all others, in a busy system for some of them longer. Who is answered at once waits for nobody.
    let waiting = figure("p90_us") / 1e6 * figure("requests_per_second");
    assert!(waiting > 10.0, "{waiting} at a time: {json}");
}

#[test]
fn a_bar_is_drawn_on_a_terminal_once_there_is_something_to_say() {
    let told = told_on_a_terminal(ebbtide(["bench", "hello", "--requests", "100000", "--loops", "1"]));
    let frames: Vec<&str> = told.matches("/100000 requests, ").collect();
    assert!(frames.len() > 1, "{told:?}");
    assert!(!told.contains(" 0/100000") && !told.contains(", 0/s"), "{told:?}");
}

#[test]
fn timeouts_are_a_result_and_no_failure() {
    let folder = Folder::new();
    let plan = folder.sleeping("slow", 60_000);
    let args = ["bench", &plan, "--requests", "3", "--concurrency", "3", "--json"];
    for patience in ["--deadline-ms", "--node-timeout-ms"] {
        let json = ebbtide(args.into_iter().chain([patience, "10"])).ends_with(0).json();
        assert_eq!((&json["ok"], &json["timed_out"], &json["failed"]), (&0.into(), &3.into(), &0.into()));
    }
}

#[test]
fn nodes_that_end_after_their_deadline_are_late_and_waited_for() {
    let folder = Folder::new();
    let plan = folder.file(
        "busy.json",
        r#"{"schema_version": 1, "plan_name": "busy", "nodes": [
            {"node_id": "source", "op": "fixed_source", "params": {"row_count": 1}},
            {"node_id": "busy", "op": "busy_cpu", "inputs": ["source"], "params": {"busy_wait_ms": 150}}],
            "outputs": ["busy"], "sample_request": {"user_id": 1}}"#,
    );
    let args = ["bench", &plan, "--requests", "2", "--concurrency", "1", "--deadline-ms", "30", "--json"];
    let json = ebbtide(args).ends_with(0).json();
    assert_eq!(json["timed_out"], 2, "{json}");
    // The second may never begin: the pool is still busy with the first.
    assert!(json["late"].as_u64().unwrap() >= 1, "{json}");
}

#[test]
fn a_plan_that_always_fails_fails_the_bench_and_the_figures_are_printed_first() {
    let folder = Folder::new();
    let said = ebbtide(["bench", &folder.failing("broken"), "--requests", "4", "--json"]).ends_with(1);
    let json = said.json();
    assert_eq!((&json["failed"], &json["ok"]), (&4.into(), &0.into()));
    assert!(json["error"].as_str().unwrap().contains("told to fail after its sleep"), "{json}");
    said.complains(["error: ", "told to fail after its sleep"]);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    for (flag, value) in [
        ("--requests", "0"),
        ("--concurrency", "0"),
        ("--concurrency", "100001"),
        ("--requests", "x"),
        ("--loops", "0"),
    ] {
        ebbtide(["bench", "hello", flag, value]).ends_with(2).complains(["invalid value", flag]);
    }
}

#[test]
fn what_a_stop_cuts_off_is_no_failure() {
    let (folder, redis) = (Folder::new(), FakeRedis::mute());
    let plan = folder.plan("reads", "viewer", "{}");
    let args = ["bench", &plan, "--redis", &redis.url, "--redis-timeout-ms", "60000"];
    let mut bench = ebbtide(args.into_iter().chain(["--requests", "5", "--json"])).start();
    bench.close_input();
    redis.is_asked();
    bench.gets(Signal::INT);
    let said = bench.ends();
    assert_eq!((said.code, &said.json()["failed"]), (Some(0), &0.into()), "{said:#?}");
    said.complains(["warning: it was stopped after 0 of 5 requests"]);
}
