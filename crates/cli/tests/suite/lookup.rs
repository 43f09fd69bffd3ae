//! `check`, `graph`, `ops`, `plans` and `completions`: what is looked up, and nothing is run.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::Path};

use super::{files::Folder, program::ebbtide};

#[test]
fn right_plans_are_told_with_their_nodes() {
    let said = ebbtide(["check", "feed", "plans/hello.json"]).ends_with(0);
    assert_eq!(
        said.out,
        "plans/feed.json: ok, plan feed of 10 nodes\nplans/hello.json: ok, plan hello of 2 nodes\n"
    );
    let one = Folder::new().plan("one", "fixed_source", r#"{"row_count": 1}"#);
    // The folder is gone by now, and so is the plan: the check goes on with the next.
    let said = ebbtide(["check", &one, "hello"]).ends_with(66);
    assert_eq!(said.out, "plans/hello.json: ok, plan hello of 2 nodes\n");
    said.complains(["there is no file", "one.json"]);
}

#[test]
fn a_check_for_machines_is_a_line_for_each_plan() {
    let args = ["check", "--json", "hello", "plans/bad/names.json", "plans/bad/syntax.json", "helo"];
    let lines = ebbtide(args).ends_with(66).json_lines();
    assert_eq!(lines.iter().map(|line| &line["ok"]).collect::<Vec<_>>(), [true, false, false, false]);
    assert_eq!((&lines[0]["plan"], &lines[0]["nodes"]), (&"hello".into(), &2.into()));
    let mistakes = lines[1]["mistakes"].as_array().unwrap();
    assert_eq!(mistakes.len(), 8);
    for mistake in mistakes {
        assert!(mistake["code"].as_str().unwrap().starts_with('P'), "{mistake}");
        assert!(!mistake["place"].is_null() && mistake["message"].is_string(), "{mistake}");
    }
    assert_eq!(lines[2]["mistakes"].as_array().unwrap().len(), 1);
    assert_eq!(lines[3]["error"], "there is no plan \"helo\" in plans");
    assert_eq!(lines[3]["hint"], "did you mean hello?");
}

#[test]
fn one_wrong_plan_among_right_ones_decides_the_code() {
    let said = ebbtide(["check", "hello", "plans/bad/syntax.json", "feed"]).ends_with(65);
    assert_eq!(said.out.lines().filter(|line| line.contains(": ok")).count(), 2);
    assert_eq!(said.err, "");
}

#[test]
fn a_plan_is_drawn_in_three_forms() {
    let forms =
        [("dot", "digraph \"feed\" {", "}\n"), ("mermaid", "flowchart LR", "\n"), ("svg", "<svg", "</svg>")];
    for (form, begin, end) in forms {
        let said = ebbtide(["graph", "feed", "--format", form]).ends_with(0);
        assert!(said.out.starts_with(begin) && said.out.trim_end().ends_with(end.trim_end()), "{}", said.out);
        for node in ["viewer", "recommended_media", "top"] {
            assert!(said.out.contains(node), "{node} in {form}");
        }
        let folder = Folder::new();
        let path = folder.path("drawing");
        let silent = ebbtide(["graph", "feed", "--format", form, "--output", &path]).ends_with(0);
        assert_eq!((silent.out.as_str(), fs::read_to_string(path).unwrap()), ("", said.out));
    }
    assert_eq!(ebbtide(["graph", "hello"]).ends_with(0).out.lines().next(), Some("digraph \"hello\" {"));
    ebbtide(["graph", "plans/bad/circle.json"]).ends_with(65).complains(["has 5 mistakes", "P009"]);
}

const OPS: [&str; 12] = [
    "busy_cpu",
    "concat",
    "filter",
    "fixed_source",
    "follow",
    "media",
    "recommendation",
    "sleep",
    "sort",
    "take",
    "viewer",
    "vm",
];

#[test]
fn ops_are_listed_with_their_parameters() {
    let said = ebbtide(["ops"]).ends_with(0);
    let names: Vec<_> = said.out.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(names.len(), OPS.len());
    for (line, op) in names.iter().zip(OPS) {
        assert!(line.starts_with(&format!("{op} (")), "{line}");
    }
    let json = ebbtide(["ops", "--json"]).ends_with(0).json();
    assert_eq!(json.as_array().unwrap().iter().map(|op| &op["op"]).collect::<Vec<_>>(), OPS);
}

#[test]
fn one_op_is_told_alone_and_one_that_is_not_there_with_the_nearest() {
    let said = ebbtide(["ops", "sleep"]).ends_with(0);
    assert!(said.out.starts_with("sleep (async") && said.out.contains("fail_after_sleep"), "{}", said.out);
    let json = ebbtide(["ops", "take", "--json"]).ends_with(0).json();
    let param = &json[0]["params"][0];
    assert_eq!((&json[0]["inputs"]["min"], &json[0]["inputs"]["max"]), (&1.into(), &1.into()));
    assert_eq!((&param["name"], &param["required"]), (&"count".into(), &true.into()));
    assert!(
        json[0]["about"].is_string() && json[0]["kind"] == "inline" && param["type"].is_string(),
        "{json}"
    );
    ebbtide(["ops", "slep"]).ends_with(2).complains(["there is no op \"slep\"", "hint: did you mean sleep?"]);
    ebbtide(["ops", "zzzzzz"]).ends_with(2).complains(["hint: `ebbtide ops` lists those that there are"]);
}

#[test]
fn plans_are_those_of_the_folder_that_was_named() {
    let said = ebbtide(["plans"]).ends_with(0);
    let names: Vec<_> = said.out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["feed", "hello", "late", "wide"]);

    let folder = Folder::new();
    folder.sleeping("mine", 1);
    folder.file("broken.json", "{");
    folder.file("notes.txt", "no plan");
    let expected = "broken           1 mistake\nmine                1 node   no deadline\n";
    let path = folder.path("");
    assert_eq!(ebbtide(["plans", "--plans", &path]).ends_with(0).out, expected);
    let by_variable = ebbtide(["plans", "--json"]).env("EBBTIDE_PLANS", &path).ends_with(0).json();
    assert_eq!((&by_variable[0]["name"], &by_variable[0]["error"]), (&"broken".into(), &"1 mistake".into()));
    assert_eq!((&by_variable[1]["name"], &by_variable[1]["nodes"]), (&"mine".into(), &1.into()));
    assert_eq!(by_variable[1]["sample_request"]["user_id"], 1);
    ebbtide(["run", "mine"]).env("EBBTIDE_PLANS", &path).ends_with(0);
    let said = ebbtide(["run", "mine", "--plans", "plans"]).env("EBBTIDE_PLANS", &path).ends_with(66);
    said.complains(["there is no plan \"mine\" in plans"]);
}

#[test]
fn a_folder_without_plans_and_one_that_is_not_there_are_told_apart() {
    let folder = Folder::new();
    let said = ebbtide(["plans", "--plans", &folder.path("")]).ends_with(0);
    said.complains(["warning: there are no plans in "]);
    let said = ebbtide(["plans", "--plans", &folder.path("nowhere")]).ends_with(66);
    said.complains(["cannot list ", "hint: say where plans are with --plans FOLDER"]);
}

#[test]
fn each_shell_gets_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = ebbtide(["completions", shell]).ends_with(0);
        for word in ["ebbtide", "serve", "deadline-ms"] {
            assert!(said.out.contains(word), "{word} for {shell}");
        }
    }
    ebbtide(["completions", "cobol"]).ends_with(2).complains(["possible values: bash"]);
}

#[test]
fn a_plan_whose_path_is_no_text_is_found() {
    let folder = Folder::new();
    let odd = OsStr::from_bytes(b"odd\xff.json");
    fs::rename(folder.sleeping("mine", 1), Path::new(&folder.path("")).join(odd)).unwrap();
    let path = Path::new(&folder.path("")).join(odd);
    ebbtide([OsStr::new("run"), path.as_os_str()]).ends_with(0);
    assert!(ebbtide([OsStr::new("check"), path.as_os_str()]).ends_with(0).out.contains("ok, plan mine"));
    let said = ebbtide(["plans", "--plans", &folder.path("")]).ends_with(0);
    assert!(said.out.starts_with("odd\u{fffd}"), "{}", said.out);
    assert!(said.out.contains("1 node"), "{}", said.out);
}

#[test]
fn what_could_not_be_run_is_a_mistake() {
    let folder = Folder::new();
    let plan = folder.file(
        "never.json",
        r#"{"schema_version": 1, "plan_name": "never", "expr_table": {"one": "1"}, "nodes": [
            {"node_id": "none", "op": "fixed_source"},
            {"node_id": "both", "op": "fixed_source", "params": {"row_count": 1, "rows": []}},
            {"node_id": "mixed", "op": "fixed_source", "params": {"rows": [{"id": 1, "a": 1}, {"id": 2, "a": "x"}]}},
            {"node_id": "id", "op": "vm", "inputs": ["mixed"], "params": {"expr": "one", "out": "id"}}],
            "outputs": ["none", "both", "id"], "sample_request": {"usr_id": 1}}"#,
    );
    let said = ebbtide(["check", &plan]).ends_with(65);
    let told: Vec<_> = said.out.lines().skip(1).map(str::trim_start).collect();
    let expected = [
        "P012 2:13 nodes[0].params: give it `row_count` or `rows`",
        "P012 3:65 nodes[1].params: it has both `row_count` and `rows`: leave one of them out",
        "P012 4:66 nodes[2].params: `rows[1]`: column \"a\": a value is text, and the column is int",
        "P012 5:74 nodes[3].params: `out` is \"id\", which is not computed: choose another name",
        "P001 6:66 sample_request: the request has no field \"usr_id\" (did you mean \"user_id\"?)",
    ];
    assert_eq!(told, expected);
}

#[test]
fn names_of_plans_do_not_command_the_terminal() {
    let folder = Folder::new();
    let plan = folder.file(
        "odd.json",
        r#"{"schema_version": 1, "plan_name": "a\u001b[31m", "outputs": ["\u001b[0m"],
            "nodes": [{"node_id": "\u001b[0m", "op": "fixed_source", "params": {"row_count": 1}}],
            "sample_request": {"user_id": 1}}"#,
    );
    for args in [&["check", &*plan][..], &["run", &plan, "--explain"], &["bench", &plan, "--requests", "1"]] {
        let said = ebbtide(args).ends_with(0);
        assert!(!said.out.contains('\x1b') && !said.err.contains('\x1b'), "{said:#?}");
    }
}
