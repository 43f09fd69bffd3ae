//! Input that is wrong: a clear error, and the right code.

use std::fmt::Write as _;

use super::{files::Folder, program::ebbtide};

#[test]
fn a_name_that_is_not_there_is_told_with_the_nearest() {
    ebbtide(["run", "fed"])
        .ends_with(66)
        .complains(["there is no plan \"fed\" in plans", "hint: did you mean feed?"]);
    let said = ebbtide(["check", "plans/fed.json"]).ends_with(66);
    said.complains(["there is no file plans/fed.json", "hint: did you mean plans/feed.json?"]);
    let folder = Folder::new();
    let there = folder.sleeping("sleeper", 1);
    let said = ebbtide(["run", &folder.path("sleeperr.json")]).ends_with(66);
    said.complains([&format!("hint: did you mean {there}?")]);
    ebbtide(["run", "qqqqqqqq"])
        .ends_with(66)
        .complains(["hint: `ebbtide plans` lists those that there are"]);
    let said = ebbtide(["run", "feed", "--plans", &folder.path("nowhere")]).ends_with(66);
    said.complains(["hint: name a file, or a folder of plans with --plans"]);
}

#[test]
fn json_that_is_broken_is_told_with_its_place() {
    let folder = Folder::new();
    let broken = folder.file("broken.json", "{\n  \"schema_version\": 1,\n  \"nodes\": [}\n");
    ebbtide(["run", &broken]).ends_with(65).complains(["broken.json has a mistake:", "P001 3:13"]);
    let said = ebbtide(["check", &broken]).ends_with(65);
    assert!(said.out.contains("1 mistake") && said.out.contains("P001 3:13"), "{said:#?}");
    for (request, why) in
        [("{", "the request is not JSON"), ("", "the request is not JSON"), ("[]", "expected an object")]
    {
        let said = ebbtide(["run", "hello", "--request", request]).ends_with(65);
        said.complains(["error: --request: ", why, "hint: a request looks like {\"user_id\": 1"]);
    }
}

#[test]
fn types_that_are_wrong_are_told_with_what_was_expected() {
    let table = [
        (r#"{"user_id": "seven"}"#, "expected a whole number, got \"seven\""),
        (r#"{"user_id": 1.5}"#, "expected a whole number, got 1.5"),
        (r#"{"user_id": 99999999999999999999}"#, "expected a whole number"),
        (r#"{"user_id": 1, "request_id": []}"#, "`request_id` of the request: expected a string"),
        (r#"{"user_id": 1, "params": 3}"#, "`params` of the request: expected an object"),
        (r#"{"user_id": 1, "params": {"a": {}}}"#, "`params.a` of the request"),
        (r#"{"user_id": 1, "userid": 2}"#, "has no field \"userid\" (did you mean \"user_id\"?)"),
    ];
    for (request, why) in table {
        ebbtide(["run", "hello"]).input(request).ends_with(65).complains(["error: standard input: ", why]);
    }
    let folder = Folder::new();
    for plan in [
        "3",
        "[]",
        "null",
        "\"plan\"",
        r#"{"schema_version": "1", "plan_name": 3, "nodes": {}, "outputs": 1}"#,
    ] {
        let file = folder.file("types.json", plan);
        ebbtide(["run", &file]).ends_with(65).complains(["types.json has ", "P001"]);
    }
}

#[test]
fn a_plan_of_too_many_nodes_is_refused_with_the_limit() {
    let folder = Folder::new();
    let mut text = String::from("{\"schema_version\": 1, \"plan_name\": \"huge\", \"nodes\": [");
    for nth in 0..70_000 {
        let comma = if nth > 0 { "," } else { "" };
        let _ = write!(
            text,
            "{comma}\n{{\"node_id\": \"n{nth}\", \"op\": \"fixed_source\", \"params\": {{\"row_count\": 1}}}}"
        );
    }
    text.push_str("], \"outputs\": [\"n0\"]}");
    let plan = folder.file("huge.json", text);
    let said = ebbtide(["check", &plan]).ends_with(65);
    assert!(said.out.contains("it has 70000 nodes, and may have 65535"), "{:.2000}", said.out);
    assert!(said.out.lines().count() < 10, "one mistake is enough: {:.2000}", said.out);
    ebbtide(["run", &plan]).ends_with(65).complains(["it has 70000 nodes"]);
}

#[test]
fn files_without_an_end_are_refused_with_the_limit() {
    let said = ebbtide(["run", "hello", "--request-file", "/dev/zero"]).ends_with(66);
    said.complains(["cannot read /dev/zero: it has more than 1048576 bytes"]);
    ebbtide(["check", "/dev/zero"]).ends_with(66).complains(["it has more than 67108864 bytes"]);
}

#[test]
fn files_that_have_no_size_are_read() {
    let said = super::program::redirected("</dev/null", ["run", "hello", "--request-file", "/dev/null"])
        .ends_with(65);
    said.complains(["/dev/null: the request is not JSON"]);
    let said = ebbtide(["run", "hello", "--request-file", "/dev/stdin"])
        .input(r#"{"user_id": 3, "request_id": "x"}"#);
    assert_eq!(said.ends_with(0).json()["request_id"], "x");
}

#[test]
fn flags_and_commands_that_are_not_there_are_told_with_the_nearest() {
    ebbtide(["run", "hello", "--dedline-ms", "5"])
        .ends_with(2)
        .complains(["'--dedline-ms'", "'--deadline-ms'"]);
    ebbtide(["runn", "hello"]).ends_with(2).complains(["unrecognized subcommand 'runn'", "'run'"]);
    ebbtide(["run"]).ends_with(2).complains(["<PLAN>"]);
    ebbtide([""; 0]).ends_with(2).complains(["Usage: ebbtide"]);
    let table: [(&[&str], &str); 8] = [
        (&["run", "hello", "--deadline-ms", "soon"], "expected a number of milliseconds"),
        (&["run", "hello", "--deadline-ms", "-1"], "expected milliseconds of 0 or more"),
        (&["run", "hello", "--deadline-ms", "NaN"], "expected milliseconds of 0 or more"),
        (&["run", "hello", "--cpu-threads", "0"], "1..=1024"),
        (&["run", "hello", "--request", "{}", "--request-file", "x"], "cannot be used with"),
        (&["run", "hello", "--load-demo-data"], "--redis"),
        (&["serve", "hello", "--listen", "here"], "as in 127.0.0.1:8080 or localhost:8080"),
        (
            &["serve", "hello", "--listen", "127.0.0.1:0", "--drain-timeout-seconds", "-1"],
            "seconds from 1 to 300",
        ),
    ];
    for (args, why) in table {
        ebbtide(args).ends_with(2).complains([why]);
    }
}

#[test]
fn addresses_that_are_none_are_mistakes_of_the_command_line() {
    let table: [&[&str]; 3] = [
        &["run", "feed", "--redis", "localhost:6379"],
        &["worker", "feed", "--mailbox", "kafka://here"],
        &["send", "--mailbox", "redis:/here", "--request", "{\"user_id\": 1}"],
    ];
    for args in table {
        ebbtide(args).ends_with(2).complains(["is no address of a Redis server", "redis://"]);
    }
    ebbtide(["send", "--request", "{}"]).ends_with(2).complains(["hint: say which server with --mailbox"]);
}

#[test]
fn text_that_is_none_is_refused() {
    let folder = Folder::new();
    let latin = folder.file("latin.json", b"{\"plan_name\": \"caf\xe9\"}");
    ebbtide(["run", &latin]).ends_with(66).complains(["cannot read ", "latin.json: it is not UTF-8 text"]);
    let said = ebbtide(["run", "hello"]).input(*b"{\"user_id\": \xff}").ends_with(65);
    said.complains(["the request at standard input is not UTF-8 text"]);
    ebbtide(["run", "hello", "--request-file", &latin]).ends_with(66).complains(["it is not UTF-8 text"]);
}

#[test]
fn a_folder_is_no_file() {
    let folder = Folder::new();
    let path = folder.path("");
    for args in
        [["run", path.as_str()].as_slice(), &["run", "hello", "--request-file", &path], &["check", &path]]
    {
        ebbtide(args).ends_with(66).complains(["cannot read ", "directory"]);
    }
    ebbtide(["run", "hello", "--endpoints", &path]).ends_with(66).complains(["cannot read ", "directory"]);
    ebbtide(["run", "hello", "--report", &path]).ends_with(74).complains(["cannot write ", "directory"]);
}

#[test]
fn a_request_of_10_megabytes_is_refused() {
    let mut request = b"{\"user_id\": 1, \"request_id\": \"".to_vec();
    request.resize(10 << 20, b'x');
    request.extend_from_slice(b"\"}");
    let folder = Folder::new();
    let file = folder.file("long.json", &request);
    let said = ebbtide(["run", "hello", "--request-file", &file]).ends_with(66);
    said.complains(["long.json: it has more than 1048576 bytes"]);
    let said = ebbtide(["run", "hello"]).input(request).ends_with(65);
    said.complains(["the request at standard input is larger than 1048576 bytes"]);
}

#[test]
fn what_is_wrong_with_an_endpoints_file_is_told_with_its_place() {
    let folder = Folder::new();
    folder.file("broken.json", "{");
    let table = [
        ("", "it is not JSON"),
        ("[]", "expected an object with endpoints by id"),
        (
            r#"{"a": {"reddis": "redis://x"}}"#,
            "endpoint \"a\": there is no field \"reddis\" (did you mean \"redis\"?)",
        ),
        (r#"{"a": {}}"#, "it has neither `store` nor `redis`"),
        (r#"{"a": {"redis": "http://x"}}"#, "`redis`"),
        (
            r#"{"a": {"redis": "redis://x", "max_in_flight": 0}}"#,
            "`max_in_flight`: expected an integer of 1 to 10000",
        ),
        (r#"{"a": {"store": "broken.json"}}"#, "`store`"),
        (r#"{"a": {"store": "nowhere.json"}}"#, "nowhere.json"),
    ];
    for (text, why) in table {
        let file = folder.file("endpoints.json", text);
        ebbtide(["run", "feed", "--endpoints", &file]).ends_with(65).complains(["endpoints.json: ", why]);
    }
    let plan = folder.plan("cached", "follow", r#"{"endpoint": "cache"}"#);
    let file = folder.file("endpoints.json", r#"{"cahce": {"store": "store.json"}}"#);
    folder.file("store.json", "{}");
    let said = ebbtide(["run", &plan, "--endpoints", &file]).ends_with(65);
    said.complains(["there is no endpoint \"cache\" (did you mean \"cahce\"?)"]);
}

#[test]
fn an_endpoints_file_may_be_a_pipe_which_is_read_once() {
    let folder = Folder::new();
    let store = folder.file("store.json", r#"{"user:1": {"age": 31}}"#);
    let reads = folder.plan("reads", "viewer", "{}");
    let args = ["run", &reads, "--request", r#"{"user_id": 1}"#, "--endpoints", "/dev/stdin"];
    let said = ebbtide(args).input(format!(r#"{{"default": {{"store": "{store}"}}}}"#)).ends_with(0);
    assert_eq!(said.json()["candidates"][0]["fields"]["age"], 31);
}
