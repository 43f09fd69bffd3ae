//! Worker processes that get real signals: this test binary runs itself.

#![cfg(unix)]

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _},
    process::{self, Child, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
};

use ebbtide_lifecycle::{Reason, Trigger};
use ebbtide_mailbox::{Mailbox, Message, worker::Worker};
use ebbtide_shutdown::{Coordinator, Priority, group::Group};

use crate::{AGES, Site, UNIT, bodies, connect, finish, one, receive, ten, timed, waiting};

/// Says that the process is to be a worker, and at which server.
const SERVER: &str = "EBBTIDE_MAILBOX_SERVER";

/// What the processes do. In any other process this is a test that passes.
#[test]
fn play() {
    let Ok(server) = env::var(SERVER) else { return };
    let (link, events) = connect(server.parse().unwrap());
    let orders = finish(ebbtide_mailbox::RedisMailbox::open(&link, "orders")).unwrap();
    let completes = Trigger::new();
    let completed = completes.token();
    thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        completes.fire(Reason::requested("the test says so"));
    });
    let worker = Worker::builder(Arc::new(orders), link.timer().clone(), move |job| {
        println!("begun {}", String::from_utf8_lossy(job.body()));
        let completed = completed.triggered();
        async move {
            completed.await;
            Ok(None)
        }
    })
    .build();
    let coordinator = Coordinator::install().unwrap();
    // After those who use it, and before what it runs on.
    coordinator.register("redis", Priority::POOLS, link).unwrap().keep();
    coordinator.register("loop", Priority::LOOPS, Arc::new(events)).unwrap().keep();
    let group = Group::builder().member("orders", worker.clone()).build().unwrap();
    let report = group.serve("workers").unwrap();
    println!("worker: {}", worker.balance());
    eprintln!("{report}");
    process::exit(report.exit_code().into());
}

/// A worker process, which is killed if it takes too long.
struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    _guard: mpsc::Sender<()>,
}

impl Process {
    fn start(site: &Site) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "process::play", "--nocapture"])
            .env(SERVER, site.server.address().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (guard, ended) = mpsc::channel::<()>();
        let pid = child.id();
        thread::spawn(move || {
            if ended.recv_timeout(AGES) == Err(RecvTimeoutError::Timeout) {
                signal("KILL", pid);
            }
        });
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out, _guard: guard }
    }

    /// Reads until it has said `line`.
    fn says(&mut self, line: &str) {
        let mut said = String::new();
        while !said.trim_end().ends_with(line) {
            assert_ne!(self.out.read_line(&mut said).unwrap(), 0, "it never says {line:?}, but {said:?}");
        }
    }

    fn gets(&self, name: &str) {
        signal(name, self.child.id());
    }

    /// Lets the message in flight come to its end.
    fn completes(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for its end, which has to be clean.
    fn ends_clean(&mut self) {
        let mut report = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut report).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{report}");
        assert!(report.contains("clean (SIGTERM)"), "{report}");
    }
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn test_sigterm_triggers_shutdown() {
    let site = Site::new();
    let mut process = Process::start(&site);
    site.until_waiting(1);
    let ((), took) = timed(|| {
        process.gets("TERM");
        process.ends_clean();
    });
    assert!(took < 10 * UNIT, "in a long poll of 20 seconds: {took:?}");
    assert_eq!(site.waiting(), 0);
}

#[test]
fn m3_a_signal_with_a_batch_in_hand_ends_the_first_and_releases_nine() {
    let site = Site::new();
    let orders = site.open("orders");
    for n in 0..10 {
        finish(orders.send(Message::new(n.to_string()))).unwrap();
    }
    let mut process = Process::start(&site);
    process.says("begun 0");
    process.gets("TERM");
    // Another worker gets them at once, while the first is still in flight.
    let mut others = Vec::new();
    while others.len() < 9 {
        let more = receive(&orders, waiting(100));
        assert!(!more.is_empty(), "only {} of nine were released", others.len());
        others.extend(more);
    }
    // They come back one by one, the last first: whoever takes them meanwhile has them in another order.
    let mut released = bodies(&others);
    released.sort_unstable();
    assert_eq!(released, (1..10).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(others.iter().all(|other| other.delivery_count == 1), "the delivery is not counted");
    let ((), took) = timed(|| {
        process.completes();
        process.says("worker: accepted 10, completed 1, handed back 9");
        process.ends_clean();
    });
    assert!(took < 10 * UNIT, "{took:?}");
    let counts = finish(orders.counts()).unwrap();
    assert_eq!((counts.all(), counts.invisible), (9, 9), "the first is acknowledged");
}

#[test]
fn m6_what_a_killed_process_had_in_hand_comes_back_counted() {
    let site = Site::new();
    let orders = site.open("orders");
    for n in 0..3 {
        finish(orders.send(Message::new(n.to_string()))).unwrap();
    }
    let mut process = Process::start(&site);
    process.says("begun 0");
    process.gets("KILL");
    process.child.wait().unwrap();
    assert!(receive(&orders, one()).is_empty(), "nobody knows that it is gone");
    // Its time out of sight is five minutes: as if they were over.
    site.eval(
        "for _, member in ipairs(redis.call('ZRANGE', '{orders}:leased', 0, -1)) do
             redis.call('ZADD', '{orders}:leased', 1, member)
         end
         return 1",
    );
    let mut again = receive(&orders, ten());
    again.sort_by_key(|delivery| delivery.id());
    assert_eq!(bodies(&again), ["0", "1", "2"]);
    assert!(again.iter().all(|delivery| delivery.delivery_count == 2));
}

#[test]
fn m6_a_process_that_is_killed_while_it_waits_keeps_no_message_from_those_who_wait_with_it() {
    let site = Site::new();
    let orders = site.open("orders");
    let mut process = Process::start(&site);
    site.until_waiting(1);
    thread::scope(|scope| {
        let waits = scope.spawn(|| timed(|| receive(&orders, waiting(200))));
        site.until_waiting(2);
        // The bell is the process's, which has waited for longer.
        process.gets("KILL");
        process.child.wait().unwrap();
        finish(orders.send(Message::new("a"))).unwrap();
        let (received, took) = waits.join().unwrap();
        assert_eq!(bodies(&received), ["a"]);
        assert!(took < UNIT * 50, "{took:?}");
    });
}

#[test]
fn m6_a_message_that_a_process_was_told_of_which_hangs_is_found_by_the_next_who_looks() {
    let site = Site::new();
    let orders = site.open("orders");
    let mut process = Process::start(&site);
    site.until_waiting(1);
    process.gets("STOP");
    let (received, took) = timed(|| {
        // Tells the process, the only one who waits.
        finish(orders.send(Message::new("a"))).unwrap();
        site.until_waiting(0);
        (0..5).map(|_| receive(&orders, waiting(5))).find(|received| !received.is_empty())
    });
    assert_eq!(bodies(&received.unwrap()), ["a"]);
    assert!(took < UNIT * 20, "{took:?}");
    process.gets("KILL");
    process.child.wait().unwrap();
}

/// As one does that is suspended, or cut off by the network.
#[test]
fn m1_a_signal_ends_a_long_poll_soon_also_while_the_server_hangs() {
    let site = Site::new();
    let info = site.ask(ebbtide_redis::Command::new("INFO").arg("server")).bytes().unwrap();
    let info = String::from_utf8_lossy(&info).into_owned();
    let server = info.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap().parse().unwrap();
    let mut process = Process::start(&site);
    site.until_waiting(1);
    signal("STOP", server);
    let ((), took) = timed(|| {
        process.gets("TERM");
        process.ends_clean();
    });
    signal("CONT", server);
    // A server has five seconds to answer, and the command that blocks has sixty.
    assert!(took < 80 * UNIT, "{took:?}");
}
