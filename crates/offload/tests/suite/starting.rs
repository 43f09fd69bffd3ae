//! Pools that cannot start, or not all their threads.

use std::{env, process::Command, sync::mpsc};

use ebbtide_offload::{Pool, StartError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn o4_a_lane_of_nothing_is_an_error() {
    for (builder, what) in [
        (Pool::builder().cpu_threads(0), "threads of the CPU lane"),
        (Pool::builder().blocking_threads(0), "threads of the blocking lane"),
        (Pool::builder().cpu_queue(0), "CPU lane's queue"),
        (Pool::builder().blocking_queue(0), "blocking lane's queue"),
    ] {
        let error = builder.start().unwrap_err();
        assert!(matches!(error, StartError::Zero { .. }));
        let message = error.to_string();
        assert!(message.contains(what) && message.contains("ask for one or more"), "{message}");
    }
}

#[test]
fn a_name_that_no_thread_can_have_is_an_error() {
    let error = Pool::builder().name("a\0b").start().unwrap_err();
    assert!(matches!(error, StartError::Name), "{error}");
}

/// Runs the test of this name again, in a process of its own, whose memory can be limited.
fn in_a_process_of_its_own(test: &str, act: impl FnOnce()) {
    const INSIDE: &str = "EBBTIDE_OFFLOAD_INSIDE";
    if env::var_os(INSIDE).is_some() {
        return act();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    let output = command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Leaves no memory for the stack of one more thread.
fn leave_no_thread() -> Rlimit {
    let before = getrlimit(Resource::As);
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    let used = pages * rustix::param::page_size() as u64;
    setrlimit(Resource::As, Rlimit { current: Some(used + (1 << 20)), maximum: before.maximum }).unwrap();
    before
}

#[test]
fn o4_a_thread_that_cannot_be_started_is_an_error_at_the_start() {
    in_a_process_of_its_own("starting::o4_a_thread_that_cannot_be_started_is_an_error_at_the_start", || {
        let before = leave_no_thread();
        let error = Pool::builder().cpu_threads(4).start().unwrap_err();
        setrlimit(Resource::As, before).unwrap();
        assert!(matches!(error, StartError::Thread(_)), "{error}");
        assert!(error.to_string().starts_with("a thread of the pool could not be started"), "{error}");
    });
}

#[test]
fn o4_a_thread_that_cannot_be_started_later_makes_the_lane_slower_and_loses_nothing() {
    let name = "starting::o4_a_thread_that_cannot_be_started_later_makes_the_lane_slower_and_loses_nothing";
    in_a_process_of_its_own(name, || {
        let pool = Pool::builder().cpu_threads(1).start().unwrap();
        // Both threads have begun.
        pool.blocking().offload(|| ()).wait().unwrap();
        pool.offload(|| ()).wait().unwrap();
        let before = leave_no_thread();
        let (release, held) = mpsc::channel::<()>();
        let hold = pool.blocking().offload(move || held.recv().is_err());
        let jobs: Vec<_> = (0..20).map(|n| pool.blocking().offload(move || n)).collect();
        drop(release);
        assert!(hold.wait().unwrap());
        let results: Vec<_> = jobs.into_iter().map(|job| job.wait().unwrap()).collect();
        setrlimit(Resource::As, before).unwrap();
        assert_eq!(results, (0..20).collect::<Vec<_>>());
        assert!(pool.stats().threads_missed > 0, "the limit held");
    });
}

#[test]
fn o4_a_thread_that_could_not_be_started_is_asked_for_again_when_somebody_looks() {
    let name = "starting::o4_a_thread_that_could_not_be_started_is_asked_for_again_when_somebody_looks";
    in_a_process_of_its_own(name, || {
        let pool = Pool::builder().cpu_threads(1).start().unwrap();
        pool.offload(|| ()).wait().unwrap();
        let (release, held) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        let hold = pool.blocking().offload(move || {
            begun.send(()).unwrap();
            held.recv().is_err()
        });
        begins.recv().unwrap();
        let before = leave_no_thread();
        let job = pool.blocking().offload(|| 5);
        setrlimit(Resource::As, before).unwrap();
        let stats = pool.stats();
        assert_eq!((stats.threads_missed, stats.blocking.threads), (1, 2));
        assert_eq!(job.wait().unwrap(), 5);
        drop(release);
        assert!(hold.wait().unwrap());
    });
}
