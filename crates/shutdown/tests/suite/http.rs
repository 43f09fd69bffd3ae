//! Facts about health over HTTP: real sockets, on loopback.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use ebbtide_lifecycle::{
    Reason, Trigger,
    time::{Clock, Deadline, SystemClock, Tempo, VirtualClock},
};
use ebbtide_shutdown::health::{Health, HealthServer};

const SECOND: Duration = Duration::from_secs(1);

/// How many clients it serves at a time.
const CLIENTS_MAX: usize = 16;

struct Reply {
    status: String,
    fields: String,
    body: String,
}

impl Reply {
    fn read(mut client: TcpStream) -> io::Result<Self> {
        let mut text = String::new();
        client.read_to_string(&mut text)?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let (status, fields) = head.split_once("\r\n").unwrap();
        Ok(Self { status: status.into(), fields: fields.to_lowercase(), body: body.into() })
    }

    fn code(&self) -> &str {
        self.status.split(' ').nth(1).unwrap()
    }

    fn has(&self, field: &str) -> bool {
        self.fields.split("\r\n").any(|has| has == field)
    }
}

fn send(addr: SocketAddr, request: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(addr).unwrap();
    client.write_all(request).unwrap();
    client
}

fn ask(addr: SocketAddr, request: &str) -> Reply {
    Reply::read(send(addr, request.as_bytes())).unwrap()
}

fn get(addr: SocketAddr, path: &str) -> Reply {
    ask(addr, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

fn serve(health: &Health) -> (HealthServer, SocketAddr) {
    let server = HealthServer::start(health, 0).unwrap();
    let addr = server.local_addr();
    (server, addr)
}

#[test]
fn it_answers_yes_with_200_and_no_with_503_and_the_reasons() {
    let clock = VirtualClock::new();
    let health = Health::with_tempo(Tempo::Virtual(clock.clone()));
    let (_server, addr) = serve(&health);
    assert_eq!(addr.ip(), Ipv4Addr::LOCALHOST);
    for path in ["/health/live", "/health/ready", "/health/ready?verbose=1"] {
        let reply = get(addr, path);
        assert_eq!(reply.status, "HTTP/1.1 200 OK");
        assert_eq!(reply.body, r#"{"status":"ok","findings":[]}"#);
        assert!(reply.has("content-type: application/json"));
        assert!(reply.has(&format!("content-length: {}", reply.body.len())));
        assert!(reply.has("cache-control: no-store"));
        assert!(reply.has("connection: close"));
    }
    let condition = health.condition("database");
    condition.unmet("connecting");
    let reply = get(addr, "/health/ready");
    assert_eq!(reply.status, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(
        reply.body,
        r#"{"status":"unavailable","findings":[{"name":"database","reason":"connecting"}]}"#
    );
    assert_eq!(get(addr, "/health/live").code(), "200", "live stays green while it is not ready");

    let heartbeat = health.heartbeat("ingest", SECOND).unwrap();
    heartbeat.beat();
    clock.advance(SECOND);
    let reply = get(addr, "/health/live");
    assert_eq!(reply.code(), "503");
    assert_eq!(reply.body, health.live().to_json());
}

#[test]
fn head_gets_all_but_the_body() {
    let health = Health::new();
    let _condition = health.condition("database");
    let (_server, addr) = serve(&health);
    for path in ["/health/live", "/health/ready"] {
        let (get, head) = (get(addr, path), ask(addr, &format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n")));
        assert_eq!((&head.status, &head.fields), (&get.status, &get.fields));
        assert_eq!(head.body, "");
        assert_ne!(get.body, "");
    }
}

#[test]
fn what_is_not_a_question_about_health_is_refused() {
    let (_server, addr) = serve(&Health::new());
    let long = format!("GET /health/live HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9000));
    let far_too_long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(50_000));
    let table = [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("GET /health HTTP/1.1\r\n\r\n", "404"),
        ("GET /health/live/ HTTP/1.1\r\n\r\n", "404"),
        ("POST /nowhere HTTP/1.1\r\n\r\n", "404"),
        ("POST /health/live HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", "405"),
        ("get /health/live HTTP/1.1\r\n\r\n", "405"),
        ("GET /health/live\r\n\r\n", "400"),
        ("GET  /health/live HTTP/1.1\r\n\r\n", "400"),
        ("GET /health/live HTTP/1.1 more\r\n\r\n", "400"),
        ("GET health/live HTTP/1.1\r\n\r\n", "400"),
        ("PRI * HTTP/2.0\r\n\r\n", "400"),
        ("GET /health/live HTTP/1.1\r\nno field\r\n\r\n", "400"),
        ("GET /health/live HTTP/1.1\r\n: no name\r\n\r\n", "400"),
        ("\r\n\r\n", "400"),
        ("GET ftp://x/health/live HTTP/1.1\r\n\r\n", "400"),
        ("GET http:///health/live HTTP/1.1\r\n\r\n", "400"),
        ("GET http://x HTTP/1.1\r\n\r\n", "404"),
        ("GET http://x?/health/live HTTP/1.1\r\n\r\n", "404"),
        (&long, "431"),
        (&far_too_long, "431"),
        ("GET /health/live HTTP/1.0\n\n", "200"),
        ("GET /health/live HTTP/1.1\r\nHost: a:b\r\nX-Empty:\r\n\r\n", "200"),
    ];
    for (request, code) in table {
        let client = send(addr, request.as_bytes());
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let reply = Reply::read(client).unwrap();
        assert_eq!(reply.code(), code, "{request:.60}");
        assert_eq!(reply.has("allow: get, head"), code == "405", "{request:.60}");
        serde_json::from_str::<serde_json::Value>(&reply.body).unwrap();
    }
    assert_eq!(Reply::read(send(addr, b"GET /\xff HTTP/1.1\r\n\r\n")).unwrap().code(), "400");
}

/// RFC 9112, 2.2 and 3.2.2; RFC 9110, 5.5.
#[test]
fn every_form_of_a_request_that_http_has_is_understood() {
    let (_server, addr) = serve(&Health::new());
    let table: [&[u8]; 7] = [
        b"GET http://x/health/live HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET HTTP://x:80/health/live?a=/b HTTP/1.1\r\nHost: x:80\r\n\r\n",
        b"GET https://[::1]/health/live HTTP/1.1\r\nHost: [::1]\r\n\r\n",
        b"\r\nGET /health/live HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\nGET /health/live HTTP/1.1\n\n",
        b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-Name: caf\xe9\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nX-Name: \xff\xfe:\r\nHost: x\r\n\r\n",
    ];
    for request in table {
        let reply = Reply::read(send(addr, request)).unwrap();
        assert_eq!(reply.code(), "200", "{}", request.escape_ascii());
    }
    for request in [&b"GET / HTTP/1.1\r\nX-\xff: x\r\n\r\n"[..], b"G\xffT / HTTP/1.1\r\n\r\n"] {
        let reply = Reply::read(send(addr, request)).unwrap();
        assert_eq!(reply.code(), "400", "names are ASCII: {}", request.escape_ascii());
    }
}

#[test]
fn a_request_that_ends_before_its_end_is_refused_and_one_that_never_began_is_closed() {
    let (_server, addr) = serve(&Health::new());
    for (request, code) in [("GET /health/live HTTP/1.1\r\n", Some("400")), ("", None)] {
        let client = send(addr, request.as_bytes());
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let reply = Reply::read(client);
        assert_eq!(reply.as_ref().ok().map(Reply::code), code);
    }
}

#[test]
fn a_client_that_is_refused_may_finish_what_it_says() {
    let (_server, addr) = serve(&Health::new());
    let mut client = send(addr, b"POST /health/live HTTP/1.1\r\nContent-Length: 40000\r\n\r\n");
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 405 "));
    for _ in 0..40 {
        client.write_all(&[b'x'; 1000]).expect("the server still listens");
        thread::yield_now();
    }
}

/// Whether it was answered, or closed.
fn was_let_go(client: &TcpStream) -> bool {
    client.set_nonblocking(true).unwrap();
    let read = client.peek(&mut [0]);
    !read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn of_too_many_clients_that_do_not_finish_one_leaves_for_a_probe_long_before_its_two_seconds() {
    for dripping in [false, true] {
        let (_server, addr) = serve(&Health::new());
        let unfinished: Vec<_> = (0..CLIENTS_MAX).map(|n| send(addr, &b"GET"[..n % 4])).collect();
        let mut probe = send(addr, b"GET /health/live HTTP/1.1\r\n\r\n");
        probe.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut reply = [0; 12];
        while let Err(error) = probe.read_exact(&mut reply) {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "it waits");
            if dripping {
                // Refused by the one that has left.
                unfinished.iter().for_each(|mut client| drop(client.write(b"x")));
            }
        }
        assert_eq!(&reply, b"HTTP/1.1 200");
        assert_eq!(unfinished.iter().filter(|client| was_let_go(client)).count(), 1, "dripping: {dripping}");
    }
}

#[test]
fn a_client_that_was_refused_and_stays_leaves_for_a_probe() {
    let (_server, addr) = serve(&Health::new());
    let start = SystemClock.now();
    let _refused: Vec<_> = (0..CLIENTS_MAX).map(|_| send(addr, b"GET / HTTP/1.1\r\n\r\n")).collect();
    assert_eq!(get(addr, "/health/live").code(), "200");
    let took = SystemClock.now() - start;
    assert!(took < 2 * SECOND, "{took:?}");
}

#[test]
fn more_clients_than_there_are_places_for_wait_and_each_is_answered() {
    let (_server, addr) = serve(&Health::new());
    // All places are taken when the others come.
    let silent: Vec<_> = (0..CLIENTS_MAX).map(|_| send(addr, b"")).collect();
    let request = b"GET /health/live HTTP/1.1\r\n\r\n";
    let probes: Vec<_> = (0..3 * CLIENTS_MAX).map(|_| send(addr, request)).collect();
    for probe in probes {
        assert_eq!(Reply::read(probe).unwrap().code(), "200");
    }
    drop(silent);
}

/// In real time, because that is what a socket knows: it takes two seconds.
#[test]
fn a_client_that_sends_a_byte_now_and_then_is_cut_off_after_two_seconds() {
    let (_server, addr) = serve(&Health::new());
    let start = SystemClock.now();
    let mut client = send(addr, b"GET /health/live HTTP/1.1\r\nX: ");
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut reply = [0; 12];
    loop {
        match client.read_exact(&mut reply) {
            Ok(()) => break,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        client.write_all(b"x").unwrap();
    }
    assert_eq!(&reply, b"HTTP/1.1 408");
    let took = SystemClock.now() - start;
    assert!(took >= 2 * SECOND && took < 20 * SECOND, "{took:?}");
}

#[test]
fn a_dropped_server_has_closed_its_port_and_let_its_clients_go() {
    let health = Health::new();
    let (server, addr) = serve(&health);
    assert_eq!(get(addr, "/health/live").code(), "200");
    let start = SystemClock.now();
    let silent = send(addr, b"GET");
    // Answered after the silent one was accepted: the queue is first in, first out.
    assert_eq!(get(addr, "/health/live").code(), "200");
    drop(server);
    assert!(SystemClock.now() - start < 20 * SECOND);
    assert_eq!(TcpStream::connect(addr).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    silent.set_nonblocking(true).unwrap();
    assert_eq!(Reply::read(silent).unwrap().code(), "408", "the one that was there has been answered");
    let again = HealthServer::start_at(&health, addr).unwrap();
    assert_eq!(again.local_addr(), addr);
}

/// The answer is more than the buffers of both sides hold, and at this pace it takes a minute.
#[test]
fn a_client_that_takes_its_answer_slowly_keeps_a_dropped_server_for_two_seconds_only() {
    let health = Health::new();
    let condition = health.condition("large");
    condition.unmet("x".repeat(32 << 20));
    let (server, addr) = serve(&health);
    let mut client = send(addr, b"GET /health/ready HTTP/1.1\r\n\r\n");
    client.read_exact(&mut [0; 12]).unwrap();
    let (start, dropped) = (SystemClock.now(), Trigger::new());
    let reader = thread::spawn({
        let dropped = dropped.token();
        let mut part = vec![0; 64 << 10];
        move || {
            let pause = || Deadline::after(SystemClock, Duration::from_millis(100));
            while client.read(&mut part).is_ok_and(|count| count > 0) {
                if dropped.triggered().wait_by(pause()).is_ok() {
                    break;
                }
            }
        }
    });
    drop(server);
    let took = SystemClock.now() - start;
    dropped.fire(Reason::requested("the test ends"));
    reader.join().unwrap();
    assert!(took < 10 * SECOND, "{took:?}");
}

#[test]
fn it_serves_where_it_is_told_to() {
    let server = HealthServer::start_at(&Health::new(), (Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
    let addr = server.local_addr();
    assert!(addr.ip().is_unspecified());
    assert_eq!(get((Ipv4Addr::LOCALHOST, addr.port()).into(), "/health/live").code(), "200");
}

#[test]
fn an_unusable_port_says_which_why_and_what_to_do() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = taken.local_addr().unwrap();
    let error = HealthServer::start(&Health::new(), addr.port()).unwrap_err();
    assert_eq!(error.addr(), addr);
    let text = error.to_string();
    assert!(text.starts_with(&format!("health cannot be served at {addr}: ")), "{text}");
    assert!(text.ends_with("; choose another port, or 0 for one that is free"), "{text}");
    let foreign = HealthServer::start_at(&Health::new(), "192.0.2.1:0".parse().unwrap()).unwrap_err();
    assert!(foreign.to_string().ends_with("; choose an address of this machine"), "{foreign}");
}

#[cfg(target_os = "linux")]
mod without_files {
    //! A process that has run out of files, which has to be one of its own.

    use std::{
        fs::File,
        io::{BufRead, BufReader, stdin},
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn a_program_that_has_run_out_of_files_answers_when_it_has_some_again() {
        let child = "http::without_files::runs_out_of_files_until_it_is_told";
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -n 64; exec \"$0\" --exact \"$1\" --ignored --nocapture"])
            .arg(std::env::current_exe().unwrap())
            .arg(child)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let addr = lines.find_map(|line| line.strip_prefix("full ").map(str::to_owned)).unwrap();
        let addr: SocketAddr = addr.parse().unwrap();

        // A thread that waits in `accept` has got its file already; the first client takes it.
        let _first = send(addr, b"GET");
        let client = send(addr, b"GET /health/live HTTP/1.1\r\n\r\n");
        client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let unanswered = (&client).read(&mut [0]).unwrap_err();
        assert_eq!(unanswered.kind(), io::ErrorKind::WouldBlock);
        let mut tell = child.stdin.take().unwrap();
        tell.write_all(b"\n").unwrap();
        client.set_read_timeout(None).unwrap();
        assert_eq!(Reply::read(client).unwrap().code(), "200");

        drop(tell);
        let spent = lines.find_map(|line| line.strip_prefix("spent ").map(str::to_owned)).unwrap();
        assert!(spent.parse::<u64>().unwrap() < 15, "it spun: {spent} ticks of 10 ms in half a second");
        assert!(child.wait().unwrap().success());
    }

    #[test]
    #[ignore = "it is the child of the test above"]
    fn runs_out_of_files_until_it_is_told() {
        let (server, addr) = serve(&Health::new());
        let mut stat = File::open("/proc/self/stat").unwrap();
        let mut files = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            files.push(file);
        }
        println!("\nfull {addr}");
        stdin().lock().read_line(&mut String::new()).unwrap();
        drop(files);
        let mut text = String::new();
        stat.read_to_string(&mut text).unwrap();
        // The 14th and 15th field; the second ends with the last parenthesis.
        let fields = text.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
        println!("spent {}", fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>());
        // Until the parent has its answer, and closes.
        stdin().lock().read_line(&mut String::new()).unwrap();
        drop(server);
    }
}
