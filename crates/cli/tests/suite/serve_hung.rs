//! `ebbtide serve` on a server that takes everything and answers nothing.

use std::time::Duration;

use ebbtide::lifecycle::time::{Clock as _, SystemClock};
use rustix::process::Signal;

use super::{
    fake_redis::FakeRedis,
    files::Folder,
    loader::crowd,
    program::PATIENCE,
    site::{REQUEST, Site},
};

/// So many may be answered at a time; there are more clients.
const MOST: usize = 20;

const CLIENTS: usize = 30;

/// How long the program may need for what it has to do at once: far more than it does.
const AT_ONCE: Duration = Duration::from_secs(5);

fn site(redis: &FakeRedis, folder: &Folder) -> Site {
    let plan = folder.plan("reads", "viewer", "{}");
    // With more loops, each might let one in too many at the same moment.
    let args = ["--loops", "1", "--redis", &redis.url, "--redis-timeout-ms", "500", "--deadline-ms", "50"];
    let most = MOST.to_string();
    Site::start([&*plan, "--max-in-flight", &most].into_iter().chain(args))
}

#[test]
fn a_server_that_hangs_leaves_no_more_behind_than_may_be_in_flight_and_is_used_as_soon_as_it_answers() {
    let (redis, folder) = (FakeRedis::empty(), Folder::new());
    let site = site(&redis, &folder);
    assert_eq!(site.post("/plans/reads", REQUEST).status, 200);
    redis.is_silent(true);
    let (mut most, mut has_been_late) = (0.0, false);
    let statuses = crowd(site.address, CLIENTS, "/plans/reads", || {
        let until = SystemClock.now() + Duration::from_secs(2);
        while SystemClock.now() < until {
            let metrics = site.metrics();
            let late = metrics["ebbtide_late_nodes"];
            has_been_late |= late > 0.0;
            most = f64::max(most, late + metrics["ebbtide_requests_in_flight"]);
        }
    });
    assert!(most <= MOST as f64, "{most} at a time");
    assert!(has_been_late && statuses.contains(&503) && statuses.contains(&504), "{statuses:?}");
    assert!(!statuses.contains(&200), "{statuses:?}");

    redis.is_silent(false);
    let begin = SystemClock.now();
    while site.post("/plans/reads", REQUEST).status != 200 {
        assert!(SystemClock.now() - begin < PATIENCE, "it is never used again");
    }
    assert!(SystemClock.now() - begin < AT_ONCE);
    site.process.gets(Signal::TERM);
    assert_eq!(site.process.ends().code, Some(0));
}

#[test]
fn a_stop_does_not_wait_for_a_server_that_hangs() {
    let (redis, folder) = (FakeRedis::empty(), Folder::new());
    let site = site(&redis, &folder);
    redis.is_silent(true);
    crowd(site.address, CLIENTS, "/plans/reads", || while site.metrics()["ebbtide_late_nodes"] < 1.0 {});
    site.process.gets(Signal::TERM);
    let begin = SystemClock.now();
    let said = site.process.ends();
    assert_eq!(said.code, Some(0), "{said:#?}");
    assert!(SystemClock.now() - begin < AT_ONCE);
}

#[test]
fn nodes_that_have_had_their_time_do_not_wait_for_their_turn_at_a_server() {
    let (redis, folder) = (FakeRedis::mute(), Folder::new());
    let endpoints = format!(
        r#"{{"default": {{"redis": "{}", "max_in_flight": 1, "request_timeout_ms": 60000}}}}"#,
        redis.url
    );
    let (plan, file) = (folder.plan("reads", "viewer", "{}"), folder.file("endpoints.json", endpoints));
    let args = ["--endpoints", &file, "--node-timeout-ms", "50", "--drain-timeout-seconds", "1"];
    let site = Site::start([&*plan].into_iter().chain(args));
    let begin = SystemClock.now();
    for _ in 0..3 {
        site.post("/plans/reads", REQUEST).is_error(504, "R003");
    }
    // The one that was sent stays.
    while site.metrics()["ebbtide_late_nodes"] > 1.0 {
        assert!(
            SystemClock.now() - begin < Duration::from_secs(4),
            "they wait as long as they may without a deadline"
        );
    }
}
