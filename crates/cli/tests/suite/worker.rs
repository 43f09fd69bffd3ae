//! `ebbtide worker` with a mailbox in memory: lines in, lines out.

use std::collections::BTreeSet;

use rustix::process::Signal;

use super::{files::Folder, program::ebbtide};

/// Requests with the ids r1 to rN, a line each.
pub(crate) fn requests(count: u32) -> String {
    (1..=count).map(|nth| format!("{{\"user_id\": {nth}, \"request_id\": \"r{nth}\"}}\n")).collect()
}

/// The ids r1 to rN.
pub(crate) fn ids(count: u32) -> BTreeSet<String> {
    (1..=count).map(|nth| format!("r{nth}")).collect()
}

#[test]
fn each_line_is_answered_by_a_line() {
    let said = ebbtide(["worker", "feed"]).input(requests(100)).ends_with(0);
    let answers = said.json_lines();
    let answered: BTreeSet<String> =
        answers.iter().map(|answer| answer["request_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((answers.len(), answered), (100, ids(100)));
    assert_eq!(said.err, "");
    let said = ebbtide(["worker", "feed", "--concurrency", "1"]).input(requests(20)).ends_with(0);
    let in_order: Vec<_> = said.json_lines().iter().map(|answer| answer["request_id"].clone()).collect();
    assert_eq!(
        in_order,
        (1..=20).map(|nth| format!("r{nth}")).collect::<Vec<_>>(),
        "one at a time is in order"
    );
}

#[test]
fn lines_that_are_no_requests_are_told_and_the_others_answered() {
    let mut lines =
        b"{\"user_id\": 1, \"request_id\": \"first\"}\n\n\xff\n{\"user\": 1}\nnonsense\n{\"request_id\": \""
            .to_vec();
    lines.resize(lines.len() + (10 << 20), b'x');
    lines.extend_from_slice(b"\"}\n{\"user_id\": 1, \"request_id\": \"last\"}");
    let said = ebbtide(["worker", "hello"]).input(lines).ends_with(1);
    let answers = said.json_lines();
    let has = |id: &str| answers.iter().any(|answer| answer["request_id"] == id);
    assert!(answers.len() == 6 && has("first") && has("last"), "{answers:#?}");
    let errors: Vec<_> = answers.iter().filter_map(|answer| answer["error"]["message"].as_str()).collect();
    for why in ["is not UTF-8 text", "is longer than 1048576 bytes", "is not JSON", "no field \"user\""] {
        assert!(errors.iter().any(|error| error.contains(why)), "{why}: {errors:?}");
    }
    let lines: Vec<_> = answers.iter().filter_map(|answer| answer["error"]["line"].as_u64()).collect();
    assert_eq!(lines, [3, 6]);
    said.complains(["error: of 6 lines: 2 failed, 2 no requests"]);
}

#[test]
fn a_plan_that_fails_is_tried_as_often_as_was_said() {
    let folder = Folder::new();
    let args = ["worker", &folder.failing("broken"), "--attempts", "2"];
    let said = ebbtide(args).input(requests(1)).ends_with(1);
    let message = &said.json()["error"]["message"];
    assert!(message.as_str().unwrap().contains("told to fail after its sleep"), "{message}");
    said.complains(["after attempt 2", "error: of 1 lines: 1 failed"]);
}

#[test]
fn what_was_begun_before_a_stop_is_answered_and_printed() {
    let folder = Folder::new();
    let lines = "nonsense\n{\"user_id\": 1, \"request_id\": \"begun\"}\n";
    let mut worker =
        ebbtide(["worker", &folder.sleeping("slow", 500), "--concurrency", "2"]).input(lines).start();
    // Both are begun together, and this one ends at once.
    let first = worker.line().unwrap();
    assert!(first.contains("is not JSON"), "{first}");
    worker.gets(Signal::TERM);
    let said = worker.ends();
    assert_eq!(said.json()["request_id"], "begun", "{said:#?}");
    assert_eq!(said.code, Some(1), "{said:#?}");
    said.complains(["error: of 2 lines: 1 failed"]);
}

#[test]
fn after_a_stop_in_the_middle_each_line_was_answered_or_is_told_of() {
    let folder = Folder::new();
    let mut worker =
        ebbtide(["worker", &folder.sleeping("slow", 30), "--concurrency", "2"]).input(requests(200)).start();
    let first = worker.line().unwrap();
    assert!(first.contains("\"request_id\":\"r"), "{first}");
    worker.gets(Signal::TERM);
    let said = worker.ends();
    assert_eq!(said.code, Some(1), "not all were answered: {said:#?}");
    let answered = said.json_lines().len() + 1;
    assert!(said.json_lines().iter().all(|answer| answer["error"].is_null()), "{said:#?}");
    // Some lines may not have been read. Those that were are answered or told of.
    let told = said.err.lines().find(|line| line.starts_with("error: of ")).unwrap();
    let numbers: Vec<usize> = told.split([' ', ':']).filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers[0], answered + numbers[1], "{told}");
}

#[test]
fn a_worker_may_end_after_so_many_receives() {
    let said =
        ebbtide(["worker", "hello", "--concurrency", "1", "--max-iterations", "3"]).input(requests(10)).run();
    assert_eq!(said.json_lines().len(), 3, "{said:#?}");
    assert_eq!(said.code, Some(1), "{said:#?}");
}

#[test]
fn a_failure_says_whose_it_is() {
    let folder = Folder::new();
    let said =
        ebbtide(["worker", &folder.failing("broken"), "--attempts", "1"]).input(requests(2)).ends_with(1);
    let errors: BTreeSet<String> =
        said.json_lines().iter().map(|answer| answer["error"]["message"].to_string()).collect();
    for id in ids(2) {
        assert!(
            errors.iter().any(|error| error.contains(&format!("request \\\"{id}\\\": R004"))),
            "{errors:?}"
        );
    }
}
