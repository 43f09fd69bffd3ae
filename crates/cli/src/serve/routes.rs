//! Which path is answered by what.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    time::Instant,
};

use ebbtide::{
    dag::{RunError, json::nearest},
    lifecycle::{Admission, Outcome, time::Tempo},
    timeout::timeout,
};
use ebbtide_rank::Request;
use hyper::{
    Method, StatusCode,
    body::{Body as _, Bytes, Incoming},
    header::{ALLOW, HeaderValue},
};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::{
    metrics::{self, Counted, Said},
    reply::{self, Reply},
    service::Desk,
};
use crate::engine::Engine;

impl Desk {
    /// Answers a request. Says when, too.
    pub(super) async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        work: &Admission<Tempo>,
    ) -> (Reply, Instant) {
        let is_post = request.method() == Method::POST;
        let plan = request.uri().path().strip_prefix("/plans/").and_then(|name| self.find(name));
        if let Some(at) = plan.filter(|_| is_post) {
            return self.run(at, request.into_body(), work).await;
        }
        (self.tell(&request), self.site().events.now())
    }

    /// Answers what needs no run.
    fn tell(&self, request: &hyper::Request<Incoming>) -> Reply {
        let path = request.uri().path();
        if let Some(name) = path.strip_prefix("/plans/") {
            return if self.find(name).is_some() { not_allowed("POST") } else { self.unknown(path, name) };
        }
        if !matches!(path, "/plans" | "/metrics" | "/health/live" | "/health/ready") {
            return self.unknown(path, path);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return not_allowed("GET, HEAD");
        }
        match path {
            "/plans" => self.list(),
            "/metrics" => {
                reply::with_type(StatusCode::OK, "text/plain; version=0.0.4", metrics::text(&self.service))
            }
            "/health/live" => reply::with_type(StatusCode::OK, "text/plain", "live\n"),
            _ if self.service.app.token().is_triggered() => {
                reply::with_type(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "stopping\n")
            }
            _ => reply::with_type(StatusCode::OK, "text/plain", "ready\n"),
        }
    }

    /// The plan of this name, which may be written as a URL has to.
    fn find(&self, name: &str) -> Option<usize> {
        let named = |name: &str| self.site().engines.iter().position(|engine| engine.name() == name);
        named(name).or_else(|| named(&percent_decode_str(name).decode_utf8().ok()?))
    }

    /// Runs a plan for the request in the body.
    async fn run(&self, at: usize, body: Incoming, work: &Admission<Tempo>) -> (Reply, Instant) {
        let (site, requests) = (self.site(), &self.service.requests);
        let (engine, begin) = (&site.engines[at], site.events.now());
        let refused = |late| {
            site.metrics.refused();
            let answered = requests.in_flight();
            let message = match late {
                0 => format!("{answered} requests are being answered: try again later"),
                late => format!(
                    "{answered} requests are being answered, and {late} nodes of others still go on: try again later"
                ),
            };
            (reply::later("overloaded", message), begin)
        };
        let Ok(permit) = requests.enter() else { return refused(0) };
        // Where nothing answers, each request would leave something behind, and there is no end to requests.
        let late = self.service.late_now();
        if late > 0 && late + requests.in_flight() > self.service.requests_max {
            permit.settle(Outcome::HandedBack);
            return refused(late);
        }
        let counted = Counted::new(site, at, begin);
        let (said, reply) = match self.read(body).await {
            Ok(request) => {
                // It is a child of work that was accepted: none is refused but by a stop that has given up.
                match work.fork(engine.origin()) {
                    Ok(work) => {
                        let answer = answer(engine, request).await;
                        let outcome = if answer.0 == Said::Ok { Outcome::Completed } else { Outcome::Failed };
                        work.settle(outcome);
                        answer
                    }
                    Err(_) => (Said::Failed, reply::later("stopping", "the server stops")),
                }
            }
            Err(wrong) => (Said::Wrong, wrong),
        };
        permit.settle(Outcome::Completed);
        (reply, counted.end(said))
    }

    /// Reads a request, or says what is wrong with it.
    async fn read(&self, mut body: Incoming) -> Result<Arc<Request>, Reply> {
        let (body_max, body_timeout) = (self.service.body_max, self.service.body_timeout);
        let too_large = || {
            let message = format!("a request may have {body_max} bytes");
            reply::wrong(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        };
        // One that says so is not waited for.
        if usize::try_from(body.size_hint().lower()).map_or(true, |length| length > body_max) {
            return Err(too_large());
        }
        // Pinned here, so that the timeout has nothing to drop.
        let whole = pin!(whole(&mut body, body_max));
        let body = match timeout(&self.site().events, body_timeout, whole).await {
            Ok(Ok(body)) => body,
            Ok(Err(Unread::TooLarge)) => return Err(too_large()),
            Ok(Err(Unread::Broken(error))) => {
                let message = format!("the request ended too early: {error}");
                return Err(reply::wrong(StatusCode::BAD_REQUEST, "bad_request", message));
            }
            Err(_) => {
                let message = format!("the request was not there within {body_timeout:?}");
                return Err(reply::wrong(StatusCode::REQUEST_TIMEOUT, "too_slow", message));
            }
        };
        let wrong = |message: String| reply::wrong(StatusCode::BAD_REQUEST, "bad_request", message);
        let text =
            std::str::from_utf8(&body).map_err(|_| wrong("the request is not UTF-8 text".to_owned()))?;
        Request::from_json(text).map(Arc::new).map_err(|error| wrong(error.to_string()))
    }

    fn list(&self) -> Reply {
        let plan = |engine: &Engine| {
            json!({
                "name": engine.name(),
                "nodes": engine.plan().len(),
                "deadline_ms": engine.plan().deadline().map(|deadline| deadline.as_secs_f64() * 1e3),
                "sample_request": engine.plan().sample_request(),
            })
        };
        let plans: Vec<_> = self.site().engines.iter().map(plan).collect();
        reply::json(StatusCode::OK, format!("{}\n", json!({"plans": plans})))
    }

    fn unknown(&self, path: &str, name: &str) -> Reply {
        let message = match nearest(name, self.service.names()) {
            Some(near) => format!("there is nothing at {path} (did you mean /plans/{near}?)"),
            None => format!("there is nothing at {path}: see /plans"),
        };
        reply::wrong(StatusCode::NOT_FOUND, "not_found", message)
    }
}

/// Why there is no body.
enum Unread {
    TooLarge,
    Broken(hyper::Error),
}

/// All of a body, of so many bytes at most. What comes in one piece, as most do, is not copied.
async fn whole(body: &mut Incoming, most: usize) -> Result<Bytes, Unread> {
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        // What is no data is a trailer, which nobody asks for.
        let Ok(data) = frame.map_err(Unread::Broken)?.into_data() else { continue };
        if data.len() > most - first.len().max(all.len()) {
            return Err(Unread::TooLarge);
        }
        if first.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

/// So large an answer may be before its memory has to grow.
const BODY_EXPECTED: usize = 1 << 10;

async fn answer(engine: &Engine, request: Arc<Request>) -> (Said, Reply) {
    match engine.run(request.clone()).await {
        Ok(outputs) => {
            let mut body = Vec::with_capacity(BODY_EXPECTED);
            engine.write(&request, &outputs, None, &mut body);
            body.push(b'\n');
            (Said::Ok, reply::json(StatusCode::OK, body))
        }
        Err(error @ (RunError::Deadline { .. } | RunError::TimedOut { .. } | RunError::Expired)) => {
            (Said::TimedOut, reply::wrong(StatusCode::GATEWAY_TIMEOUT, error.code(), error.to_string()))
        }
        Err(error @ (RunError::Refused(_) | RunError::TooShort { .. } | RunError::Cancelled { .. })) => {
            (Said::Failed, reply::later(error.code(), error.to_string()))
        }
        Err(error) => {
            (Said::Failed, reply::wrong(StatusCode::INTERNAL_SERVER_ERROR, error.code(), error.to_string()))
        }
    }
}

fn not_allowed(allowed: &'static str) -> Reply {
    let message = format!("only {allowed} can be asked here");
    let mut reply = reply::wrong(StatusCode::METHOD_NOT_ALLOWED, "not_allowed", message);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}
