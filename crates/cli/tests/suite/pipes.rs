//! Standard streams that are closed, or that nobody reads.

use std::{fs::File, io};

use rustix::process::Signal;

use super::{
    files::Folder,
    program::{ebbtide, redirected},
    redis::Post,
};

/// One of each that prints a result.
const PRINTING: [&[&str]; 7] = [
    &["run", "hello"],
    &["check", "hello", "plans/bad/names.json"],
    &["ops"],
    &["plans"],
    &["graph", "feed"],
    &["bench", "hello", "--requests", "2"],
    &["completions", "zsh"],
];

#[test]
fn a_pipe_that_nobody_reads_is_no_error() {
    for args in PRINTING {
        let code = if args[0] == "check" { 65 } else { 0 };
        let said = ebbtide(args).out(unread()).ends_with(code);
        assert_eq!(said.err, "", "{args:?}");
    }
}

#[test]
fn a_failure_is_one_also_where_nobody_reads_of_it() {
    let folder = Folder::new();
    let broken = folder.failing("broken");
    let table: [(&[&str], i32); 4] = [
        (&["run", &broken, "--json"], 1),
        (&["check", "plans/bad/names.json", "hello", "--json"], 65),
        (&["check", "hello", "nowhere"], 66),
        (&["bench", &broken, "--requests", "2"], 1),
    ];
    for (args, code) in table {
        ebbtide(args).out(unread()).ends_with(code);
    }
    let said = ebbtide(["worker", &broken, "--attempts", "1"]).input("{\"user_id\": 1}\n").out(unread());
    said.ends_with(1).complains(["of 1 lines: 1 failed"]);
}

/// A pipe that nobody reads.
fn unread() -> io::PipeWriter {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer
}

#[test]
fn a_worker_whose_answers_nobody_reads_ends() {
    let said = ebbtide(["worker", "hello"]).input("{\"user_id\": 1}\n".repeat(50)).out(unread()).ends_with(0);
    assert_eq!(said.err, "");
}

#[test]
fn standard_input_that_is_closed_is_empty() {
    let said = redirected("<&-", ["run", "hello"]).ends_with(0);
    assert_eq!((&said.json()["request_id"], &*said.err), (&"hello".into(), ""));
    let said = redirected("<&-", ["worker", "hello"]).ends_with(0);
    assert_eq!((&*said.out, &*said.err), ("", ""));
    let said = redirected("<&-", ["bench", "hello", "--requests", "2", "--json"]).ends_with(0);
    assert_eq!(said.json()["ok"], 2);
    redirected("<&-", ["run", "hello", "--request-file", "-"])
        .ends_with(65)
        .complains(["there is no request"]);
}

#[test]
fn a_signal_ends_whoever_waits_for_a_request_that_does_not_come() {
    for args in
        [&["run", "hello"][..], &["bench", "hello"], &["run", "hello", "--request-file", "/dev/stdin"]]
    {
        for signal in [Signal::INT, Signal::TERM] {
            let mut waits = ebbtide(args).input("{").start();
            // More than a pipe holds: once it is written, the app is there that reads it.
            waits.feed(&[b' '; 100_000]);
            waits.gets(signal);
            let said = waits.ends_unasked();
            assert_eq!(said.code, Some(1), "{said:#?}");
            said.complains(["error: told to stop before it had begun: SIG"]);
        }
    }
}

#[test]
fn standard_output_and_error_that_are_closed_do_not_matter() {
    for args in PRINTING {
        let code = if args[0] == "check" { 65 } else { 0 };
        let said = redirected(">&-", args).ends_with(code);
        assert_eq!(said.err, "", "{args:?}");
    }
    redirected("2>&-", ["run", "nowhere"]).ends_with(66);
    redirected(">&- 2>&- <&-", ["run", "late", "--json"]).ends_with(1);
}

#[test]
fn a_server_goes_on_where_it_cannot_say_that_it_listens() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut server = ebbtide(["serve", "hello", "--listen", "127.0.0.1:0"]).out(full).start();
    server.tells("warning: cannot write to standard output");
    server.gets(Signal::TERM);
    let said = server.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
    said.complains(["stopping: SIGTERM"]);
}

#[test]
fn a_worker_goes_on_where_nobody_reads_that_it_works() {
    let post = Post::start();
    post.put("feed", r#"{"user_id": 1}"#);
    let args = post.args(&["worker", "hello", "--max-iterations", "1"]);
    let said = ebbtide(args).out(unread()).ends_with(0);
    assert_eq!((&*said.err, post.count("feed")), ("", 0));
}
