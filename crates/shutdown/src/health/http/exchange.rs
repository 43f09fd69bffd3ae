//! One request and its answer: so much of HTTP/1.1 (RFC 9112) as a probe needs.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use ebbtide_lifecycle::time::{Clock, Deadline, SystemClock};

use super::{EXCHANGE_MAX, Health, places::Place};

/// How long a request may be: what a load balancer sends has some hundred bytes.
const REQUEST_MAX: usize = 8 * 1024;

/// How much of what a refused client goes on sending is read, so that it gets to read the refusal: closing with
/// something unread takes the answer away from it.
const UNREAD_MAX: usize = 64 * 1024;

/// How long a client has its place for sure, although others wait: a quarter of the second that most probes give an
/// answer, and much more than one whose request is on its way needs.
const PATIENCE: Duration = Duration::from_millis(250);

/// How often a client that says nothing, or does not listen, is asked to give way: a part of what others then wait.
const LOOK: Duration = Duration::from_millis(50);

/// Reads a request, answers it, and closes.
pub(super) fn exchange(health: &Health, client: TcpStream, place: &Place) -> io::Result<()> {
    let mut client = Timed::new(client, place);
    let request = match read_head(&mut client) {
        Ok(head) => parse(&head).ok_or(Answer::refusal(BAD_REQUEST, "this is no request of HTTP/1")),
        Err(Cut::Empty) => return Ok(()),
        Err(Cut::Short) => Err(Answer::refusal(BAD_REQUEST, "the request ends before its end")),
        Err(Cut::Long) => Err(Answer::refusal(TOO_LARGE, "a request may have 8 KiB")),
        Err(Cut::Late) => Err(Answer::refusal(TIMEOUT, "the request takes too long")),
        Err(Cut::Broken(error)) => return Err(error),
    };
    let without_body = request.as_ref().is_ok_and(|request| request.method == Method::Head);
    let answer = request.map_or_else(|refusal| refusal, |request| answer(health, &request));
    client.write_all(answer.to_http(without_body).as_bytes())?;
    client.client.shutdown(Shutdown::Write)?;
    if answer.refuses {
        client.read_rest()?;
    }
    Ok(())
}

/// A client that has to be done by a deadline, however it spreads its bytes, or when another waits for its place.
struct Timed<'a> {
    client: TcpStream,
    place: &'a Place,
    /// One for all that is read and written.
    deadline: Deadline,
    /// Until when it need not give way.
    patience: Deadline,
    /// Whether its time is over. It stays so.
    late: bool,
}

impl<'a> Timed<'a> {
    fn new(client: TcpStream, place: &'a Place) -> Self {
        let after = |duration| Deadline::after(SystemClock, duration);
        Self { client, place, deadline: after(EXCHANGE_MAX), patience: after(PATIENCE), late: false }
    }

    /// How long it may block before it asks again. Nothing once its time is over.
    fn turn(&mut self) -> Option<Duration> {
        let now = SystemClock.now();
        let gives_way = || self.patience.is_expired(now) && self.place.gives_way();
        self.late = self.late || self.deadline.is_expired(now) || gives_way();
        let left = self.deadline.remaining(now).map_or(LOOK, |left| left.min(LOOK));
        (!self.late).then_some(left)
    }

    fn read_rest(&mut self) -> io::Result<()> {
        let mut rest = self.take(UNREAD_MAX as u64);
        io::copy(&mut rest, &mut io::sink()).map(drop)
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(turn) = self.turn() {
            self.client.set_read_timeout(Some(turn))?;
            match self.client.read(buffer) {
                Err(error) if is_timeout(&error) => {}
                result => return result,
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while let Some(turn) = self.turn() {
            self.client.set_write_timeout(Some(turn))?;
            match self.client.write(bytes) {
                Err(error) if is_timeout(&error) => {}
                result => return result,
            }
        }
        // An answer to one that is late is not waited for, but it still fits into the socket's buffer.
        self.client.set_nonblocking(true)?;
        self.client.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.client.flush()
    }
}

/// Whether a socket's timeout has passed: systems differ in how they say so.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Why there is no request.
enum Cut {
    /// The client came and went: a load balancer that only looks whether the port is open.
    Empty,
    Short,
    Long,
    Late,
    Broken(io::Error),
}

/// Reads all up to the empty line.
fn read_head(client: &mut impl Read) -> Result<Vec<u8>, Cut> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    loop {
        let count = match client.read(&mut part) {
            Ok(0) if head.is_empty() => return Err(Cut::Empty),
            Ok(0) => return Err(Cut::Short),
            Ok(count) => count,
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::TimedOut => return Err(Cut::Late),
                _ => return Err(Cut::Broken(error)),
            },
        };
        head.extend_from_slice(&part[..count]);
        // The empty line may have begun in the parts before.
        if let Some(end) = end_of_head(&head) {
            head.truncate(end);
            return Ok(head);
        }
        if head.len() >= REQUEST_MAX {
            return Err(Cut::Long);
        }
    }
}

/// Where the empty line is. A line may end without a carriage return: people type requests.
fn end_of_head(head: &[u8]) -> Option<usize> {
    let is_end = |at: &usize| head[*at..].starts_with(b"\n\n") || head[*at..].starts_with(b"\n\r\n");
    (0..head.len()).find(is_end)
}

struct Request {
    method: Method,
    path: String,
}

#[derive(PartialEq, Eq)]
enum Method {
    Get,
    Head,
    Other,
}

fn parse(head: &[u8]) -> Option<Request> {
    // Some clients send an empty line after the request before (RFC 9112, 2.2).
    let head = head.strip_prefix(b"\r\n").or(head.strip_prefix(b"\n")).unwrap_or(head);
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut words = str::from_utf8(lines.next()?).ok()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_http = matches!(version, "HTTP/1.0" | "HTTP/1.1") && words.next().is_none();
    if !is_http || !is_token(method.as_bytes()) || !lines.all(is_field) {
        return None;
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => Method::Other,
    };
    Some(Request { method, path: path_of(target)?.to_owned() })
}

/// What is asked for, without the query. All servers have to know both the origin form and the absolute form (RFC
/// 9112, 3.2), whose path may be empty.
fn path_of(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return target.split('?').next();
    }
    let (scheme, rest) = target.split_once("://")?;
    let is_known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if is_known && !authority.is_empty() { path.split('?').next() } else { None }
}

/// Whether it has a name and a value. The value may be in any encoding.
fn is_field(line: &[u8]) -> bool {
    line.iter().position(|byte| *byte == b':').is_some_and(|colon| is_token(&line[..colon]))
}

/// Whether it may be the name of a method or a field.
fn is_token(text: &[u8]) -> bool {
    let is_mark = |byte| b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

const OK: &str = "200 OK";
const BAD_REQUEST: &str = "400 Bad Request";
const NOT_FOUND: &str = "404 Not Found";
const NOT_ALLOWED: &str = "405 Method Not Allowed";
const TIMEOUT: &str = "408 Request Timeout";
const TOO_LARGE: &str = "431 Request Header Fields Too Large";
const UNAVAILABLE: &str = "503 Service Unavailable";

struct Answer {
    status: &'static str,
    /// A field that only this answer has.
    field: &'static str,
    json: String,
    /// Whether the client may be still sending.
    refuses: bool,
}

impl Answer {
    /// `why` has no character that JSON would escape.
    fn refusal(status: &'static str, why: &'static str) -> Self {
        Self { status, field: "", json: format!("{{\"error\":\"{why}\"}}"), refuses: true }
    }

    fn to_http(&self, without_body: bool) -> String {
        let Self { status, field, json, .. } = self;
        let (length, body) = (json.len(), if without_body { "" } else { json });
        format!(
            "HTTP/1.1 {status}\r\n{field}Content-Type: application/json\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}"
        )
    }
}

fn answer(health: &Health, request: &Request) -> Answer {
    let ask = match request.path.as_str() {
        "/health/live" => Health::live,
        "/health/ready" => Health::ready,
        _ => return Answer::refusal(NOT_FOUND, "there are /health/live and /health/ready"),
    };
    if request.method == Method::Other {
        let refusal = Answer::refusal(NOT_ALLOWED, "it can be asked for by GET and HEAD");
        return Answer { field: "Allow: GET, HEAD\r\n", ..refusal };
    }
    let probe = ask(health);
    let status = if probe.is_ok() { OK } else { UNAVAILABLE };
    Answer { status, field: "", json: probe.to_json(), refuses: false }
}
