//! A coordinator's health: over HTTP, under a watchdog, and as systemd is told of it.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::mpsc,
};

use ebbtide_shutdown::{
    Coordinator, OnStall, Priority, Reason, StartError,
    lifecycle::{Outcome, time::Timer},
};

use crate::{Fixture, SECOND, gate, reason};

#[cfg(feature = "http")]
fn get(server: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[cfg(feature = "http")]
#[test]
fn s7_live_stays_green_through_the_whole_stop_and_ready_turns_red_first() {
    let coordinator = Coordinator::builder()
        .observer(|_| ())
        .health_server(SocketAddr::from(([127, 0, 0, 1], 0)))
        .start()
        .unwrap();
    let at = coordinator.health_address().unwrap();
    let is_live = || get(at, "/health/live").starts_with("HTTP/1.1 200 ");
    let ready = || get(at, "/health/ready");
    assert!(is_live());
    assert!(ready().contains("\"name\":\"started\""), "not before it says so");
    coordinator.ready();
    assert!(ready().starts_with("HTTP/1.1 200 "));

    let request = coordinator.intake().admit().unwrap();
    let (release, released) = gate();
    let (begun, begins) = gate();
    let block = move |_: _, _: &_| {
        begun.send(()).unwrap();
        let _ = released.recv();
        Ok(())
    };
    coordinator.on_stop("blocks", Priority(0), block).unwrap().keep();
    let closing = coordinator.closing();
    let stopped = coordinator.stop(reason());
    closing.triggered().wait();
    assert!(ready().starts_with("HTTP/1.1 503 ") && is_live(), "while it drains");
    assert!(ready().contains("stopping: requested: test"), "{}", ready());
    request.settle(Outcome::Completed);
    begins.recv().unwrap();
    assert!(ready().starts_with("HTTP/1.1 503 ") && is_live(), "while a component hangs");
    drop(release);
    assert!(stopped.wait().is_clean());
    assert!(ready().starts_with("HTTP/1.1 503 ") && is_live(), "when it has stopped");
}

#[cfg(feature = "http")]
#[test]
fn a_port_that_is_taken_is_an_error_that_says_so() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let refused = Coordinator::builder().health_server(at).start().unwrap_err();
    assert!(matches!(refused, StartError::Health(_)));
    assert!(refused.to_string().contains(&at.to_string()), "{refused}");
}

#[test]
fn s7_a_stalled_heartbeat_is_named_and_may_stop_the_program() {
    let fixture = Fixture::new();
    let coordinator = fixture.builder().on_stall(OnStall::Stop).start().unwrap();
    let heartbeat = coordinator.health().heartbeat("ingest", 10 * SECOND).unwrap();
    let report = fixture.clock.block_on(async {
        heartbeat.beat();
        fixture.clock.sleep_until(fixture.start + 4 * SECOND).await;
        heartbeat.beat();
        coordinator.stopped().await
    });
    assert_eq!(fixture.elapsed(), 14 * SECOND);
    assert_eq!(report.exit_code(), 70, "{report}");
    assert!(
        matches!(report.reason(), Reason::Failed { component, .. } if &**component == "ingest"),
        "{report}"
    );
    assert!(report.to_string().contains("tests/suite/vitals.rs:"), "{report}");
    assert!(!coordinator.health().live().is_ok());
}

#[test]
fn s7_or_it_is_only_told_or_the_process_ends() {
    for (policy, ends) in [(OnStall::Tell, false), (OnStall::Exit, true)] {
        let fixture = Fixture::new();
        let (exit, exits) = mpsc::channel();
        let builder = fixture.builder().on_stall(policy).exit(move |code| exit.send(code).unwrap());
        let coordinator = builder.start().unwrap();
        let heartbeat = coordinator.health().heartbeat("ingest", SECOND).unwrap();
        fixture.clock.block_on(async {
            heartbeat.beat();
            fixture.clock.sleep_until(fixture.start + 2 * SECOND).await;
        });
        let told = fixture.log.lines();
        assert!(told[0].starts_with("1s: stalled: \"ingest\" at"), "{told:?}");
        assert_eq!(exits.try_iter().collect::<Vec<_>>(), if ends { vec![70] } else { vec![] });
        assert!(!coordinator.token().is_triggered());
        drop(heartbeat);
        let report = fixture.stop(&coordinator);
        assert!(report.warnings()[0].starts_with("stalled: \"ingest\""), "{report}");
    }
}

#[cfg(all(unix, feature = "systemd"))]
#[test]
fn s7_systemd_is_told_that_it_is_ready_stops_and_needs_more_time_while_something_ends() {
    use std::os::unix::net::UnixDatagram;

    let folder = std::env::temp_dir().join(format!("ebbtide-vitals-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    let fixture = Fixture::new();
    let variables = |name: &str| match name {
        "NOTIFY_SOCKET" => Some(path.clone().into()),
        "WATCHDOG_USEC" => Some("soon".into()),
        _ => None,
    };
    let coordinator = fixture.builder().systemd_by(variables).start().unwrap();
    coordinator.ready();
    let requests: Vec<_> = (0..2).map(|_| coordinator.intake().admit().unwrap()).collect();
    let report = fixture.clock.block_on(async {
        let stopped = coordinator.stop(reason());
        for (after, request) in (1..).zip(requests) {
            fixture.clock.sleep_until(fixture.start + after * 6 * SECOND).await;
            request.settle(Outcome::Completed);
        }
        stopped.await
    });
    assert!(report.is_clean());
    assert!(report.warnings()[0].contains("WATCHDOG_USEC"), "{report}");
    systemd.set_nonblocking(true).unwrap();
    let mut buffer = [0; 500];
    let messages = std::iter::from_fn(|| systemd.recv(&mut buffer).ok().map(|n| buffer[..n].to_vec()));
    let messages: Vec<_> = messages.map(|message| String::from_utf8(message).unwrap()).collect();
    let statuses = messages.iter().filter(|message| message.starts_with("STATUS="));
    assert_eq!(statuses.count(), 4, "{messages:#?}");
    let others: Vec<_> = messages.iter().filter(|message| !message.starts_with("STATUS=")).collect();
    assert_eq!(
        others,
        ["READY=1", "STOPPING=1", "EXTEND_TIMEOUT_USEC=33000000", "EXTEND_TIMEOUT_USEC=10000000"],
        "once for the whole stop, and at 10 s, when one of two requests had ended"
    );
    std::fs::remove_dir_all(folder).unwrap();
}
