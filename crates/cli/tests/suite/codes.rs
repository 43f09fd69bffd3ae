//! Each exit code that the help lists is one that a process ends with. 0, 1 and 2 are all over this suite; 70 is
//! a mistake of our own, and so is proved inside, where one can be made.

use std::{fs::File, time::Duration};

use ebbtide::lifecycle::time::{Clock as _, SystemClock};
use rustix::process::Signal;

use super::{
    fake_redis::FakeRedis,
    files::Folder,
    program::ebbtide,
    site::{REQUEST, Site},
};

#[test]
fn data_that_is_wrong_is_65() {
    let folder = Folder::new();
    ebbtide(["run", "plans/bad/names.json"])
        .ends_with(65)
        .complains(["has 8 mistakes", "did you mean \"media\"?"]);
    ebbtide(["run", "hello", "--request", "{}"])
        .ends_with(65)
        .complains(["--request: the request has no `user_id`"]);
    let store = folder.file("store.json", "[]");
    ebbtide(["run", "feed", "--store", &store]).ends_with(65).complains(["store.json"]);
    let plan = folder.file(
        "no_sample.json",
        r#"{"schema_version": 1, "plan_name": "p", "outputs": ["s"],
            "nodes": [{"node_id": "s", "op": "sleep", "params": {"duration_ms": 0}}]}"#,
    );
    ebbtide(["run", &plan])
        .ends_with(65)
        .complains(["has no sample request", "hint: give one with --request"]);
}

#[test]
fn what_is_not_there_is_66() {
    let table: [&[&str]; 6] = [
        &["run", "nowhere"],
        &["run", "hello", "--request-file", "nowhere.json"],
        &["run", "hello", "--store", "nowhere.json"],
        &["run", "hello", "--endpoints", "nowhere.json"],
        &["graph", "nowhere.json"],
        &["serve", "hello", "nowhere", "--listen", "127.0.0.1:0"],
    ];
    for args in table {
        ebbtide(args).ends_with(66).complains(["error: ", "nowhere"]);
    }
}

#[test]
fn a_port_that_is_taken_is_69() {
    let taken = Site::start(["hello"]);
    let address = taken.address.to_string();
    let said = ebbtide(["serve", "hello", "--listen", &address]).ends_with(69);
    said.complains([&format!("error: cannot listen at {address}"), "choose another port, or 0 for any"]);
    assert!(!said.err.contains("stopping"), "what has not started does not stop: {said:#?}");
    let said = ebbtide(["serve", "hello", "--listen", "127.0.0.1:0", "--health", &address]).ends_with(69);
    said.complains(["error: the program was not started: health cannot be served", "choose another port"]);
    assert_eq!(taken.post("/plans/hello", REQUEST).status, 200, "the other one is not disturbed");
}

#[test]
fn a_server_that_is_not_there_is_69() {
    // Nobody listens at port 1 but by an accident that an administrator would know of.
    const NOBODY: &str = "redis://127.0.0.1:1";
    const TABLE: [&[&str]; 4] = [
        &["run", "feed", "--redis", NOBODY],
        &["bench", "feed", "--redis", NOBODY],
        &["worker", "feed", "--mailbox", NOBODY],
        &["send", "--mailbox", NOBODY, "--request", r#"{"user_id": 1}"#],
    ];
    let said = TABLE.map(|args| std::thread::spawn(move || ebbtide(args).ends_with(69)));
    for said in said {
        said.join().unwrap().complains([
            "error: cannot reach redis://127.0.0.1:1",
            "Connection refused",
            "hint: is the server running?",
        ]);
    }
}

#[test]
fn a_server_of_an_endpoints_file_that_is_not_there_is_69() {
    let folder = Folder::new();
    let file = folder.file("endpoints.json", r#"{"other": {"redis": "redis://127.0.0.1:1"}}"#);
    for args in [["run", "feed"], ["serve", "feed"]] {
        ebbtide(args.into_iter().chain(["--endpoints", &file])).ends_with(69).complains([
            "error: cannot reach redis://127.0.0.1:1",
            "Connection refused",
            "hint: is the server running?",
        ]);
    }
}

#[test]
fn a_server_that_lets_nobody_in_is_told_with_what_it_wants() {
    let table = [
        ("-NOAUTH Authentication required.\r\n", "hint: it wants a password: redis://:PASSWORD@HOST:PORT"),
        (
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
            "hint: it does not know this user",
        ),
        (
            "-ERR AUTH <password> called without any password configured for the default user.\r\n",
            "hint: it has no password: leave the one in the URL out",
        ),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "hint: what listens there is no Redis server"),
        ("+HELLO\r\n", "hint: what listens there is no Redis server"),
    ];
    for (answer, hint) in table {
        let redis = FakeRedis::saying(answer);
        ebbtide(["run", "hello", "--redis", &redis.url])
            .ends_with(69)
            .complains(["error: cannot reach redis://127.0.0.1:", hint]);
    }
}

#[test]
fn a_server_that_is_far_away_is_waited_for() {
    let plan = Folder::new();
    let reads = plan.plan("reads", "viewer", "{}");
    let redis = FakeRedis::distant(Duration::from_millis(600));
    ebbtide(["run", &reads, "--redis", &redis.url]).ends_with(0);
    let redis = FakeRedis::distant(Duration::from_millis(1500));
    let args = ["run", &reads, "--redis", &redis.url];
    ebbtide(args).ends_with(69).complains(["not connected within 1s", "--redis-timeout-ms"]);
    ebbtide(args.into_iter().chain(["--redis-timeout-ms", "10000"])).ends_with(0);
}

#[test]
fn a_server_that_never_answers_is_69() {
    let redis = FakeRedis::empty();
    redis.is_silent(true);
    ebbtide(["run", "feed", "--redis", &redis.url]).ends_with(69).complains(["not connected within 1s"]);
}

#[test]
fn the_variable_that_the_help_names_is_how_long_a_stop_may_take() {
    let folder = Folder::new();
    let plan = folder.sleeping("stuck", 60_000);
    let help = ebbtide(["serve", "--help"]).ends_with(0).out;
    let (_, after) = help.split_once("by default 30, or what `").unwrap();
    let (variable, _) = after.split_once('`').unwrap();
    let site = Site::with([(variable, "1")], [&*plan]);
    let _client = site.begin("stuck");
    let begin = SystemClock.now();
    site.process.gets(Signal::TERM);
    assert_eq!(site.process.ends().code, Some(75));
    assert!(SystemClock.now() - begin < Duration::from_secs(20), "less than what it is by default");
}

#[test]
fn no_threads_is_71() {
    // More than any address space has: no thread can be started.
    let stack = (1_u64 << 50).to_string();
    let said = ebbtide(["run", "hello"]).env("RUST_MIN_STACK", stack).ends_with(71);
    said.complains(["error: the program was not started: cannot start a thread"]);
}

#[test]
fn a_disk_that_is_full_is_74() {
    let table: [&[&str]; 9] = [
        &["--help"],
        &["--version"],
        &["run", "--help"],
        &["run", "hello"],
        &["check", "hello"],
        &["ops"],
        &["graph", "hello"],
        &["bench", "hello", "--requests", "2"],
        &["completions", "bash"],
    ];
    for args in table {
        let full = File::options().write(true).open("/dev/full").unwrap();
        ebbtide(args).out(full).ends_with(74).complains(["error: cannot write to standard output"]);
    }
    for flag in ["--trace", "--report"] {
        ebbtide(["run", "hello", flag, "/dev/full"])
            .ends_with(74)
            .complains(["error: cannot write /dev/full"]);
    }
    let said = ebbtide(["graph", "hello", "--output", "/nowhere/hello.dot"]).ends_with(74);
    said.complains(["error: cannot write /nowhere/hello.dot"]);
}

#[test]
fn a_request_that_is_stuck_is_75_and_a_second_signal_76() {
    let folder = Folder::new();
    let plan = folder.sleeping("stuck", 60_000);
    let site = Site::start([&*plan, "--drain-timeout-seconds", "1"]);
    let _client = site.begin("stuck");
    site.process.gets(Signal::TERM);
    let said = site.process.ends();
    assert_eq!(said.code, Some(75), "{said:#?}");
    said.complains(["stopping: SIGTERM", "work was abandoned", "1 × \"stuck\"", "1 × \"stuck: stuck\""]);

    let mut site = Site::start([&*plan]);
    let _client = site.begin("stuck");
    site.process.gets(Signal::TERM);
    site.process.tells("stopping: SIGTERM");
    site.process.gets(Signal::TERM);
    let said = site.process.ends();
    assert_eq!(said.code, Some(76), "{said:#?}");
    said.complains(["forced by a second signal (SIGTERM)", "plan stuck: not stopped yet"]);
}

#[test]
fn a_third_signal_is_77() {
    let folder = Folder::new();
    let plan = folder.sleeping("stuck", 60_000);
    // The second signal has the process ended by a thread, which may be faster than the third.
    let codes = (0..20).map(|_| {
        let mut site = Site::start([&*plan]);
        let _client = site.begin("stuck");
        site.process.gets(Signal::TERM);
        site.process.tells("stopping: SIGTERM");
        // Both are there before any thread goes on.
        site.process.gets(Signal::STOP);
        site.process.gets(Signal::TERM);
        site.process.gets(Signal::INT);
        site.process.gets(Signal::CONT);
        site.process.ends().code.unwrap()
    });
    let codes: Vec<i32> =
        codes.scan(false, |done, code| (!std::mem::replace(done, code == 77)).then_some(code)).collect();
    assert_eq!(codes.last(), Some(&77), "{codes:?}");
    assert!(codes.iter().all(|code| [76, 77].contains(code)), "{codes:?}");
}
